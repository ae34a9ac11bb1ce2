#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_colocation.sh SEED SECONDS WHAT [GROUP...]: groups of 64 MiB side by side, each
# with a fifth of the processor; a group's name is its pattern.
. /pg_lib.sh
seed=$1 seconds=$2 what=$3
shift 3
[ "$what" != stock ] || { stock_kernel=yes what=mthpd; }
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
for group in "$@"; do pg_new "$group" 64M 20000; done
pg_control "$what" "$@"
for group in "$@"; do pg_work "$group" "$seed" "$(pg_pattern "$group" 64),seconds=100000"; done
sampler_start /out/stat-run 1000 "$@"
sleep 1
pg_go
sleep $((seconds + 2))
sampler_stop
control_stop
pg_end
finish
