#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Others that write the same switches, and others that watch the same pressure.
. /lib/guest.sh
. /lib/guest-systemd.sh

file=$THP/hugepages-64kB/enabled
value() { sed 's/.*\[\(.*\)\].*/\1/' $file; }

# by_tmpfiles VALUE FILE...: what a line of tmpfiles.d does, as at `systemd-tmpfiles --create`.
by_tmpfiles() {
	tmpfiles_value=$1
	shift
	printf "w %s - - - - $tmpfiles_value\\n" "$@" > /etc/tmpfiles.d/thp.conf
	systemd-tmpfiles --create /etc/tmpfiles.d/thp.conf || die "systemd-tmpfiles: $?"
	rm /etc/tmpfiles.d/thp.conf
}

# An administrator's line, then a tuner that repeats itself: each is the new start
# value, below which mthpd goes on, and what stands after its stop.
test_foreign_adopt() {
	set_config 50-test '[Daemon]\nAuditInterval=2s\n[Limits]\nForeignChanges=adopt\n'
	fresh_start
	provoke
	mark
	top=$(sed 's/.*\[\(.*\)\].*/\1/' $THP/enabled)
	by_tmpfiles madvise $file $THP/enabled
	until_ok 20 logged 'hugepages-64kB/enabled .*taken over' || die "not noticed: $(journal)"
	until_ok 20 logged 'the top-level switch is madvise now' || die "the top level is not noticed: $(journal)"
	status_has '"size_kb":64,"baseline":"madvise"' || die "not the new baseline: $(status_json | grep -A4 '"size_kb": *64')"
	for round in 1 2 3; do
		echo inherit > $file
		sleep 3
	done
	status_has '"size_kb":64,"baseline":"inherit"' || die "not the new baseline: $(status_json | grep -A4 '"size_kb": *64')"
	! logged 'writing ours again' || die "it fights: $(journal)"
	status_has '"state":"active"' || die "not active"
	systemctl stop mthpd.service
	sed -i -e 's|^\([^ ]*hugepages-64kB/enabled\): .*|\1: always [inherit] madvise never|' \
		-e 's|^\([^ ]*hugepage/enabled\): .*|\1: always [madvise] never|' /run/before
	is_restored || die "not as before, but for the changes of the two"
	echo "$top" > $THP/enabled
	clear_settings
}

# Three times ours again, against whom ever; then it is left alone, and said.
test_foreign_reassert() {
	set_config 50-test '[Daemon]\nAuditInterval=2s\n[Limits]\nForeignChanges=reassert\n'
	fresh_start
	provoke
	mark
	by_tmpfiles inherit $file
	until_ok 20 logged 'writing ours again' || die "not noticed: $(journal)"
	until_ok 5 dropped || die "ours is not written again: $(value)"
	for round in 1 2 3 4 5 6; do
		echo inherit > $file
		sleep 3
	done
	again=$(journal | grep -c 'hugepages-64kB/enabled .*writing ours again')
	[ "$again" -eq 3 ] || die "$again reassertions instead of 3: $(journal)"
	[ "$(value)" = inherit ] || die "after the last one it holds $(value)"
	status_has '"state":"degraded"' || die "the conflict is not shown in the state"
	mthpctl status | grep -q 'hugepages-64kB' || die "the conflict is not named"
	active || die "$(show ActiveState)"
	systemctl stop mthpd.service
	clear_settings
}

