/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The watcher on a temporary directory tree in the place of cgroup2. inotify,
 * epoll, the thread and the limits are the kernel's own; a FIFO stands in for
 * memory.pressure where the bytes written matter, a terminal where the error of
 * a dead cgroup does, and /proc/pressure where the trigger itself does. (The
 * files of a real cgroup are tested in the guest.) Nothing of the machine is
 * changed: limits are those of a child process or of its user namespace.
 */
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

static void on_pressure(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->pressure++;
	seen->token = token;
	seen->pressure_after_gone |= seen->gone > 0;
}

static void on_events(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->events++;
	seen->token = token;
}

static void on_gone(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->gone++;
	seen->token = token;
}

static void on_lost(uint64_t token, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	seen->lost++;
	seen->token = token;
}

static void on_child(uint64_t token, const char *name, bool created, void *userdata)
{
	struct seen *seen = &((struct state *)userdata)->seen;

	*(created ? &seen->created : &seen->deleted) += 1;
	seen->token = token;
	snprintf(seen->name, sizeof(seen->name), "%s", name);
}

static void on_overflow(void *userdata)
{
	((struct state *)userdata)->seen.overflow++;
}

static const struct watch_ops ops = {
	on_pressure, on_events, on_events, on_gone, on_lost, on_child, on_overflow};

/* ---- helpers ---- */

static uint64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void turn_for(struct state *s, unsigned msec)
{
	struct timeval t = {msec / 1000, msec % 1000 * 1000};

	event_base_loopexit(s->base, &t);
	event_base_dispatch(s->base);
}

/* Turns the loop until *what reaches n, or for 5 s. */
static void turn_until(struct state *s, const unsigned *what, unsigned n)
{
	uint64_t end = now_msec() + 5000;

	while (*what < n && now_msec() < end)
		turn_for(s, 10);
}

static void path_in(
	const struct state *s, char *ret, size_t size, const char *group, const char *file)
{
	snprintf(ret, size, "%s/%s%s%s", s->dir, group, file[0] ? "/" : "", file);
}

static void put_file(struct state *s, const char *group, const char *file)
{
	char path[256];
	int fd;

	path_in(s, path, sizeof(path), group, file);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "max 0\n", 6) != 6)
		abort();
	close(fd);
}

static void put_group(struct state *s, const char *group)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "");
	if (mkdir(path, 0755) < 0)
		abort();
	put_file(s, group, "memory.events");
}

static void change_events(struct state *s, const char *group)
{
	char path[256];
	int fd;

	path_in(s, path, sizeof(path), group, "memory.events");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "max 1\n", 6) != 6)
		abort();
	close(fd);
}

static void put_fifo(struct state *s, const char *group)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "memory.pressure");
	if (mkfifo(path, 0600) < 0)
		abort();
}

static void put_link(struct state *s, const char *group, const char *target)
{
	char path[256];

	path_in(s, path, sizeof(path), group, "memory.pressure");
	if (symlink(target, path) < 0)
		abort();
}

/* "g1" ... "g10000": the watcher borrows the names of its groups. */
static const char *group_name(unsigned i)
{
	static char names[10001][8];

	snprintf(names[i], sizeof(names[i]), "g%u", i % 10001);
	return names[i];
}

static unsigned count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ., .., and the directory's own */
}

static struct watch_counts counts(const struct state *s)
{
	struct watch_counts c;

	watch_counts(s->w, &c);
	return c;
}

/* CPU time of the whole process, the thread included. */
static uint64_t cpu_usec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int setup(void **state)
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

static int teardown(void **state)
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

/* ---- the map ---- */

