#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# cgroup_disable=memory: the machine as one group.
. /lib/guest.sh
. /lib/guest-systemd.sh

test_no_memcg() {
	! grep -qw memory $CG/cgroup.controllers || die "the kernel did not take the option"
	mark
	start_service
	active || die "$(show ActiveState)"
	journal -p warning -t mthpd > /run/lines
	[ "$(grep -c 'cgroup' /run/lines)" -eq 1 ] && grep -q 'cgroup_disable=memory' /run/lines ||
		die "not one warning that names the option: $(cat /run/lines)"
	systemctl status --no-pager mthpd.service | grep -q 'Status: .*degraded' || die "not in the STATUS line"
	mthpctl features | grep -qE '^cgroup +no-memory-controller' || die "features: $(mthpctl features)"
	systemctl stop mthpd.service || die "stop: $?"
	[ "$(show Result)" = success ] || die "$(show Result)"
}

try no_memcg
finish
