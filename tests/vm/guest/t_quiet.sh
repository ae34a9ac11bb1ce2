#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_quiet.sh SEED SECONDS WHAT: a spell of pressure and its end; then SECONDS in
# which nothing happens, with every write and every wake-up counted. WHAT is mthpd,
# nothing, or rewriter (a daemon that writes the standing value again and again).
. /t_lib.sh
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
seed=$1 seconds=$2 what=$3
memcg_new test.group 64M
memcg_new other.group 256M
values() { cat $THP/hugepages-*kB/enabled $THP/khugepaged/max_ptes_none $THP/defrag; }
start=$(values)
case $what in
mthpd) control_start run mthpd ;;
nothing) control_start run nothing ;;
rewriter)
	(
		while sleep 20; do
			for file in $THP/hugepages-*kB/enabled; do
				sed 's/.*\[\(.*\)\].*/\1/' "$file" > /tmp/value
				cat /tmp/value > "$file"
			done
		done
	) &
	daemon=$! control_what=nothing control_name=run
	;;
esac

# A group that goes on living in its memory, and one with pressure that ends.
workload --cgroup=$CG/other.group random:size=32M,touches=1000 idle:seconds=1000000 > /dev/null &
other=$!
workload --cgroup=$CG/test.group --seed="$seed" random:size=96M,seconds=6 > /out/work-run
waited=0
while [ "$what" = mthpd ] && [ "$(values)" != "$start" ]; do
	sleep 5
	waited=$((waited + 5))
	[ $waited -lt 300 ] || die "the values of the start did not come back in $waited s"
done
sleep 60

# Slices of running and switches of all the threads of the daemon.
wakeups() { cat /proc/$daemon/task/*/schedstat | awk '{ n += $3 } END { print n }'; }

writewatch $THP > /out/writes &
watcher=$!
wait_for 10 grep -q ready /out/writes
[ "$what" != mthpd ] || ctl --json status > /out/status-before
wakeups > /out/wakeups-before
cpu_usec > /out/cpu-before
sleep "$seconds"
wakeups > /out/wakeups-after
cpu_usec > /out/cpu-after
grep -c write /out/writes > /out/write-count
[ "$what" != mthpd ] || ctl --json status > /out/status-after
# The watcher sees a write when there is one.
cat /proc/uptime > /out/probe-time
echo never > $THP/hugepages-1024kB/enabled
wait_for 10 grep -q hugepages-1024kB /out/writes && echo seen > /out/probe || echo missed > /out/probe
kill $watcher
control_stop
kill $other
finish
