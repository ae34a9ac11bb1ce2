#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Records the trace tests/fixtures/traces/linux-6.12.ndjson on a real kernel:
#   tests/vm/vmrun --icount --timeout=900 --add=build/mthpd --add=build/mthpctl \
#       --add=tests/vm/guest/t_lib.sh:/t_lib.sh --add=tests/vm/guest/cases.sh:/cases.sh \
#       --get=/trace:tests/fixtures/traces/linux-6.12.ndjson tests/trace/guest.sh
# and with --get=/shown-NAME:tests/fixtures/shown/NAME for NAME in status, top and
# explain what mthpctl says in the middle of the batch job, as the README shows it.
# A shop that fits, a batch job that goes beyond its limit at random, and a
# build that fills fresh memory.
. /t_lib.sh
zram_swap 512M
echo never > $THP/enabled
thp_setting 64
for g in shop batch; do
	mkdir -p $CG/$g.slice
	echo +memory > $CG/$g.slice/cgroup.subtree_control
done
memcg_new shop.slice/shop.service 256M
memcg_new batch.slice/nightly.service 64M
memcg_new build.scope 128M
daemon_start run
mthpctl --socket=$SOCKET record -o /trace > /record.log 2>&1 &
recorder=$!
wait_for 30 test -s /trace
workload --cgroup=$CG/shop.slice/shop.service --seed=1 "fill:size=48M,rate=4000,seconds=75" > /dev/null &
sleep 10
workload --cgroup=$CG/batch.slice/nightly.service --seed=2 "random:size=96M,seconds=20" > /dev/null &
batch=$!
sleep 12
ctl status > /shown-status
ctl top > /shown-top
ctl explain batch.slice/nightly.service > /shown-explain
wait $batch
sleep 20
workload --cgroup=$CG/build.scope --seed=3 "random:size=160M,seconds=12" > /dev/null
sleep 10
kill -TERM $recorder
wait $recorder
cat /record.log
mthpd --replay=/trace > /replayed && wc -l /replayed
