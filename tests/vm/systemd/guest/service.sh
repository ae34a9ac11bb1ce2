#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The package and the service's everyday life.
. /lib/guest.sh
. /lib/guest-systemd.sh

# Of the three lines of README's Install the second and the third, on a machine
# that has nothing of it; build-deb has tried the first.
test_install() {
	! command -v mthpd || die "the guest is not bare"
	thp_snapshot > /run/before
	sudo() { "$@"; }
	cd /root/checkout
	line=$(/srv/mthpd/install-line 2 README.md) || die "no second line"
	eval "$line" > /run/apt.log 2>&1 || { cat /run/apt.log; die "$line"; }
	systemctl is-enabled mthpd.service || die "not enabled"
	line=$(/srv/mthpd/install-line 3 README.md) || die "no third line"
	eval "$line" > /run/status || die "$line: $?"
	grep -q 'Active: active (running)' /run/status || die "not running: $(cat /run/status)"
	grep -qE 'Status: "[0-9]+ cgroups, ' /run/status || die "no STATUS line: $(cat /run/status)"
	mthpctl status || die "mthpctl status: $?"
	[ "$(stat -c %a /run/mthpd)" = 755 ] || die "mode of /run/mthpd: $(stat -c %a /run/mthpd)"
	is_restored || die "something was written without a reason"
}

test_unit_file() {
	systemd-analyze verify --man=no mthpd.service > /run/verify 2>&1 || die "verify: $(cat /run/verify)"
	[ ! -s /run/verify ] || die "verify is not silent: $(cat /run/verify)"
	systemd-analyze security --no-pager --threshold=15 mthpd.service > /run/security ||
		die "exposure: $(tail -n 1 /run/security)"
	tail -n 1 /run/security
	for other in containerd docker kubelet crio; do
		show Before | grep -qw "$other.service" || die "not ordered before $other"
	done
	show After | grep -qw local-fs.target || die "not ordered after the file systems"
	! systemctl cat mthpd.service | grep -q '^PrivateUsers' || die "PrivateUsers="
}

# The shipped sandbox around another program. What it prints, with $2 as more
# lines of [Service].
sandbox() { # SCRIPT EXTRA
	cp "$1" /usr/local/bin/probe
	{
		systemctl cat mthpd.service | sed -e '/^#/d' -e '/^Exec\(Start\|Reload\|Stop\)/d' -e '/^Restart/d' -e '/^WatchdogSec/d' \
			-e '/^RuntimeDirectory/d' -e '/^BusName/d' -e '/^\[Install\]/,$d' -e 's/^Type=.*/Type=oneshot/'
		printf 'ExecStart=/bin/bash /usr/local/bin/probe\n%b' "$2"
	} > /run/systemd/system/probe.service
	systemctl daemon-reload
	mark
	systemctl start probe.service || true
	journalctl --no-pager -o cat --since "$journal_since" -u probe.service
}

test_sandbox() {
	systemd-run --quiet --unit=delegated --uid=user -p Delegate=yes sleep 1000
	group=$CG/system.slice/delegated.service/own
	runuser -u user -- mkdir "$group" || die "no group of a user's own"
	[ "$(stat -c %U "$group/memory.pressure")" = user ] || die "memory.pressure is not the user's"
	cat > /run/probe <<-PROBE
		trap 'echo end' EXIT
		tell() { if (eval "\$2") 2> /tmp/error; then echo "\$1 granted"; else echo "\$1 refused: \$(cat /tmp/error)"; fi; }
		tell ksm 'echo 1 > /sys/kernel/mm/ksm/run'
		tell sysctl 'echo 1 > /proc/sys/vm/swappiness'
		tell enabled 'echo never > $THP/hugepages-64kB/enabled'
		tell ptes 'echo 511 > $THP/khugepaged/max_ptes_none'
		tell etc 'echo > /etc/mthpd/new'
		tell trigger 'exec 3<> $group/memory.pressure && printf "some 150000 2000000\\\\0" >&3'
		tell inet 'exec 3<> /dev/udp/127.0.0.1/9'
		tell mount 'mount -t tmpfs none /mnt'
		tell chown 'chown user /tmp/error'
	PROBE
	sandbox /run/probe "" > /run/told
	cat /run/told
	for word in enabled ptes trigger; do
		grep -q "^$word granted" /run/told || die "$word is not granted"
	done
	for word in ksm sysctl etc inet mount chown; do
		grep -q "^$word refused" /run/told || die "$word is not refused"
	done
	# the test can fail: without its one capability the trigger is refused
	sandbox /run/probe 'CapabilityBoundingSet=\n' > /run/told
	grep -q "^trigger refused" /run/told || die "a trigger without a capability: $(cat /run/told)"
	systemctl stop delegated.service
	systemctl reset-failed probe.service 2> /dev/null || :
}

