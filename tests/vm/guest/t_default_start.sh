#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_default_start.sh SEED SECONDS RUN...: fresh memory in a roomy group, from the
# kernel's own values: 2M `inherit`, all other sizes `never`. A RUN is WHAT-TOP-AGE:
# mthpd or nothing, the top-level switch, and a group that is new (made while the
# daemon runs) or old (made before; it then works slowly, until after an audit).
. /t_lib.sh
seed=$1 seconds=$2
shift 2
grep . $THP/enabled $THP/hugepages-*kB/enabled > /out/boot
for run in "$@"; do
	what=${run%%-*} age=${run##*-} top=${run#*-}
	thp_set 2048 inherit
	# `boot`: an administrator's later `always` against `never` on the command line.
	case ${top%-*} in
	boot) echo always > $THP/enabled ;;
	*) echo "${top%-*}" > $THP/enabled ;;
	esac
	phase=fill:size=1M,seconds=$seconds
	if [ "$age" = old ]; then
		memcg_new "$run.group" 256M
		phase=fill:size=1M,rate=3000,seconds=90
	fi
	control_start "$run" "$what"
	[ "$age" = old ] || memcg_new "$run.group" 256M
	sampler_start "/out/stat-$run" 1000 "$run.group"
	workload --cgroup="$CG/$run.group" --seed="$seed" --report-msec=1000 "$phase" \
		> "/out/work-$run"
	sampler_stop
	control_stop
	rmdir "$CG/$run.group"
done
finish
