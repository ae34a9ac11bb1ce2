# SPDX-License-Identifier: LGPL-2.1-or-later
# Of build-image and build-deb: the machine's own Debian. Sets suite, sources, cache.

cache=${MTHPD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mthpd}/systemd
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$suite" ] || die "this runs on Debian"
sources=()
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
	[ -e "$file" ] && grep -qE "^[^#]*/debian" "$file" && sources+=("$file")
done
[ ${#sources[@]} -gt 0 ] || die "no Debian source in /etc/apt"
