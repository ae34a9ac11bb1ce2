# SPDX-License-Identifier: LGPL-2.1-or-later
# What the guests of the per-group tests share: `. /pg_lib.sh`.
. /t_lib.sh

# The patterns of the tests, for a limit of $1 MiB: what a group of that size does.
pg_pattern() { # NAME LIMIT_MIB
	case $1 in
	fill) echo "fill:size=$(($2 / 2))M" ;;
	random) echo "random:size=$(($2 * 3 / 2))M" ;;
	seq) echo "seq:size=$(($2 * 3 / 2))M" ;;
	runs) echo "runs:size=$(($2 * 3 / 2))M,run=16" ;;
	sparse) echo "sparse:size=$(($2 * 8))M,stride=16" ;;
	*) die "unknown pattern $1" ;;
	esac
}

# pg_new NAME LIMIT [CPU_USEC]: of each 100,000.
pg_new() {
	memcg_new "$1" "$2"
	[ -z "${3:-}" ] || echo "$3 100000" > "$CG/$1/cpu.max" || die "cpu.max $3"
	[ -e "$CG/$1/memory.thp.max_size" ] || [ -n "${stock_kernel:-}" ] ||
		die "this kernel has no memory.thp.max_size"
}

# pg_set NAME MAX_SIZE MARGIN: by hand.
pg_set() {
	echo "$2" > "$CG/$1/memory.thp.max_size" || die "max_size $2"
	echo "$3" > "$CG/$1/memory.thp.margin" || die "margin $3"
}

# pg_control WHAT GROUP...: what steers these groups from here on.
#   mthpd       the daemon
#   global      the daemon, with [Limits] PerGroup=no
#   nothing     nobody: what the kernel does by itself (gate on, all sizes)
#   open        gate off, all sizes
#   small       a daemon that always writes the smallest size
#   best        what each pattern needs, by hand
pg_control() {
	pg_what=$1
	shift
	case $pg_what in
	mthpd) control_start run mthpd "${pg_config:-}" ;;
	global) control_start run mthpd "[Limits]
PerGroup=no" ;;
	*)
		for pg_group in "$@"; do
			case $pg_what-$pg_group in
			open-* | best-seq* | best-runs*) pg_set "$pg_group" max 0 ;;
			small-*) pg_set "$pg_group" 4096 auto ;;
			nothing-* | best-*) ;;
			*) die "unknown control $pg_what" ;;
			esac
		done
		control_start run nothing
		;;
	esac
}

# pg_work NAME SEED PHASE...: in the background ($jobs); begins at pg_go.
pg_work() {
	pg_name=$1 pg_seed=$2
	shift 2
	workload --cgroup="$CG/$pg_name" --seed="$pg_seed" --report-msec=1000 --wait=/run/go "$@" \
		> "/out/work-$(echo "$pg_name" | tr / _)" &
	jobs="${jobs:-} $!"
}
pg_go() { : > /run/go; }
pg_end() {
	kill $jobs 2> /dev/null
	wait $jobs 2> /dev/null
	jobs=
}
