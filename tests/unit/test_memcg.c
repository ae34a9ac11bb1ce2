/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/memcg.c: samples of groups that are whole, poor, limited from above, or
 * gone at any step. */
#include "memcg_tree.h"

static void expect_result(const char *path, int result)
{
	for (int depth = MEMCG_CHEAP; depth <= MEMCG_FULL; depth++) {
		struct memcg_sample s, before;

		memset(&s, 0x5a, sizeof(s));
		before = s;
		assert_int_equal(memcg_sample_read(tree->fd, path, (enum memcg_depth)depth, 1,
					 TOTAL, &s),
			result);
		assert_memory_equal(&s, &before, sizeof(s));
	}
}

static void test_whole_group(void **state)
{
	struct memcg_sample s;
	struct stat st;

	(void)state;
	make_group("a/b", 10 * MIB);
	put("a/b", "memory.low", "1048576\n");
	put("a/b", "memory.swap.max", "0\n");
	put("a/b", "memory.swap.events", "high 1\nmax 2\nfail 3\n");
	s = read_ok("a/b", MEMCG_FULL, 77);
	assert_int_equal(fstatat(tree->fd, "a/b", &st, 0), 0);
	assert_int_equal(s.id, st.st_ino);
	assert_int_equal(s.now_usec, 77);
	assert_true(s.full_depth && !s.psi_off);
	assert_int_equal(s.psi_errno, 0);
	assert_int_equal(s.psi.some.total_usec, 100);
	assert_int_equal(s.psi.full.total_usec, 50);
	assert_int_equal(s.events.oom_group_kill, 0);
	assert_int_equal(s.events_local.max, 0);
	assert_int_equal(s.current_bytes, 10 * MIB);
	assert_true(s.max_bytes == VALUE_MAX && s.high_bytes == VALUE_MAX);
	assert_int_equal(s.low_bytes, MIB);
	assert_int_equal(s.min_bytes, 0);
	assert_int_equal(s.swap_max_bytes, 0);
	assert_int_equal(s.swap_events_max, 2);
	assert_int_equal(s.swap_events_fail, 3);
	assert_int_equal(s.anon, 4096);
	assert_int_equal(s.pgfault, 7);
	assert_true(s.anon_thp == VALUE_ABSENT);
	assert_int_equal(s.usage_usec, 30);
	assert_int_equal(s.system_usec, 20);
	assert_true(s.limit_bytes == VALUE_MAX && s.margin_bytes == VALUE_MAX);
	assert_true(memcg_margin_with_cache(&s) == VALUE_MAX);
}

/* The promise of memcg.h about what a look costs. */
static void test_cost(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("a/b", 10 * MIB);
	make_group("a", 10 * MIB);
	fault_reset();
	s = read_ok("a/b", MEMCG_CHEAP, 1);
	assert_int_equal(n_opens, 2);
	assert_int_equal(n_reads, 2);
	assert_int_equal(count_opens("memory.pressure"), 1);
	assert_int_equal(count_opens("memory.events"), 1);
	assert_false(s.full_depth);
	assert_int_equal(s.events.max, 0);
	assert_true(s.events_local.max == VALUE_ABSENT && s.current_bytes == VALUE_ABSENT);
	assert_true(s.margin_bytes == VALUE_ABSENT && s.anon == VALUE_ABSENT);
	assert_true(s.usage_usec == VALUE_ABSENT);

	fault_reset();
	read_ok("a/b", MEMCG_FULL, 1);
	assert_int_equal(n_opens, 13 + 2);
	assert_int_equal(n_reads, 13 + 2);
	assert_int_equal(count_opens("a/memory.current"), 0); /* a has no limit */
	put("a", "memory.max", "67108864\n");
	fault_reset();
	read_ok("a/b", MEMCG_FULL, 1);
	assert_int_equal(n_opens, 13 + 3);
}

