#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# What must not change: fork and copy on write, userfaultfd, memory.swap.events,
# and the content of memory that was swapped, split, narrowed or collapsed.
. "${KTEST:-/lib}/ktest.sh"

zram_swap 256M
thp_set "16 64"
shmem_set "" never

memcg_new fork
mark alloc "total anon_fault_alloc"
runs "fork and copy on write" in_group fork anon=8M fill fork check pageout check fork check
check "with large folios" "$(delta alloc)" -ge 100
runs "fork of swapped memory" in_group fork anon=8M fill pageout fork check

memcg_new tight 24M
runs "fork in a group that is full" in_group tight anon=20M fill fork check fork check

memcg_new uffd
runs "userfaultfd" in_group uffd anon=2M uffd
check "one fault per page" "$(in_group uffd anon=2M uffd)" = "uffd 512"
echo 16K > $CG/uffd/memory.thp.max_size 2> /dev/null
check "one fault per page, under a limit" "$(in_group uffd anon=1M uffd)" = "uffd 256"

memcg_new swap
echo 4M > $CG/swap/memory.swap.max
mark pswpout "vmstat pswpout"
runs "more than swap takes" in_group swap anon=16M fill pageout check
check "swap.events max" "$(event_key $CG/swap/memory.swap.events max)" -ge 1
check "swap.events fail" "$(event_key $CG/swap/memory.swap.events fail)" -ge 1
check "swap is used up" "$(delta pswpout)" -ge 1000

# Many short lives near a limit that moves, on all CPUs.
memcg_new churn 48M
for i in 1 2 3 4; do
	(for j in 1 2 3 4 5 6; do
		in_group churn anon=14M fill check pageout check holes=3 check || echo bad
	done) > /run/churn.$i &
done
for i in 1 2 3 4 5 6 7 8; do
	echo 40M > $CG/churn/memory.high
	echo 32K > $CG/churn/memory.thp.max_size 2> /dev/null
	usleep 200000
	echo max > $CG/churn/memory.high
	echo max > $CG/churn/memory.thp.max_size 2> /dev/null
	usleep 200000
done
wait
check "churn: nobody lost a page" "$(cat /run/churn.*)" = ""
check "churn: nobody was killed" "$(event_key $CG/churn/memory.events oom_kill)" -eq 0
finish