static void map_against_reference(void **state)
{
	enum { IDS = 3000 };
	static uint32_t reference[IDS + 1]; /* value + 1, 0 = absent */
	struct idmap m = {0};
	uint32_t random = 12345, value;
	size_t live = 0;

	(void)state;
	idmap_remove(&m, 7);
	assert_false(idmap_get(&m, 7, &value));
	for (unsigned i = 0; i < 300000; i++) {
		random = random * 1664525 + 1013904223;
		uint64_t id = (random >> 8) % IDS + 1;

		if (random & 64) {
			assert_int_equal(idmap_put(&m, id, i), 0);
			live += reference[id] == 0;
			reference[id] = i + 1;
		} else {
			idmap_remove(&m, id);
			live -= reference[id] != 0;
			reference[id] = 0;
		}
		id = random % IDS + 1;
		value = 0;
		assert_int_equal(idmap_get(&m, id, &value), reference[id] != 0);
		if (reference[id])
			assert_int_equal(value, reference[id] - 1);
		assert_int_equal(m.used, live);
	}
	assert_true(m.size <= 4096);
	idmap_done(&m);
}

/* ---- inotify ---- */

static void events_change(void **state)
{
	struct state *s = *state;

	put_group(s, "a");
	put_group(s, "b");
	assert_int_equal(watch_add_group(s->w, 11, "a", WATCH_EVENTS, 0, 0, NULL), WATCH_EVENTS);
	assert_int_equal(watch_add_group(s->w, 12, "b", WATCH_EVENTS, 0, 0, NULL), WATCH_EVENTS);
	assert_int_equal(counts(s).inotify_watches, 2);
	change_events(s, "b");
	turn_until(s, &s->seen.events, 1);
	assert_int_equal(s->seen.events, 1);
	assert_int_equal(s->seen.token, 12);
	/* what is in the queue when a group is removed finds nobody */
	change_events(s, "a");
	watch_remove_group(s->w, 11);
	turn_for(s, 250);
	assert_int_equal(s->seen.events, 1);
	change_events(s, "a");
	turn_for(s, 150);
	assert_int_equal(s->seen.events, 1);
	assert_int_equal(counts(s).groups, 1);
	assert_int_equal(counts(s).inotify_watches, 1);
}

/* A group at its limit changes the file a hundred times a second: the loop
 * wakes once in a pause, and the last change is not lost. */
static void events_storm(void **state)
{
	struct state *s = *state;
	uint64_t begin = now_msec();
	unsigned seen;

	put_group(s, "a");
	watch_add_group(s->w, 5, "a", WATCH_EVENTS, 0, 0, NULL);
	while (now_msec() - begin < 5 * WATCH_EVENTS_PAUSE_MSEC) {
		change_events(s, "a");
		turn_for(s, 5);
	}
	seen = s->seen.events;
	assert_in_range(seen, 3, 7);
	turn_for(s, 5 * WATCH_EVENTS_PAUSE_MSEC / 2);
	seen = s->seen.events;
	change_events(s, "a");
	turn_for(s, 5 * WATCH_EVENTS_PAUSE_MSEC / 2);
	assert_int_equal(s->seen.events, seen + 1);
}

static void children(void **state)
{
	struct state *s = *state;
	char path[256];

	put_group(s, "a");
	assert_int_equal(watch_add_group(s->w, 1, "", WATCH_CHILDREN | WATCH_EVENTS, 0, 0, NULL),
		WATCH_CHILDREN); /* the root has no memory.events, and that is no refusal */
	assert_int_equal(counts(s).refused_inotify, 0);
	assert_int_equal(watch_add_group(s->w, 2, "a", WATCH_CHILDREN, 0, 0, NULL), WATCH_CHILDREN);
	put_group(s, "a/app\\x2dgnome@1.scope");
	put_file(s, "a", "not-a-group");
	turn_until(s, &s->seen.created, 1);
	turn_for(s, 20);
	assert_int_equal(s->seen.created, 1);
	assert_int_equal(s->seen.token, 2);
	assert_string_equal(s->seen.name, "app\\x2dgnome@1.scope");
	path_in(s, path, sizeof(path), "a/app\\x2dgnome@1.scope", "memory.events");
	unlink(path);
	path_in(s, path, sizeof(path), "a/app\\x2dgnome@1.scope", "");
	rmdir(path);
	put_group(s, "b");
	turn_until(s, &s->seen.created, 2);
	assert_int_equal(s->seen.deleted, 1);
	assert_int_equal(s->seen.created, 2);
	assert_int_equal(s->seen.token, 1);
	assert_string_equal(s->seen.name, "b");
}

