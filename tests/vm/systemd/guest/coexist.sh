#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# Others that write the same switches, and others that watch the same pressure.
. /lib/guest.sh
. /lib/guest-systemd.sh

file=$THP/hugepages-64kB/enabled
value() { sed 's/.*\[\(.*\)\].*/\1/' $file; }

test_tmpfiles_adopt() {
	set_config 50-test '[Daemon]\nAuditInterval=2s\n[Limits]\nForeignChanges=adopt\n'
	fresh_start
	provoke
	mark
	echo "w $file - - - - madvise" > /etc/tmpfiles.d/thp.conf
	systemd-tmpfiles --create /etc/tmpfiles.d/thp.conf || die "systemd-tmpfiles"
	until_ok 20 logged 'hugepages-64kB/enabled .*taken over' || die "not noticed: $(journal)"
	status_has '"size_kb":64,"baseline":"madvise"' || die "not the new baseline: $(status_json | grep -A4 '"size_kb": *64')"
	systemctl stop mthpd.service
	sed -i 's|^\([^ ]*hugepages-64kB/enabled\): .*|\1: always inherit [madvise] never|' /run/before
	is_restored || die "not as before, but for the administrator's change"
	rm /etc/tmpfiles.d/thp.conf
	clear_settings
}

# A tuner that insists: three times ours again, then it is left alone, and said.
test_writer_reassert() {
	set_config 50-test '[Daemon]\nAuditInterval=2s\n[Limits]\nForeignChanges=reassert\n'
	fresh_start
	provoke
	mark
	for round in 1 2 3 4 5 6 7 8; do
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

prepare_load
for name in tmpfiles_adopt writer_reassert oomd sub_second_windows; do
	try $name
done
finish
