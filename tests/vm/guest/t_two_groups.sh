#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_two_groups.sh SEED SECONDS WHAT PROTECTED: `hurt` touches at random beyond its
# limit, `quiet` has room and fills fresh memory; PROTECTED is hurt, quiet or none.
. /t_lib.sh
seed=$1 seconds=$2 what=$3
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
memcg_new hurt.group 64M
memcg_new quiet.group 256M
control_start run "$what" "$(printf '[Policy "p"]\nMatch=%s.group\nProtect=yes\n' "$4")"
sampler_start /out/stat-run 1000 hurt.group quiet.group
workload --cgroup=$CG/quiet.group --seed="$seed" --report-msec=1000 \
	"fill:size=32M,rate=4000,seconds=$((seconds + 15))" > /out/work-quiet &
sleep 10
workload --cgroup=$CG/hurt.group --seed="$seed" --report-msec=1000 \
	"random:size=96M,rate=3000,seconds=$seconds" > /out/work-hurt &
hurt=$!
if [ "$what" = mthpd ]; then
	mkdir /out/status
	i=0
	while [ $i -lt $((seconds / 5)) ]; do
		sleep 5
		ctl --json status > "/out/status/$(now)"
		i=$((i + 1))
	done
fi
wait $hurt
control_stop
sampler_stop
finish
