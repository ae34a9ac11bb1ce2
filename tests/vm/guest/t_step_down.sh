#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_step_down.sh SEED SECONDS: random touches in 96 MiB under a limit of 64 MiB.
. /t_lib.sh
zram_swap 512M
echo never > $THP/enabled
for what in static mthpd nothing never; do
	thp_setting 64
	[ $what != static ] || thp_setting never
	measured $what $what "$1" "random:size=96M,seconds=$2"
done
finish