static void directory_gone(void **state)
{
	struct state *s = *state;
	char path[256];

	path_in(s, path, sizeof(path), "a", "");
	assert_int_equal(mkdir(path, 0755), 0);
	watch_add_group(s->w, 9, "a", WATCH_CHILDREN, 0, 0, NULL);
	assert_int_equal(rmdir(path), 0);
	turn_until(s, &s->seen.gone, 1);
	turn_for(s, 20);
	assert_int_equal(s->seen.gone, 1);
	assert_int_equal(s->seen.token, 9);
	assert_int_equal(counts(s).inotify_watches, 0);
	assert_int_equal(watch_rearm(s->w, 9, "a", THRESHOLD, WINDOW), -ENOENT);
	watch_remove_group(s->w, 9);
	assert_int_equal(counts(s).groups, 0);
}

static void queue_overflow(void **state)
{
	struct state *s = *state;
	char path[256];

	put_group(s, "a");
	watch_add_group(s->w, 1, "", WATCH_CHILDREN, 0, 0, NULL);
	path_in(s, path, sizeof(path), "x", "");
	for (unsigned i = 0; i < 20000 / 2; i++) {
		mkdir(path, 0755);
		rmdir(path);
	}
	turn_until(s, &s->seen.overflow, 1);
	assert_int_equal(s->seen.overflow, 1);
	/* and it goes on */
	s->seen.created = 0;
	put_group(s, "y");
	turn_until(s, &s->seen.created, 1);
	assert_string_equal(s->seen.name, "y");
}

/* ---- triggers ---- */

static void no_pressure_file(void **state)
{
	struct state *s = *state;
	int psi_errno = -1;

	put_group(s, "a");
	assert_int_equal(watch_add_group(s->w, 3, "a", ALL, THRESHOLD, WINDOW, &psi_errno),
		WATCH_EVENTS | WATCH_CHILDREN);
	assert_int_equal(psi_errno, ENOENT);
	assert_int_equal(counts(s).triggers, 0);
	assert_int_equal(counts(s).refused_fd, 0);
	assert_int_equal(watch_rearm(s->w, 3, "a", THRESHOLD, WINDOW), -ENOENT);
	/* the file appears (cgroup.pressure=1): the same call fills what is missing */
	put_fifo(s, "a");
	assert_int_equal(watch_add_group(s->w, 3, "a", ALL, THRESHOLD, WINDOW, &psi_errno), ALL);
	assert_int_equal(psi_errno, 0);
	assert_int_equal(counts(s).groups, 1);
	assert_int_equal(counts(s).inotify_watches, 2);
	assert_int_equal(counts(s).triggers, 1);
}

static void no_such_group(void **state)
{
	struct state *s = *state;
	unsigned fds = count_fds();

	put_file(s, "", "plain");
	assert_int_equal(watch_add_group(s->w, 3, "a", ALL, THRESHOLD, WINDOW, NULL), -ENOENT);
	assert_int_equal(watch_add_group(s->w, 3, "plain", ALL, THRESHOLD, WINDOW, NULL), -ENOENT);
	assert_int_equal(watch_add_group(s->w, 3, "/etc", ALL, THRESHOLD, WINDOW, NULL), -EINVAL);
	assert_int_equal(watch_add_group(s->w, 0, "", ALL, THRESHOLD, WINDOW, NULL), -EINVAL);
	assert_int_equal(watch_rearm(s->w, 3, "a", THRESHOLD, WINDOW), -ENOENT);
	watch_remove_group(s->w, 3);
	assert_int_equal(counts(s).groups, 0);
	assert_int_equal(count_fds(), fds);
}

static void bad_window(void **state)
{
	struct state *s = *state;
	int psi_errno = 0;

	put_group(s, "a");
	put_fifo(s, "a");
	watch_add_group(s->w, 3, "a", WATCH_PRESSURE, 0, WINDOW, &psi_errno);
	assert_int_equal(psi_errno, EINVAL);
	watch_add_group(s->w, 3, "a", WATCH_PRESSURE, WINDOW + 1, WINDOW, &psi_errno);
	assert_int_equal(psi_errno, EINVAL);
	watch_add_group(s->w, 3, "a", WATCH_PRESSURE, 0, 0, &psi_errno);
	assert_int_equal(psi_errno, EINVAL);
}

