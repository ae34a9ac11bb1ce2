#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_many_groups.sh SEED COUNT WHAT: COUNT groups come and go, some of them alive at
# any time, while another group is under pressure.
. /t_lib.sh
seed=$1 count=$2 what=$3
ALIVE=12
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
memcg_new hot.group 64M
control_start run "$what"

figures() { # NAME: the size of the daemon now
	{
		echo "fds $(ls /proc/$daemon/fd | wc -l)"
		echo "threads $(ls /proc/$daemon/task | wc -l)"
		awk '/^VmRSS/ { print "rss_kb", $2 }' /proc/$daemon/status
		cat /proc/$daemon/task/*/schedstat | awk '{ n += $1 } END { print "cpu_usec", int(n / 1000) }'
		echo "uptime $(now)"
	} > "/out/figures-$1"
}

# make N, remove N: a group, every second one with a process in it.
make() {
	group=$CG/churn$1.group
	mkdir "$group" || die "mkdir $group"
	case $(($1 % 4)) in
	0) ;;
	1) sleep 1000 & echo $! > "$group/cgroup.procs" ;;
	2) echo 8M > "$group/memory.max" ;;
	3) sleep 1000 & echo $! > "$group/cgroup.procs"; mkdir "$group/leaf"; rmdir "$group/leaf" ;;
	esac
}
remove() {
	group=$CG/churn$1.group
	echo 1 > "$group/cgroup.kill"
	until rmdir "$group" 2> /dev/null; do usleep 1000; done
}

workload --cgroup=$CG/hot.group --seed="$seed" random:size=96M,rate=1500,seconds=100000 > /dev/null &
load=$!
i=0
while [ $i -lt "$count" ]; do
	make $i
	[ $i -lt $ALIVE ] || remove $((i - ALIVE))
	i=$((i + 1))
	[ $i -ne $((count / 4)) ] || figures quarter
done
figures end
[ "$what" != mthpd ] || ctl --json status > /out/status-loaded
while [ $i -lt $((count + ALIVE)) ]; do
	remove $((i - ALIVE))
	i=$((i + 1))
done
kill $load
wait $load 2> /dev/null
sleep 20
figures rest
sleep 20
figures rest-later
[ "$what" != mthpd ] || ctl --json status > /out/status-rest
control_stop
finish
