# SPDX-License-Identifier: LGPL-2.1-or-later
# What the guests of the VM tests share: `. /t_lib.sh`. Results go to /out.
. /lib/guest.sh
. /cases.sh

SOCKET=/run/mthpd/org.mthpd1
mkdir -p /out

ctl() { mthpctl --socket=$SOCKET "$@"; }

# CLOCK_REALTIME - CLOCK_MONOTONIC, in nanoseconds.
awk '/^ clock 1:/ { on = 1 } on && /\.offset:/ { print $2; exit }' /proc/timer_list > /out/clock

finish() { tar cf /out.tar -C / out; }

# daemon_start NAME [CONFIG]: mthpd with this configuration ('' = the default
# policy); its log is /out/log-NAME. It must answer within $start_seconds (30).
daemon_start() {
	printf '%s\n' "${2:-}" > /etc/mthpd.conf
	mthpd --config=/etc/mthpd.conf 2>> "/out/log-$1" &
	daemon=$!
	wait_for "${start_seconds:-30}" ctl --json features > "/out/features-$1" 2> /dev/null ||
		die "mthpd does not answer"
}

daemon_stop() {
	kill "$daemon" && wait "$daemon"
	daemon_status=$?
	[ $daemon_status -eq 0 ] || die "mthpd ended with $daemon_status"
}

# Of the daemon, all its threads.
cpu_usec() { cat /proc/$daemon/task/*/schedstat | awk '{ n += $1 } END { print int(n / 1000) }'; }
rss_kb() { awk '/^VmRSS/ { print $2 }' /proc/$daemon/status; }

# control_start NAME WHAT [CONFIG]: what steers the switches from here on:
#   mthpd    the daemon
#   nothing  a daemon that does nothing
#   never    a daemon that sets every size to never when it starts, and stays so
control_start() {
	control_name=$1 control_what=$2
	thp_snapshot > "/out/start-$1"
	case $2 in
	mthpd) daemon_start "$1" "${3:-}" ;;
	nothing) sleep 1000000 & daemon=$! ;;
	never) thp_set ""; sleep 1000000 & daemon=$! ;;
	*) die "unknown control $2" ;;
	esac
	sleep 2
}

control_stop() {
	if [ "$control_what" = mthpd ]; then
		ctl --json history -n 1000 > "/out/history-$control_name"
		ctl --json status > "/out/status-$control_name"
		daemon_stop
	else
		kill "$daemon"
		wait "$daemon" 2> /dev/null
	fi
}

# measured NAME WHAT SEED PHASE...: the workload in a group of 64 MiB of its own,
# sampled every second, steered by WHAT (or `static`: by nobody). It is ended after
# $time_limit seconds, if that is set.
measured() {
	m_name=$1 m_what=$2 m_seed=$3
	shift 3
	memcg_new "$m_name.group" 64M
	[ "$m_what" = static ] || control_start "$m_name" "$m_what"
	sampler_start "/out/stat-$m_name" 1000 "$m_name.group"
	${time_limit:+timeout "$time_limit"} workload --cgroup="$CG/$m_name.group" \
		--seed="$m_seed" --report-msec=1000 "$@" > "/out/work-$m_name" ||
		echo "workload of $m_name ended with $?"
	sampler_stop
	[ "$m_what" = static ] || control_stop
	rmdir "$CG/$m_name.group"
}

# seconds_of NAME [FACTOR]: what all the work of NAME took, populating too.
seconds_of() {
	sed -n 's/^{"t":\([0-9.]*\),"event":"\(start\|end\)".*/\1/p' "/out/work-$1" |
		awk -v factor="${2:-1}" 'NR == 1 { start = $1 } END { print ($1 - start) * factor }'
}
