#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh: a kernel of a Debian base, with or without the series of this folder.
set -euo pipefail

usage() {
	cat <<'USAGE'
usage: build.sh BASE [OPTION]...         (BASE: a folder beside this script, as 6.12)
  --config=vm|debian  vm: the small kernel of the test guests (default);
                      debian: the configuration of Debian's own amd64 kernel
  --stock             the same kernel without the series, for comparison
  --upto=N            only the first N patches of the series
  --only=N[,N]...     only these patches, where they do without the others
  --debug             with lock, memory and sleep checks (config/debug.config)
  --set=OPT[=VALUE]   set CONFIG_OPT (y if no value); may be repeated
  --unset=OPT         switch CONFIG_OPT off; may be repeated
  --out=DIR           leave vmlinuz, config and System.map in DIR
  --deb               build Debian packages as well, into DIR (make bindeb-pkg)
  --target='T...'     only make these targets (as mm/), keep no result; "touched" is
                      the objects of the C files that the series changes
  --clean             build from nothing, in a directory of its own
  --source            print where the patched source is, build nothing
  --install-deps      apt-get install what is missing for building (as root)
Prints the directory with the result. Sources, object files and results are kept
below ${MTHPD_CACHE:-${XDG_CACHE_HOME:-~/.cache}/mthpd}; nothing else is written.
exit code: 0; 1 the build failed; 2 usage; 69 a tool or the source is missing;
65 a patch does not apply to this point release.
USAGE
}

here=$(cd "$(dirname "$0")" && pwd)
cache=${MTHPD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mthpd}
base="" config=vm variant=series upto="" only="" debug=no out="" deb=no target="" clean=no
source_only=no install_deps=no
options=()

say() { echo "build.sh: $*" >&2; }
fail() { say "$2"; exit "$1"; }

while [ $# -gt 0 ]; do
	case $1 in
	--config=vm | --config=debian) config=${1#*=} ;;
	--stock) variant=stock ;;
	--upto=*) upto=${1#*=} ;;
	--only=*) only=${1#*=} ;;
	--debug) debug=yes ;;
	--set=*) options+=("${1#*=}") ;;
	--unset=*) options+=("${1#*=}=n") ;;
	--out=*) out=${1#*=} ;;
	--deb) deb=yes ;;
	--target=*) target=${1#*=} ;;
	--clean) clean=yes ;;
	--source) source_only=yes ;;
	--install-deps) install_deps=yes ;;
	--help) usage; exit 0 ;;
	-*) usage >&2; exit 2 ;;
	*) [ -z "$base" ] || { usage >&2; exit 2; }; base=$1 ;;
	esac
	shift
done
[[ $base =~ ^[0-9]+\.[0-9]+$ ]] || { usage >&2; exit 2; }
[ "$variant" = stock ] || [ -r "$here/$base/series" ] ||
	fail 2 "there is no series for $base: $here/$base/series"
[[ $upto =~ ^[0-9]*$ ]] || fail 2 "--upto needs a number"
[[ $only =~ ^([0-9]+(,[0-9]+)*)?$ ]] || fail 2 "--only needs numbers, as 1,2,5"
[ -z "$upto" ] || [ -z "$only" ] || fail 2 "either --upto or --only"
jobs=${JOBS:-$(nproc)}