# systemd-oomd kills the group that mthpd steers; neither minds.
test_oomd() {
	victim_stop
	mkdir -p /etc/systemd/oomd.conf.d
	printf '[OOM]\nDefaultMemoryPressureDurationSec=2s\n' > /etc/systemd/oomd.conf.d/test.conf
	systemctl start systemd-oomd.service || die "systemd-oomd: $?"
	fresh_start
	pid=$(main_pid)
	victim_start -p ManagedOOMMemoryPressure=kill -p ManagedOOMMemoryPressureLimit=1%
	until_ok 60 sh -c '[ "$(systemctl show -P ActiveState victim)" = failed ]' || die "oomd does not act"
	[ "$(systemctl show -P Result victim.service)" = oom-kill ] || die "$(systemctl show -P Result victim.service)"
	active && [ "$(main_pid)" = "$pid" ] || die "mthpd was hurt"
	systemctl is-active --quiet systemd-oomd.service || die "oomd was hurt"
	until_ok 10 sh -c '! mthpctl status | grep -q victim' || die "the dead group is still shown"
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

# The victim of all other tests, but for its own opt-out of large folios: taking the
# switches away changes nothing for it, so they go back and stay.
test_own_opt_out() {
	victim_stop
	fresh_start
	victim_work="--no-thp random:size=96M,seconds=3600"
	victim_start
	group=$CG/system.slice/victim.service
	shown() { status_has '"path":"system.slice/victim.service"[^}]*"state":"no-effect"'; }
	until_ok 60 shown || die "not recognised: $(mthpctl explain system.slice/victim.service)"
	mthpctl status > /run/out
	grep -qE 'victim.service .* no-effect' /run/out && grep -q 'uses no large folios' /run/out ||
		die "status does not say it: $(cat /run/out)"
	mthpctl explain system.slice/victim.service > /run/out
	grep -q 'is in state no-effect: the group uses no large folios, whatever the switches say' /run/out ||
		die "explain: $(cat /run/out)"
	until_ok 10 is_restored > /dev/null || die "not given back: $(is_restored)"
	# it goes on: as much pressure as before, and not one more change
	mark
	hit=$(event_key "$group/memory.events" max)
	sleep 20
	[ "$(event_key "$group/memory.events" max)" -gt $((hit + 200)) ] || die "no pressure: this proves nothing"
	! logged 'hugepages-' || die "the ladder goes on: $(journal)"
	shown || die "no longer: $(mthpctl explain system.slice/victim.service)"
	is_restored || die "not as before"
	victim_stop
	systemctl stop mthpd.service
}

# 500 ms windows by the drop-in that is shipped, and what it costs.
test_sub_second_windows() {
	psimon() { ps -e -o comm | grep -c '^psimon'; }
	fresh_start
	[ "$(psimon)" -eq 0 ] || die "kernel threads without the capability: $(psimon)"
	set_config 50-window '[Daemon]\nPsiWindow=500ms\n'
	mkdir -p $DROPIN
	cp /srv/mthpd/examples/sub-second-windows.conf $DROPIN/
	systemctl daemon-reload
	mark
	systemctl restart mthpd.service || die "restart: $?"
	logged 'granted, window 500 ms' || die "$(journal)"
	[ "$(psimon)" -gt 0 ] || die "no kernel thread polls"
	systemctl stop mthpd.service
	clear_settings
}

# Metrics over TCP by the drop-in that is shipped, and not without it.
test_loopback_metrics() {
	scrape() { exec 3<> /dev/tcp/127.0.0.1/9188 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && cat <&3; }
	set_config 50-metrics '[Metrics]\nListen=127.0.0.1:9188\n'
	mark
	systemctl restart mthpd.service || die "restart: $?"
	journal -p warning -t mthpd > /run/lines
	[ "$(grep -c . /run/lines)" -eq 1 ] && grep -q 'loopback-metrics.conf' /run/lines ||
		die "not one line that names the remedy: $(cat /run/lines)"
	! (scrape) > /run/out 2>&1 || die "metrics over TCP without the drop-in"
	mkdir -p $DROPIN
	cp /srv/mthpd/examples/loopback-metrics.conf $DROPIN/
	systemctl daemon-reload
	systemctl restart mthpd.service || die "restart: $?"
	(scrape) > /run/out 2>&1 || die "no answer: $(cat /run/out)"
	grep -q '^mthpd_' /run/out || die "no metrics: $(head -n 20 /run/out)"
	systemctl stop mthpd.service
	clear_settings
}

prepare_load
for name in foreign_adopt foreign_reassert own_opt_out oomd sub_second_windows loopback_metrics; do
	try $name
done
finish
