#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# While kswapd frees page cache, it ages the anonymous memory of the node, by the
# sizes of all lists together: the root group's own are next to empty and say nothing.
# Classic LRU. Whoever is out of balance himself is aged in any case, so it is the
# group whose lists are in balance that tells.
. "${KTEST:-/lib}/ktest.sh"

zram_swap 256M
echo 0 > /sys/kernel/mm/lru_gen/enabled
thp_set ""
second=zram$(cat /sys/class/zram-control/hot_add)
echo 640M > /sys/block/$second/disksize || die "no second zram device"

# hold GROUP MIB ACTIVE: memory of this size, of which so much is on the active list,
# since it was read twice by way of /proc.
hold() {
	memcg_new $1
	rm -f /run/ready
	in_group $1 anon=$2M fill mark=/run/ready wait=/run/go check > /run/attempt.$1 2>&1 &
	await /run/ready
	hold_pid=$(cat $CG/$1/cgroup.procs)
	hold_at=$(awk -v kb=$(($2 * 1024)) '/^[0-9a-f]+-/ { range = $1 } $1 == "Rss:" && $2 >= kb {
		sub(/-.*/, "", range); print range; exit }' /proc/$hold_pid/smaps)
	for hold_round in 1 2; do
		dd if=/proc/$hold_pid/mem of=/dev/null bs=4096 skip=$((0x$hold_at / 4096)) \
			count=$(($3 * 256)) 2> /dev/null || die "cannot read the memory of $hold_pid"
	done
}

rm -f /run/go
hold low 112 112
hold balanced 24 8
check "low: active, MiB" $(($(mstat low active_anon) >> 20)) -ge 100
check "balanced: active, MiB" $(($(mstat balanced active_anon) >> 20)) -in "6 10"
mark kswapd "vmstat pgscan_kswapd"
mark out "vmstat pswpout"
dd if=/dev/$second of=/dev/null bs=1M 2> /dev/null
check "kswapd has freed page cache" "$(delta kswapd)" -ge 50000
check "and swapped next to nothing" "$(delta out)" -le 1000
check "balanced: active afterwards, MiB" $(($(mstat balanced active_anon) >> 20)) -le 2
touch /run/go
wait
check "nobody complains" "$(cat /run/attempt.*)" = ""
finish
