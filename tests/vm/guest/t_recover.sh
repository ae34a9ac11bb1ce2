#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_recover.sh SEED TOUCHES: eight seconds of random touches beyond the limit, then
# a third of the set and a steady trickle of fresh memory, for two minutes; then
# TOUCHES of fresh memory flat out.
. /t_lib.sh
zram_swap 512M
echo never > $THP/enabled
seed=$1 touches=$2

fresh() { # NAME: the fill that is compared
	workload --cgroup="$CG/$1.group" --seed="$seed" "fill:size=32M,touches=$touches" \
		> "/out/fill-$1"
}

thp_setting 64
memcg_new static.group 64M
sampler_start /out/stat-static 1000 static.group
fresh static
sampler_stop
for what in mthpd nothing never; do
	thp_setting 64
	memcg_new $what.group 64M
	sampler_start /out/stat-$what 1000 $what.group
	sleep 2
	control_start $what $what
	workload --cgroup=$CG/$what.group --seed="$seed" --report-msec=1000 \
		random:size=96M,seconds=8 random:size=24M,rate=3000,seconds=3 \
		fill:size=16M,rate=2500,seconds=117 > /out/work-$what
	fresh $what
	sampler_stop
	control_stop
done
finish
