#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Each counter moves when its event happens, and only then; readers of
# memory.thp.events are woken, but not more than once per second.
. "${KTEST:-/lib}/ktest.sh"

zram_swap 256M
thp_set 64
shmem_set "" never
keys="margin_anon margin_swpin margin_shmem margin_collapse swpout_split_avoided"

memcg_new a/b
check "the lines of memory.thp.events" "$(awk '{ printf "%s ", $1 }' $CG/a/b/memory.thp.events)" = "$keys "
check "and of the local one" "$(awk '{ printf "%s ", $1 }' $CG/a/b/memory.thp.events.local)" = "$keys "
check "the root has no events" "$(ls $CG/memory.thp.events 2> /dev/null)" = ""

# Swap traffic, by group and by size.
mark in "vmstat pswpin"
mark out "vmstat pswpout"
mark swpin "stat 64 swpin"
mark swpout "stat 64 swpout"
runs "out and in again" in_group a/b anon=4M fill pageout read check
check "pswpout of the group" "$(mstat a/b pswpout)" -eq 1024
check "pswpin of the group" "$(mstat a/b pswpin)" -eq 1024
check "hierarchical" "$(mstat a pswpin)" -eq 1024
check "as the system counts" "$(delta out) $(delta in)" = "1024 1024"
check "64K folios out" "$(delta swpout)" -eq 64
check "64K folios in" "$(delta swpin)" -eq 64
for key in $keys; do check "nothing happened: $key" "$(mevent a/b $key)" -eq 0; done
for key in thp_margin_fallback thp_size_limited thp_swpout_split_avoided; do
	check "nothing happened: $key" "$(mstat a/b $key)" -eq 0
done

# Notifications: thousands of events, a few wake-ups, and the last is not lost.
echo 0 > $CG/a/b/memory.swap.max
thpmem watch=$CG/a/memory.thp.events:4500 > /run/parent &
thpmem watch=$CG/a/b/memory.thp.events:4500 > /run/own &
thpmem watch=$CG/a/memory.thp.events.local:4500 > /run/local &
sleep 1
for i in 1 2 3 4 5 6 7 8 9 10; do
	in_group a/b anon=4M fill pageout > /dev/null
	usleep 100000
done
wait
check "events" "$(mevent a/b swpout_split_avoided)" -eq 640
check "of the parent" "$(mevent a swpout_split_avoided)" -eq 640
check "not its own" "$(event_key $CG/a/memory.thp.events.local swpout_split_avoided)" -eq 0
check "wake-ups of the group" "$(awk '{ print $2 }' /run/own)" -in "2 5"
check "wake-ups of the parent" "$(awk '{ print $2 }' /run/parent)" -in "2 5"
check "wake-ups for nothing of its own" "$(awk '{ print $2 }' /run/local)" -eq 0

# A group that goes while its timer is armed, again and again.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	memcg_new brief/$i
	echo 0 > $CG/brief/$i/memory.swap.max
	in_group brief/$i anon=256K fill pageout > /dev/null
	memcg_gone brief/$i
done
check "the parent has counted for them" "$(mevent brief swpout_split_avoided)" -eq 80
sleep 2
finish
