#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# thp_reclaim_young / thp_reclaim_scanned tells how much of the large folios is
# used. Read after one turnover of the lists, with the gate open.
#   density.sh [TOUCHES]      of the measured part
. "${KTEST:-/lib}/ktest.sh"

touches=${1:-40000}
zram_swap 512M
thp_set "16 32 64"

# density LRU NAME MODE LOW HIGH: parts in a thousand.
density() {
	memcg_new d 64M
	echo 0 > $CG/d/memory.thp.margin
	rm -f /run/w
	# Statistics are read while the group lives, between two phases.
	workload --cgroup=$CG/d --seed=1 $3,touches=$touches idle:seconds=0.01 \
		"$(echo $3 | sed 's/populate=1/populate=0/'),touches=$touches" > /run/w &
	wait_for 600 grep -qs '"idle"' /run/w
	old=$(awk '/^thp_reclaim_scanned/ { s = $2 } /^thp_reclaim_young/ { y = $2 }
		END { print s + 0, y + 0 }' $CG/d/memory.stat)
	wait
	new=$(awk '/^thp_reclaim_scanned/ { s = $2 } /^thp_reclaim_young/ { y = $2 }
		END { print s + 0, y + 0 }' $CG/d/memory.stat)
	set -- "$1" "$2" "$4" "$5" $old $new
	check "lru_gen $1, $2: pages looked at" $(($7 - $5)) -ge 1000
	check "lru_gen $1, $2: density" $((($8 - $6) * 1000 / ($7 - $5 + 1))) -in "$3 $4"
	rmdir $CG/d
}

# The touched pages alone are more than the limit, else they end up as small folios
# that fit, and there is nothing left to look at.
for lru in 7 0; do
	echo $lru > /sys/kernel/mm/lru_gen/enabled
	density $lru random random:size=96M,populate=1 1 250
	density $lru sequential seq:size=96M,populate=1 950 1000
	density $lru "every second" sparse:size=192M,stride=2 450 550
	density $lru "every fourth" sparse:size=384M,stride=4 220 280
done
finish
