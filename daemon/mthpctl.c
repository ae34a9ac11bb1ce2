/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpctl(1): asks mthpd over its varlink socket. Everything is in ctl.h, so
 * that the tests can call it too.
 */
#include "ctl.h"

#include <signal.h>

int main(int argc, char **argv)
{
	int code;

	signal(SIGXFSZ, SIG_IGN); /* a limit on files (RLIMIT_FSIZE) is an error of a write, as a full disk is */
	code = ctl_main(argc, argv, stdout, stderr);

	/* An answer that did not arrive (a full disk, a closed pipe) is no answer. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("mthpctl: cannot write");
		return CTL_NO;
	}
	return code;
}
