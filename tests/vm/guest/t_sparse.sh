#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_sparse.sh SEED TOUCHES: one page in 16 of 512 MiB, under a limit of 64 MiB.
. /t_lib.sh
phase="sparse:size=512M,stride=16,touches=$2"
zram_swap 512M
echo never > $THP/enabled
thp_setting never
measured static static "$1" "$phase"
for what in mthpd nothing never; do
	thp_setting 64
	measured $what $what "$1" "$phase,seconds=$(seconds_of static 4.1)"
done
finish
