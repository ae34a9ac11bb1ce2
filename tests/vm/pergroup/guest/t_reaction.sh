#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_reaction.sh SEED CHANGES WHAT [PSI_WINDOW INTERVAL]: one group of 32 MiB that
# goes from scans of fresh memory, which an open gate helps, to random touches of
# the same memory, which it ruins, and back. /out/writes says when its files were
# written.
. /pg_lib.sh
seed=$1 changes=$2 what=$3
[ -z "${4:-}" ] || pg_config="[Daemon]
PsiWindow=$4
Interval=$5"
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
pg_new seq.group 32M
pg_control "$what" seq.group
writewatch $CG/seq.group > /out/writes &
watch=$!
# Phases of 13 to 17 s, so that no tick of the daemon's keeps step with them, and no
# more of them in a minute than the six changes that it allows itself.
phases=$(awk -v seed="$seed" -v n="$changes" 'BEGIN {
	srand(seed)
	for (i = 0; i <= n; i++)
		printf "%s:size=48M,%s,seconds=%.2f ", i % 2 ? "random" : "seq",
			i % 2 ? "populate=0" : "fresh=1", 13 + 4 * rand()
}')
pg_work seq.group "$seed" $phases
sampler_start /out/stat-run 500 seq.group
sleep 1
pg_go
wait $jobs
control_stop
kill $watch
sampler_stop
finish