# What building needs, as "command package" and "header package".
check_tools() {
	local missing=() tool
	for tool in gcc:gcc make:make flex:flex bison:bison bc:bc xz:xz-utils perl:perl \
		patch:patch cpio:cpio flock:util-linux; do
		command -v "${tool%%:*}" > /dev/null || missing+=("${tool#*:}")
	done
	[ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
	if [ "$config" = debian ] || [ "$deb" = yes ]; then
		[ -e /usr/include/openssl/ssl.h ] || missing+=(libssl-dev)
		for tool in rsync:rsync kmod:kmod dpkg-buildpackage:dpkg-dev dh:debhelper; do
			command -v "${tool%%:*}" > /dev/null || missing+=("${tool#*:}")
		done
	fi
	[ ${#missing[@]} -gt 0 ] || return 0
	if [ "$install_deps" = yes ]; then
		apt-get install -y --no-install-recommends "${missing[@]}" >&2
	else
		fail 69 "missing: ${missing[*]}; try: apt-get install ${missing[*]}"
	fi
}

# A private apt setup: the machine's own sources, and beside each suite those in
# which Debian keeps newer kernels. Its lists live in the cache.
private_apt() {
	local apt=$cache/apt suite
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	find /etc/apt -maxdepth 2 \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
		sed -n 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p; s/^URIs: *\([^ ]*\).*/\1/p' |
		grep -v security | sort -u | while read -r uri; do
			for suite in bookworm bookworm-backports trixie trixie-backports; do
				echo "deb $uri $suite main"
			done
		done > "$apt/sources.list"
	private=(-o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt"
		-o Dir::Cache::Archives="$apt/archives" -o Acquire::Languages=none)
	apt-get "${private[@]}" update > "$apt/update.log" 2>&1 ||
		say "some suites cannot be reached, see $apt/update.log"
}

# Download PACKAGE into the cache and print the file. The newest version that
# the machine's own lists know, or a private setup if they know none.
fetch_package() { # PACKAGE
	local dir=$cache/archives version file
	private=()
	mkdir -p "$dir"
	version=$(package_version "$1")
	if [ -z "$version" ]; then
		private_apt
		version=$(package_version "$1")
	fi
	[ -n "$version" ] || fail 69 "apt knows no $1; run apt-get update, or add the suite that has it"
	file=$(ls "$dir/$1_${version//:/%3a}"_*.deb 2> /dev/null | head -n 1) || true
	if [ -z "$file" ]; then
		say "downloading $1 $version"
		(cd "$dir" && apt-get ${private[@]+"${private[@]}"} download "$1" > download.log 2>&1) ||
			fail 69 "cannot download $1: $(tail -n 1 "$dir/download.log")"
		file=$(ls "$dir/$1_${version//:/%3a}"_*.deb)
	fi
	echo "$file"
}

package_version() { # PACKAGE
	apt-cache ${private[@]+"${private[@]}"} policy "$1" 2> /dev/null |
		sed -n 's/^  Candidate: //p' | grep -v '(none)' || true
}

# Debian's source of BASE, unpacked once per version; sets pristine and version.
unpack_source() {
	local package=linux-source-$base file
	file=$(fetch_package "$package") || exit 69
	version=$(basename "$file" | cut -d_ -f2)
	pristine=$cache/kernel-source/$version
	[ ! -e "$pristine/complete" ] || return 0
	say "unpacking $package $version"
	rm -rf "$pristine" "$pristine.new"
	mkdir -p "$pristine.new"
	dpkg-deb --fsys-tarfile "$file" | tar -xO "./usr/src/$package.tar.xz" |
		xz -dc -T0 | tar -x -C "$pristine.new" --strip-components=1 ||
		fail 69 "cannot unpack $file"
	touch "$pristine.new/complete"
	mv "$pristine.new" "$pristine"
}

patch_list() { # the patches to apply, one file name per line
	[ "$variant" = series ] || return 0
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$here/$base/series" |
		if [ -n "$upto" ]; then
			head -n "$upto"
		elif [ -n "$only" ]; then
			sed -n "${only//,/p;}p"
		else
			cat
		fi
}

touched_files() { # FILE of patches, one per line: the files that they change
	while read -r name; do
		sed -n 's,^+++ b/\([^[:space:]]*\).*,\1,p' "$here/$base/$name"
	done < "$1" | sort -u
}

explain_failure() { # PATCH LOG: which patch, which hunks, and what might help
	say "$base/$1 does not apply to $version:"
	grep -E 'FAILED|can.t find|Hunk' "$2" | sed 's/^/  /' >&2
	say "the series was made for $(cat "$here/$base/BASE"); see its changes to those files since"
	if patch -p1 -F2 -s --dry-run -d "$patched" < "$here/$base/$1" > /dev/null 2>&1; then
		say "it would apply with fuzz: only the lines around it have changed"
	fi
	exit 65
}

# The files that the patches touch, patched, in the scratch directory $patched.
# No fuzz: a patch that lands in the wrong place is worse than one that fails.
patch_scratch() {
	local name
	patched=$scratch/patched
	mkdir -p "$patched"
	touched_files "$scratch/patches" | while read -r name; do
		mkdir -p "$patched/$(dirname "$name")"
		[ ! -e "$pristine/$name" ] || cp -p "$pristine/$name" "$patched/$name"
	done
	while read -r name; do
		patch -p1 -F0 -N --no-backup-if-mismatch -r /dev/null -d "$patched" \
			< "$here/$base/$name" > "$scratch/log" 2>&1 ||
			explain_failure "$name" "$scratch/log"
	done < "$scratch/patches"
}

# Bring the work tree to what is wanted, and write only the files that differ, so
# that make rebuilds only what they change.
update_tree() {
	local name
	if [ ! -e "$tree/complete" ]; then
		rm -rf "$tree"
		mkdir -p "$(dirname "$tree")"
		cp -al "$pristine" "$tree"
		: > "$tree/.touched"
	fi
	cat "$tree/.touched" <(touched_files "$scratch/patches") | sort -u > "$scratch/touched"
	while read -r name; do
		local want=$pristine/$name
		[ ! -e "$patched/$name" ] || want=$patched/$name
		if [ ! -e "$want" ]; then
			rm -f "$tree/$name"
		elif ! cmp -s "$want" "$tree/$name"; then
			mkdir -p "$tree/$(dirname "$name")"
			cp "$want" "$scratch/file" && chmod --reference="$want" "$scratch/file"
			rm -f "$tree/$name"
			mv "$scratch/file" "$tree/$name"
			touch "$tree/$name"
		fi
	done < "$scratch/touched"
	touched_files "$scratch/patches" > "$tree/.touched"
}

# What --target asks for, as words for make. Files of later patches are not there yet.
make_targets() {
	local word name
	for word in $target; do
		[ "$word" = touched ] || { echo "$word"; continue; }
		touched_files <(grep '^[^#]' "$here/$base/series") | sed -n 's/\.c$//p' |
			while read -r name; do
				[ ! -e "$tree/$name.c" ] || echo "$name.o"
			done
	done
}

build_make() {
	nice -n "${NICE:-5}" make -s -C "$tree" O="$objects" -j"$jobs" LOCALVERSION="-mthpd-$variant" \
		KBUILD_BUILD_USER=mthpd KBUILD_BUILD_HOST=localhost \
		KBUILD_BUILD_TIMESTAMP=2026-01-01 "$@"
}

debian_config() {
	local file
	file=$(fetch_package "linux-config-$base") || exit 69
	dpkg-deb --fsys-tarfile "$file" |
		tar -xO --wildcards './usr/src/linux-config-*/config.amd64_none_amd64.xz' | xz -dc
}

# The wanted configuration in $scratch/config, as fragments on a base.
write_fragments() {
	local item
	case $config in
	vm) cat "$here/config/vm.config" ;;
	debian)
		debian_config
		printf '%s\n' '# CONFIG_DEBUG_INFO_BTF is not set' '# CONFIG_DEBUG_INFO is not set' \
			CONFIG_DEBUG_INFO_NONE=y 'CONFIG_SYSTEM_TRUSTED_KEYS=""' \
			'# CONFIG_MODULE_SIG is not set'
		;;
	esac > "$scratch/fragments"
	[ "$debug" = no ] || cat "$here/config/debug.config" >> "$scratch/fragments"
	for item in ${options[@]+"${options[@]}"}; do
		case $item in
		*=n) echo "# CONFIG_${item%=n} is not set" ;;
		*=*) echo "CONFIG_$item" ;;
		*) echo "CONFIG_$item=y" ;;
		esac >> "$scratch/fragments"
	done
}

