#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A large folio that swap cannot take, nor its pages one by one, stays whole; one
# whose pages could go is still split.
. "${KTEST:-/lib}/ktest.sh"

thp_setting never
thp_set 16
shmem_set 16 always

# pageout "WHAT" GROUP STEP...: fill 16K folios, page them out, and mark before.
pageout() {
	pageout_what=$1 pageout_group=$2
	shift 2
	mark split "stat 16 split"
	mark avoided "stat 16 swpout_split_avoided"
	mark vm_avoided "vmstat thp_swpout_split_avoided"
	mark pswpout "vmstat pswpout"
	runs "$pageout_what" in_group "$pageout_group" "$@" fill time=fill pageout time=pageout check
}

kept_whole() { # GROUP FOLIOS
	check "$1: splits" "$(delta split)" -eq 0
	check "$1: splits avoided, by size" "$(delta avoided)" -eq "$2"
	check "$1: splits avoided, of the system" "$(delta vm_avoided)" -eq "$2"
	check "$1: splits avoided, in memory.stat" "$(mstat "$1" thp_swpout_split_avoided)" -eq "$2"
	check "$1: splits avoided, as an event" "$(mevent "$1" swpout_split_avoided)" -eq "$2"
	check "$1: pages written" "$(delta pswpout)" -eq 0
}

# refused GROUP MAX FAIL: memory.swap.events, of one refusal for each folio.
refused() {
	check "$1: swap.events max" "$(event_key $CG/$1/memory.swap.events max)" -eq "$2"
	check "$1: swap.events fail" "$(event_key $CG/$1/memory.swap.events fail)" -eq "$3"
}

memcg_new nodevice
pageout "no swap device" nodevice anon=16M
kept_whole nodevice 1024
refused nodevice 0 1024

zram_swap 256M
memcg_new limit
echo 0 > $CG/limit/memory.swap.max
pageout "anonymous, memory.swap.max=0" limit anon=64M
kept_whole limit 4096
refused limit 4096 4096

memcg_new shmem
echo 0 > $CG/shmem/memory.swap.max
pageout "shmem, memory.swap.max=0" shmem shmem=32M
kept_whole shmem 2048
refused shmem 2048 2048

# What stays whole stays mapped: there is no need to unmap it to find out.
memcg_new mapped
echo 0 > $CG/mapped/memory.swap.max
rm -f /run/ready /run/go
in_group mapped shmem=4M fill pageout mark=/run/ready wait=/run/go check > /run/attempt &
await /run/ready
check "shmem stays mapped, KiB" "$(awk '$1 == "RssShmem:" { print $2 }' \
	/proc/$(cat $CG/mapped/cgroup.procs)/status)" -ge 4096
touch /run/go
content "mapped"
rm -f /run/ready

# What was mapped by reading it looks clean until it is unmapped, so that only the
# writeout itself finds out.
memcg_new unmapped
echo 0 > $CG/unmapped/memory.swap.max
pageout "shmem that looked clean" unmapped shmem=4M read
kept_whole unmapped 256
refused unmapped 256 256

# The same for a folio that reaches beyond the end of its file: swap is asked before the
# split, and not only by the folio's charge.
mkdir -p /run/huge && mount -t tmpfs -o huge=always tmpfs /run/huge || die "no tmpfs"
memcg_new beyond
echo 0 > $CG/beyond/memory.swap.max
rm -f /run/go /run/short /run/out
in_group beyond tmpfs=/run/huge/file:2M mark=/run/ready wait=/run/short read=256 part=0:256 \
	pageout mark=/run/out wait=/run/go check > /run/attempt &
await /run/ready
truncate -s 1M /run/huge/file
mark alloc "vmstat thp_file_alloc"
mark split "stat 2048 split"
mark avoided "stat 2048 swpout_split_avoided"
touch /run/short
await /run/out
check "beyond: huge pages" "$(delta alloc)" -eq 1
check "beyond: unmapped, so its writeout was tried, KiB" "$(awk '$1 == "RssShmem:" { print $2 }' \
	/proc/$(cat $CG/beyond/cgroup.procs)/status)" -lt 2048
check "beyond: splits" "$(delta split)" -eq 0
check "beyond: splits avoided, by size" "$(delta avoided)" -eq 1
check "beyond: splits avoided, as an event" "$(mevent beyond swpout_split_avoided)" -eq 1
refused beyond 1 1
truncate -s 2M /run/huge/file
touch /run/go
content "beyond"
umount /run/huge
rm -f /run/ready

memcg_new parent/child
echo 0 > $CG/parent/memory.swap.max
pageout "the parent's memory.swap.max=0" parent/child anon=4M
kept_whole parent/child 256
refused parent/child 256 256
refused parent 256 256
check "the parent sees the events" "$(mevent parent swpout_split_avoided)" -eq 256
check "but not as its own" "$(event_key $CG/parent/memory.thp.events.local swpout_split_avoided)" -eq 0

# One list with the folios of three groups in turn: each is told of its own.
mixed="anon=2M"
for from in 0 64 128 192 256 320 384 448; do
	mixed="$mixed cgroup=$CG/mixed/a part=$from:16 cgroup=$CG/mixed/b part=$((from + 16)):32"
	mixed="$mixed cgroup=$CG/limit part=$((from + 48)):16"
done
memcg_new mixed/a
memcg_new mixed/b
echo 0 > $CG/mixed/memory.swap.max
mark limit "mevent limit swpout_split_avoided"
pageout "folios of three groups" mixed/a $mixed
check "splits avoided, all three" "$(delta avoided) $(delta vm_avoided)" = "128 128"
check "splits avoided, the third" "$(delta limit)" -eq 32
for expected in mixed/a:32 mixed/b:64 mixed:96; do
	group=${expected%:*} folios=${expected#*:}
	check "$group: as an event" "$(mevent $group swpout_split_avoided)" -eq $folios
	check "$group: in memory.stat" "$(mstat $group thp_swpout_split_avoided)" -eq $folios
	refused $group $folios $folios
done

# Room for 10 pages: two folios go whole, one is split for the last two pages.
memcg_new partial
echo 40K > $CG/partial/memory.swap.max
pageout "room for ten pages" partial anon=1M
check "partial: splits" "$(delta split)" -eq 1
check "partial: pages written" "$(delta pswpout)" -eq 10
check "partial: splits avoided" "$(mevent partial swpout_split_avoided)" -eq 61

memcg_new ample
pageout "swap available" ample anon=64M
check "ample: splits" "$(delta split)" -eq 0
check "ample: pages written" "$(delta pswpout)" -eq 16384
check "ample: splits avoided" "$(mevent ample swpout_split_avoided)" -eq 0

# A device whose free slots are all single: every second page is given back.
swapoff /dev/zram0
echo 1 > /sys/block/zram0/reset
zram_swap 8M
thp_set ""
memcg_new frag
in_group frag anon=16M fill pageout holes=2 mark=/run/ready wait=/run/done > /dev/null &
await /run/ready
thp_set 16
memcg_new pieces
pageout "a fragmented device" pieces anon=2M
check "pieces: splits" "$(delta split)" -eq 128
check "pieces: pages written" "$(delta pswpout)" -eq 512
touch /run/done
wait

# A full device.
rm -f /run/ready /run/done
thp_set ""
in_group frag anon=16M fill pageout mark=/run/ready wait=/run/done > /dev/null &
await /run/ready
thp_set 16
memcg_new full
pageout "a full device" full anon=2M
check "full: splits" "$(delta split)" -eq 0
check "full: splits avoided" "$(mevent full swpout_split_avoided)" -eq 128
refused full 0 128
touch /run/done
wait
finish
