#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Large folios are tried only while the group and its ancestors have room.
. "${KTEST:-/lib}/ktest.sh"

zram_swap 512M
thp_set ""
shmem_set "" never

check "the default is auto" "$(cat $THP/memcg_margin)" = auto
for bad in "" -1 1x autos 4294967296 "1 2"; do refuses $THP/memcg_margin "$bad"; done
memcg_new files
check "a group inherits" "$(cat $CG/files/memory.thp.margin)" = inherit
for bad in "" -1 x 99999999999 "inherit 1"; do refuses $CG/files/memory.thp.margin "$bad"; done
check "the root has no such file" "$(ls $CG/memory.thp.margin 2> /dev/null)" = ""
for value in 0 512 auto inherit; do
	echo $value > $CG/files/memory.thp.margin
	check "a group takes $value" "$(cat $CG/files/memory.thp.margin)" = $value
done

# attempt GROUP: with the limits as they are, 64K at a time for 1M. The process
# is in the group before, so that the limit can be set to what is left.
attempt_start() { # GROUP [SIZE of the folios that it gets before]
	rm -f /run/ready /run/go
	thp_set "${2:-}" madvise
	in_group "$1" anon=4M hugepage part=0:64 mark=/run/ready wait=/run/go part=512:64 check \
		> /run/attempt &
	await /run/ready
	thp_set 64 madvise # so that other processes have no part in the counters
	mark alloc "stat 64 anon_fault_alloc"
	mark refused "stat 64 anon_fault_fallback_margin"
	mark fallback "stat 64 anon_fault_fallback"
	mark vm "vmstat thp_margin_fallback"
}

attempt_end() {
	touch /run/go
	content ""
}

allowed() { # GROUP
	check "$1: 64K folios" "$(delta alloc)" -eq 4
	check "$1: refused" "$(delta refused)" -eq 0
	check "$1: events" "$(mevent "$1" margin_anon)" -eq 0
}

refused() { # GROUP
	check "$1: 64K folios" "$(delta alloc)" -eq 0
	check "$1: refused" "$(delta refused)" -ge 4
	check "$1: refused is part of fallback" "$(delta fallback)" -eq "$(delta refused)"
	check "$1: events" "$(mevent "$1" margin_anon)" -eq "$(delta refused)"
	# What was pushed out meanwhile may have been swapped in again.
	anon=$(mevent "$1" margin_anon) swpin=$(mevent "$1" margin_swpin)
	all=$((${anon:-0} + ${swpin:-0})) # a stock kernel has neither
	check "$1: memory.stat" "$(mstat "$1" thp_margin_fallback)" -eq $all
	check "$1: the system's counter" "$(delta vm)" -eq $all
}

memcg_new ample
attempt_start ample
attempt_end
allowed ample

for file in max high; do
	memcg_new $file-wide
	attempt_start $file-wide
	room $file-wide memory.$file 256
	attempt_end
	allowed $file-wide

	# Room for the folios themselves, but not for a batch: what the CPU has in
	# stock is charged already and counts as used.
	memcg_new $file-tight
	attempt_start $file-tight
	room $file-tight memory.$file 40
	attempt_end
	refused $file-tight
done

memcg_new parent/child
attempt_start parent/child
room parent memory.max 40
attempt_end
refused parent/child
check "the parent sees the events" "$(mevent parent margin_anon)" -eq "$(mevent parent/child margin_anon)"
check "but not as its own" "$(event_key $CG/parent/memory.thp.events.local margin_anon)" -eq 0

# That a group had no limit may be remembered, but not beyond the next one that is set.
memcg_new late/child
attempt_start late/child 64
check "late/child: 64K folios before" "$(stat 64 nr_anon)" -ge 4
room late memory.max 40
attempt_end
refused late/child
echo max > $CG/late/memory.max
memcg_new late/again
attempt_start late/again 64
attempt_end
allowed late/again

# Overrides: off, by a number, and from the parent.
memcg_new off
echo 0 > $CG/off/memory.thp.margin
attempt_start off
room off memory.high 40
attempt_end
allowed off

memcg_new number
echo 16 > $CG/number/memory.thp.margin
attempt_start number
room number memory.high 130
attempt_end
allowed number
memcg_new number512
echo 512 > $CG/number512/memory.thp.margin
attempt_start number512
room number512 memory.high 256
attempt_end
refused number512

memcg_new over/under
echo 0 > $CG/over/memory.thp.margin
attempt_start over/under
room over/under memory.high 40
attempt_end
allowed over/under

echo 0 > $THP/memcg_margin
memcg_new system
attempt_start system
room system memory.high 40
attempt_end
allowed system
echo auto > $THP/memcg_margin

# A huge page needs room for a huge page, a small large folio does not.
memcg_new pmd
attempt_start pmd
thp_set "64 2048" madvise
room pmd memory.max 300
mark pmd "stat 2048 anon_fault_fallback_margin"
attempt_end
check "pmd: 2M refused" "$(delta pmd)" -eq 1
check "pmd: 64K given" "$(delta alloc)" -ge 1

