#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The service on another kernel: starts, steers what is there, puts it back.
. /lib/guest.sh
. /lib/guest-systemd.sh

# Any switch that mthpd may turn.
changed() { ! is_restored > /dev/null; }

test_starts() {
	thp_snapshot > /run/before
	start_service
	active || die "$(show ActiveState)"
	sizes=no
	[ ! -e $THP/hugepages-64kB ] || sizes=yes
	mthpctl features | grep -qE "^per_size +$sizes" || die "sizes: $sizes, but $(mthpctl features)"
	is_restored || die "something was written without a reason"
}

test_steers() {
	zram_swap 512M
	fresh_start
	mark
	victim_start
	until_ok 60 changed || die "no step in 60 s"
	journalctl --no-pager -o cat MESSAGE_ID=$MESSAGE_ID | grep -q 'victim.service' || die "no record"
	victim_stop
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

# Where the kernel collapses to sizes below the PMD it takes 0 or the maximum.
test_max_ptes_none() {
	ptes=$THP/khugepaged/max_ptes_none
	set_config 50-test '[Limits]\nMaxPtesNone=100\n'
	fresh_start
	sleep 5
	if ls $THP/hugepages-64kB/stats/collapse_* > /dev/null 2>&1; then
		case $(cat $ptes) in 0 | 511) ;; *) die "$(cat $ptes) was written" ;; esac
	else
		[ "$(cat $ptes)" -le 511 ] || die "$(cat $ptes)"
	fi
	systemctl stop mthpd.service
	is_restored || die "not as before"
	clear_settings
}

for name in starts steers max_ptes_none; do
	try $name
done
finish
