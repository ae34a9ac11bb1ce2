#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_fixed_work.sh CASE SEED PERCENT LIMIT START...: fixed work under static `never`,
# and from each start setting with mthpd and without. A run without mthpd ends when
# LIMIT times the time of `never` is over: then it has lost. LIMIT 0: no such runs.
. /t_lib.sh
phase=$(case_phase "$1" "$3") seed=$2 limit=$4 time_limit=
shift 4
zram_swap 512M
echo never > $THP/enabled
thp_setting never
measured never static "$seed" "$phase"
for start in "$@"; do
	thp_setting "$start"
	measured "mthpd-$start" mthpd "$seed" "$phase"
	[ "$start" != never ] && [ "$limit" != 0 ] || continue
	thp_setting "$start"
	time_limit=$(seconds_of never "$limit")
	measured "nothing-$start" nothing "$seed" "$phase"
	time_limit=
done
finish
