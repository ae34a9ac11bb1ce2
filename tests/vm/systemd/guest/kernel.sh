#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The service on another kernel: starts, steers what is there, puts it back.
. /lib/guest.sh
. /lib/guest-systemd.sh

recorded() { journalctl --no-pager -o cat MESSAGE_ID=$MESSAGE_ID | grep -E "$1" | grep -q victim.service; }

test_starts() {
	thp_snapshot > /run/before
	start_service
	active || die "$(show ActiveState)"
	sizes=no
	[ ! -e $THP/hugepages-64kB ] || sizes=yes
	mthpctl features | grep -qE "^per_size +$sizes" || die "sizes: $sizes, but $(mthpctl features)"
	is_restored || die "something was written without a reason"
}

# Down under pressure, up again by itself when there is room, and back at the stop.
test_steers() {
	zram_swap 512M
	set_config 50-test '[Controller]\nHold=1s..2s\nSettle=1s..1s\n'
	fresh_start
	victim_work="random:size=96M,seconds=8 random:size=8M,rate=100,seconds=3600"
	victim_start
	until_ok 60 recorded 'enabled: .* -> never' || die "no step in 60 s"
	until_ok 90 recorded 'enabled: .*recover(ed|-)' || die "no step up: $(mthpctl explain system.slice/victim.service)"
	until_ok 30 is_restored > /dev/null || die "no way back: $(is_restored)"
	victim_stop
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

collapses() { ls $THP/hugepages-64kB/stats/collapse_* > /dev/null 2>&1; }
ptes_is() { [ "$(cat $THP/khugepaged/max_ptes_none)" = "$1" ]; }

# Where the kernel collapses to sizes below the PMD, it takes 0 or the maximum while
# such a size is enabled: in all that test_steers did, and for a limit in between.
test_max_ptes_none() {
	case $(uname -r) in
	7.*) collapses || die "a kernel that collapses to small sizes has no counters of it" ;;
	*) ! collapses || die "another kernel than was expected" ;;
	esac
	journalctl --no-pager -o cat --output-fields=MTHPD_NEW MTHPD_KNOB=khugepaged/max_ptes_none > /run/values
	grep -qx 0 /run/values || die "never lowered: $(cat /run/values)"
	between=$(grep -cvxE '0|511' /run/values)
	case $(uname -r) in
	6.12.*) [ "$between" -gt 0 ] || die "the values do not show the way up: $(cat /run/values)" ;;
	*) [ "$between" -eq 0 ] || die "a value between 0 and 511: $(cat /run/values)" ;;
	esac
	want=100
	! collapses || want=0
	set_config 50-test '[Limits]\nMaxPtesNone=100\n'
	fresh_start
	until_ok 10 ptes_is $want || die "$(cat $THP/khugepaged/max_ptes_none) instead of $want"
	systemctl stop mthpd.service
	is_restored || die "not as before"
	# only the PMD size: any value will do
	thp_set ""
	systemctl start mthpd.service
	until_ok 10 ptes_is 100 || die "$(cat $THP/khugepaged/max_ptes_none) instead of 100"
	systemctl stop mthpd.service
	clear_settings
}

for name in starts steers max_ptes_none; do
	try $name
done
finish
