#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_default_start.sh SEED SECONDS WHAT TOP: fresh memory in a roomy group, from the
# kernel's own values: 2M `inherit`, all other sizes `never`; TOP is the top-level
# switch. WHAT is mthpd or nothing.
. /t_lib.sh
zram_swap 512M
grep . $THP/enabled $THP/hugepages-*kB/enabled > /out/boot
[ "$4" = boot ] || echo "$4" > $THP/enabled
# Whatever an administrator does later, `never` on the command line stands.
[ "$4" != boot ] || echo always > $THP/enabled
memcg_new test.group 256M
control_start run "$3"
sampler_start /out/stat-run 1000 test.group
workload --cgroup=$CG/test.group --seed="$1" --report-msec=1000 "fill:size=1M,seconds=$2" \
	> /out/work-run
sampler_stop
control_stop
finish
