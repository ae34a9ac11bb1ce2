#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# psi=0: one warning, and the loop goes by memory.events and counters.
. /lib/guest.sh
. /lib/guest-systemd.sh

test_no_psi() {
	! cat /proc/pressure/memory 2> /dev/null || die "the kernel did not take the option"
	mark
	start_service
	active || die "$(show ActiveState)"
	[ "$(journal -p warning -t mthpd | grep -c psi)" -eq 1 ] || die "not one warning: $(journal -t mthpd)"
	journal -t mthpd | grep -q 'boot with psi=1' || die "no remedy: $(journal -t mthpd)"
	status_has '"state":"degraded"' || die "not degraded"
	[ "$(show NRestarts)" = 0 ] || die "restarts"
}

test_no_psi_acts() {
	prepare_load
	fresh_start
	provoke
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

try no_psi
try no_psi_acts
finish
