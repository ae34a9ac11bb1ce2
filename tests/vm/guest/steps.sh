#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# steps.sh PHASE "SETTING SECONDS" ...: one workload while the setting changes, to
# see what a step does and how fast. Leaves /out.tar with work and stat.
. /lib/guest.sh
phase=$1
shift
zram_swap 512M
memcg_new g 64M
mkdir /out
thp_setting "${1% *}"
sampler_start /out/stat 1000 g
workload --cgroup=$CG/g --report-msec=1000 "$phase" > /out/work &
work=$!
for step in "$@"; do
	thp_setting "${step% *}"
	echo "{\"t\":$(now),\"setting\":\"${step% *}\"}" >> /out/steps
	sleep "${step#* }"
done
kill $work
sampler_stop
tail -n 1 /out/work
cat $CG/g/memory.events | tr '\n' ' '
tar cf /out.tar -C / out
