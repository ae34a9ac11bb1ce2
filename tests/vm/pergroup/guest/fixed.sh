#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# fixed.sh SIZES SECONDS WORD...: groups side by side with values set by hand.
#   group=NAME,CPU,MAX_SIZE,MARGIN,SEED,PHASE[+PHASE]  a group of 64 MiB; CPU as in
#                                                      cpu.max, `_` for the blank
#   at=SECOND,NAME,FILE,VALUE                          write memory.thp.FILE then
# Leaves /out.tar with work-NAME and stat.
. /lib/guest.sh
sizes=$1 seconds=$2
shift 2
zram_swap 512M
mkdir /out
thp_set "$(echo "$sizes" | tr , ' ')"
for word in "$@"; do
	case $word in group=*) ;; *) continue ;; esac
	IFS=, read -r name cpu max_size margin seed phase <<-END
		${word#group=}
	END
	memcg_new "$name" 64M
	echo "$cpu" | tr _ ' ' > "$CG/$name/cpu.max" || die "cpu.max $cpu"
	echo "$max_size" > "$CG/$name/memory.thp.max_size" || die "max_size $max_size"
	echo "$margin" > "$CG/$name/memory.thp.margin" || die "margin $margin"
	names="$names $name"
	workload --cgroup="$CG/$name" --seed="$seed" --report-msec=1000 --wait=/out/go \
		$(echo "$phase" | tr + ' ') > "/out/work-$name" &
	jobs="$jobs $!"
done
sampler_start /out/stat 1000 $names
sleep 1
: > /out/go
t=0
for word in "$@"; do
	case $word in at=*) ;; *) continue ;; esac
	IFS=, read -r second name file value <<-END
		${word#at=}
	END
	sleep $((second - t))
	t=$second
	echo "$value" > "$CG/$name/memory.thp.$file" || die "$file $value"
	echo "{\"t\":$(now),\"group\":\"$name\",\"$file\":\"$value\"}" >> /out/steps
done
sleep $((seconds - t))
kill $jobs
wait $jobs 2> /dev/null
sampler_stop
tar cf /out.tar -C / out
