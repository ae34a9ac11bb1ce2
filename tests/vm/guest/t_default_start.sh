#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_default_start.sh SEED WHAT TOP GROUP PHASE: fresh memory in a roomy group, from
# the kernel's own values: 2M `inherit`, all other sizes `never`; TOP is the
# top-level switch, WHAT mthpd or nothing. GROUP is new (made while the daemon
# runs) or old (made before).
. /t_lib.sh
grep . $THP/enabled $THP/hugepages-*kB/enabled > /out/boot
# Whatever an administrator does later, `never` on the command line stands.
case $3 in
boot) echo always > $THP/enabled ;;
*) echo "$3" > $THP/enabled ;;
esac
[ "$4" = new ] || memcg_new test.group 256M
control_start run "$2"
[ "$4" = old ] || memcg_new test.group 256M
sampler_start /out/stat-run 1000 test.group
workload --cgroup=$CG/test.group --seed="$1" --report-msec=1000 "$5" > /out/work-run
sampler_stop
control_stop
finish
