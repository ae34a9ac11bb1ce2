#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_quiet_bound.sh COUNT: COUNT groups in which nothing happens, each bound by a policy
# to 16K in its own file, for ten audits.
. /pg_lib.sh
count=$1
ulimit -n 65536
i=0
while [ $i -lt "$count" ]; do
	mkdir "$CG/g$i" || die "mkdir g$i"
	i=$((i + 1))
done
bound() { cat $CG/g*/memory.thp.max_size | grep -c '^16384$'; }
all_bound() { [ "$(bound)" -eq "$count" ]; }
start_seconds=300
before=$(now)
daemon_start run '[Policy "quiet"]
Match=g*
MaxSize=16K'
wait_for 300 all_bound || die "only $(bound) groups have their value"
echo "$before $(now)" | awk '{ print $2 - $1 }' > /out/bound
sleep 130
rss_kb > /out/rss-unasked
ctl --json status > /out/status-before
sleep 5
cpu_usec > /out/cpu-before
sleep 600
cpu_usec > /out/cpu-after
rss_kb > /out/rss
ctl --json status > /out/status-run
ctl --json history -n 5000 > /out/history
before=$(now)
daemon_stop
echo "$before $(now)" | awk '{ print $2 - $1 }' > /out/stopped
cat $CG/g*/memory.thp.max_size | grep -vc '^max$' > /out/left
finish
