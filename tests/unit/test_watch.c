/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watcher: inotify, triggers, and what goes away. */
#include <inttypes.h>

#include "watch_world.h"

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
	assert_fds(s, fds);
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
	assert_fds(s, fds);
	assert_int_equal(counts(s).triggers, 1);
	watch_remove_group(s->w, 3);
	assert_fds(s, fds - 1);
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
	assert_fds(s, fds - 1);
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

static uint64_t max_msec(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What it takes here and now to close 50 triggers one after the other, each time the
 * kernel's grace periods. */
static uint64_t close_50_msec(void)
{
	int fd[50];
	uint64_t begin;

	for (size_t i = 0; i < ELEMENTSOF(fd); i++) {
		fd[i] = open("/proc/pressure/memory", O_RDWR | O_CLOEXEC);
		assert_true(fd[i] >= 0);
		assert_int_equal(write(fd[i], "some 150000 2000000", 20), 20);
	}
	begin = now_msec();
	for (size_t i = 0; i < ELEMENTSOF(fd); i++)
		close(fd[i]);
	return now_msec() - begin;
}

/* Ending with many live triggers does not wait for each of them. */
static void many_real_triggers(void **state)
{
	struct state *s = *state;
	uint64_t begin, held_up, all, alone;

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
	held_up = now_msec() - begin;
	watch_free(s->w);
	s->w = NULL;
	all = now_msec() - begin;
	alone = close_50_msec();
	/* 250 of them: the loop is not held up by a tenth of that; 500: by half of it at most.
	 * Shortly after boot grace periods are so short that there is nothing to save: then it
	 * is what a loop and a stop may take at all. */
	if (held_up > max_msec(5 * alone / 10, 100) || all > max_msec(10 * alone / 2, 1000))
		fail_msg("%" PRIu64 " ms, then %" PRIu64 " ms for 500 triggers; 50 alone take %" PRIu64 " ms", held_up,
			all, alone);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
