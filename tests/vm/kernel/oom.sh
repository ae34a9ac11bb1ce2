#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A group of nothing but anonymous memory, classic LRU, swap half empty: reclaim
# must find something to do. Nobody may read memory.stat meanwhile, since that
# refreshes the statistics which reclaim must not depend on.
#   oom.sh FIRST LAST [ALLOWED]     seeds; how many may be killed (default 0)
# The stock kernel kills in eleven of seeds 1 to 36, by chance in none of a few.
. "${KTEST:-/lib}/ktest.sh"

first=${1:-1} last=${2:-8} allowed=${3:-0}
zram_swap 512M
echo 0 > /sys/kernel/mm/lru_gen/enabled
thp_set "16 32 64"
echo always > $THP/defrag # every fault tries large folios by force: most to reclaim
[ ! -e $THP/memcg_margin ] || echo 0 > $THP/memcg_margin # the worst case

kills=0
seed=$first
while [ $seed -le $last ]; do
	memcg_new oom$seed 64M
	workload --cgroup=$CG/oom$seed --seed=$seed random:size=96M,touches=12000 > /run/out
	if [ "$(event_key $CG/oom$seed/memory.events oom_kill)" != 0 ]; then
		kills=$((kills + 1))
		echo "seed $seed: killed"
	fi
	rmdir $CG/oom$seed
	seed=$((seed + 1))
done
check "killed, of $((last - first + 1)) seeds" $kills -le $allowed
finish
