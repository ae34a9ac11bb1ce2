#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# What goes wrong, and that everything is put back.
. /lib/guest.sh
. /lib/guest-systemd.sh

restarted_from() { active && [ "$(main_pid)" != "$1" ] && [ "$(main_pid)" != 0 ]; }

# Killed without a word: the start values come back, the service too.
test_kill_9() {
	fresh_start
	provoke
	pid=$(main_pid)
	mark
	systemctl kill --kill-whom=main -s KILL mthpd.service
	until_ok 30 restarted_from "$pid" || die "it does not come back: $(show ActiveState)"
	logged 'hugepages-64kB/enabled: .* -> always, restored' || die "nothing was restored: $(journal)"
	[ "$(show NRestarts)" = 1 ] || die "$(show NRestarts) restarts"
	provoke
	status_has '"size_kb":64,"baseline":"always"' || die "its own value became the baseline"
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

# As above, with the restore killed too: the next start or stop has to do it.
test_kill_9_before_restore() {
	set_unit 50-norestore '[Service]\nExecStopPost=\nRestart=no\n'
	fresh_start
	provoke
	systemctl kill --kill-whom=main -s KILL mthpd.service
	until_ok 10 sh -c '[ "$(systemctl show -P ActiveState mthpd)" = failed ]' || die "still $(show ActiveState)"
	! is_restored > /dev/null || die "nothing is left to restore: this proves nothing"
	clear_settings
	systemctl start mthpd.service || die "start: $?"
	status_has '"size_kb":64,"baseline":"always"' || die "the dead one's value became the baseline"
	systemctl stop mthpd.service
	is_restored || die "not as before"
}

test_restart_limit() {
	set_unit 50-limit '[Unit]\nStartLimitIntervalSec=600\nStartLimitBurst=2\n'
	fresh_start
	for round in 1 2; do
		provoke
		pid=$(main_pid)
		systemctl kill --kill-whom=main -s KILL mthpd.service
		[ $round -eq 2 ] || until_ok 30 restarted_from "$pid" || die "no restart"
	done
	until_ok 30 systemctl is-failed --quiet mthpd.service || die "not failed: $(show ActiveState)"
	sleep 3
	systemctl is-failed --quiet mthpd.service || die "it came back: $(show ActiveState)"
	is_restored || die "not as before"
	clear_settings
}

test_watchdog() {
	set_unit 50-watchdog '[Service]\nWatchdogSec=6s\n'
	fresh_start
	provoke
	pid=$(main_pid)
	sleep 8
	[ "$(main_pid)" = "$pid" ] || die "the watchdog fires although all is well"
	kill -STOP "$pid"
	until_ok 60 restarted_from "$pid" || die "it does not come back: $(show ActiveState)"
	journalctl -o cat -u mthpd.service | grep -q 'Watchdog timeout' || die "it was not the watchdog"
	systemctl stop mthpd.service
	is_restored || die "not as before"
	clear_settings
}

# failed_with CODE: the start failed for good, at once.
failed_with() {
	! systemctl start mthpd.service 2> /dev/null || die "it started"
	sleep 2
	[ "$(show ActiveState)" = failed ] || die "not failed: $(show ActiveState)"
	[ "$(show ExecMainStatus)" = "$1" ] || die "exit code $(show ExecMainStatus) instead of $1"
	[ "$(show NRestarts)" = 0 ] || die "$(show NRestarts) restarts"
	journal -t mthpd > /run/lines
}

test_bad_configuration() {
	victim_stop
	clear_settings
	systemctl stop mthpd.service
	set_config 50-bad '[Limits]\nMaxModus=always\n'
	mark
	failed_with 78
	[ "$(grep -c . /run/lines)" -le 2 ] && grep -q "^$CONF/50-bad.conf:2: .*MaxMode" /run/lines ||
		die "the journal says: $(cat /run/lines)"
	clear_settings
}

# A kernel without huge pages, and a directory with nothing in it.
test_nothing_to_steer() {
	clear_settings
	systemctl stop mthpd.service
	trap 'umount $THP 2> /dev/null; umount /sys/kernel/mm 2> /dev/null' EXIT
	mount -t tmpfs none $THP || die "mount: $?"
	mark
	failed_with 69
	grep -q 'nothing to steer' /run/lines || die "the journal says: $(cat /run/lines)"
	umount $THP
	systemctl reset-failed mthpd.service
	mount -t tmpfs none /sys/kernel/mm || die "mount: $?"
	systemctl start mthpd.service || die "a condition that does not hold is no failure: $?"
	[ "$(show ConditionResult)" = no ] && [ "$(show ActiveState)" = inactive ] ||
		die "$(show ConditionResult), $(show ActiveState)"
}

test_bad_dropin_option() {
	clear_settings
	set_unit 50-bad '[Service]\nExecStart=\nExecStart=/usr/sbin/mthpd --confg=/etc/x\n'
	mark
	failed_with 2
	[ "$(grep -c 'confg' /run/lines)" -eq 1 ] || die "the journal says: $(cat /run/lines)"
	clear_settings
}

# The hole for the switches is closed by mistake: it runs, watches, and says so.
test_bad_dropin_hardening() {
	clear_settings
	set_unit 50-bad '[Service]\nReadWritePaths=\n'
	mark
	systemctl start mthpd.service || die "start: $?"
	journal -t mthpd -p warning > /run/lines
	grep -q 'mounted read-only.*hardening.*ReadWritePaths' /run/lines || die "no hint at the unit: $(cat /run/lines)"
	[ "$(grep -c . /run/lines)" -eq 1 ] || die "not one clear line: $(cat /run/lines)"
	status_has '"state":"degraded"' || die "the state is not degraded"
	systemctl status --no-pager mthpd.service | grep -q 'Status: .*degraded' || die "not in the STATUS line"
	systemctl stop mthpd.service || die "stop: $?"
	clear_settings
}

# Over a stop as well, and lifted by release.
test_hold_survives() {
	clear_settings
	systemctl start mthpd.service
	mthpctl hold "maintenance" > /dev/null || die "hold: $?"
	systemctl restart mthpd.service
	status_has '"state":"held"' || die "the hold is lost over a restart"
	systemctl stop mthpd.service
	systemctl start mthpd.service
	status_has '"state":"held"' || die "the hold is lost over a stop"
	mthpctl release > /dev/null || die "release: $?"
	status_has '"state":"active"' || die "not active again"
}

prepare_load
for name in kill_9 kill_9_before_restore restart_limit watchdog bad_configuration nothing_to_steer \
	bad_dropin_option bad_dropin_hardening hold_survives; do
	try $name
done
finish
