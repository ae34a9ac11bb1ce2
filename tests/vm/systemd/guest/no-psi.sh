#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# psi=0: one warning, and the loop goes by memory.events and counters.
. /lib/guest.sh
. /lib/guest-systemd.sh

test_no_psi() {
	! cat /proc/pressure/memory 2> /dev/null || die "the kernel did not take the option"
	mark
	install_package || die "install"
	active || die "$(show ActiveState)"
	[ "$(journal -p warning _COMM=mthpd | grep -c psi)" -eq 1 ] || die "not one warning: $(journal _COMM=mthpd)"
	journal _COMM=mthpd | grep -q 'boot with psi=1' || die "no remedy: $(journal _COMM=mthpd)"
	status_has '"state":"degraded"' || die "not degraded"
	[ "$(show NRestarts)" = 0 ] || die "restarts"
}

test_no_psi_acts() {
	zram_swap 512M
	fresh_start
	victim_start
	wait_dropped
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

try no_psi
try no_psi_acts
finish