# Written only if it changed: a new .config makes make look at everything.
configure() {
	mkdir -p "$objects"
	if cmp -s "$scratch/fragments" "$objects/.fragments" && [ -e "$objects/.config" ]; then
		build_make olddefconfig > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
		return
	fi
	{
		[ "$config" = debian ] || build_make tinyconfig
		[ "$config" = vm ] || : > "$objects/.config"
		"$tree/scripts/kconfig/merge_config.sh" -m -O "$objects" "$objects/.config" \
			"$scratch/fragments"
		build_make olddefconfig
	} > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
	cp "$scratch/fragments" "$objects/.fragments"
	check_options
}

# An option that kconfig dropped is an error only if it was asked for by name.
check_options() {
	local item name value
	for item in ${options[@]+"${options[@]}"}; do
		name=CONFIG_${item%%=*} value=y
		[[ $item == *=* ]] && value=${item#*=}
		if [ "$value" = n ]; then
			! grep -q "^$name=" "$objects/.config" || fail 1 "$name cannot be switched off here"
		else
			grep -qx "$name=$value" "$objects/.config" || fail 1 "$name=$value is not possible here"
		fi
	done
}

key_of() { # a short hash of standard input
	sha256sum | cut -c1-16
}

result_key() {
	{
		echo "$version $variant $config"
		cat "$scratch/fragments"
		# A better changelog makes no other kernel.
		while read -r name; do sed -n '/^diff --git/,$p' "$here/$base/$name"; done \
			< "$scratch/patches"
		gcc -dumpfullversion
	} | key_of
}

deliver() { # from the result directory into --out
	[ -n "$out" ] || { echo "$result"; return; }
	mkdir -p "$out"
	cp "$result"/* "$out/"
	echo "$out"
}

main() {
	check_tools
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/mthpd-kernel.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	mkdir -p "$cache"
	exec 9> "$cache/kernel-source.lock"
	flock 9
	unpack_source
	flock -u 9
	patch_list > "$scratch/patches"
	write_fragments
	result=$cache/kernel-$version-$(result_key)
	if [ -e "$result/vmlinuz" ] && [ "$source_only$deb$clean" = nonono ] && [ -z "$target" ]; then
		deliver
		return
	fi

	local tag words
	tag=$variant-$config-$(printf '%s\n' "$debug" ${options[@]+"${options[@]}"} | key_of)
	[ -z "$upto" ] || tag=walk-$tag
	[ -z "$only" ] || tag=stock-${tag#*-} # most of its objects will do
	[ "$clean" = no ] || tag=clean-$$
	tree=$cache/kernel-work/$version-$tag/source
	objects=$cache/kernel-work/$version-$tag/objects
	mkdir -p "$cache/kernel-work"
	exec 9> "$cache/kernel-work/$version-$tag.lock"
	flock 9
	patch_scratch
	update_tree
	if [ "$source_only" = yes ]; then
		echo "$tree"
		return
	fi
	configure
	if [ -n "$target" ]; then
		read -ra words <<< "$(make_targets | tr '\n' ' ')"
		build_make "${words[@]}" || fail 1 "make $target failed"
		return
	fi
	say "building $version ($variant, $config$([ "$debug" = no ] || echo , debug)) with $jobs jobs"
	build_make bzImage > "$scratch/log" 2>&1 || { tail -n 40 "$scratch/log" >&2; exit 1; }
	cat "$scratch/log" >&2
	mkdir -p "$result.new"
	cp "$objects/arch/x86/boot/bzImage" "$result.new/vmlinuz"
	cp "$objects/.config" "$result.new/config"
	cp "$objects/System.map" "$result.new/System.map"
	rm -rf "$result"
	mv "$result.new" "$result"
	if [ "$deb" = yes ]; then
		DEBFULLNAME=$(sed 's/ *<.*//' "$here/../systemd/packaging/MAINTAINER") \
			DEBEMAIL=$(sed 's/.*<\(.*\)>.*/\1/' "$here/../systemd/packaging/MAINTAINER") \
			build_make bindeb-pkg >&2 || fail 1 "make bindeb-pkg failed"
		mv "$(dirname "$objects")"/linux-*.deb "$result/"
	fi
	[ "$clean" = no ] || rm -rf "$cache/kernel-work/$version-$tag"
	deliver
}

main
