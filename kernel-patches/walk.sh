#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# walk.sh BASE [--target=T] [BUILD-OPTION]...
#
# Builds every prefix of the series, from the first patch alone to all of them,
# and the whole series in the configurations that leave parts of it out. Stops at
# the first that does not build, and fails if one brings a compiler warning. Takes
# an hour on two CPUs; with --target=mm/ only that directory, with --target=touched
# only the files that the series changes, some minutes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
base=${1:?usage: walk.sh BASE [BUILD-OPTION]...}
shift
total=$(sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/$base/series" | wc -l)
log=$(mktemp "${TMPDIR:-/tmp}/mthpd-walk.XXXXXX")
trap 'rm -f "$log"' EXIT

built() { # TITLE BUILD-OPTION...
	local title=$1
	shift
	if ! "$here/build.sh" "$base" "$@" > "$log" 2>&1 || grep -qE 'warning:|error:' "$log"; then
		echo "FAIL  $title"
		cat "$log"
		exit 1
	fi
	echo "ok    $title"
}

for ((n = 1; n <= total; n++)); do
	built "patches 1 to $n" --upto="$n" "$@"
done
# What is left out cannot be named as a target, so ask for the directory.
set -- "${@/touched/mm/}"
built "no memory cgroups" --unset=MEMCG "$@"
built "no transparent huge pages" --unset=TRANSPARENT_HUGEPAGE --unset=READ_ONLY_THP_FOR_FS "$@"
built "no swap" --unset=SWAP "$@"
built "memory cgroups v1, zswap, NUMA" --set=MEMCG_V1 --set=ZSWAP --set=NUMA "$@"
