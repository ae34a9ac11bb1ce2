#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_sparse.sh SEED steady TOUCHES | t_sparse.sh SEED fresh ROUNDS: one page in 16 of
# 512 MiB, under a limit of 64 MiB: TOUCHES in one set, or ROUNDS passes over fresh
# memory, which end after a little more than four times the time of `never`.
. /t_lib.sh
case $2 in
steady) phases=sparse:size=512M,stride=16,touches=$3 ;;
fresh)
	phases=
	i=0
	while [ $i -lt "$3" ]; do
		phases="$phases sparse:size=512M,stride=16,touches=32000,fresh=1"
		i=$((i + 1))
	done
	;;
esac
zram_swap 512M
echo never > $THP/enabled
thp_setting never
measured static static "$1" $phases
thp_setting 64
measured mthpd mthpd "$1" $phases
if [ "$2" = fresh ]; then
	time_limit=$(seconds_of static 4.1)
	for what in nothing never; do
		thp_setting 64
		measured $what $what "$1" $phases
	done
fi
finish
