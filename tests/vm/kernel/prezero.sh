#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A collapse of a mostly empty range holds mmap_lock for writing only as long as
# copying takes, and holes are zeroes afterwards.
. "${KTEST:-/lib}/ktest.sh"

thp_set "" # MADV_COLLAPSE does not care, and khugepaged stays out of it

for count in 1 128 256 384 512; do
	eval "held_$count=\$(held $count)"
	eval "echo \"  $count of 512 pages present: held for \$held_$count us\""
done
# Stock zeroes what it does not copy, so it holds the lock as long for 1 as for 512.
check "1 present, against 512" $((held_1 * 100 / held_512)) -le 15
check "128 present, against 512" $((held_128 * 100 / held_512)) -le 45
check "256 present, against 512" $((held_256 * 100 / held_512)) -le 70

for fill in 1 2 3 64; do
	runs "content, one page in $fill" thpmem anon=4M fill=$fill collapse check
done
shmem_set "" never
runs "content, shmem" thpmem shmem=4M fill=64 collapse check
runs "content, shmem, half" thpmem shmem=4M fill=2 collapse check
mkdir -p /run/t && mount -t tmpfs -o size=64M t /run/t
runs "content, tmpfs" thpmem tmpfs=/run/t/f:4M fill=16 collapse check
finish
