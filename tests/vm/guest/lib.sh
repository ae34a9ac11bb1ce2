# SPDX-License-Identifier: LGPL-2.1-or-later
# Library of guest scripts: `. /lib/guest.sh`.

THP=/sys/kernel/mm/transparent_hugepage
CG=/sys/fs/cgroup

die() { echo "FAIL: $*"; exit 1; }

# Monotonic seconds since boot, as in the programs' `t`.
now() { cut -d' ' -f1 /proc/uptime; }

# zram_swap SIZE [ALGORITHM]: SIZE of compressed swap on /dev/zram0.
zram_swap() {
	echo "${2:-lz4}" > /sys/block/zram0/comp_algorithm || die "no zram with ${2:-lz4}"
	echo "$1" > /sys/block/zram0/disksize || die "zram disksize $1"
	mkswap /dev/zram0 > /dev/null && swapon /dev/zram0 || die "no zram swap"
}

# memcg_new NAME [MAX]: a group below the root (names may contain '/'; the groups
# above it get the memory controller). Prints nothing; its path is $CG/NAME.
memcg_new() {
	memcg_dir=$CG
	for memcg_part in $(echo "$1" | tr / ' '); do
		[ "$memcg_dir" = "$CG" ] ||
			for memcg_controller in memory cpu io; do
				echo "+$memcg_controller" > "$memcg_dir/cgroup.subtree_control" 2> /dev/null
			done
		memcg_dir=$memcg_dir/$memcg_part
		[ -d "$memcg_dir" ] || mkdir "$memcg_dir" || die "mkdir $memcg_dir"
	done
	[ -z "${2:-}" ] || echo "$2" > "$memcg_dir/memory.max" || die "memory.max $2"
}

# thp_set "16 32 64" [MODE]: these sizes (KiB) get MODE (always), all others never.
thp_set() {
	for thp_file in $THP/hugepages-*kB/enabled; do
		[ -e "$thp_file" ] || continue
		thp_kb=${thp_file#*hugepages-}
		case " $1 " in
		*" ${thp_kb%%kB*} "*) echo "${2:-always}" > "$thp_file" ;;
		*) echo never > "$thp_file" ;;
		esac
	done
}

# The named settings of the tables.
thp_setting() {
	case $1 in
	never) thp_set "" ;;
	64) thp_set "16 32 64" ;;
	256) thp_set "16 32 64 128 256" ;;
	all) thp_set "16 32 64 128 256 512 1024 2048" ;;
	*) die "unknown setting $1" ;;
	esac
}

# Sizes whose mode is neither never nor missing, as "16 32 64".
thp_enabled_sizes() {
	for thp_file in $(ls -d $THP/hugepages-*kB | sed 's/.*hugepages-//' | sort -n); do
		thp_file=$THP/hugepages-$thp_file/enabled
		[ -e "$thp_file" ] && ! grep -q '\[never\]' "$thp_file" || continue
		thp_kb=${thp_file#*hugepages-}
		printf '%s ' "${thp_kb%%kB*}"
	done | sed 's/ $//'
}

# Every writable file below transparent_hugepage with its value, one per line.
thp_snapshot() {
	find $THP -type f -perm -200 ! -path '*/stats/*' | sort | while read -r thp_file; do
		printf '%s: %s\n' "$thp_file" "$(cat "$thp_file")"
	done
}

# sampler_start OUT [MSEC] GROUP...: memcgstat in the background ($sampler).
sampler_start() {
	sampler_out=$1 sampler_msec=$2
	shift 2
	memcgstat --msec="$sampler_msec" $(printf "$CG/%s " "$@") > "$sampler_out" &
	sampler=$!
}

sampler_stop() {
	kill "$sampler" 2> /dev/null
	wait "$sampler" 2> /dev/null
}

# event_key FILE KEY: one value of a flat-keyed file.
event_key() { awk -v key="$2" '$1 == key { print $2 }' "$1"; }

# wait_for SECONDS COMMAND...: until the command succeeds; fails after SECONDS.
wait_for() {
	wait_left=$(($1 * 10))
	shift
	until "$@"; do
		wait_left=$((wait_left - 1))
		[ $wait_left -gt 0 ] || return 1
		usleep 100000
	done
}

# zram_fs SIZE DIR: a file system on a compressed block device of its own, mounted
# at DIR. Reading it costs processor time only, so it repeats under icount, where
# a real disk would answer in the host's time.
zram_fs() {
	zram_id=$(cat /sys/class/zram-control/hot_add) || die "no second zram device"
	echo "$1" > "/sys/block/zram$zram_id/disksize" || die "zram disksize $1"
	mke2fs -F -b 4096 "/dev/zram$zram_id" > /dev/null 2>&1 || die "mke2fs"
	mkdir -p "$2" && mount -t ext4 "/dev/zram$zram_id" "$2" || die "mount $2"
}

# file_of_size FILE MIB: a file that compresses to about half.
file_of_size() {
	dd if=/dev/urandom of="$1" bs=64K count=8 2> /dev/null
	dd if=/dev/zero bs=64K count=8 2> /dev/null >> "$1"
	file_mib=1
	while [ $file_mib -lt "$2" ]; do
		dd if="$1" bs=1M count=1 2> /dev/null >> "$1.more"
		file_mib=$((file_mib + 1))
	done
	[ ! -e "$1.more" ] || { cat "$1.more" >> "$1"; rm "$1.more"; }
	sync
}