# shmem, and khugepaged.
thp_set ""
memcg_new shmem
rm -f /run/ready /run/go
in_group shmem shmem=4M part=0:64 mark=/run/ready wait=/run/go part=512:16 check > /run/attempt &
await /run/ready
shmem_set 64 always
room shmem memory.max 40
touch /run/go
content "shmem"
check "shmem: refused" "$(mevent shmem margin_shmem)" -ge 1
shmem_set "" never

cd $THP/khugepaged || die "no khugepaged"
echo 10 > alloc_sleep_millisecs
echo 100000 > pages_to_scan
memcg_new collapse
thp_set 2048 madvise
rm -f /run/ready /run/go /run/limited
in_group collapse anon=2M nohugepage fill mark=/run/ready wait=/run/limited hugepage wait=/run/go \
	check > /run/attempt &
await /run/ready
room collapse memory.max 300
touch /run/limited
echo 10 > scan_sleep_millisecs
wait_for 20 sh -c "[ \$(awk '/margin_collapse/ { print \$2 }' $CG/collapse/memory.thp.events) -gt 0 ]"
check "collapse: refused" "$(mevent collapse margin_collapse)" -ge 1
check "collapse: none" "$(mstat collapse thp_collapse_alloc)" -eq 0
echo max > $CG/collapse/memory.max
wait_for 20 sh -c "[ \$(awk '/^thp_collapse_alloc/ { print \$2 }' $CG/collapse/memory.stat) -gt 0 ]"
check "collapse: with room" "$(mstat collapse thp_collapse_alloc)" -eq 1
touch /run/go
content "collapse"
thp_set ""
echo 600000 > scan_sleep_millisecs

# Swap-in: the group of the swap entry is asked while it lives, even if the
# process has moved, and the group of the process when it is gone.
swapin() { # OLD NEW
	rm -f /run/ready /run/go
	thp_set 64 madvise
	in_group "$1" anon=1M hugepage fill pageout cgroup="$CG/$2" mark=/run/ready wait=/run/go read check \
		> /run/attempt &
	await /run/ready
	mark swpin "stat 64 swpin"
	mark refused "stat 64 swpin_fallback_margin"
}
swapin_end() {
	touch /run/go
	content "swap-in"
	thp_set ""
}

memcg_new alive
memcg_new fresh
swapin alive fresh
swapin_end
check "swap-in with room" "$(delta swpin)" -eq 16
check "swap-in with room, pages" "$(mstat alive pswpin)" -eq 256

memcg_new alive-full
swapin alive-full fresh
room alive-full memory.high 20
swapin_end
check "swap-in into a full group, by the entry" "$(delta swpin)" -le 2
check "refused" "$(delta refused)" -ge 14
check "its event" "$(mevent alive-full margin_swpin)" -ge 14
check "not the other group's" "$(mevent fresh margin_swpin)" -eq 0

memcg_new gone
memcg_new heir
swapin gone heir
memcg_gone gone
swapin_end
check "the group is gone, the other has room" "$(delta swpin)" -eq 16

memcg_new gone
memcg_new heir-full
swapin gone heir-full
memcg_gone gone
room heir-full memory.high 20
swapin_end
# Each of the 16 folios is refused. Some of their pages are pushed out meanwhile, and
# may come back as one, since memory.high makes room in large steps.
check "the group is gone, the other is full" "$(delta refused)" -ge 16
check "the other's event" "$(mevent heir-full margin_swpin)" -eq "$(delta refused)"
check "fewer large folios than with room" "$(delta swpin)" -lt 16

# The root has no limit, and nothing to say.
thp_set 64
mark alloc "stat 64 anon_fault_alloc"
runs "in the root" thpmem anon=1M fill check
check "root: 64K folios" "$(delta alloc)" -ge 16
thp_set ""

# A group that is full of page cache is not full.
second=zram$(cat /sys/class/zram-control/hot_add)
echo 512M > /sys/block/$second/disksize || die "no second zram"
for mode in "madvise plain" "madvise hugepage" "always plain"; do
	echo ${mode% *} > $THP/defrag
	memcg_new cache 64M
	workload --cgroup=$CG/cache stream:file=/dev/$second,touches=40000 > /dev/null
	thp_set 64
	for margin in 0 auto; do
		echo $margin > $CG/cache/memory.thp.margin
		mark alloc "stat 64 anon_fault_alloc"
		[ "${mode#* }" = plain ] || advice=hugepage
		runs "fill, full of cache, $mode, margin $margin" \
			in_group cache anon=24M ${advice:-} fill check
		eval "alloc_$margin=$(delta alloc)"
		workload --cgroup=$CG/cache stream:file=/dev/$second,touches=20000 > /dev/null
	done
	check "64K folios, $mode, against $alloc_0 without gating" \
		$alloc_auto -ge $((alloc_0 * 95 / 100))
	advice=
	thp_set ""
	memcg_gone cache
done
finish
