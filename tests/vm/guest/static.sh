#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# static.sh CASE SEED PERCENT SETTING...: one case under fixed settings, each in a
# group of its own; leaves /out.tar with work-SETTING and stat-SETTING.
. /lib/guest.sh
. /cases.sh
phase=$(case_phase "$1" "$3") seed=$2
shift 3
zram_swap 512M
mkdir /out
for setting in "$@"; do
	thp_setting "$setting"
	memcg_new "$setting" 64M
	sampler_start "/out/stat-$setting" 1000 "$setting"
	workload --cgroup="$CG/$setting" --seed="$seed" --report-msec=1000 "$phase" \
		> "/out/work-$setting" || echo "workload failed: $setting $?"
	sampler_stop
	echo "$phase $setting $(tail -n 1 "/out/work-$setting")"
	rmdir "$CG/$setting"
done
tar cf /out.tar -C / out
