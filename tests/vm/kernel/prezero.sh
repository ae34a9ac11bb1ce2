#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A collapse of a mostly empty range holds mmap_lock for writing only as long as
# copying takes, and holes are zeroes afterwards.
. /lib/ktest.sh

thp_set "" # MADV_COLLAPSE does not care, and khugepaged stays out of it
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs trace $trace || die "no tracefs"

# held COUNT: microseconds for which the lock is held while 2M are collapsed of
# which COUNT pages are there; the longest time, as other holders are brief.
held() {
	echo 0 > $trace/tracing_on
	: > $trace/trace
	echo 1 > $trace/events/mmap_lock/enable
	rm -f /run/ready /run/go
	thpmem anon=2M part=0:$1 mark=/run/ready wait=/run/go collapse check > /run/out &
	await /run/ready
	echo 1 > $trace/tracing_on
	touch /run/go
	wait
	echo 0 > $trace/tracing_on
	echo 0 > $trace/events/mmap_lock/enable
	[ ! -s /run/out ] || cat /run/out >&2
	awk '/thpmem-/ && /acquire_returned/ && /write=true/ && /success=true/ { t = stamp($0) }
	/thpmem-/ && /released/ && /write=true/ && t { d = stamp($0) - t; if (d > max) max = d; t = 0 }
	function stamp(line) { match(line, /[0-9]+\.[0-9]+:/); return substr(line, RSTART, RLENGTH - 1) }
	END { printf "%d\n", max * 1000000 }' $trace/trace
}

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
