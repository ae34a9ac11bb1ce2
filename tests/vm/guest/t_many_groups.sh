#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_many_groups.sh SEED COUNT WHAT: COUNT groups come and go, with a process and
# some memory each, while another group is under pressure.
. /t_lib.sh
seed=$1 count=$2 what=$3
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

# one GROUP: a group with a process in it; how it ends differs from one to the next.
one() {
	mkdir "$CG/$1" || die "mkdir $1"
	case $2 in
	0) ;;
	1) sh -c "echo 0 > $CG/$1/cgroup.procs; :" ;;
	2) echo 8M > "$CG/$1/memory.max"; sh -c "echo 0 > $CG/$1/cgroup.procs; cat /proc/meminfo" > /dev/null ;;
	3) mkdir "$CG/$1/leaf"; rmdir "$CG/$1/leaf" ;;
	esac
	until rmdir "$CG/$1" 2> /dev/null; do usleep 1000; done
}

workload --cgroup=$CG/hot.group --seed="$seed" random:size=96M,rate=2500,seconds=100000 > /dev/null &
load=$!
i=0
while [ $i -lt "$count" ]; do
	one "churn$i.group" $((i % 4))
	i=$((i + 1))
	[ $i -ne $((count / 4)) ] || figures quarter
done
figures end
[ "$what" != mthpd ] || ctl --json status > /out/status-loaded
kill $load
wait $load 2> /dev/null
sleep 20
figures rest
sleep 20
figures rest-later
[ "$what" != mthpd ] || ctl --json status > /out/status-rest
control_stop
finish
