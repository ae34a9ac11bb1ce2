/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * LD_PRELOAD for the integration tests, before the errno shim: time, delays and
 * inotify's limits, each by a variable of the environment; and signals that are
 * safe with the shim.
 *   MTHP_CLOCK_SPEED=N       the monotonic clock runs N times as fast, and epoll
 *                            timeouts are as much shorter, so that a minute of
 *                            the real daemon's life passes in a few seconds with
 *                            its real configuration; wall-clock time and CPU
 *                            time stay as they are
 *   MTHP_SLOW_STAT_USEC=N    opening a memory.stat takes so long, as where the
 *                            kernel has thousands of cgroups to flush
 *   MTHP_INOTIFY_WATCHES=N   the N+1st watch fails with ENOSPC; -1: there is no
 *                            instance at all (EMFILE)
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC 1000000000LL

static long long number(const char *name, long long otherwise)
{
	const char *s = getenv(name);

	return s ? atoll(s) : otherwise;
}

/* ---- time ---------------------------------------------------------------- */

static long long speed(void)
{
	static long long n;

	if (!n)
		n = number("MTHP_CLOCK_SPEED", 1);
	return n;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*next)(clockid_t, struct timespec *);
	long long t;

	if (!next)
		next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (next(id, ts) < 0)
		return -1;
	if (id != CLOCK_MONOTONIC && id != CLOCK_MONOTONIC_COARSE && id != CLOCK_BOOTTIME)
		return 0;
	t = ((long long)ts->tv_sec * NSEC + ts->tv_nsec) * speed();
	ts->tv_sec = (time_t)(t / NSEC);
	ts->tv_nsec = (long)(t % NSEC);
	return 0;
}

/* Rounded up: a timer that looks too early would be looked at in a circle. */
int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	if (timeout > 0)
		timeout = (int)((timeout + speed() - 1) / speed());
	return (int)syscall(SYS_epoll_pwait, fd, events, max, timeout, NULL, 8);
}

/* ---- a slow kernel -------------------------------------------------------- */

static void delay(const char *path)
{
	static const char slow[] = "/memory.stat";
	size_t n = strlen(path), m = strlen(slow);
	long long usec = number("MTHP_SLOW_STAT_USEC", 0);

	if (usec > 0 && n >= m && !strcmp(path + n - m, slow))
		usleep((useconds_t)usec);
}

static int slow_openat(const char *name, int dirfd, const char *path, int flags, mode_t mode)
{
	int (*next)(int, const char *, int, ...) =
		(int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, name);

	delay(path);
	return next(dirfd, path, flags, mode);
}

#define MODE(flags)                                                                                \
	mode_t mode = 0;                                                                           \
	va_list args;                                                                              \
                                                                                                   \
	va_start(args, flags);                                                                     \
	if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)                                 \
		mode = va_arg(args, mode_t);                                                       \
	va_end(args);

int openat(int dirfd, const char *path, int flags, ...)
{
	MODE(flags)
	return slow_openat("openat", dirfd, path, flags, mode);
}

int openat64(int dirfd, const char *path, int flags, ...)
{
	MODE(flags)
	return slow_openat("openat64", dirfd, path, flags, mode);
}

/* What a hardened build (_FORTIFY_SOURCE) calls instead. */
int __openat_2(int dirfd, const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags)
{
	return slow_openat("openat", dirfd, path, flags, 0);
}

int __openat64_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags)
{
	return slow_openat("openat64", dirfd, path, flags, 0);
}

/* ---- signals ------------------------------------------------------------- */

/* The event loop's signal handler writes to a socket. The shim takes a lock in
 * write(), which the interrupted thread may hold: sockets go round it. */
ssize_t write(int fd, const void *buf, size_t n)
{
	static ssize_t (*next)(int, const void *, size_t);
	struct stat st;

	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return syscall(SYS_write, fd, buf, n);
	if (!next)
		next = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	return next(fd, buf, n);
}

/* ---- inotify --------------------------------------------------------------- */

int inotify_init1(int flags)
{
	if (number("MTHP_INOTIFY_WATCHES", 0) < 0) {
		errno = EMFILE;
		return -1;
	}
	return (int)syscall(SYS_inotify_init1, flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	static long long used;
	long long limit = number("MTHP_INOTIFY_WATCHES", -1);

	if (limit >= 0 && used >= limit) {
		errno = ENOSPC;
		return -1;
	}
	used++;
	return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}
