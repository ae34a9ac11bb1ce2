#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_opposite.sh SEED SECONDS WHAT LIMIT_MIB COUNT PATTERN...: COUNT groups at once; the
# patterns are dealt out in turn, and a group's name begins with its own.
. /pg_lib.sh
seed=$1 seconds=$2 what=$3 limit=$4 count=$5
shift 5
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
i=0
while [ $i -lt "$count" ]; do
	pattern=$1
	group=$pattern.$i
	# All of them leave a fifth of the processor to mthpd and the sampler.
	pg_new "$group" "${limit}M" $((80000 / count))
	groups="$groups $group"
	pg_work "$group" "$((seed + i))" "$(pg_pattern "$pattern" "$limit"),seconds=100000"
	shift
	set -- "$@" "$pattern"
	i=$((i + 1))
done
pg_control "$what" $groups
memcgstat --groups-only $(printf "$CG/%s " $groups) > /out/stat-run &
sampler=$!
pg_go
sleep "$seconds"
sampler_stop
control_stop
pg_end
finish
