/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "psi-trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "cleanup.h"

#define CLOSERS_MAX 16

/* Threads that wait for grace periods at the same time share them. */
struct closer {
	const int *fds;
	size_t first, step, n;
};

/* Sets or clears CAP_SYS_RESOURCE in the effective set of this thread. When it
 * is not permitted there is nothing to do: the kernel's answer to the trigger
 * tells. */
static void set_resource_capability(bool on)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3] = {0};
	const uint32_t bit = UINT32_C(1) << (CAP_SYS_RESOURCE % 32);
	struct __user_cap_data_struct *word = &d[CAP_SYS_RESOURCE / 32];

	if (syscall(SYS_capget, &h, d) < 0 || !(word->permitted & bit) ||
		!(word->effective & bit) == !on)
		return;
	word->effective ^= bit;
	(void)syscall(SYS_capset, &h, d);
}

int psi_trigger_open(
	int dirfd, const char *file, uint64_t threshold_usec, uint64_t window_usec, int fd_limit)
{
	char text[64];
	_cleanup_close_ int fd = -1;
	int len = snprintf(
		text, sizeof(text), "some %" PRIu64 " %" PRIu64, threshold_usec, window_usec);
	ssize_t n;

	set_resource_capability(window_usec % PSI_TRIGGER_SAFE_WINDOW_USEC != 0);
	fd = openat(dirfd, file, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fd >= fd_limit)
		return -EMFILE;
	/* With its NUL: the kernel overwrites the last byte of what it gets. */
	n = write(fd, text, (size_t)len + 1);
	if (n < 0)
		return -errno;
	if (n != len + 1)
		return -EIO;
	return take_fd(&fd);
}

static void *close_some(void *userdata)
{
	const struct closer *c = userdata;

	for (size_t i = c->first; i < c->n; i += c->step)
		close(c->fds[i]);
	return NULL;
}

void psi_trigger_close_all(const int *fds, size_t n)
{
	struct closer c[CLOSERS_MAX];
	pthread_t thread[CLOSERS_MAX];
	bool started[CLOSERS_MAX] = {false};
	size_t step = n < CLOSERS_MAX ? n : CLOSERS_MAX;

	for (size_t i = 0; i < step; i++) {
		c[i] = (struct closer){fds, i, step, n};
		/* the last share is this thread's own */
		started[i] =
			i + 1 < step && pthread_create(&thread[i], NULL, close_some, &c[i]) == 0;
		if (!started[i])
			close_some(&c[i]);
	}
	for (size_t i = 0; i < step; i++) {
		if (started[i])
			pthread_join(thread[i], NULL);
	}
}
