/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Errors that plain files cannot give. Defines openat() and read() in the test
 * program itself, in front of the C library's, for the tests of the readers:
 * they do the real system call except where a planned fault matches. Included
 * once per program.
 */
#ifndef MTHPD_TEST_FAULT_IO_H
#define MTHPD_TEST_FAULT_IO_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault_op { FAULT_OPEN, FAULT_READ };
struct fault {
	const char *suffix; /* of the path that is opened */
	enum fault_op op;
	int error;
	void (*then)(void); /* done when it strikes, the last fault then; or NULL */
};

#define FAULTS_MAX 8
/* Not static: the C library may declare read() inline. */
struct fault faults[FAULTS_MAX];
unsigned n_faults, n_opens, n_reads;
const struct fault *read_fault_of_fd[1024];
char last_opened[64][64]; /* tails of the paths opened since the reset */

static inline void fault_reset(void)
{
	n_faults = n_opens = n_reads = 0;
	memset(read_fault_of_fd, 0, sizeof(read_fault_of_fd));
}

static inline void fault_plan(
	const char *suffix, enum fault_op op, int error, void (*then)(void))
{
	faults[n_faults++] = (struct fault){ suffix, op, error, then };
}

static inline bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && strcmp(s + n - k, suffix) == 0;
}

static inline const struct fault *find_fault(const char *path, enum fault_op op)
{
	for (unsigned i = 0; i < n_faults; i++) {
		if (faults[i].op == op && ends_with(path, faults[i].suffix))
			return &faults[i];
	}
	return NULL;
}

static inline long strike(const struct fault *f)
{
	void (*then)(void) = f->then;
	int error = f->error;

	if (then) {
		n_faults = 0; /* what it does shall not meet the fault again */
		then();
	}
	errno = error;
	return -1;
}

/* How often a path that ends in @suffix was opened since the reset. */
static inline unsigned count_opens(const char *suffix)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_opens && i < 64; i++)
		n += ends_with(last_opened[i], suffix);
	return n;
}

int openat(int dirfd, const char *path, int flags, ...)
{
	const struct fault *f = find_fault(path, FAULT_OPEN);
	size_t len = strlen(path);
	va_list ap;
	mode_t mode;
	int fd;

	va_start(ap, flags);
	mode = (flags & O_CREAT) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (n_opens < 64)
		strcpy(last_opened[n_opens], path + (len > 63 ? len - 63 : 0));
	n_opens++;
	if (f)
		return (int)strike(f);
	fd = (int)syscall(SYS_openat, dirfd, path, flags, mode);
	if (fd >= 0 && fd < 1024)
		read_fault_of_fd[fd] = find_fault(path, FAULT_READ);
	return fd;
}

ssize_t read(int fd, void *buf, size_t n)
{
	n_reads++;
	if (fd >= 0 && fd < 1024 && read_fault_of_fd[fd])
		return strike(read_fault_of_fd[fd]);
	return syscall(SYS_read, fd, buf, n);
}

#endif
