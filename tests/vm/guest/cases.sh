# SPDX-License-Identifier: LGPL-2.1-or-later
# The access patterns that figures are quoted for: 64 MiB limit, 512 MiB of zram.
# The amounts of work take `never` about 60 s of guest time under icount on a
# stock 6.12, but for sparse, which would take the large settings hours.

# case_phase NAME [PERCENT]: the workload's phase, with PERCENT of its work.
case_phase() {
	case $1 in
	random) case_args=size=96M case_touches=560000 ;;
	runs) case_args=size=96M,run=16 case_touches=560000 ;;
	seq) case_args=size=96M case_touches=200000 ;;
	sparse) case_args=size=512M,stride=16 case_touches=32000 ;;
	fill) case_args=size=32M case_touches=1400000 ;;
	churn) case_args=live=8,use=12 case_touches=1150000 ;;
	*) die "unknown case $1" ;;
	esac
	echo "$1:$case_args,touches=$((case_touches * ${2:-100} / 100))"
}