# The running daemon's own view of the file system: few places to write to, and
# nothing that is written there can be run.
test_write_places() {
	in_view="nsenter -t $(main_pid) -m"
	for dir in / /boot /dev /etc /home /opt /root /run /run/systemd /srv /usr /usr/local /var /var/lib; do
		[ -d $dir ] || continue
		! $in_view cp /usr/bin/true $dir/probe 2> /dev/null || die "$dir can be written"
	done
	for dir in /run/mthpd /tmp /var/tmp /dev/shm; do
		$in_view cp /usr/bin/true $dir/probe || die "$dir cannot be written"
		! $in_view $dir/probe 2> /dev/null || die "a file in $dir can be run"
		$in_view rm $dir/probe
	done
}

test_loop_acts() {
	prepare_load
	fresh_start
	mark
	provoke
	journalctl --no-pager -o export MESSAGE_ID=$MESSAGE_ID > /run/records
	grep -q '^MTHPD_CGROUP=system.slice/victim.service$' /run/records || die "no record names the group"
	for field in KNOB=hugepages- OLD=always NEW= REASON=drop- SOME=0 MARGIN=; do
		grep -q "^MTHPD_$field" /run/records || die "no MTHPD_$field in the records"
	done
	journalctl --no-pager -x MESSAGE_ID=$MESSAGE_ID | grep -q 'A switch of large folios was changed' ||
		die "no catalog text"
	status_has '"path":"system.slice/victim.service"' || die "status does not show the group"
	[ "$(show NRestarts)" = 0 ] || die "it was restarted"
	# what the unit allows fits
	[ "$(cat "/proc/$(main_pid)/oom_score_adj")" = -900 ] || die "OOMScoreAdjust="
	peak=$(cat $CG/system.slice/mthpd.service/memory.peak)
	[ "$peak" -lt $(($(show MemoryMax) / 3)) ] || die "memory peak $peak of $(show MemoryMax)"
	tasks=$(cat $CG/system.slice/mthpd.service/pids.peak 2> /dev/null || show TasksCurrent)
	[ "$tasks" -lt $(($(show TasksMax) / 2)) ] || die "$tasks tasks of $(show TasksMax)"
}

test_unprivileged() {
	user="runuser -u user -- mthpctl"
	$user status > /dev/null || die "status: $?"
	$user --json status > /dev/null || die "status --json: $?"
	$user explain > /dev/null || die "explain: $?"
	for verb in "hold mine" reload restore "release 1"; do
		code=0
		$user $verb > /run/out 2>&1 || code=$?
		[ $code -eq 77 ] || die "$verb as a user: exit code $code instead of 77: $(cat /run/out)"
	done
	status_has '"state":"active"' || die "the state changed: $(status_json | head -n 5)"
}

test_bus() {
	call="busctl --system call org.mthpd1 /org/mthpd1 org.mthpd1.Manager"
	runuser -u user -- busctl --system get-property org.mthpd1 /org/mthpd1 org.mthpd1.Manager State > /run/out ||
		die "a user cannot read"
	grep -qE 's "(active|degraded)"' /run/out || die "State: $(cat /run/out)"
	! runuser -u user -- $call Hold s mine > /run/out 2>&1 || die "a user may hold: $(cat /run/out)"
	call_bus="busctl --system call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus"
	! runuser -u user -- $call_bus RequestName su org.mthpd1 0 > /run/out 2>&1 && grep -qi 'denied' /run/out ||
		die "a user may take the name: $(cat /run/out)"
	# found by the unit's name alone
	level="systemctl service-log-level mthpd.service"
	$level debug || die "service-log-level: $?"
	[ "$($level)" = debug ] || die "the level is $($level)"
	systemctl reload mthpd.service || die "reload: $?"
	[ "$($level)" = info ] || die "a reload leaves it at $($level)"
	# a call starts it
	systemctl stop mthpd.service
	$call GetStatus > /run/out || die "not started by a call"
	active || die "$(show ActiveState)"
}