/* One write, the string and its NUL, and no more than one per change. */
static void trigger_text(void **state)
{
	struct state *s = *state;
	char path[256], buf[64];
	unsigned fds;
	int reader;

	put_group(s, "a");
	put_fifo(s, "a");
	path_in(s, path, sizeof(path), "a", "memory.pressure");
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	assert_int_equal(watch_add_group(s->w, 3, "a", WATCH_PRESSURE, 150000, WINDOW, NULL),
		WATCH_PRESSURE);
	assert_int_equal(read(reader, buf, sizeof(buf)), 20);
	assert_memory_equal(buf, "some 150000 2000000", 20);
	fds = count_fds();

	assert_int_equal(watch_rearm(s->w, 3, "a", 150000, WINDOW), 0);
	assert_int_equal(read(reader, buf, sizeof(buf)), -1);
	for (unsigned i = 1; i <= 10; i++) {
		assert_int_equal(watch_rearm(s->w, 3, "a", i, 4000000), 0);
		assert_int_equal(read(reader, buf, sizeof(buf)), 15 + (i > 9));
		assert_int_equal(buf[5], '0' + (i > 9 ? 1 : i));
	}
	turn_for(s, 50); /* the thread closes the old ones */
	assert_int_equal(count_fds(), fds);
	assert_int_equal(counts(s).triggers, 1);
	watch_remove_group(s->w, 3);
	turn_for(s, 50);
	assert_int_equal(count_fds(), fds - 1);
	close(reader);
}

static void remove_group(struct state *s, const char *group)
{
	static const char *const files[] = {"memory.events", "memory.pressure", ""};

	for (size_t i = 0; i < ELEMENTSOF(files); i++) {
		char path[256];

		path_in(s, path, sizeof(path), group, files[i]);
		assert_int_equal(files[i][0] ? unlink(path) : rmdir(path), 0);
	}
}

/* A terminal whose other side hangs up reports EPOLLHUP for ever, as the
 * pressure file of a removed cgroup does. */
static int put_terminal(struct state *s, const char *group)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		abort();
	put_link(s, group, ptsname(master));
	return master;
}

static void trigger_gone(void **state)
{
	struct state *s = *state;
	uint64_t cpu;
	unsigned fds;
	int master;

	put_group(s, "a");
	master = put_terminal(s, "a");
	fds = count_fds();
	assert_int_equal(watch_add_group(s->w, 3, "a", WATCH_PRESSURE, THRESHOLD, WINDOW, NULL),
		WATCH_PRESSURE);
	turn_for(s, 50);
	assert_int_equal(s->seen.gone + s->seen.lost + s->seen.pressure, 0);
	remove_group(s, "a");
	close(master);
	turn_until(s, &s->seen.gone, 1);
	assert_int_equal(s->seen.gone, 1);
	assert_int_equal(s->seen.token, 3);
	assert_int_equal(counts(s).triggers, 0);
	assert_int_equal(count_fds(), fds - 1);
	cpu = cpu_usec();
	turn_for(s, 1000);
	assert_in_range(cpu_usec() - cpu, 0, 10000);
	assert_int_equal(s->seen.gone, 1);
	assert_int_equal(s->seen.pressure + s->seen.lost, 0);
	assert_int_equal(watch_rearm(s->w, 3, "a", THRESHOLD, WINDOW), -ENOENT);
	watch_remove_group(s->w, 3);
	assert_int_equal(counts(s).groups, 0);
}

/* The same error while the directory stands: PSI was switched off for the
 * group, which lives, and can be armed again. */