/* Field case D03: only memory.current, memory.max and memory.stat. */
static void test_poor_group(void **state)
{
	struct memcg_sample s;

	(void)state;
	put("g", "memory.current", "4194304\n");
	put("g", "memory.max", "8388608\n");
	put("g", "memory.stat", "anon 1048576\nfile 2097152\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(s.current_bytes, 4 * MIB);
	assert_int_equal(s.margin_bytes, 4 * MIB);
	assert_true(s.swap_current_bytes == VALUE_ABSENT && s.swap_max_bytes == VALUE_ABSENT);
	assert_true(s.swap_events_fail == VALUE_ABSENT && s.low_bytes == VALUE_ABSENT);
	assert_true(s.high_bytes == VALUE_ABSENT && s.events.max == VALUE_ABSENT);
	assert_true(s.psi_off);
	assert_int_equal(s.psi_errno, ENOENT);
	assert_true(s.psi.some.total_usec == VALUE_ABSENT);
	/* The cheap look finds memory.current in the end. */
	s = read_ok("g", MEMCG_CHEAP, 1);
	assert_int_equal(s.current_bytes, 4 * MIB);

	/* memory.events alone is enough as well; usage unknown, margin unknown. */
	put("h", "memory.events", "high 5\nmax 6\n");
	put("h", "memory.max", "8388608\n");
	s = read_ok("h", MEMCG_FULL, 1);
	assert_int_equal(s.events.max, 6);
	assert_true(s.current_bytes == VALUE_ABSENT && s.margin_bytes == VALUE_ABSENT);
	assert_int_equal(s.limit_bytes, 8 * MIB);
	assert_true(memcg_margin_with_cache(&s) == VALUE_ABSENT);
}

/* Field case D05: a group without the controller, below one that has it. */
static void test_no_memory(void **state)
{
	(void)state;
	make_group("user.slice", MIB);
	put("user.slice/a/b/c", "cgroup.procs", "");
	put("user.slice/a/b/c", "pids.current", "1\n");
	expect_result("user.slice/a/b/c", MEMCG_NO_MEMORY);
	expect_result("user.slice/a/b", MEMCG_NO_MEMORY);
	expect_result("", MEMCG_NO_MEMORY);
	put("user.slice/a/b/c", "cgroup.controllers", "cpu memory_x pids\n");
	expect_result("user.slice/a/b/c", MEMCG_NO_MEMORY);
	put("user.slice/a/b/c", "cgroup.controllers", "");
	expect_result("user.slice/a/b/c", MEMCG_NO_MEMORY);
	/* One that is to have memory's files is on its way in or out. */
	put("user.slice/a/b/c", "cgroup.controllers", "cpu memory pids\n");
	expect_result("user.slice/a/b/c", MEMCG_GONE);
	put("user.slice/a/b/c", "cgroup.controllers", "memory\n");
	expect_result("user.slice/a/b/c", MEMCG_GONE);
	/* On the real file system a group without the list is half gone already. */
	fake_remove(tree, "user.slice/a/b/c/cgroup.controllers");
	expect_result("user.slice/a/b/c", MEMCG_NO_MEMORY);
	as_cgroup2 = true;
	expect_result("user.slice/a/b/c", MEMCG_GONE);
	put("user.slice/a/b/c", "cgroup.controllers", "");
	expect_result("user.slice/a/b/c", MEMCG_NO_MEMORY);
	/* The root lists it and has no such files. */
	put(".", "cgroup.controllers", "cpu memory pids\n");
	expect_result("", MEMCG_NO_MEMORY);
	read_ok("user.slice", MEMCG_FULL, 1);
	expect_result("user.slice/none", MEMCG_GONE);
}

static void test_paths(void **state)
{
	char path[PATH_MAX + 1];

	(void)state;
	make_group("app-a\\x2db.scope/x:y@1.service", MIB);
	make_group("...", MIB);
	read_ok("app-a\\x2db.scope/x:y@1.service", MEMCG_FULL, 1);
	read_ok("...", MEMCG_FULL, 1);
	expect_result("/app", -EINVAL);
	expect_result("app/", -EINVAL);
	expect_result("a//b", -EINVAL);
	expect_result("..", -EINVAL);
	expect_result("a/../b", -EINVAL);
	expect_result(".", -EINVAL);
	memset(path, 'x', sizeof(path));
	path[PATH_MAX - 15] = '\0';
	expect_result(path, -ENAMETOOLONG);
	/* One byte less passes here, and the file system has its own limit. */
	path[PATH_MAX - 16] = '\0';
	expect_result(path, -ENAMETOOLONG);
	for (size_t i = 1; i < PATH_MAX - 16; i += 2)
		path[i] = '/';
	path[PATH_MAX - 17] = 'x';
	expect_result(path, MEMCG_GONE);
	put("plain", "file", "");
	expect_result("plain/file", MEMCG_GONE);
}

static void expect_max(const char *text, uint64_t max, uint64_t margin)
{
	struct memcg_sample s;

	put("g", "memory.max", text);
	s = read_ok("g", MEMCG_FULL, 1);
	assert_true(s.max_bytes == max);
	assert_true(s.margin_bytes == margin);
}

/* Field case D19. */
static void test_limits(void **state)
{
	char text[32];

	(void)state;
	make_group("g", 100);
	expect_max("max\n", VALUE_MAX, VALUE_MAX);
	expect_max("9223372036854771712\n", VALUE_MAX, VALUE_MAX);
	expect_max("18446744073709551615\n", VALUE_MAX, VALUE_MAX);
	expect_max("18446744073709551616\n", VALUE_ABSENT, VALUE_MAX);
	expect_max("-1\n", VALUE_ABSENT, VALUE_MAX);
	expect_max("", VALUE_ABSENT, VALUE_MAX);
	expect_max(" 123\n", 123, 23);
	expect_max("12x\n", VALUE_ABSENT, VALUE_MAX);
	/* Sixteen times the machine's memory is a limit, one byte more is none. */
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(16 * TOTAL));
	expect_max(text, 16 * TOTAL, 16 * TOTAL - 100);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(16 * TOTAL + 1));
	expect_max(text, VALUE_MAX, VALUE_MAX);
	expect_max("0\n", 0, 0);
}

