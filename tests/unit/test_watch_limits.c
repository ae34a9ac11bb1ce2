/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The watcher at the limits of its process, and with very many groups. */
#include "watch_world.h"

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
	unsigned armed = 0, fds;
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
	fds = count_fds();
	watch_remove_group(s->w, 1);
	for (uint64_t end = now_msec() + 5000; count_fds() == fds && now_msec() < end;)
		turn_for(s, 10); /* a thread closes its trigger */
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
		WATCH_TEST(descriptor_limit),
		WATCH_TEST(soft_descriptor_limit),
		WATCH_TEST(inotify_limits),
		WATCH_TEST(window_fallback),
		WATCH_TEST(ten_thousand),
		WATCH_TEST(churn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
