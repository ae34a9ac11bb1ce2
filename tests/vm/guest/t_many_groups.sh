#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_many_groups.sh SEED COUNT WHAT: COUNT groups come and go, ten at a time, while
# another group is under pressure.
. /t_lib.sh
seed=$1 count=$2 what=$3
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
memcg_new hot.group 64M
control_start run "$what"

figures() { # NAME: the size of the daemon, with all that came and went seen
	sleep 2
	{
		echo "fds $(ls /proc/$daemon/fd | wc -l)"
		echo "threads $(ls /proc/$daemon/task | wc -l)"
		awk '/^VmRSS/ { print "rss_kb", $2 }' /proc/$daemon/status
		cat /proc/$daemon/task/*/schedstat | awk '{ n += $1 } END { print "cpu_usec", int(n / 1000) }'
		echo "uptime $(now)"
	} > "/out/figures-$1"
}

# make N, remove N: ten groups; some with a limit, a process, a group below.
make() {
	names=
	for n in 0 1 2 3 4 5 6 7 8 9; do names="$names $CG/churn$1.$n"; done
	mkdir $names || die "mkdir $names"
	for n in 0 3 6; do echo 8M > "$CG/churn$1.$n/memory.max"; done
	for n in 1 3; do sleep 1000 & echo $! > "$CG/churn$1.$n/cgroup.procs"; done
	mkdir "$CG/churn$1.7/leaf"
	rmdir "$CG/churn$1.7/leaf"
}
remove() {
	names=
	for n in 0 1 2 3 4 5 6 7 8 9; do names="$names $CG/churn$1.$n"; done
	for n in 1 3; do echo 1 > "$CG/churn$1.$n/cgroup.kill"; done
	until rmdir $names 2> /dev/null; do
		usleep 1000
		names=$(ls -d $CG/churn$1.* 2> /dev/null)
		[ -n "$names" ] || break
	done
}

workload --cgroup=$CG/hot.group --seed="$seed" random:size=96M,rate=1500,seconds=100000 > /dev/null &
load=$!
i=0
while [ $i -lt $((count / 10)) ]; do
	make $i
	[ $i -lt 2 ] || remove $((i - 2))
	i=$((i + 1))
	[ $i -ne $((count / 40)) ] || figures quarter
done
figures end
[ "$what" != mthpd ] || ctl --json status > /out/status-loaded
remove $((i - 2))
remove $((i - 1))
kill $load
wait $load 2> /dev/null
sleep 20
figures rest
sleep 20
figures rest-later
[ "$what" != mthpd ] || ctl --json status > /out/status-rest
control_stop
finish
