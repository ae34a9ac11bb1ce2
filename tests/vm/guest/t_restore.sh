#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_restore.sh SEED KILLS: every end of the daemon, and the files afterwards.
. /t_lib.sh
zram_swap 512M
seed=$1 kills=$2

# A start that no default would give back by chance.
echo never > $THP/enabled
thp_setting 64
echo madvise > $THP/hugepages-128kB/enabled
echo madvise > $THP/hugepages-2048kB/enabled
echo defer+madvise > $THP/defrag
echo 300 > $THP/khugepaged/max_ptes_none
echo 12345 > $THP/khugepaged/scan_sleep_millisecs
memcg_new test.group 64M

# One line for each file that can be written, with a sum of its bytes.
snapshot() { md5sum $(find $THP -type f -perm -200 | sort) > "/out/$1"; }

# pressed NAME: the daemon meets pressure and changes files; its snapshot.
pressed() {
	workload --cgroup=$CG/test.group --seed="$seed" random:size=96M,rate=3000,seconds=60 > /dev/null &
	load=$!
	wait_for 20 changed || echo "$1: nothing was changed"
	sleep 1
	snapshot "$1"
	kill $load
	wait $load 2> /dev/null
}
sizes() { cat $THP/hugepages-*kB/enabled; }
changed() { [ "$(sizes)" != "$sizes_before" ]; }

# mthpd_killed: kill -9, as a crash would end it.
mthpd_killed() {
	kill -9 "$daemon"
	wait "$daemon" 2> /dev/null
}

snapshot before
sizes_before=$(sizes)
if [ "$3" = mthpd ]; then
	for signal in TERM INT; do
		daemon_start $signal
		pressed during-$signal
		kill -$signal "$daemon"
		wait "$daemon"
		echo $? > /out/status-$signal
		snapshot after-$signal
	done

	daemon_start killed
	pressed during-killed
	mthpd_killed
	snapshot left-killed
	mthpd --restore > /out/restore-killed 2>&1
	echo $? > /out/status-killed
	snapshot after-killed
	mthpd --restore > /out/restore-again 2>&1
	echo $? > /out/status-again
	snapshot after-again
	[ -e /run/mthpd/baseline.json ] && echo there > /out/baseline || echo gone > /out/baseline

	# A crash, a new daemon that finds the values of the old, and its end.
	daemon_start restarted
	pressed during-crash
	mthpd_killed
	daemon_start restarted
	daemon_stop
	echo 0 > /out/status-restarted
	snapshot after-restarted

	# What somebody else set meanwhile is left, and named.
	daemon_start foreign
	pressed during-foreign
	mthpd_killed
	echo madvise > $THP/hugepages-32kB/enabled
	mthpd --restore > /out/restore-foreign 2>&1
	cat $THP/hugepages-32kB/enabled > /out/foreign
	echo always > $THP/hugepages-32kB/enabled
	snapshot after-foreign

	# Killed at other moments: at rest, while it writes, while it recovers.
	i=0
	while [ $i -lt "$kills" ]; do
		workload --cgroup=$CG/test.group --seed="$i" random:size=96M,rate=3000,seconds=60 > /dev/null &
		load=$!
		daemon_start kills
		usleep $((i * 7919 % 40 * 100000))
		mthpd_killed
		kill $load
		wait $load 2> /dev/null
		mthpd --restore > /dev/null 2>&1 || echo $i >> /out/kill-failed
		snapshot now
		cmp -s /out/now /out/before || echo $i >> /out/kill-differs
		i=$((i + 1))
	done
else
	sleep 1000000 & daemon=$!
	pressed during-TERM
	kill $daemon
	snapshot after-TERM
fi
finish
