# SPDX-License-Identifier: LGPL-2.1-or-later
# Library of the guest scripts of tests/vm/systemd: `. /lib/guest.sh`, then this.
# A script is a list of `try NAME`; test_NAME runs in a subshell and ends it with
# `die` when something is wrong. Every NAME leaves one line in /run/results.

usleep() { busybox usleep "$1"; }

MESSAGE_ID=7d2c5b0ce2f14a6c9b6a4a1f0e8d3c55
DROPIN=/etc/systemd/system/mthpd.service.d
CONF=/etc/mthpd/mthpd.conf.d

try() { # NAME
	try_began=$SECONDS
	if (set -u; "test_$1") > /run/try.log 2>&1; then
		echo "PASS $1 ($((SECONDS - try_began)) s)" | tee -a /run/results
	else
		echo "FAIL $1 ($((SECONDS - try_began)) s)" | tee -a /run/results
		sed 's/^/    /' /run/try.log
		echo "    journal:"
		journalctl --no-pager -o short-monotonic -u mthpd.service | tail -n 30 | sed 's/^/    /'
	fi
}

finish() { ! grep -q '^FAIL' /run/results; }

# ---- the package and the service ---------------------------------------------

# The quick way, for the scripts that are not about installing.
install_package() {
	dpkg --force-unsafe-io -i /srv/debs/*.deb /srv/mthpd/mthpd.deb > /run/dpkg.log 2>&1 ||
		{ cat /run/dpkg.log; return 1; }
}

show() { systemctl show -P "$1" mthpd.service; }
active() { [ "$(show ActiveState)" = active ]; }
main_pid() { show MainPID; }

# A number or a word out of `mthpctl status --json`, by jq-like path; nothing
# else in this guest reads JSON.
status_json() { mthpctl --json status; }
status_has() { status_json | tr -d ' \n\t' | grep -q -- "$1"; }

# Lines that mthpd has logged since `mark` was called.
mark() { journal_cursor=$(journalctl -n 0 --show-cursor | sed -n 's/^-- cursor: //p'); }
journal() { journalctl --no-pager -o cat -u mthpd.service --after-cursor="$journal_cursor" "$@"; }
logged() { journal | grep -q -- "$1"; }

# set_config NAME TEXT: a drop-in of mthpd's own configuration.
set_config() { mkdir -p $CONF; printf '%b' "$2" > "$CONF/$1.conf"; }
set_unit() { mkdir -p $DROPIN; printf '%b' "$2" > "$DROPIN/$1.conf"; systemctl daemon-reload; }
clear_settings() {
	rm -rf "$DROPIN" $CONF/*
	systemctl daemon-reload
	systemctl reset-failed mthpd.service 2> /dev/null || true
}

# ---- load ----------------------------------------------------------------------

# A service that does not fit into its limit; random touches, which large folios
# hurt most.
victim_start() {
	systemctl reset-failed victim.service 2> /dev/null || true
	systemd-run --quiet --unit=victim -p MemoryMax=64M "$@" \
		/usr/bin/workload random:size=96M,seconds=3600
}
victim_stop() { systemctl stop victim.service 2> /dev/null || true; }

# The start that mthpd finds: three sizes that hurt.
fresh_start() {
	systemctl stop mthpd.service
	thp_set "16 32 64"
	thp_snapshot > /run/before
	systemctl start mthpd.service
}

dropped() { [ "$(cat $THP/hugepages-64kB/enabled)" != "$(sed -n 's/^[^ ]*hugepages-64kB.enabled: //p' /run/before)" ]; }
wait_dropped() { wait_for 60 dropped || die "no step down in 60 s: $(thp_enabled_sizes)"; }

is_restored() { # every writable file as in /run/before
	thp_snapshot > /run/after
	diff /run/before /run/after
}
