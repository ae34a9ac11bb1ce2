#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# demo.sh: one workload under static always, static never and mthpd; live lines
# and a table, for `make demo`. Time is guest time (one CPU, counted instructions).
. /lib/guest.sh
SIZES="16 32 64"
LIMIT=64M
PHASES="fill:size=24M,touches=400000 random:size=96M,touches=120000,fresh=1 \
seq:size=16M,rate=2000,seconds=32 fill:size=24M,touches=400000"
NAMES="roomy nearly-full calm roomy-again"

# The name of phase $1, counted from 1. No other program: those would take the guest's only CPU.
phase_name() {
	n=$1
	set -- $NAMES done
	shift $((n - 1))
	phase=$1
}

# The value of `key` in the last workload line.
work_key() { tail -n 1 /tmp/work | sed -n "s/.*\"$1\":\"*\([^,\"}]*\).*/\1/p"; }
psi_total() { sed -n 's/^some.*total=//p' "$1/memory.pressure"; }

show_decisions() {
	[ -e /tmp/mthpd.log ] || return
	lines=$(wc -l < /tmp/mthpd.log) # it grows meanwhile
	head -n "$lines" /tmp/mthpd.log | tail -n +$((shown + 1)) | grep -e '->' |
		sed 's/ (some.*//; s/^/     mthpd: /'
	shown=$lines
}

# What the phases that ended since the last call took; counts them in $ended.
show_phases() {
	ended=$(grep -c '"event":"done"' /tmp/work)
	[ "$1" = quiet ] || return
	while [ "$told" -lt "$ended" ]; do
		told=$((told + 1))
		took=$(grep '"event":"done"' /tmp/work | sed -n "${told}s/.*\"elapsed\":\([0-9.]*\).*/\1/p")
		phase_name $told
		[ $told -eq 3 ] || printf '   %-11s %6.2f s\n' "$phase" "$took"
	done
}

# One line every 2 s of guest time: what the group goes through.
watch_group() {
	last_some=$(psi_total "$1") last_total=0 last_t=$(date +%s)
	while kill -0 "$2" 2> /dev/null; do
		sleep 2
		some=$(psi_total "$1") total=$(work_key total)
		now_t=$(date +%s)
		seconds=$((now_t - last_t))
		[ $seconds -gt 0 ] && [ -n "$total" ] || continue
		margin=$((67108864 - $(cat "$1/memory.current")))
		show_decisions
		show_phases "$3"
		phase_name $((ended + 1))
		[ "$3" = quiet ] || printf ' %4ss  %-11s stalled %3d %%  room %2d MiB  sizes: %-11s %7d touches/s\n' \
			"$((now_t - start_t))" "$phase" "$(((some - last_some) / seconds / 10000))" \
			"$((margin / 1048576))" "$(thp_enabled_sizes | grep . || echo none)" \
			"$(((total - last_total) / seconds))"
		last_some=$some last_total=$total last_t=$now_t
	done
	show_decisions
}

run() {
	shown=0 told=0
	rm -f /tmp/mthpd.log
	memcg_new "demo-$1" $LIMIT
	group=$CG/demo-$1
	case $1 in
	never) thp_set "" ;;
	*) thp_set "$SIZES" ;;
	esac
	if [ "$1" = mthpd ]; then
		thp_snapshot > /tmp/before
		mthpd --config=/dev/null --runtime-dir=/run/mthpd 2> /tmp/mthpd.log &
		daemon=$!
		sleep 1
		sed 's/^/   /' /tmp/mthpd.log
		shown=$(wc -l < /tmp/mthpd.log)
	fi
	start_t=$(date +%s)
	workload --cgroup="$group" --seed=1 --report-msec=1000 $PHASES > /tmp/work &
	workload=$!
	sleep 1
	watch_group "$group" $workload "$2"
	wait $workload
	grep '"event":"done"' /tmp/work | sed 's/.*"elapsed":\([0-9.]*\).*/\1/' | tr '\n' ' ' > "/tmp/times-$1"
	show_phases "$2"
	if [ "$1" = mthpd ]; then
		kill $daemon
		wait $daemon
		thp_snapshot > /tmp/after
		cmp -s /tmp/before /tmp/after && echo "   mthpd stopped: every switch is back at its start value" ||
			echo "   mthpd stopped: SOME SWITCH IS NOT BACK"
	fi
	rmdir "$group"
}

zram_swap 512M
mkdir -p /run/mthpd
echo never > $THP/enabled
echo
echo "A group with memory.max=$LIMIT and zram swap: roomy (fresh memory), nearly full (96 MiB touched"
echo "at random), 32 s of calm at a fixed pace, roomy again. Start values: 16K, 32K and 64K always."
echo
echo "1. static always, not steered"
run always quiet
echo "2. static never, not steered"
run never quiet
echo "3. mthpd, from the same start values as 1"
run mthpd live
echo
echo "Seconds of guest time for the same work (the calm has none to compare):"
printf '  %-22s %10s %10s %10s\n' phase always never mthpd
i=1
for name in $NAMES; do
	[ $i -ne 3 ] && printf '  %-22s %10.2f %10.2f %10.2f\n' "$name" \
		"$(cut -d' ' -f$i /tmp/times-always)" "$(cut -d' ' -f$i /tmp/times-never)" \
		"$(cut -d' ' -f$i /tmp/times-mthpd)"
	i=$((i + 1))
done
awk_sum() { awk '{ printf "%.2f", $1 + $2 + $4 }' "/tmp/times-$1"; }
printf '  %-22s %10s %10s %10s\n' "all" "$(awk_sum always)" "$(awk_sum never)" "$(awk_sum mthpd)"
