#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_group_restore.sh SEED KILLS WHAT: every end of the daemon, and the groups' files
# afterwards; groups created anew; whose files are written and whose are not.
. /pg_lib.sh
seed=$1 kills=$2 what=$3
zram_swap 512M
echo never > $THP/enabled
thp_setting 64

pg_new closed 64M 40000
pg_new open 64M 40000
pg_new work.slice/inner.service 64M 40000
echo 64M > $CG/work.slice/memory.max
# Starts that no default would give back by chance: an open gate that random
# touches will close, numbers, and a parent's.
pg_set open max 0
echo 300 > $CG/open/memory.thp.max_ptes_none
echo 450 > $CG/work.slice/memory.thp.max_ptes_none
echo 400 > $CG/work.slice/inner.service/memory.thp.max_ptes_none
slice=work.slice inner=work.slice/inner.service

# snapshot NAME: each file that can be written, its bytes, one per line.
snapshot() {
	for file in $(find $THP -type f -perm -200; find $CG -name 'memory.thp.*' -perm -200); do
		echo "$file $(md5sum < "$file")"
	done | sort > "/out/$1"
}
group_values() { find $CG -name 'memory.thp.*' -perm -200 | sort | xargs cat; }

load_start() {
	rm -f /run/go
	pg_work closed "$seed" seq:size=96M,seconds=100000
	pg_work open "$seed" random:size=96M,seconds=100000
	pg_work $inner "$seed" seq:size=96M,seconds=100000
	pg_go
}

changed() { [ "$(group_values)" != "$values_before" ]; }

# pressed NAME: the daemon meets pressure and changes the files; their snapshot.
pressed() {
	load_start
	wait_for 30 changed || echo "$1: nothing was changed"
	sleep 3
	snapshot "during-$1"
	pg_end
}

killed() {
	kill -9 "$daemon"
	wait "$daemon" 2> /dev/null
}

values_before=$(group_values)
snapshot before
case $what in
nothing)
	pressed TERM
	snapshot after-TERM
	finish
	exit 0
	;;
esac

for signal in TERM INT; do
	daemon_start $signal
	pressed $signal
	kill -$signal "$daemon"
	wait "$daemon"
	echo $? > /out/status-$signal
	snapshot after-$signal
done

daemon_start killed
pressed killed
killed
snapshot left-killed
mthpd --restore > /out/restore-killed 2>&1
echo $? > /out/status-killed
snapshot after-killed

# Killed at other moments: at rest, while it writes, while it recovers.
i=0
while [ $i -lt "$kills" ]; do
	load_start
	daemon_start kills
	usleep $((i * 7919 % 40 * 200000))
	killed
	pg_end
	mthpd --restore > /dev/null 2>&1 || echo $i >> /out/kill-failed
	snapshot now
	cmp -s /out/now /out/before || echo $i >> /out/kill-differs
	i=$((i + 1))
done

# A group that is created anew under its old name has the kernel's defaults, keeps
# them while it is quiet, and is not given what its predecessor had.
daemon_start anew
pressed anew
recreate() {
	until rmdir $CG/open 2> /dev/null; do usleep 10000; done
	mkdir $CG/open
	cat $CG/open/memory.thp.max_size $CG/open/memory.thp.margin \
		$CG/open/memory.thp.max_ptes_none > "/out/anew-$1-first"
}
anew_values() {
	cat $CG/open/memory.thp.max_size $CG/open/memory.thp.margin \
		$CG/open/memory.thp.max_ptes_none > "/out/anew-$1"
}
recreate live
sleep 10
anew_values live
daemon_stop
anew_values stopped
rmdir $CG/open
pg_new open 64M 40000
pg_set open max 0
daemon_start anew2
pressed anew2
killed
recreate dead
mthpd --restore > /out/restore-anew 2>&1
anew_values dead

# Whose files are written: the service's, not its slice's; with a policy that names
# the slice, the slice's, not the service's.
for policy in none slice; do
	case $policy in
	none) config= ;;
	slice) config="[Policy \"s\"]
Match=work.slice" ;;
	esac
	writewatch $CG/work.slice > /out/writes-$policy &
	watch=$!
	wait_for 10 grep -q ready /out/writes-$policy || die "writewatch"
	daemon_start $policy "$config"
	rm -f /run/go
	pg_work $inner "$seed" seq:size=96M,seconds=100000
	pg_go
	sleep 25
	ctl --json status > /out/status-$policy.json
	pg_end
	daemon_stop
	kill $watch
done

# A child gets no more than its parent, whatever the daemon writes into it: of 64K
# folios below a parent at 32K there are none.
mkdir $CG/pod
pg_new pod/child 64M 80000
echo 32768 > $CG/pod/memory.thp.max_size
allocated() { cat $THP/hugepages-64kB/stats/anon_fault_alloc; }
daemon_start child
before=$(allocated)
rm -f /run/go
pg_work pod/child "$seed" seq:size=96M,seconds=100000
pg_go
sleep 15
echo $(($(allocated) - before)) > /out/child-64k
cat $THP/hugepages-32kB/stats/anon_fault_alloc > /out/child-32k
ctl --json status > /out/status-child.json
cat $CG/pod/memory.thp.max_size > /out/parent-max_size
pg_end
daemon_stop
finish
