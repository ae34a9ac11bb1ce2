#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# stream.sh DISK|zram SECONDS ANON_PHASE SETTING...: a reader of a file of four times
# the limit and an anonymous set that fits, in one group of 64 MiB. Leaves /out.tar.
. /lib/guest.sh
source=$1 seconds=$2 phase=$3
shift 3
zram_swap 512M
case $source in
zram)
	zram_fs 800M /mnt
	file_of_size /mnt/file 256 ;;
*)
	mkdir /mnt && mount -t ext4 -o ro "$source" /mnt || die "mount $source" ;;
esac
echo 3 > /proc/sys/vm/drop_caches
mkdir /out
for setting in "$@"; do
	thp_setting "$setting"
	memcg_new "$setting" 64M
	sampler_start "/out/stat-$setting" 1000 "$setting"
	workload --cgroup="$CG/$setting" --report-msec=1000 \
		"stream:file=/mnt/file,seconds=$seconds" > "/out/stream-$setting" &
	stream=$!
	workload --cgroup="$CG/$setting" --report-msec=1000 "$phase,seconds=$seconds" \
		> "/out/work-$setting"
	wait $stream
	sampler_stop
	echo "$setting stream $(tail -n 1 "/out/stream-$setting")"
	echo "$setting anon $(tail -n 1 "/out/work-$setting")"
	echo "$setting $(tr '\n' ' ' < "$CG/$setting/memory.events")"
	echo "$setting $(tr '\n' ' ' < "$CG/$setting/memory.pressure")"
done
tar cf /out.tar -C / out
