#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_global.sh SEED SECONDS WHAT PROTECTED [PERGROUP]: what stays global. `random`
# touches at random beyond its limit, with a gate that its administrator opened, so
# that large folios hurt it, and wants no compaction; `fill` has room, fills fresh
# memory and wants it. PROTECTED is random or fill. PERGROUP=no leaves the sizes to
# the global switches too.
. /pg_lib.sh
seed=$1 seconds=$2 what=$3
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
echo always > $THP/defrag
echo 1 > $THP/khugepaged/defrag
pg_new random.group 64M 40000
pg_new fill.group 256M 40000
pg_set random.group max 0
pg_config="[Limits]
PerGroup=${5:-yes}
[Policy \"p\"]
Match=$4.group
Protect=yes"
pg_control "$what" random.group fill.group
sampler_start /out/stat-run 1000 random.group fill.group
pg_work random.group "$seed" random:size=96M,seconds=100000
pg_work fill.group "$seed" fill:size=32M,seconds=100000
pg_go
i=0
while [ $i -lt "$seconds" ]; do
	sleep 1
	printf '{"t":%s,"defrag":"%s","khugepaged":"%s"}\n' "$(now)" \
		"$(sed 's/.*\[\(.*\)\].*/\1/' $THP/defrag)" "$(cat $THP/khugepaged/defrag)" >> /out/knobs
	i=$((i + 1))
done
sampler_stop
control_stop
pg_end
finish
