#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_phases.sh SEED PERIOD COUNT WHAT: four groups of 64 MiB that change what they do
# every PERIOD seconds, COUNT times, a quarter of a period after one another. Each
# phase starts on fresh memory.
. /pg_lib.sh
seed=$1 period=$2 count=$3 what=$4
set -- random fill seq sparse
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
for n in 0 1 2 3; do pg_new "group$n" 64M 20000; done
pg_control "$what" group0 group1 group2 group3
for n in 0 1 2 3; do
	phases= length=$((period * (n + 1) / 4)) i=0
	while [ $i -le "$count" ]; do
		phase=$(pg_pattern "$1" 64),fresh=1,seconds=$length
		phases="$phases $phase"
		set -- "$2" "$3" "$4" "$1"
		length=$period i=$((i + 1))
	done
	pg_work "group$n" "$seed" $phases
	# The next group starts with another pattern.
	[ $((count % 4)) -ne 3 ] || set -- "$2" "$3" "$4" "$1"
done
sampler_start /out/stat-run 1000 group0 group1 group2 group3
sleep 1
pg_go
wait $jobs
control_stop
sampler_stop
finish