static void trigger_lost(void **state)
{
	struct state *s = *state;
	char path[256];
	uint64_t cpu;
	int master;

	put_group(s, "a");
	master = put_terminal(s, "a");
	assert_int_equal(watch_add_group(s->w, 3, "a", WATCH_PRESSURE | WATCH_EVENTS, THRESHOLD,
				 WINDOW, NULL),
		WATCH_PRESSURE | WATCH_EVENTS);
	close(master);
	turn_until(s, &s->seen.lost, 1);
	cpu = cpu_usec();
	turn_for(s, 500);
	assert_in_range(cpu_usec() - cpu, 0, 10000);
	assert_int_equal(s->seen.lost, 1);
	assert_int_equal(s->seen.token, 3);
	assert_int_equal(s->seen.gone + s->seen.pressure, 0);
	assert_int_equal(counts(s).triggers, 0);
	assert_int_equal(counts(s).groups, 1);
	path_in(s, path, sizeof(path), "a", "memory.pressure");
	assert_int_equal(unlink(path), 0);
	put_fifo(s, "a");
	assert_int_equal(watch_add_group(s->w, 3, "a", WATCH_PRESSURE | WATCH_EVENTS, THRESHOLD,
				 WINDOW, NULL),
		WATCH_PRESSURE | WATCH_EVENTS);
	assert_int_equal(counts(s).triggers, 1);
}

/* While the loop does not look, the thread waits too; and what it had to say
 * about a group that is removed meanwhile is not said of the next in its slot. */
static void stale_trigger_event(void **state)
{
	struct state *s = *state;
	struct timespec nap = {0, 50000000};
	int master;
	uint64_t cpu;

	put_group(s, "a");
	put_group(s, "b");
	put_fifo(s, "b");
	master = put_terminal(s, "a");
	watch_add_group(s->w, 3, "a", WATCH_PRESSURE, THRESHOLD, WINDOW, NULL);
	close(master);
	cpu = cpu_usec();
	nanosleep(&nap, NULL);
	assert_in_range(cpu_usec() - cpu, 0, 10000);
	watch_remove_group(s->w, 3);
	assert_int_equal(watch_add_group(s->w, 4, "b", WATCH_PRESSURE, THRESHOLD, WINDOW, NULL),
		WATCH_PRESSURE);
	turn_for(s, 50);
	assert_int_equal(s->seen.gone, 0);
	assert_int_equal(counts(s).triggers, 1);
}

static bool effective_resource_capability(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long caps = 0;
	char line[256];

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	}
	fclose(f);
	return caps >> 24 & 1;
}

/* A real trigger of this kernel, fired by processes that want more CPUs than
 * there are. */
static void real_trigger(void **state)
{
	struct state *s = *state;
	long n = sysconf(_SC_NPROCESSORS_ONLN) + 2;
	pid_t pid[66];
	int psi_errno = 0;

	if (access("/proc/pressure/cpu", W_OK) < 0 || n > 66)
		skip();
	put_group(s, "a");
	put_link(s, "a", "/proc/pressure/cpu");
	assert_int_equal(watch_add_group(s->w, 77, "a", WATCH_PRESSURE, 1000, WINDOW, &psi_errno),
		WATCH_PRESSURE);
	assert_int_equal(psi_errno, 0);
	/* so that the kernel starts no real-time thread of its own for it */
	assert_false(effective_resource_capability());
	for (long i = 0; i < n; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			alarm(6);
			for (;;)
				;
		}
	}
	turn_until(s, &s->seen.pressure, 1);
	for (long i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	assert_true(s->seen.pressure >= 1);
	assert_int_equal(s->seen.token, 77);
	assert_int_equal(s->seen.gone, 0);
}

/* Ending with many live triggers does not wait for each of them. */
static void many_real_triggers(void **state)
{
	struct state *s = *state;
	uint64_t begin;

	if (access("/proc/pressure/memory", W_OK) < 0)
		skip();
	put_group(s, "a");
	put_link(s, "a", "/proc/pressure/memory");
	for (uint64_t i = 1; i <= 500; i++)
		assert_int_equal(
			watch_add_group(s->w, i, "a", WATCH_PRESSURE, THRESHOLD, WINDOW, NULL),
			WATCH_PRESSURE);
	begin = now_msec();
	for (uint64_t i = 1; i <= 250; i++)
		watch_remove_group(s->w, i);
	assert_true(now_msec() - begin < 100); /* the loop is not held up */
	watch_free(s->w);
	s->w = NULL;
	/* one after the other: 500 x 10 ms */
	assert_true(now_msec() - begin < 2500);
}

