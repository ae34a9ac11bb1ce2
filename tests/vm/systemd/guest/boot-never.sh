#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# transparent_hugepage=never on the kernel command line is absolute.
. /lib/guest.sh
. /lib/guest-systemd.sh

test_boot_never() {
	set_config 50-test '[Limits]\nMaxMode=always\n[Controller]\nHold=1s..2s\n'
	thp_snapshot > /run/before
	grep -q '\[never\]' $THP/enabled || die "the kernel did not take the option"
	start_service
	mthpctl features | grep -qE '^boot_never +yes' || die "features: $(mthpctl features)"
	systemd-run --quiet --unit=filler -p MemoryMax=256M /usr/bin/workload fill:size=64M,seconds=20
	for second in 1 2 3 4 5 6 7 8 9 10; do
		is_restored || die "raised"
		sleep 2
	done
	status_has '"writes":0' || die "it has written: $(status_json)"
	systemctl restart mthpd.service || die "restart: $?"
	systemctl reload mthpd.service || die "reload: $?"
	is_restored || die "raised by a restart or reload"
}

# What somebody switched on by hand is found at start, and may be put back.
test_boot_never_baseline() {
	fresh_start
	prepare_load
	provoke
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

try boot_never
try boot_never_baseline
finish
