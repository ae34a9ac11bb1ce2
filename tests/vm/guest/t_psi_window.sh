#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# t_psi_window.sh: PsiWindow= as the kernel sees it. A window that is a multiple of
# 2 s needs no kernel thread, a shorter one has one (psimon) for each group.
. /t_lib.sh
zram_swap 256M
echo never > $THP/enabled
thp_setting 64
memcg_new test.group 64M
for window in default 4s 500ms; do
	case $window in
	default) control_start $window mthpd ;;
	*) control_start $window mthpd "$(printf '[Daemon]\nPsiWindow=%s\n' $window)" ;;
	esac
	ctl --json features > "/out/seen-$window"
	ps | grep -c '[p]simon' > "/out/threads-$window"
	control_stop
done
finish
