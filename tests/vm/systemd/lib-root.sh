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
	local command='exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		sh -ec "sudo() { \"\$@\"; }; cd $1; $2"' map=() code=0
	[ "$(id -u)" -eq 0 ] || map=(--map-root-user)
	if unshare ${map[@]+"${map[@]}"} --mount true 2> /dev/null; then
		unshare ${map[@]+"${map[@]}"} --mount sh -ec '
			mount --rbind /dev "$0/dev"
			mount --rbind /proc "$0/proc"
			'"$command" "$1" "$2" "$3"
		return
	fi
	# In a chroot there may be no namespaces of mounts: devices of its own, never the
	# machine's, as the root is removed afterwards.
	[ "$(id -u)" -eq 0 ] || { unshare ${map[@]+"${map[@]}"} --mount true; return; }
	[ -e "$1/dev/null" ] || mknod -m 666 "$1/dev/null" c 1 3
	[ -e "$1/dev/zero" ] || mknod -m 666 "$1/dev/zero" c 1 5
	[ -e "$1/dev/urandom" ] || mknod -m 666 "$1/dev/urandom" c 1 9
	mount -t proc proc "$1/proc"
	sh -ec "$command" "$1" "$2" "$3" || code=$?
	umount "$1/proc"
	return $code
}
