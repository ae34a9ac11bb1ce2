#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_stream.sh SEED SECONDS RATE WHAT: a group of 64 MiB reads a file of 256 MiB,
# RATE pages a second (0: flat out), beside an anonymous set of 24 MiB; after that
# it meets real pressure.
. /t_lib.sh
zram_swap 512M
zram_fs 600M /data
file_of_size /data/file 256
echo 3 > /proc/sys/vm/drop_caches
echo never > $THP/enabled
thp_setting 64
memcg_new test.group 64M
control_start run "$4"
sampler_start /out/stat-run 1000 test.group
workload --cgroup=$CG/test.group --seed="$1" --report-msec=1000 \
	"random:size=24M,rate=5000,seconds=$2" > /out/work-set &
set=$!
workload --cgroup=$CG/test.group --report-msec=1000 \
	"stream:file=/data/file,rate=$3,seconds=$2" > /out/work-stream
wait $set
workload --cgroup=$CG/test.group --seed="$1" --report-msec=1000 random:size=96M,seconds=5 \
	> /out/work-pressure
sampler_stop
control_stop
finish