test_two_instances() {
	thp_enabled_sizes > /run/sizes
	code=0
	timeout 20 mthpd > /run/out 2>&1 || code=$?
	[ $code -eq 1 ] || die "a second mthpd: exit code $code: $(cat /run/out)"
	grep -q 'another mthpd is running' /run/out || die "it does not say why: $(cat /run/out)"
	code=0
	mthpd --restore > /run/out 2>&1 || code=$?
	[ $code -eq 1 ] && grep -q 'a daemon is running' /run/out || die "--restore beside it: $code: $(cat /run/out)"
	active && mthpctl status > /dev/null || die "the first one suffered"
}

test_reload_good() {
	pid=$(main_pid)
	set_config 50-test '[Daemon]\nAuditInterval=2s\n'
	mark
	systemctl reload mthpd.service || die "reload: $?"
	logged 'configuration reloaded' || die "not logged"
	systemctl kill --kill-whom=main -s HUP mthpd.service
	reloaded_twice() { [ "$(journal | grep -c 'configuration reloaded')" -eq 2 ]; }
	until_ok 10 reloaded_twice || die "SIGHUP does not reload"
	until_ok 10 active || die "after SIGHUP: $(show ActiveState)/$(show SubState)"
	[ "$(main_pid)" = "$pid" ] || die "it was restarted"
}

test_reload_bad() {
	pid=$(main_pid)
	set_config 60-bad '[Limits]\nMaxMode=sometimes\n'
	mark
	! systemctl reload mthpd.service 2> /run/out || die "a bad configuration was taken"
	journal > /run/lines
	grep -q "$CONF/60-bad.conf:2: " /run/lines || die "file and line are not named: $(cat /run/lines)"
	active && [ "$(main_pid)" = "$pid" ] || die "it did not survive"
	mthpctl status > /dev/null || die "status: $?"
	rm $CONF/60-bad.conf
	systemctl reload mthpd.service || die "not mended: $?"
}

test_stop_restores() {
	provoke
	systemctl stop mthpd.service || die "stop: $?"
	is_restored || die "not as before"
	[ ! -e /run/mthpd/baseline.json ] || die "baseline.json is left"
	[ "$(show Result)" = success ] || die "result $(show Result)"
}

# The new package's daemon finds its predecessor's values, and must not take them
# for the machine's.
test_upgrade() {
	systemctl start mthpd.service
	provoke
	pid=$(main_pid)
	echo '# mine' >> /etc/mthpd/mthpd.conf
	dpkg --force-unsafe-io -i /srv/mthpd/next.deb > /run/dpkg.log 2>&1 || die "dpkg -i: $(cat /run/dpkg.log)"
	until_ok 20 active || die "not running after the upgrade"
	[ "$(main_pid)" != "$pid" ] || die "still the old daemon"
	grep -q '^# mine' /etc/mthpd/mthpd.conf || die "a changed configuration was replaced"
	provoke
	status_json | tr -d ' \n\t' | grep -qE '"size_kb":64,"baseline":"always"' || die "its baseline: $(status_json)"
	systemctl stop mthpd.service
	is_restored || die "not as before"
	systemctl start mthpd.service
}

test_purge() {
	set_config 70-keep '[Limits]\nRestoreOnExit=no\n'
	systemctl reload mthpd.service
	provoke
	apt-get purge -y mthpd > /run/apt.log 2>&1 || { cat /run/apt.log; die "apt-get purge"; }
	is_restored || die "not as before"
	left=$(find / -xdev \( -path /proc -o -path /sys -o -path /srv -o -path /root/checkout -o -path '/run/systemd/units' \) -prune -o -name '*mthpd*' -print)
	[ -z "$left" ] || die "left behind: $left"
	! systemctl cat mthpd.service 2> /dev/null || die "the unit is still known"
}

for name in install unit_file sandbox write_places loop_acts unprivileged bus two_instances reload_good reload_bad \
	stop_restores upgrade purge; do
	try $name
done
finish
