# SPDX-License-Identifier: GPL-2.0-only
# Library of the kernel tests, in /lib of a guest or in $KTEST. A test says what it saw, one
# line per check, and ends with `finish`.
. "${KTEST:-/lib}/guest.sh"

# Busybox has it, other systems do not.
command -v usleep > /dev/null ||
	usleep() { sleep "$(awk -v usec="$1" 'BEGIN { print usec / 1000000 }')"; }

# A guest may be starved by its host for longer than the kernel thinks possible.
echo 300 > /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout

# khugepaged comes when a test calls it by enabling 2M, and not before. With the global
# switch on it runs for the sake of read-only files, and then collapses shmem as well,
# even if only a smaller size is enabled there; how much depends on when it is scheduled.
# Sizes that are set by name do not need the global switch.
echo never > $THP/enabled
echo 600000 > $THP/khugepaged/scan_sleep_millisecs

STATS=$THP/hugepages
passed=0 failed=0

# check "WHAT" VALUE OP LIMIT: OP as in test(1), for integers; -in for a range
# "LOW HIGH".
check() {
	case $3 in
	-in) [ -n "$2" ] && [ "$2" -ge "${4% *}" ] && [ "$2" -le "${4#* }" ] ;;
	=) [ "$2" = "$4" ] ;;
	*) [ -n "$2" ] && [ "$2" "$3" "$4" ] ;;
	esac 2> /dev/null
	if [ $? -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok: $1 ($2)"
	else
		failed=$((failed + 1))
		echo "NOT OK: $1: '$2', wanted $3 $4"
	fi
}

# runs "WHAT" COMMAND...: the command must succeed.
runs() {
	runs_what=$1
	shift
	"$@" > /run/out 2>&1
	check "$runs_what" "$?" -eq 0
	[ ! -s /run/out ] || sed 's/^/  /' /run/out
}

# content "WHOSE": the process in the background ends well, and /run/attempt has no
# complaint of it. One that was killed has none either.
content() {
	wait $!
	check "${1:+$1: }the process is content" "$? $(cat /run/attempt)" = "0 "
}

# refuses FILE VALUE: a write of VALUE must fail with EINVAL and change nothing.
refuses() {
	refuses_old=$(cat "$1")
	refuses_error=$( (echo "$2" > "$1") 2>&1)
	case $refuses_error in
	*"Invalid argument"*) refuses_error=EINVAL ;;
	esac
	check "$(basename "$1") does not take '$2'" "$refuses_error" = EINVAL
	check "$(basename "$1") is unchanged" "$(cat "$1")" = "$refuses_old"
}

finish() {
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
	exit
}

# stat KB NAME: a statistic of one size; total NAME: of all sizes together.
stat() { cat "$STATS-$1kB/stats/$2" 2> /dev/null; }
total() { cat $STATS-*kB/stats/"$1" 2> /dev/null | awk '{ sum += $1 } END { print sum + 0 }'; }

mstat() { event_key "$CG/$1/memory.stat" "$2"; } # GROUP KEY
mevent() { event_key "$CG/$1/memory.thp.events" "$2"; }
vmstat() { event_key /proc/vmstat "$1"; }

# mark WHAT / delta WHAT: how far a figure has moved. WHAT is a command.
mark() { eval "mark_$1=\$($2)"; eval "mark_cmd_$1=\$2"; }
delta() {
	eval "delta_old=\$mark_$1 delta_cmd=\$mark_cmd_$1"
	delta_new=$($delta_cmd)
	[ -z "$delta_new" ] || [ -z "$delta_old" ] || echo $((delta_new - delta_old))
}

shmem_set() { # "16 64" MODE
	for shmem_file in $STATS-*kB/shmem_enabled; do
		[ -e "$shmem_file" ] || continue
		shmem_kb=${shmem_file#*hugepages-}
		case " $1 " in
		*" ${shmem_kb%%kB*} "*) echo "$2" > "$shmem_file" ;;
		*) echo never > "$shmem_file" ;;
		esac
	done
}

# The harness's own would ask for controllers that a small kernel lacks.
memcg_new() { # NAME [MAX]
	memcg_dir=$CG
	for memcg_part in $(echo "$1" | tr / ' '); do
		[ "$memcg_dir" = "$CG" ] || echo +memory > "$memcg_dir/cgroup.subtree_control" ||
			die "no memory controller below $memcg_dir"
		memcg_dir=$memcg_dir/$memcg_part
		[ -d "$memcg_dir" ] || mkdir "$memcg_dir" || die "mkdir $memcg_dir"
	done
	[ -z "${2:-}" ] || echo "$2" > "$memcg_dir/memory.max" || die "memory.max $2"
}

# in_group GROUP STEP...: thpmem there.
in_group() {
	in_group_name=$1
	shift
	thpmem cgroup="$CG/$in_group_name" "$@"
}

memcg_gone() { # the group must be empty; what it charged may outlive it
	wait_for 5 rmdir "$CG/$1" 2> /dev/null || rmdir "$CG/$1"
}

# room GROUP FILE PAGES: set FILE (memory.max or memory.high) so that PAGES are left.
room() {
	echo $(($(cat "$CG/$1/memory.current") + $3 * 4096)) > "$CG/$1/$2"
}

# Wait until FILE is there; a test that waits in vain fails.
await() { wait_for 60 test -e "$1" || die "$1 did not appear"; }

# held COUNT: microseconds for which the lock is held while 2M are collapsed of
# which COUNT pages are there; the longest time, as other holders are brief.
held() {
	trace=/sys/kernel/tracing
	[ -d $trace/events ] || mount -t tracefs trace $trace || die "no tracefs"
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
