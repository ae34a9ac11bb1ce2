# SPDX-License-Identifier: LGPL-2.1-or-later
# Of build-root and those that use its Debian: checkouts, roots, commands in them.

# copy_checkout TO: what git would take along, as it stands here now.
copy_checkout() {
	mkdir -p "$1"
	(cd "$here/../../.." && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -a -t "$1")
}

unpack_root() { # TAR.ZST DIRECTORY
	mkdir -p "$2"
	zstd -qdc "$1" | tar -C "$2" -xf - --no-same-owner --exclude='./dev/*' --exclude='./proc/*' --exclude='./sys/*'
}

# in_root ROOT DIRECTORY COMMAND: in the root's place, with sudo as a word that
# changes nothing, and the machine's own network.
in_root() {
	local map=()
	[ "$(id -u)" -eq 0 ] || map=(--map-root-user)
	unshare ${map[@]+"${map[@]}"} --mount sh -ec '
		mount --rbind /dev "$0/dev"
		mount --rbind /proc "$0/proc"
		exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
			sh -ec "sudo() { \"\$@\"; }; cd $1; $2"' "$1" "$2" "$3"
}
