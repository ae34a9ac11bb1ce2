# SPDX-License-Identifier: LGPL-2.1-or-later
# Library of the guest scripts of tests/vm/systemd: `. /lib/guest.sh`, then this.
# A script is a list of `try NAME`; test_NAME runs in a subshell and ends it with
# `die` when something is wrong. Every NAME leaves one line in /run/results.

usleep() { busybox usleep "$1"; }

MESSAGE_ID=7d2c5b0ce2f14a6c9b6a4a1f0e8d3c55
DROPIN=/etc/systemd/system/mthpd.service.d
CONF=/etc/mthpd/mthpd.conf.d

try() { # NAME
	try_began=$SECONDS try_since=$(date +%s)
	if (set -u; "test_$1") > /run/try.log 2>&1; then
		echo "PASS $1 ($((SECONDS - try_began)) s)" | tee -a /run/results
	else
		echo "FAIL $1 ($((SECONDS - try_began)) s)" | tee -a /run/results
		sed 's/^/    /' /run/try.log
		echo "    journal:"
		journalctl --no-pager -o short-monotonic -u mthpd.service --since "@$try_since" |
			tail -n 40 | sed 's/^/    /'
	fi
}

finish() { ! grep -q '^FAIL' /run/results; }

# ---- the package and the service ---------------------------------------------

# In the guests that are not about installing, `run` has unpacked the package.
start_service() { systemctl start mthpd.service || die "start: $?"; }

# wait_for costs a process or two per look; a look here may cost a systemctl.
until_ok() { # SECONDS COMMAND...
	until_end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $until_end ] || return 1
		sleep 0.5
	done
}

show() { systemctl show -P "$1" mthpd.service; }
active() { [ "$(show ActiveState)" = active ]; }
main_pid() { show MainPID; }

# A number or a word out of `mthpctl status --json`, by jq-like path; nothing
# else in this guest reads JSON.
status_json() { mthpctl --json status; }
status_has() { status_json | tr -d ' \n\t' | grep -q -- "$1"; }

# Lines that the unit has logged since `mark` was called.
mark() { journal_since=$(date +@%s.%6N); }
journal() { journalctl --no-pager -o cat -u mthpd.service --since "$journal_since" "$@"; }
logged() { journal | grep -q -- "$1"; }

# set_config NAME TEXT: a drop-in of mthpd's own configuration.
set_config() { mkdir -p $CONF; printf '%b' "$2" > "$CONF/$1.conf"; }
set_unit() { mkdir -p $DROPIN; printf '%b' "$2" > "$DROPIN/$1.conf"; systemctl daemon-reload; }
clear_settings() {
	rm -rf "$DROPIN" $CONF/[1-9]*
	systemctl daemon-reload
	systemctl reset-failed mthpd.service 2> /dev/null || true
}

# ---- load ----------------------------------------------------------------------

# A service that does not fit into its limit; random touches, which large folios
# hurt most.
victim_start() { # [PROPERTY-OPTION...]; $victim_work: something else to do
	systemctl reset-failed victim.service 2> /dev/null || true
	systemd-run --quiet --unit=victim -p MemoryMax=64M "$@" \
		/usr/bin/workload ${victim_work:-random:size=96M,seconds=3600}
}
# Its pressure until mthpd has acted; then it stands still, costs the machine that
# runs this guest nothing, and the long hold keeps the decision as it is.
provoke() {
	set -- $CG/system.slice/victim.service/cgroup.freeze
	if [ -e "$1" ]; then echo 0 > "$1"; else victim_start; fi
	wait_dropped
	echo 1 > "$1"
}
victim_stop() { systemctl stop victim.service 2> /dev/null || true; }

prepare_load() { zram_swap 512M; set_config 00-hold '[Controller]\nHold=120s..600s\n'; }

# The start that mthpd finds: three sizes that hurt.
fresh_start() {
	systemctl stop mthpd.service
	thp_set "16 32 64"
	thp_snapshot > /run/before
	systemctl start mthpd.service
}

dropped() { read -r dropped_now < $THP/hugepages-64kB/enabled; [[ $dropped_now != *"[always]"* ]]; }
wait_dropped() { until_ok 60 dropped || die "no step down in 60 s: $(thp_enabled_sizes)"; }

is_restored() { # every writable file as in /run/before
	thp_snapshot > /run/after
	diff /run/before /run/after
}
