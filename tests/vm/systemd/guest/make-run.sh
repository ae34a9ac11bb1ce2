#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# README's quick start, by a user with sudo at a terminal: `sudo make run`, until
# Ctrl-C. The disk is a Debian that has what the build needs; the kernel, its
# switches as they are after the boot, the groups and the bus are the guest's.
. /lib/guest.sh
. /lib/guest-systemd.sh

disk=/mnt
checkout=/home/user/mthpd
line=$(grep '^sudo make run ' /root/checkout/README.md)

enter_debian() {
	touch -d @1 /etc/fstab # mount would complain that it is from the future
	mount /dev/vda $disk || die "mount: $?"
	for dir in dev proc sys run; do mount --rbind /$dir $disk/$dir || die "mount /$dir: $?"; done
	chown -R 1000:1000 $disk/home/user
	chmod u+s $disk/usr/bin/sudo
	echo "127.0.1.1 $(hostname)" >> $disk/etc/hosts
	date -s "$(stat -c @%Y $disk$checkout/build/daemon)" > /dev/null # make looks at it
	[ "$(echo "$line" | wc -l)" -eq 1 ] || die "README's line: $line"
}

# as_user COMMAND: in that Debian, in the checkout.
as_user() {
	chroot --userspec=1000:1000 $disk /usr/bin/env -i HOME=/home/user TERM=dumb PATH=/usr/bin:/bin:/usr/sbin:/sbin \
		sh -c "cd $checkout; $1"
}

# The screen of a terminal at which COMMAND runs becomes /run/screen; what comes
# into /run/keys is typed there.
at_terminal() { # COMMAND
	mkfifo /run/keys
	: > /run/screen
	sleep 3600 > /run/keys & # or the first key would be the last
	declare -f as_user > /run/typed
	printf 'disk=%s checkout=%s\nas_user %q\necho "exit $?"\n' "$disk" "$checkout" "$1" >> /run/typed
	script -qfc "bash /run/typed" /run/screen < /run/keys > /dev/null &
}

screen() { tr -d '\r' < /run/screen; }
on_screen() { screen | grep -qE -- "$1"; }

# Said before anything is installed or built.
test_needs_root() {
	as_user "make run" > /run/out 2>&1 && die "it ran"
	grep -q 'sudo make run' /run/out || die "it does not say how: $(cat /run/out)"
	[ ! -e $disk$checkout/build/mthpd ] || die "it has built first: $(cat /run/out)"
}

# Builds what is missing, and says what it can do here.
test_starts() {
	at_terminal "$line"
	until_ok 300 on_screen '^ *memcg-thp ' || die "no list of capabilities: $(screen)"
	on_screen '^  CC      daemon/main.c' && on_screen '^  LD      build/mthpd' || die "nothing was built: $(screen)"
	screen | grep -qF "Linux $(uname -r); what mthpd can do here:" || die "not this kernel: $(screen)"
	for word in cgroup psi psi-triggers per-size writable mthp-collapse shrink-underused size-swpin boot-never; do
		on_screen "^  $word  *[a-z0-9]" || die "nothing about $word: $(screen)"
	done
	! on_screen 'installing' || die "the disk lacks something: $(screen)"
	until_ok 20 mthpctl --json status > /run/status || die "no answer"
	is_restored || die "something was written without a reason"
	as_user "build/mthpctl status" > /run/out 2>&1 || die "README's other terminal: $(cat /run/out)"
}

# The one who builds with sudo goes on as a user.
test_build_is_the_users() {
	[ -z "$(find $disk$checkout/build ! -user 1000 -print)" ] || die "root's: $(find $disk$checkout/build ! -user 1000)"
}

test_second_one() {
	! as_user "$line" > /run/out 2>&1 || die "two at a time"
	grep -q 'another mthpd is running' /run/out || die "it does not say why: $(cat /run/out)"
	mthpctl status > /dev/null || die "the first one is gone: $(screen)"
}

# One line for each decision, with the group and its numbers, on the screen.
test_decides() {
	zram_swap 512M
	victim_start
	until_ok 90 on_screen 'enabled: .* -> never, [a-z-]*, .*victim.service \(some [0-9]' || die "no decision: $(screen)"
	! is_restored > /dev/null || die "nothing to put back: this proves nothing"
}

test_ctrl_c() {
	printf '\003' > /run/keys
	until_ok 60 on_screen '^exit ' || die "it does not end: $(screen)"
	victim_stop
	is_restored || die "not as before: $(screen)"
	on_screen 'enabled: never -> .*, restored' || die "it does not say what it puts back: $(screen)"
	! on_screen '\*\*\*' || die "that looks like an error: $(screen)"
	[ ! -S /run/mthpd/org.mthpd1 ] || die "its socket is still there"
}

enter_debian
thp_snapshot > /run/before
for name in needs_root starts build_is_the_users second_one decides ctrl_c; do
	try $name
done
finish
