/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watcher on a temporary directory tree in the place of cgroup2. inotify,
 * epoll, the thread and the limits are the kernel's own; a FIFO stands in for
 * memory.pressure where the bytes written matter, a terminal where the error of
 * a dead cgroup does, and /proc/pressure where the trigger itself does. (The
 * files of a real cgroup are tested in the guest.) Nothing of the machine is
 * changed: limits are those of a child process or of its user namespace.
 */
#ifndef MTHPD_TEST_WATCH_WORLD_H
#define MTHPD_TEST_WATCH_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "cleanup.h"
#include "idmap.h"
#include "psi-trigger.h"
#include "watch.h"

#define ALL (WATCH_PRESSURE | WATCH_EVENTS | WATCH_CHILDREN)
#define WINDOW 2000000
#define THRESHOLD 150000

struct seen {
	unsigned pressure, events, gone, lost, created, deleted, overflow;
	uint64_t token;
	char name[256];
	bool pressure_after_gone;
};

struct state {
	char dir[64];
	int root_fd;
	struct event_base *base;
	struct watch *w;
	struct seen seen;
};

/* ---- callbacks ---- */

static inline void on_pressure(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->pressure++;
	seen->token = token;
	seen->pressure_after_gone |= seen->gone > 0;
}

static inline void on_events(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->events++;
	seen->token = token;
}

static inline void on_gone(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->gone++;
	seen->token = token;
}

static inline void on_lost(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->lost++;
	seen->token = token;
}

static inline void on_child(uint64_t token, const char *name, bool created, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	*(created ? &seen->created : &seen->deleted) += 1;
	seen->token = token;
	snprintf(seen->name, sizeof(seen->name), "%s", name);
}

static inline void on_overflow(void *userdata)
{
	((struct state *)userdata)->seen.overflow++;
}

static const struct watch_ops ops = {
	on_pressure, on_events, on_events, on_gone, on_lost, on_child, on_overflow};

/* ---- helpers ---- */

static inline uint64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void turn_for(struct state *s, unsigned msec)
{
	struct timeval t = {msec / 1000, msec % 1000 * 1000};

	event_base_loopexit(s->base, &t);
	event_base_dispatch(s->base);
}

/* Turns the loop until *what reaches n, or for 20 s. */
static inline void turn_until(struct state *s, const unsigned *what, unsigned n)
{
	uint64_t end = now_msec() + 20000;

	while (*what < n && now_msec() < end)
		turn_for(s, 10);
}

static inline void path_in(
	const struct state *s, char *ret, size_t size, const char *group, const char *file)
{
	snprintf(ret, size, "%s/%s%s%s", s->dir, group, file[0] ? "/" : "", file);
}

static inline void put_file(struct state *s, const char *group, const char *file)
{
	char path[256];
	int fd;

	path_in(s, path, sizeof(path), group, file);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "max 0\n", 6) != 6)
		abort();
	close(fd);
}

static inline void put_group(struct state *s, const char *group)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "");
	if (mkdir(path, 0755) < 0)
		abort();
	put_file(s, group, "memory.events");
}

static inline void change_events(struct state *s, const char *group)
{
	char path[256];
	int fd;

	path_in(s, path, sizeof(path), group, "memory.events");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "max 1\n", 6) != 6)
		abort();
	close(fd);
}

static inline void put_fifo(struct state *s, const char *group)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "memory.pressure");
	if (mkfifo(path, 0600) < 0)
		abort();
}

static inline void put_link(struct state *s, const char *group, const char *target)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "memory.pressure");
	if (symlink(target, path) < 0)
		abort();
}

/* "g1" ... "g10000": the watcher borrows the names of its groups. */
static inline const char *group_name(unsigned i)
{
	static char names[10001][8];

	snprintf(names[i], sizeof(names[i]), "g%u", i % 10001);
	return names[i];
}

static inline unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ., .., and the directory's own */
}

/* Descriptors are closed by a thread of the watcher's: turns the loop until @n are open,
 * or for 20 s. */
static inline void assert_fds(struct state *s, unsigned n)
{
	uint64_t end = now_msec() + 20000;

	while (count_fds() != n && now_msec() < end)
		turn_for(s, 10);
	assert_int_equal(count_fds(), n);
}

static inline struct watch_counts counts(const struct state *s)
{
	struct watch_counts c;

	watch_counts(s->w, &c);
	return c;
}

/* CPU time of the whole process, the thread included. */
static inline uint64_t cpu_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline int setup(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	/* thousands of directories: in memory where there is such a place */
	strcpy(s->dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/test-watch-XXXXXX"
						     : "/tmp/test-watch-XXXXXX");
	if (!mkdtemp(s->dir))
		return -1;
	s->root_fd = open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->base = event_base_new();
	*state = s;
	return watch_new(s->base, s->root_fd, &ops, s, &s->w);
}

static inline int teardown(void **state)
{
	struct state *s = *state;
	char command[128];

	watch_free(s->w);
	event_base_free(s->base);
	close(s->root_fd);
	snprintf(command, sizeof(command), "rm -rf '%s'", s->dir);
	if (system(command) != 0)
		return -1;
	free(s);
	return 0;
}

#endif
