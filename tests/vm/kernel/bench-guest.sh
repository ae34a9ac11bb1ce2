#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The figures of one kernel with one kind of LRU, as "ROW KEY VALUE" lines, for
# tests/vm/kernel/bench.   bench-guest.sh LRU MARGIN ROWS...
. "${KTEST:-/lib}/ktest.sh"

lru=$1 margin=$2
shift 2
echo $lru > /sys/kernel/mm/lru_gen/enabled
[ ! -e $THP/memcg_margin ] || echo "$margin" > $THP/memcg_margin
thp_set ""
shmem_set "" never

figure() { echo "$*"; }

# part ROW STEP...: thpmem in the group "p"; the time of each time=KEY, in us.
part() {
	part_row=$1
	shift
	mark split "total split"
	in_group p "$@" > /run/out
	awk -v row="$part_row" '{ printf "%s %s_us %d\n", row, $1, $2 / 1000 }' /run/out
	figure $part_row splits "$(delta split)"
}

row_nodevice() {
	memcg_new p
	thp_set 16 madvise
	part nodevice anon=16M hugepage fill time=fill pageout time=pageout
	rmdir $CG/p
}

row_pageout() {
	thp_set 16 madvise
	memcg_new p
	part swap-available anon=64M hugepage fill time=fill pageout time=pageout
	echo 0 > $CG/p/memory.swap.max
	part swap-max-0 anon=64M hugepage fill time=fill pageout time=pageout
	shmem_set 16 always
	part shmem shmem=32M fill time=fill pageout time=pageout
	shmem_set "" never
	echo 40K > $CG/p/memory.swap.max
	part swap-max-40K anon=1M hugepage fill time=fill pageout time=pageout
	rmdir $CG/p
}

# load ROW PHASE...: the workload in a group of 64M; time of each phase in ms.
load() {
	load_row=$1
	shift
	memcg_new w 64M
	mark in "vmstat pswpin"
	mark out "vmstat pswpout"
	mark large "total anon_fault_alloc"
	sampler_start /run/samples 1000 w
	workload --cgroup=$CG/w --seed=1 "$@" > /run/out
	sampler_stop
	sed -n 's/.*"event":"done","phase":\([0-9]*\).*"elapsed":\([0-9.]*\),.*/\1 \2/p' /run/out |
		awk -v row="$load_row" '{ printf "%s phase%d_ms %d\n", row, $1, $2 * 1000 }'
	figure $load_row pswpin "$(delta in)"
	figure $load_row pswpout "$(delta out)"
	figure $load_row large "$(delta large)"
	figure $load_row kills "$(event_key $CG/w/memory.events oom_kill)"
	rmdir $CG/w
}

row_random() {
	for defrag in madvise always; do
		echo $defrag > $THP/defrag
		for setting in never 64; do
			thp_setting $setting
			load random-$defrag-$setting random:size=96M,touches=30000
		done
	done
	echo madvise > $THP/defrag
}

row_fixed() {
	for setting in never 64; do
		thp_setting $setting
		load fixed-fill-$setting fill:size=48M,touches=60000
		load fixed-runs-$setting runs:size=96M,touches=40000
		load fixed-seq-$setting seq:size=96M,touches=40000
		load fixed-sparse-$setting sparse:size=512M,touches=20000
	done
}

# No limit, or far from it: the gate must cost nothing.
row_ample() {
	# What the kernel does only once is not to be measured.
	memcg_new w
	workload --cgroup=$CG/w fill:size=64M,touches=16384,work=0 > /run/out
	rmdir $CG/w
	for setting in never 16 64; do
		case $setting in 16) thp_set 16 ;; *) thp_setting $setting ;; esac
		for kind in limited free; do
			memcg_new w
			[ $kind = free ] || echo 1G > $CG/w/memory.max
			mark large "total anon_fault_alloc"
			workload --cgroup=$CG/w fill:size=64M,touches=65536,work=0 > /run/out
			figure ample-$kind-$setting fill_us "$(sed -n \
				's/.*"event":"done".*"elapsed":\([0-9]*\)\.\([0-9]*\),.*/\1\2/p' /run/out | sed 's/^0*//')"
			figure ample-$kind-$setting large "$(delta large)"
			rmdir $CG/w
		done
	done
}

# A group that is full of a streaming reader's page cache.
row_cache() {
	second=zram$(cat /sys/class/zram-control/hot_add)
	echo 512M > /sys/block/$second/disksize || die "no second zram"
	thp_set 64
	for defrag in madvise always; do
		for advice in plain hugepage; do
			echo $defrag > $THP/defrag
			steps="anon=32M"
			[ $advice = plain ] || steps="$steps hugepage"
			mark large "stat 64 anon_fault_alloc"
			usec=0
			# Where reclaim happens to stand makes one fill differ from the next: the
			# standard deviation is 1.8 per cent, so that of 48 together 0.3.
			for round in $(seq 48); do
				memcg_new p 64M
				workload --cgroup=$CG/p stream:file=/dev/$second,touches=20000 > /dev/null
				in_group p $steps fill time=fill > /run/out
				usec=$((usec + $(awk '{ printf "%d", $2 / 1000 }' /run/out)))
				rmdir $CG/p
			done
			figure cache-$defrag-$advice fill_us $usec
			figure cache-$defrag-$advice large "$(delta large)"
		done
	done
	echo madvise > $THP/defrag
}

# How long khugepaged's work holds mmap_lock for writing, by pages that are there.
row_collapse() {
	thp_set ""
	for pages in 1 128 256; do
		figure collapse held${pages}_us "$(held $pages)"
	done
}

case " $* " in *" nodevice "*) row_nodevice ;; esac
zram_swap 512M
for row; do
	[ "$row" = nodevice ] || row_$row
done