static void system_trigger(void **state)
{
	struct state *s = *state;

	if (access("/proc/pressure/memory", W_OK) < 0)
		skip();
	watch_free(s->w);
	assert_int_equal(watch_new(s->base, -1, &ops, s, &s->w), 0);
	assert_int_equal(watch_add_group(s->w, 1, "a", ALL, THRESHOLD, WINDOW, NULL), -EINVAL);
	assert_int_equal(
		watch_add_group(s->w, 1, "", ALL, THRESHOLD, WINDOW, NULL), WATCH_PRESSURE);
}

/* ---- limits, each in a child process ---- */

/* In a child: asserts of cmocka would return into the parent's run. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Runs @fn in a child whose stderr goes to @log. Returns its exit status. */
static int run_child(struct state *s, void (*fn)(struct state *), char *log, size_t size)
{
	char path[256];
	int status, fd;
	ssize_t n;
	pid_t pid;

	path_in(s, path, sizeof(path), "log", "");
	fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
	pid = fork();
	if (pid == 0) {
		dup2(fd, STDERR_FILENO);
		event_reinit(s->base);
		fn(s);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	n = pread(fd, log, size - 1, 0);
	log[n > 0 ? n : 0] = '\0';
	close(fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void restart(struct state *s)
{
	watch_free(s->w);
	CHECK(watch_new(s->base, s->root_fd, &ops, s, &s->w) == 0);
}

static void few_descriptors(struct state *s)
{
	struct rlimit l = {64, 64};
	unsigned armed = 0;
	int psi_errno = 0, parts, spare[16];

	CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
	restart(s);
	for (uint64_t i = 1; i <= 500; i++) {
		const char *name = group_name((unsigned)i);

		parts = watch_add_group(s->w, i, name, ALL, THRESHOLD, WINDOW, &psi_errno);
		CHECK((parts & ~WATCH_PRESSURE) == (WATCH_EVENTS | WATCH_CHILDREN));
		armed += parts & WATCH_PRESSURE;
		CHECK(psi_errno == (parts & WATCH_PRESSURE ? 0 : EMFILE));
	}
	CHECK(armed >= 16);
	CHECK(count_fds() <= 64 - 16);
	CHECK(counts(s).triggers == armed);
	CHECK(counts(s).refused_fd == 500 - armed);
	/* room for what the rest of the daemon opens */
	for (unsigned i = 0; i < ELEMENTSOF(spare); i++)
		CHECK((spare[i] = dup(0)) >= 0);
	/* an armed trigger that cannot be replaced stays */
	CHECK(watch_rearm(s->w, 1, "g1", THRESHOLD + 1, WINDOW) == -EMFILE);
	CHECK(counts(s).triggers == armed);
	CHECK(counts(s).refused_fd == 500 - armed);
	/* one that goes makes room for another that asks again */
	for (unsigned i = 0; i < ELEMENTSOF(spare); i++)
		close(spare[i]);
	watch_remove_group(s->w, 1);
	turn_for(s, 50);
	CHECK(watch_add_group(s->w, 500, "g500", ALL, THRESHOLD, WINDOW, &psi_errno) == (int)ALL);
	CHECK(counts(s).triggers == armed);
	CHECK(counts(s).refused_fd == 499 - armed);
	change_events(s, "g321");
	turn_until(s, &s->seen.events, 1);
	CHECK(s->seen.token == 321);
	watch_free(s->w);
}

static void descriptor_limit(void **state)
{
	struct state *s = *state;
	char log[4096];

	for (unsigned i = 1; i <= 500; i++) {
		put_group(s, group_name(i));
		put_fifo(s, group_name(i));
	}
	assert_int_equal(run_child(s, few_descriptors, log, sizeof(log)), 0);
	assert_non_null(strstr(log, "RLIMIT_NOFILE"));
	assert_int_equal(lines(log), 1);
}

/* The soft limit is raised to what is allowed. */
static void soft_limit(struct state *s)
{
	struct rlimit l;

	CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0);
	l.rlim_cur = 32;
	l.rlim_max = l.rlim_max < 2048 ? l.rlim_max : 2048;
	CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
	restart(s);
	for (uint64_t i = 1; i <= 200; i++)
		CHECK(watch_add_group(s->w, i, "a", WATCH_PRESSURE, THRESHOLD, WINDOW, NULL) ==
			WATCH_PRESSURE);
	watch_free(s->w);
}

static void soft_descriptor_limit(void **state)
{
	struct state *s = *state;
	char log[4096];

	put_group(s, "a");
	put_fifo(s, "a");
	assert_int_equal(run_child(s, soft_limit, log, sizeof(log)), 0);
	assert_string_equal(log, "");
}

/* Sets a limit of this process's own new user namespace. False when the
 * machine does not let one make such a namespace. */
static bool limit_in_namespace(const char *name, const char *value)
{
	char path[128];
	bool ok;
	int fd;

	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	snprintf(path, sizeof(path), "/proc/sys/user/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return ok;
}

#define CANNOT 77

static void few_watches(struct state *s)
{
	int parts;

	watch_free(s->w);
	if (!limit_in_namespace("max_inotify_watches", "5"))
		_exit(CANNOT);
	CHECK(watch_new(s->base, s->root_fd, &ops, s, &s->w) == 0);
	for (uint64_t i = 1; i <= 10; i++) {
		const char *name = group_name((unsigned)i);

		parts = watch_add_group(s->w, i, name, WATCH_EVENTS, 0, 0, NULL);
		CHECK(parts == (i <= 5 ? WATCH_EVENTS : 0));
	}
	/* a group of which nothing is watched is nobody's to remember */
	CHECK(counts(s).refused_inotify == 0);
	CHECK(counts(s).groups == 5);
	for (uint64_t i = 6; i <= 10; i++) {
		const char *name = group_name((unsigned)i);

		CHECK(watch_add_group(s->w, i, name, WATCH_EVENTS | WATCH_PRESSURE, THRESHOLD,
			      WINDOW, NULL) == WATCH_PRESSURE);
	}
	CHECK(counts(s).refused_inotify == 5);
	change_events(s, "g5");
	turn_until(s, &s->seen.events, 1);
	CHECK(s->seen.token == 5);
	watch_remove_group(s->w, 2);
	CHECK(watch_add_group(s->w, 9, "g9", WATCH_EVENTS, 0, 0, NULL) ==
		(WATCH_EVENTS | WATCH_PRESSURE));
	CHECK(counts(s).refused_inotify == 4);
	watch_free(s->w);
}

static void no_instances(struct state *s)
{
	watch_free(s->w);
	if (!limit_in_namespace("max_inotify_instances", "0"))
		_exit(CANNOT);
	CHECK(watch_new(s->base, s->root_fd, &ops, s, &s->w) == 0);
	CHECK(watch_add_group(s->w, 1, "g1", ALL, THRESHOLD, WINDOW, NULL) == WATCH_PRESSURE);
	CHECK(watch_add_group(s->w, 2, "g2", ALL, THRESHOLD, WINDOW, NULL) == WATCH_PRESSURE);
	CHECK(counts(s).refused_inotify == 2);
	watch_free(s->w);
}

static void inotify_limits(void **state)
{
	static const struct {
		void (*fn)(struct state *);
		const char *sysctl;
	} cases[] = {
		{few_watches, "fs.inotify.max_user_watches"},
		{no_instances, "fs.inotify.max_user_instances"},
	};
	struct state *s = *state;
	char log[4096];

	for (unsigned i = 1; i <= 10; i++) {
		put_group(s, group_name(i));
		put_fifo(s, group_name(i));
	}
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		int status = run_child(s, cases[i].fn, log, sizeof(log));

		if (status == CANNOT)
			skip();
		assert_int_equal(status, 0);
		assert_non_null(strstr(log, cases[i].sysctl));
		assert_int_equal(lines(log), 1);
	}
}

/* Without CAP_SYS_RESOURCE the kernel grants multiples of 2 s only. */
static void ungranted_window(struct state *s)
{
	int psi_errno = 0;

	watch_free(s->w);
	if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		_exit(CANNOT);
	CHECK(watch_new(s->base, s->root_fd, &ops, s, &s->w) == 0);
	for (uint64_t i = 1; i <= 3; i++) {
		CHECK(watch_add_group(s->w, i, "a", WATCH_PRESSURE, 50000, 500000, &psi_errno) ==
			WATCH_PRESSURE);
		CHECK(psi_errno == 0);
	}
	watch_free(s->w);
}

static void window_fallback(void **state)
{
	struct state *s = *state;
	char log[4096];
	int status;

	if (access("/proc/pressure/memory", W_OK) < 0)
		skip();
	chmod(s->dir, 0755);
	put_group(s, "a");
	put_link(s, "a", "/proc/pressure/memory");
	status = run_child(s, ungranted_window, log, sizeof(log));
	if (status == CANNOT)
		skip();
	assert_int_equal(status, 0);
	assert_non_null(strstr(log, "windows of 500 ms"));
	assert_int_equal(lines(log), 1);
}

/* ---- size ---- */

static void ten_thousand(void **state)
{
	enum { N = 10000 };
	struct state *s = *state;
	struct mallinfo2 before, after;
	unsigned refused;

	for (unsigned i = 1; i <= N; i++) {
		put_group(s, group_name(i));
	}
	before = mallinfo2();
	for (unsigned i = 1; i <= N; i++) {
		assert_true(
			watch_add_group(s->w, i, group_name(i), ALL, THRESHOLD, WINDOW, NULL) >= 0);
	}
	after = mallinfo2();
	refused = counts(s).refused_inotify;
	assert_int_equal(counts(s).groups, N);
	assert_in_range(counts(s).inotify_watches + 2 * refused, 2 * N, 3 * N);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_in_range(
		(after.uordblks - before.uordblks + after.hblkhd - before.hblkhd) / N, 1, 200);
#else
	(void)before;
	(void)after;
#endif
	for (unsigned i = 1; i <= N; i += 2)
		watch_remove_group(s->w, i);
	assert_int_equal(counts(s).groups, N / 2);
	change_events(s, "g2");
	change_events(s, "g3");
	turn_until(s, &s->seen.events, 1);
	turn_for(s, 150);
	assert_int_equal(s->seen.events, 1);
	assert_int_equal(s->seen.token, 2);
}

static void churn(void **state)
{
	struct state *s = *state;
	unsigned fds;
	size_t used = 0;

	put_group(s, "a");
	put_fifo(s, "a");
	for (uint64_t token = 1; token <= 4000; token++) {
		assert_int_equal(
			watch_add_group(s->w, token, "a", ALL, THRESHOLD, WINDOW, NULL), ALL);
		watch_remove_group(s->w, token);
		if (token == 1000) {
			turn_for(s, 200);
			fds = count_fds();
			used = mallinfo2().uordblks;
		}
	}
	turn_for(s, 200);
	assert_int_equal(count_fds(), fds);
	assert_true(mallinfo2().uordblks <= used + 1024);
	assert_int_equal(counts(s).groups + counts(s).triggers + counts(s).inotify_watches, 0);
	assert_int_equal(s->seen.events + s->seen.gone + s->seen.pressure, 0);
}

#define WATCH_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_against_reference),
		WATCH_TEST(events_change),
		WATCH_TEST(events_storm),
		WATCH_TEST(children),
		WATCH_TEST(directory_gone),
		WATCH_TEST(queue_overflow),
		WATCH_TEST(no_pressure_file),
		WATCH_TEST(no_such_group),
		WATCH_TEST(bad_window),
		WATCH_TEST(trigger_text),
		WATCH_TEST(trigger_gone),
		WATCH_TEST(trigger_lost),
		WATCH_TEST(stale_trigger_event),
		WATCH_TEST(real_trigger),
		WATCH_TEST(many_real_triggers),
		WATCH_TEST(system_trigger),
		WATCH_TEST(descriptor_limit),
		WATCH_TEST(soft_descriptor_limit),
		WATCH_TEST(inotify_limits),
		WATCH_TEST(window_fallback),
		WATCH_TEST(ten_thousand),
		WATCH_TEST(churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
