#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_stream.sh SEED SECONDS RATE: a group of 64 MiB reads a file of 256 MiB, RATE
# pages a second (0: flat out), beside an anonymous set of 24 MiB; after that it
# meets real pressure. With mthpd for SECONDS, with the other controls for ten.
. /t_lib.sh
seed=$1 seconds=$2 rate=$3
zram_swap 512M
zram_fs 600M /data
file_of_size /data/file 256
echo never > $THP/enabled
for what in mthpd nothing never; do
	echo 3 > /proc/sys/vm/drop_caches
	thp_setting 64
	memcg_new $what.group 64M
	control_start $what $what
	sampler_start /out/stat-$what 1000 $what.group
	workload --cgroup=$CG/$what.group --seed="$seed" --report-msec=1000 \
		"random:size=24M,rate=5000,seconds=$seconds" > /out/work-set-$what &
	set=$!
	workload --cgroup=$CG/$what.group --report-msec=1000 \
		"stream:file=/data/file,rate=$rate,seconds=$seconds" > /out/work-stream-$what
	wait $set
	workload --cgroup=$CG/$what.group --seed="$seed" --report-msec=1000 \
		random:size=96M,seconds=5 > /out/work-pressure-$what
	sampler_stop
	control_stop
	seconds=10
done
finish
