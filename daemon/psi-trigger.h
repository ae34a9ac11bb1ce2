/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One PSI trigger (Documentation/accounting/psi.rst; kernel/sched/psi.c:
 * psi_trigger_create, psi_trigger_destroy): opened, armed with one write, and
 * closed. Called by watch.c and by the capability probe. Never polls, never
 * keeps a table.
 */
#ifndef MTHPD_PSI_TRIGGER_H
#define MTHPD_PSI_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

#define PSI_TRIGGER_SAFE_WINDOW_USEC UINT64_C(2000000)

/* Opens @file relative to @dirfd and arms it for "some @threshold_usec of
 * stall within @window_usec". Returns the descriptor or -errno: ENOENT no such
 * file, ENODEV the cgroup is being removed, EOPNOTSUPP psi=0, EACCES/EPERM,
 * EINVAL the kernel does not grant the window, EMFILE also when the descriptor
 * would not be below @fd_limit.
 *
 * The kernel asks whether the opener's effective set holds CAP_SYS_RESOURCE,
 * and if so starts a real-time thread for the group. Therefore the calling
 * thread gives the capability up in its effective set, and takes it back (where
 * it is permitted) only for a window that is not a multiple of 2 s. */
int psi_trigger_open(
	int dirfd, const char *file, uint64_t threshold_usec, uint64_t window_usec, int fd_limit);

/* Closes all @fds. Destroying a live trigger waits for an RCU grace period,
 * 10 ms and more, so a few threads share the waiting when there are many. */
void psi_trigger_close_all(const int *fds, size_t n);

#endif
