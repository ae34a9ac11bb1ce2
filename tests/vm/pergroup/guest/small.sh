#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# small.sh: does it pay to keep small groups at small pages? Many short processes of
# 1 to 8 MiB, one after another in a group; which part of their memory they touch,
# and under which sizes and max_size. Prints a table.
. /lib/guest.sh
zram_swap 512M

# short_lived COUNT STRIDE: each touches one page in STRIDE of its memory once.
short_lived() {
	n=0
	while [ $n -lt "$1" ]; do
		mib=$((n % 8 + 1))
		workload --cgroup=$CG/g --seed=$n \
			"sparse:size=${mib}M,stride=$2,touches=$((mib * 256 / $2))" > /dev/null
		n=$((n + 1))
	done
}

printf '%-8s %-8s %-8s %8s %8s %8s %8s\n' sizes stride max_size seconds pgfault peak_kb system
for sizes in "16 32 64" "16 32 64 128 256 512 1024 2048"; do
	thp_set "$sizes"
	for stride in 1 4 16; do
		for max_size in max 64K 16K 4096; do
			memcg_new g 64M
			echo $max_size > $CG/g/memory.thp.max_size
			begin=$(now)
			short_lived 100 $stride
			end=$(now)
			printf '%-8s %-8s %-8s %8s %8s %8s %8s\n' "${sizes##* }" $stride $max_size \
				"$(awk "BEGIN { print $end - $begin }")" \
				"$(event_key $CG/g/memory.stat pgfault)" \
				"$(($(cat $CG/g/memory.peak) / 1024))" \
				"$(event_key $CG/g/cpu.stat usage_usec)"
			rmdir $CG/g
		done
	done
done
