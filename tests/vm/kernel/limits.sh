#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# memory.thp.max_size and memory.thp.max_ptes_none: each group its own, and never
# more than its ancestors allow.
. "${KTEST:-/lib}/ktest.sh"

zram_swap 256M
thp_set ""
shmem_set "" never
cd $THP/khugepaged || die "no khugepaged"
echo 10 > scan_sleep_millisecs
echo 10 > alloc_sleep_millisecs
echo 100000 > pages_to_scan
echo 511 > max_ptes_none

memcg_new files
size=$CG/files/memory.thp.max_size none=$CG/files/memory.thp.max_ptes_none
check "max_size, default" "$(cat $size)" = max
check "max_ptes_none, default" "$(cat $none)" = inherit
check "the root has none of it" "$(ls $CG/memory.thp.max_size $CG/memory.thp.max_ptes_none 2> /dev/null)" = ""
for pair in 64K:65536 100K:65536 2M:2097152 4096:4096 1:4096 0:4096 8191:4096 8K:8192 max:max; do
	echo ${pair%:*} > $size
	check "max_size ${pair%:*}" "$(cat $size)" = ${pair#*:}
done
for bad in "" -1 64Q x maximum "64K 1" K; do refuses $size "$bad"; done
for good in 0 255 511 inherit; do
	echo $good > $none
	check "max_ptes_none $good" "$(cat $none)" = $good
done
for bad in "" -1 512 x "0 0" 1K; do refuses $none "$bad"; done

# faults GROUP KB: a fresh fill of 4M must use this size and, but for the few
# faults of the program itself, no other; none at all if KB is 4.
faults() {
	for kb in 16 64 2048; do mark f$kb "stat $kb anon_fault_alloc"; done
	runs "$1: fill" in_group "$1" anon=4M fill check
	for kb in 16 64 2048; do
		if [ $kb -eq $2 ]; then
			check "$1: ${kb}K folios" "$(delta f$kb)" -ge $((4096 / kb))
		else
			check "$1: hardly any ${kb}K folios" "$(delta f$kb)" -le $((256 / kb))
		fi
	done
}

thp_set "16 64 2048"
memcg_new top/sub
faults top/sub 2048
check "no limit is counted where there is none" "$(mstat top/sub thp_size_limited)" -eq 0
echo 64K > $CG/top/sub/memory.thp.max_size
faults top/sub 64
check "refusals are counted" "$(mstat top/sub thp_size_limited)" -ge 1
check "and not as events" "$(grep -c limited $CG/top/sub/memory.thp.events)" -eq 0
echo 16K > $CG/top/memory.thp.max_size
faults top/sub 16
echo max > $CG/top/sub/memory.thp.max_size
faults top/sub 16
echo 4K > $CG/top/memory.thp.max_size
faults top/sub 4
echo 2M > $CG/top/sub/memory.thp.max_size
faults top/sub 4
mark limited "vmstat thp_size_limited"
echo max > $CG/top/memory.thp.max_size
faults top/sub 2048
check "no limit, no count" "$(delta limited)" -eq 0

# A limit holds at once, for a process that runs.
rm -f /run/ready /run/go
mark f2048 "stat 2048 anon_fault_alloc"
in_group top/sub anon=8M part=0:1 mark=/run/ready wait=/run/go part=512:512 check > /run/attempt &
await /run/ready
echo 64K > $CG/top/memory.thp.max_size
touch /run/go
content "running"
check "running: 2M folios" "$(delta f2048)" -eq 1

# MADV_COLLAPSE is exempt.
mark collapse "vmstat thp_collapse_alloc"
runs "MADV_COLLAPSE under a limit" in_group top/sub anon=2M fill collapse check
check "MADV_COLLAPSE: huge pages" "$(delta collapse)" -eq 1

# khugepaged obeys, and works once it may.
thp_set 2048 madvise
rm -f /run/ready /run/go
in_group top/sub anon=2M nohugepage fill hugepage mark=/run/ready wait=/run/go check > /run/attempt &
await /run/ready
mark scans "cat full_scans"
wait_for 20 sh -c "[ \$(cat $THP/khugepaged/full_scans) -gt $((mark_scans + 2)) ]"
check "khugepaged under a limit" "$(mstat top/sub thp_collapse_alloc)" -eq 1
echo max > $CG/top/memory.thp.max_size
wait_for 20 sh -c "[ \$(awk '/^thp_collapse_alloc/ { print \$2 }' $CG/top/sub/memory.stat) -gt 1 ]"
check "khugepaged without" "$(mstat top/sub thp_collapse_alloc)" -eq 2
touch /run/go
content "khugepaged"

# max_ptes_none, by khugepaged: half of the pages are there.
memcg_new half/sub
rm -f /run/ready /run/go
echo 100 > $CG/half/memory.thp.max_ptes_none
echo 511 > $CG/half/sub/memory.thp.max_ptes_none
in_group half/sub anon=2M nohugepage fill=2 hugepage mark=/run/ready wait=/run/go check > /run/attempt &
await /run/ready
mark scans "cat full_scans"
wait_for 20 sh -c "[ \$(cat $THP/khugepaged/full_scans) -gt $((mark_scans + 2)) ]"
check "the parent's max_ptes_none holds" "$(mstat half/sub thp_collapse_alloc)" -eq 0
echo 256 > $CG/half/memory.thp.max_ptes_none
wait_for 20 sh -c "[ \$(awk '/^thp_collapse_alloc/ { print \$2 }' $CG/half/sub/memory.stat) -gt 0 ]"
check "256 lets it through" "$(mstat half/sub thp_collapse_alloc)" -eq 1
touch /run/go
content "half"

# A global value below the group's holds as well.
echo 100 > max_ptes_none
memcg_new global
rm -f /run/ready /run/go
echo 400 > $CG/global/memory.thp.max_ptes_none
in_group global anon=2M nohugepage fill=2 hugepage mark=/run/ready wait=/run/go check > /run/attempt &
await /run/ready
mark scans "cat full_scans"
wait_for 20 sh -c "[ \$(cat $THP/khugepaged/full_scans) -gt $((mark_scans + 2)) ]"
check "the global value holds" "$(mstat global thp_collapse_alloc)" -eq 0
touch /run/go
wait
echo 511 > max_ptes_none

# Underused huge pages are split in the group that says so, and only there.
echo 0 > defrag
thp_set 2048
for group in strict lax; do
	memcg_new $group
	echo 0 > $CG/$group/memory.swap.max # so that reclaim has to try hard
	[ $group = lax ] || echo 64 > $CG/$group/memory.thp.max_ptes_none
	rm -f /run/ready /run/go
	mark under "vmstat thp_underused_split_page"
	in_group $group anon=8M fill=64 mark=/run/ready wait=/run/go check > /run/attempt &
	await /run/ready
	echo 1M > $CG/$group/memory.reclaim 2> /dev/null
	if [ $group = strict ]; then
		check "strict: underused pages are split" "$(delta under)" -ge 1
	else
		check "lax: they are not" "$(delta under)" -eq 0
	fi
	touch /run/go
	content "$group"
done
thp_set ""

# shmem.
shmem_set 64 always
memcg_new shm
mark shmem "stat 64 shmem_alloc"
runs "shmem without a limit" in_group shm shmem=1M fill check
check "shmem: 64K folios" "$(delta shmem)" -eq 16
echo 16K > $CG/shm/memory.thp.max_size
mark shmem "stat 64 shmem_alloc"
runs "shmem under a limit" in_group shm shmem=1M fill check
check "shmem: no 64K folios" "$(delta shmem)" -eq 0
check "shmem: counted" "$(mstat shm thp_size_limited)" -ge 1
shmem_set "" never

# Swap-in, by the group of the entry even if the process has left it.
thp_set 64 madvise
memcg_new old
memcg_new new
rm -f /run/ready /run/go
in_group old anon=1M hugepage fill pageout cgroup=$CG/new mark=/run/ready wait=/run/go read check > /run/attempt &
await /run/ready
echo 32K > $CG/old/memory.thp.max_size
mark swpin "stat 64 swpin"
mark margin "stat 64 swpin_fallback_margin"
touch /run/go
content "swap-in"
check "swap-in under a limit" "$(delta swpin)" -eq 0
check "swap-in: not for lack of room" "$(delta margin)" -eq 0
check "swap-in: counted" "$(mstat old thp_size_limited)" -ge 1
finish
