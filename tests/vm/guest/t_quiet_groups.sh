#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_quiet_groups.sh COUNT: mthpd over COUNT groups in which nothing happens, for ten
# audits.
. /t_lib.sh
count=$1
ulimit -n 65536
i=0
while [ $i -lt "$count" ]; do
	mkdir "$CG/g$i" || die "mkdir g$i"
	i=$((i + 1))
done
start_seconds=300
before=$(now)
daemon_start run
echo "$before $(now)" | awk '{ print $2 - $1 }' > /out/ready
sleep 330
# The answer to a question costs as well: status is asked outside the ten minutes.
rss_kb > /out/rss-unasked
ctl --json status > /out/status-before
sleep 5
cpu_usec > /out/cpu-before
sleep 600
cpu_usec > /out/cpu-after
rss_kb > /out/rss
ls /proc/$daemon/fd | wc -l > /out/fds
ctl --json status > /out/status-run
daemon_stop
finish