static void test_memory_total_unknown(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("g", 100);
	put_bytes("g", "memory.max", 1000 * TOTAL);
	assert_int_equal(memcg_sample_read(tree->fd, "g", MEMCG_FULL, 1, 0, &s), MEMCG_OK);
	assert_int_equal(s.max_bytes, 1000 * TOTAL);
	assert_int_equal(
		memcg_sample_read(tree->fd, "g", MEMCG_FULL, 1, VALUE_ABSENT, &s), MEMCG_OK);
	assert_int_equal(s.max_bytes, 1000 * TOTAL);
}

/* Field case D18: over the limit is legal, and nothing ever wraps. */
static void test_saturation(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("g", 249856);
	put("g", "memory.stat", "anon 0\nfile 270336\nkernel 0\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(memcg_slack_bytes(&s), 0);
	put("g", "memory.max", "104857600\n");
	put("g", "memory.current", "105906176\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 0);
	put("g", "memory.current", "18446744073709551615\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_true(s.current_bytes == VALUE_ABSENT && s.margin_bytes == VALUE_ABSENT);
}

/* The margin is the smallest on the way up, memory.high included. */
static void test_margin_of_ancestors(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("a", 900 * MIB);
	make_group("a/b", 500 * MIB);
	make_group("a/b/c", 100 * MIB);
	put_bytes("a", "memory.max", GIB);
	s = read_ok("a/b/c", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 124 * MIB);
	assert_int_equal(s.limit_bytes, GIB);
	assert_true(s.max_bytes == VALUE_MAX); /* the group's own stays its own */
	put_bytes("a/b", "memory.high", 520 * MIB);
	s = read_ok("a/b/c", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 20 * MIB);
	assert_int_equal(s.limit_bytes, 520 * MIB);
	put_bytes("a/b/c", "memory.max", 110 * MIB);
	s = read_ok("a/b/c", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 10 * MIB);
	assert_int_equal(s.limit_bytes, 110 * MIB);
	s = read_ok("a/b", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 20 * MIB);
	/* A level that does not say what it holds is passed over. */
	fake_remove(tree, "a/b/memory.current");
	s = read_ok("a/b/c", MEMCG_FULL, 1);
	assert_int_equal(s.margin_bytes, 10 * MIB);
}

/* Field case D25: 120 unknown keys, no anon_thp. */
static void test_unknown_keys(void **state)
{
	static char text[40 * 1024];
	struct memcg_sample s;
	size_t len = 0;

	(void)state;
	make_group("g", MIB);
	for (int i = 0; i < 120; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"a_key_of_a_kernel_that_is_yet_to_come_with_a_long_name_%d %d\n", i, i);
	snprintf(text + len, sizeof(text) - len,
		"workingset_refault_anon 11\nanon 12\nworkingset_activate_anon 13\n"
		"thp_swpout_fallback 14\nthp_fault_alloc 15\nthp_collapse_alloc 16\n");
	put("g", "memory.stat", text);
	assert_true(strlen(text) > 7000);
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(s.refault_anon, 11);
	assert_int_equal(s.anon, 12);
	assert_int_equal(s.activate_anon, 13);
	assert_int_equal(s.thp_swpout_fallback, 14);
	assert_int_equal(s.thp_fault_alloc, 15);
	assert_int_equal(s.thp_collapse_alloc, 16);
	assert_true(s.anon_thp == VALUE_ABSENT && memcg_thp_share(&s) == -1);
	/* From 32 KiB on memory.stat is as good as absent, and the rest stays. */
	memset(text, '\n', 32 * 1024);
	text[32 * 1024 - 1] = '\0';
	memcpy(text, "anon 12\n", 8);
	put("g", "memory.stat", text);
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(s.anon, 12);
	text[32 * 1024 - 1] = '\n';
	text[32 * 1024] = '\0';
	put("g", "memory.stat", text);
	s = read_ok("g", MEMCG_FULL, 1);
	assert_true(s.anon == VALUE_ABSENT);
	assert_int_equal(s.current_bytes, MIB);
}

/* Field cases C01 and C03: off at boot, not built, switched off for a group,
 * forbidden: four states, and the rest of the sample is there in each. */
static void test_psi_states(void **state)
{
	static const struct {
		enum fault_op op;
		int error;
		bool off;
	} cases[] = {
		{ FAULT_READ, EOPNOTSUPP, true },
		{ FAULT_OPEN, EOPNOTSUPP, true },
		{ FAULT_OPEN, ENOENT, true },
		{ FAULT_OPEN, EACCES, false },
	};
	struct memcg_sample s;

	(void)state;
	make_group("g", MIB);
	for (size_t i = 0; i < 4; i++) {
		fault_reset();
		fault_plan("memory.pressure", cases[i].op, cases[i].error, NULL);
		s = read_ok("g", MEMCG_FULL, 1);
		assert_int_equal(s.psi_errno, cases[i].error);
		assert_int_equal(s.psi_off, cases[i].off);
		assert_true(s.psi.some.total_usec == VALUE_ABSENT);
		assert_int_equal(s.current_bytes, MIB);
		assert_int_equal(s.events.max, 0);
	}
	fault_reset();
	put("g", "memory.pressure", "nonsense\n");
	s = read_ok("g", MEMCG_CHEAP, 1);
	assert_int_equal(s.psi_errno, EINVAL);
	assert_false(s.psi_off);
}

static const char *const all_files[] = { "memory.pressure", "memory.events.local", "memory.events",
	"memory.current", "memory.max", "memory.high", "memory.low", "memory.min",
	"memory.swap.current", "memory.swap.max", "memory.swap.events", "memory.stat", "cpu.stat",
	"outer/memory.max", "outer/memory.high", "outer/memory.current" };
#define N_FILES (sizeof(all_files) / sizeof(all_files[0]))

static void remove_inner(void)
{
	fake_remove(tree, "outer/inner");
}

static void replace_inner(void)
{
	/* The old directory stays under another name, so its inode is not reused. */
	assert_int_equal(renameat(tree->fd, "outer/inner", tree->fd, "outer/old"), 0);
	make_group("outer/inner", 2 * MIB);
}

static void make_nested(void)
{
	make_group("outer", 8 * MIB);
	put_bytes("outer", "memory.max", 16 * MIB);
	make_group("outer/inner", MIB);
}

/* Field case D06: the group goes at any step. */
static void test_vanishing(void **state)
{
	(void)state;
	make_nested();
	for (size_t i = 0; i < N_FILES; i++) {
		struct memcg_sample s;

		for (size_t k = 0; k < 2; k++) {
			/* ENODEV says it, at open and at read. */
			fault_reset();
			fault_plan(all_files[i], k ? FAULT_OPEN : FAULT_READ, ENODEV, NULL);
			assert_int_equal(memcg_sample_read(tree->fd, "outer/inner", MEMCG_FULL, 1,
						 TOTAL, &s),
				MEMCG_GONE);
		}
		for (size_t k = 0; k < 2; k++) {
			/* It is removed, or removed and made again, under our hands. */
			fault_reset();
			fault_plan(all_files[i], FAULT_OPEN, ENOENT,
				k ? remove_inner : replace_inner);
			assert_int_equal(memcg_sample_read(tree->fd, "outer/inner", MEMCG_FULL, 1,
						 TOTAL, &s),
				MEMCG_GONE);
			if (k == 0)
				fake_remove(tree, "outer/old");
		}
		fault_reset();
		make_group("outer/inner", MIB);
	}
	fault_plan("memory.events", FAULT_OPEN, ENODEV, NULL);
	expect_result("outer/inner", MEMCG_GONE);
	fault_reset();
	fake_remove(tree, "outer/inner");
	expect_result("outer/inner", MEMCG_GONE);
}

/* A cheap look at a group that is replaced half-way belongs to the new one, so
 * that no delta spans the two. */
static void test_replaced_while_cheap(void **state)
{
	struct memcg_sample a, b;
	struct memcg_delta d;
	struct stat st;

	(void)state;
	make_nested();
	a = read_ok("outer/inner", MEMCG_CHEAP, 1);
	fault_plan("memory.events", FAULT_OPEN, ENOENT, replace_inner);
	b = read_ok("outer/inner", MEMCG_CHEAP, 2);
	assert_int_equal(fstatat(tree->fd, "outer/inner", &st, 0), 0);
	assert_int_equal(b.id, st.st_ino);
	assert_int_equal(memcg_delta(&a, &b, &d), -ESTALE);
}

/* One file that is missing, refused or odd never loses the sample ... */
static void test_optional_files(void **state)
{
	static const int errors[] = { ENOENT, EACCES, EPERM, EINVAL, EOPNOTSUPP };

	(void)state;
	make_nested();
	for (size_t i = 0; i < N_FILES; i++) {
		for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
			fault_reset();
			fault_plan(all_files[i], FAULT_OPEN, errors[k], NULL);
			read_ok("outer/inner", MEMCG_FULL, 1);
		}
	}
}

/* ... but want of descriptors or memory, or a broken read, does. */
static void test_lost_samples(void **state)
{
	static const int errors[] = { EMFILE, ENFILE, ENOMEM, EIO };
	struct memcg_sample s;

	(void)state;
	make_nested();
	for (size_t i = 0; i < N_FILES; i++) {
		for (size_t k = 0; k < sizeof(errors) / sizeof(errors[0]); k++) {
			fault_reset();
			fault_plan(all_files[i], k == 3 ? FAULT_READ : FAULT_OPEN, errors[k], NULL);
			assert_int_equal(memcg_sample_read(tree->fd, "outer/inner", MEMCG_FULL, 1,
						 TOTAL, &s),
				-errors[k]);
		}
	}
	fault_reset();
	fault_plan("memory.pressure", FAULT_OPEN, EMFILE, NULL);
	expect_result("outer/inner", -EMFILE);
	fault_reset();
	fault_plan("memory.current", FAULT_OPEN, EACCES, NULL);
	fault_plan("memory.events", FAULT_OPEN, EACCES, NULL);
	fault_plan("memory.events.local", FAULT_OPEN, EACCES, NULL);
	expect_result("outer/inner", -EACCES);
}

/* A loaded group of three real kernels, limited from above as well. */
static void test_real_kernels(void **state)
{
	static const char *const kernels[] = { "linux-6.1", "linux-6.12", "linux-7.3" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char path[64];
		struct memcg_sample s;
		int fd;

		snprintf(path, sizeof(path), "%s/sys/fs/cgroup", kernels[i]);
		fd = fixture_dir(path);
		assert_int_equal(memcg_sample_read(fd, "outer/inner", MEMCG_FULL, 1,
					 UINT64_C(1449340) * 1024, &s),
			MEMCG_OK);
		assert_int_equal(s.high_bytes, 48 * MIB);
		assert_int_equal(s.limit_bytes, 48 * MIB);
		assert_true(s.max_bytes == VALUE_MAX && s.swap_max_bytes == VALUE_MAX);
		assert_true(s.margin_bytes <= 48 * MIB - s.current_bytes + MIB);
		assert_true(value_known(s.events.high) && s.events.high > 0);
		assert_true(value_known(s.events_local.high) && s.events_local.high > 0);
		assert_true(value_known(s.psi.some.total_usec) && s.psi.some.total_usec > 0);
		assert_true(s.anon > 40 * MIB && value_known(s.anon));
		assert_true(s.refault_anon > 1000 && value_known(s.refault_anon));
		assert_true(s.pgmajfault > 1000 && value_known(s.pgmajfault));
		assert_true(s.swap_current_bytes > MIB && value_known(s.swap_current_bytes));
		assert_true(s.usage_usec > 0 && s.usage_usec >= s.system_usec);
		assert_true(value_known(s.pgscan) && value_known(s.pgsteal));
		assert_true(value_known(s.thp_fault_alloc) && value_known(s.anon_thp));
		/* memory.stat got this key after 6.1. */
		assert_int_equal(value_known(s.thp_swpout_fallback), i > 0);
		assert_true(memcg_slack_bytes(&s) < MIB);
		/* The root has pressure and memory.stat, yet no memory of its own. */
		assert_int_equal(
			memcg_sample_read(fd, "", MEMCG_FULL, 1, TOTAL, &s), MEMCG_NO_MEMORY);
		close(fd);
	}
}

/* The file that is to blame; one that is not there or empty is not. */
static void test_unclear(void **state)
{
	static const struct {
		const char *file, *text, *cheap, *full;
	} files[] = {
		{"memory.pressure", "gar bage", "memory.pressure", "memory.pressure"},
		{"memory.events", "gar bage", "memory.events", "memory.events"},
		{"memory.current", "12x", "", "memory.current"},
		{"memory.max", "-1", "", "memory.max"},
		{"memory.stat", "gar bage", "", "memory.stat"},
		{"memory.max", "4096", "", ""},
		{"memory.events", "", "", ""},
		{"cgroup.stat", "gar bage", "", ""},
	};
	struct memcg_sample s;
	static char much[64 * 1024];

	(void)state;
	snprintf(much, sizeof(much), "anon 4096\n%0*d\n", (int)sizeof(much) - 20, 7);
	make_group("a", MIB);
	put("a", "memory.stat", much);
	s = read_ok("a", MEMCG_FULL, 1);
	assert_string_equal(s.unclear, "memory.stat");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		make_group("a", MIB);
		put("a", files[i].file, files[i].text);
		s = read_ok("a", MEMCG_CHEAP, 1);
		assert_string_equal(s.unclear ? s.unclear : "", files[i].cheap);
		s = read_ok("a", MEMCG_FULL, 1);
		assert_string_equal(s.unclear ? s.unclear : "", files[i].full);
	}
	make_group("a/b", MIB);
	put("a", "memory.max", "gar bage");
	s = read_ok("a/b", MEMCG_FULL, 1);
	assert_null(s.unclear); /* it is the parent's */
	fake_remove(tree, "a/b/memory.pressure");
	fake_remove(tree, "a/b/memory.max");
	s = read_ok("a/b", MEMCG_FULL, 1);
	assert_null(s.unclear);
	/* Two at once: neither gives a value. */
	put("a/b", "memory.max", "x");
	put("a/b", "memory.high", "y");
	s = read_ok("a/b", MEMCG_FULL, 1);
	assert_string_equal(s.unclear, "memory.max");
	assert_true(s.max_bytes == VALUE_ABSENT && s.high_bytes == VALUE_ABSENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_whole_group),
		TREE_TEST(test_cost),
		TREE_TEST(test_poor_group),
		TREE_TEST(test_no_memory),
		TREE_TEST(test_paths),
		TREE_TEST(test_limits),
		TREE_TEST(test_memory_total_unknown),
		TREE_TEST(test_saturation),
		TREE_TEST(test_margin_of_ancestors),
		TREE_TEST(test_unknown_keys),
		TREE_TEST(test_psi_states),
		TREE_TEST(test_vanishing),
		TREE_TEST(test_replaced_while_cheap),
		TREE_TEST(test_optional_files),
		TREE_TEST(test_lost_samples),
		TREE_TEST(test_unclear),
		TREE_TEST(test_real_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
