/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/parse.c: the texts of /sys, /proc and cgroup2, good and hostile. */
#include "fake_tree.h"

#include <time.h>

#include "parse.h"

#define UNTOUCHED UINT64_C(0x5a5a5a5a5a5a5a5a)

static void expect_u64(const char *text, int result, uint64_t value)
{
	uint64_t v = UNTOUCHED;

	assert_int_equal(parse_u64(text, &v), result);
	assert_true(v == (result < 0 ? UNTOUCHED : value));
}

static void test_u64(void **state)
{
	(void)state;
	expect_u64("0", 0, 0);
	expect_u64(" 123\n", 0, 123);
	expect_u64("\t7 \n", 0, 7);
	expect_u64("0000000000000000000000012", 0, 12);
	expect_u64("18446744073709551615", 0, UINT64_MAX);
	expect_u64("18446744073709551616", -ERANGE, 0);
	expect_u64("99999999999999999999999999", -ERANGE, 0);
	expect_u64("", -EINVAL, 0);
	expect_u64(" \n", -EINVAL, 0);
	expect_u64("-1", -EINVAL, 0);
	expect_u64("+1", -EINVAL, 0);
	expect_u64("12x", -EINVAL, 0);
	expect_u64("1 2", -EINVAL, 0);
	expect_u64("0x10", -EINVAL, 0);
	expect_u64("max", -EINVAL, 0);
}

static void expect_limit(const char *text, int result, uint64_t value)
{
	uint64_t v = UNTOUCHED;

	assert_int_equal(parse_limit(text, &v), result);
	assert_true(v == (result < 0 ? UNTOUCHED : value));
}

/* Field case D19: sentinels of v1 and v2, overflow, garbage. */
static void test_limit(void **state)
{
	(void)state;
	expect_limit("max", 0, VALUE_MAX);
	expect_limit("max\n", 0, VALUE_MAX);
	expect_limit("9223372036854771712", 0, VALUE_MAX);
	expect_limit("18446744073709551615", 0, VALUE_MAX);
	expect_limit("18446744073709551616", -ERANGE, 0);
	expect_limit("-1", -EINVAL, 0);
	expect_limit("", -EINVAL, 0);
	expect_limit(" 123\n", 0, 123);
	expect_limit("12x", -EINVAL, 0);
	expect_limit("maximum", -EINVAL, 0);
	expect_limit("max 1", -EINVAL, 0);
	expect_limit("9223372036854710272", 0, VALUE_MAX); /* 2^63 - 64 KiB */
	expect_limit("9223372036854710271", 0, UINT64_C(9223372036854710271));
	expect_limit("0", 0, 0);
}

static void test_psi(void **state)
{
	struct psi psi = { { 1, 1 }, { 1, 1 } };

	(void)state;
	assert_int_equal(parse_psi("some avg10=12.34 avg60=0.10 avg300=0.00 total=987654\n"
				   "full avg10=0.05 avg60=0.00 avg300=0.00 total=1234\n",
				 &psi),
		0);
	assert_int_equal(psi.some.total_usec, 987654);
	assert_int_equal(psi.some.avg10_centi, 1234);
	assert_int_equal(psi.full.total_usec, 1234);
	assert_int_equal(psi.full.avg10_centi, 5);

	/* One line only, other order of words, no final newline. */
	assert_int_equal(parse_psi("some total=5 new=1 avg10=100.00", &psi), 0);
	assert_int_equal(psi.some.total_usec, 5);
	assert_int_equal(psi.some.avg10_centi, 10000);
	assert_true(psi.full.total_usec == VALUE_ABSENT);
	assert_int_equal(psi.full.avg10_centi, 0);

	/* avg10 is for show; a line counts by its total. */
	assert_int_equal(parse_psi("some avg10=abc total=1\nfull avg10=1.00\n", &psi), 0);
	assert_int_equal(psi.some.avg10_centi, 0);
	assert_true(psi.full.total_usec == VALUE_ABSENT);
}

static void test_psi_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"some\n",
		"some avg10=0.00 avg60=0.00 avg300=0.00\n",
		"some total=\n",
		"some total=-1\n",
		"some total=12x\n",
		"some total=18446744073709551616\n",
		"some total=18446744073709551615\n",
		"something total=1\n",
		"total=1 some\n",
	};
	struct psi psi = { { 77, 77 }, { 77, 77 } };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(parse_psi(bad[i], &psi), -EINVAL);
	assert_int_equal(psi.some.total_usec, 77);
	assert_int_equal(psi.full.avg10_centi, 77);
}

struct events {
	uint64_t low, high, max, oom, oom_kill, oom_group_kill;
};
static const struct flat_key event_keys[] = {
	{ "low", offsetof(struct events, low) },
	{ "high", offsetof(struct events, high) },
	{ "max", offsetof(struct events, max) },
	{ "oom", offsetof(struct events, oom) },
	{ "oom_kill", offsetof(struct events, oom_kill) },
	{ "oom_group_kill", offsetof(struct events, oom_group_kill) },
};

static int parse_events(const char *text, struct events *e)
{
	memset(e, 0x5a, sizeof(*e));
	return parse_flat_keyed(text, event_keys, 6, e);
}

/* Field case D25: new keys, any order, duplicates, long lines. */
static void test_flat_events(void **state)
{
	struct events e;

	(void)state;
	assert_int_equal(parse_events("low 0\nsock_throttled 4\nhigh 2\nmax 1\noom 0\noom_kill 0\n"
				      "oom_group_kill 1\n",
				 &e),
		0);
	assert_int_equal(e.low, 0);
	assert_int_equal(e.high, 2);
	assert_int_equal(e.max, 1);
	assert_int_equal(e.oom, 0);
	assert_int_equal(e.oom_kill, 0);
	assert_int_equal(e.oom_group_kill, 1);

	/* Missing is absent, not 0; order is free; no final newline. */
	assert_int_equal(parse_events("oom_kill 3\nlow 9", &e), 0);
	assert_int_equal(e.oom_kill, 3);
	assert_int_equal(e.low, 9);
	assert_true(e.high == VALUE_ABSENT && e.max == VALUE_ABSENT && e.oom == VALUE_ABSENT);

	/* The last of a duplicate wins and is noticed. */
	assert_int_equal(parse_events("high 1\nhigh 5\n", &e), 1);
	assert_int_equal(e.high, 5);

	/* A prefix is another key. */
	assert_int_equal(parse_events("oo 1\noom_kil 2\noom_killer 3\nlowest 4\n", &e), 0);
	assert_true(e.oom == VALUE_ABSENT && e.oom_kill == VALUE_ABSENT && e.low == VALUE_ABSENT);

	assert_int_equal(parse_events("", &e), 0);
	assert_true(e.low == VALUE_ABSENT);
}

static void test_flat_bad_values(void **state)
{
	static const char *const bad[] = { "-1", "12x", "", "1 2", "18446744073709551616", "max",
		"18446744073709547520" /* a negative count printed as unsigned */, "1kB" };
	struct events e;
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "low 1\nhigh %s\nmax 2\n", bad[i]);
		assert_int_equal(parse_events(text, &e), 1);
		assert_true(e.high == VALUE_ABSENT);
		assert_int_equal(e.low, 1);
		assert_int_equal(e.max, 2);
	}
	/* Garbage behind unknown keys is nobody's business. */
	assert_int_equal(parse_events("what is this\n\n   \n: 5\nlow 3\n", &e), 0);
	assert_int_equal(e.low, 3);
}

static void test_flat_long_line(void **state)
{
	char text[1024];
	struct events e;

	(void)state;
	/* 255 bytes are read, 256 are not. */
	snprintf(text, sizeof(text), "high %0250d\nlow 1\n", 7);
	assert_int_equal(parse_events(text, &e), 0);
	assert_int_equal(e.high, 7);
	snprintf(text, sizeof(text), "high %0251d\nlow 1\n", 7);
	assert_int_equal(parse_events(text, &e), 1);
	assert_true(e.high == VALUE_ABSENT);
	assert_int_equal(e.low, 1);
}

static void test_flat_meminfo(void **state)
{
	struct {
		uint64_t total, anon;
	} m;
	static const struct flat_key keys[] = { { "MemTotal", 0 }, { "Active(anon)", 8 } };

	(void)state;
	assert_int_equal(parse_flat_keyed("MemTotal:       24683652 kB\nActive(anon):  12 kB\n"
					  "HugePages_Total:       0\n",
				 keys, 2, &m),
		0);
	assert_int_equal(m.total, 24683652);
	assert_int_equal(m.anon, 12);
	assert_int_equal(parse_flat_keyed("MemTotal: 5 MB\n", keys, 2, &m), 1);
	assert_true(m.total == VALUE_ABSENT);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* 40,000 unknown keys: milliseconds for a linear parser, and far beyond a second
 * for one that looks back at what it has read. */
static void test_flat_linear(void **state)
{
	size_t size = 2 << 20, len = 0;
	char *text = malloc(size);
	struct events e;
	double t;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < 40000; i++)
		len += (size_t)snprintf(text + len, size - len, "oom_unknown_key_%u %u\n", i, i);
	snprintf(text + len, size - len, "oom_kill 8\n");
	t = seconds();
	assert_int_equal(parse_events(text, &e), 0);
	assert_true(seconds() - t < 1);
	assert_int_equal(e.oom_kill, 8);
	free(text);
}

static void expect_choice(const char *text, const char *value)
{
	struct choice c = { .n = 77 };

	if (value) {
		assert_int_equal(parse_choice(text, &c), 0);
		assert_string_equal(choice_value(&c), value);
	} else {
		assert_int_equal(parse_choice(text, &c), -EINVAL);
		assert_int_equal(c.n, 77);
	}
}

/* Field case B01, its seven texts first. */
static void test_choice(void **state)
{
	char long_word[4097];

	(void)state;
	memset(long_word, 'a', 4096);
	long_word[4096] = '\0';
	expect_choice("always [madvise] never\n", "madvise");
	expect_choice("[always] inherit madvise never", "always");
	expect_choice("always inherit madvise [never] \n", "never");
	expect_choice("always madvise never", NULL);
	expect_choice("[always] [madvise] never", NULL);
	expect_choice("", NULL);
	expect_choice(long_word, NULL);

	expect_choice("always defer defer+madvise [madvise] never\n", "madvise");
	expect_choice("  [never]", "never");
	expect_choice("never [always", NULL);
	expect_choice("never always]", NULL);
	expect_choice("[] never", NULL);
	expect_choice("[ never ]", NULL);
	expect_choice("[[never]]", NULL);
	expect_choice("ne[ver]", NULL);
	expect_choice("[never\001]", NULL);
	expect_choice("[nineteen-characters]", "nineteen-characters");
	expect_choice("[twenty-characters-xx]", NULL);
	expect_choice("[a] b c d e f g h", "a");
	expect_choice("[a] b c d e f g h i", NULL);
}

static void test_choice_lists(void **state)
{
	struct choice c = { 0 };

	(void)state;
	assert_null(choice_value(&c));
	assert_false(choice_lists(&c, "never"));
	assert_int_equal(parse_choice("always [madvise] never\n", &c), 0);
	assert_int_equal(c.n, 3);
	assert_int_equal(c.selected, 1);
	assert_string_equal(c.token[1], "madvise");
	assert_true(choice_lists(&c, "always") && choice_lists(&c, "madvise"));
	assert_true(choice_lists(&c, "never"));
	assert_false(choice_lists(&c, "[madvise]"));
	assert_false(choice_lists(&c, "defer+madvise"));
	assert_false(choice_lists(&c, ""));
}

static void expect_path(const char *text, int result, const char *path)
{
	char buf[256] = "untouched";

	assert_int_equal(parse_proc_cgroup(text, buf, sizeof(buf)), result);
	assert_string_equal(buf, result < 0 ? "untouched" : path);
}

/* Field cases D13 (colons in names) and D24 (many lines on a hybrid host). */
static void test_proc_cgroup(void **state)
{
	static const char v1[] = "12:pids:/user.slice\n11:hugetlb:/\n10:net_cls,net_prio:/\n"
				 "9:perf_event:/\n8:memory:/user.slice\n7:cpuset:/\n6:freezer:/\n";
	static const char v1_rest[] = "5:cpu,cpuacct:/\n4:blkio:/\n3:devices:/user.slice\n2:misc:/\n"
				      "1:name=systemd:/user.slice\n";
	char text[1024], small[8];

	(void)state;
	expect_path("0::/system.slice/kubepods-burstable-pod72e25f20.slice:cri-containerd:d24f9cc\n",
		0, "/system.slice/kubepods-burstable-pod72e25f20.slice:cri-containerd:d24f9cc");
	expect_path("0::/\n", 0, "/");
	expect_path("0::/", 0, "/");
	expect_path("0::/a b/app-gnome-firefox\\x2dw-96379.scope\n", 0,
		"/a b/app-gnome-firefox\\x2dw-96379.scope");
	expect_path("0:", -EINVAL, NULL);
	expect_path("0::", -EINVAL, NULL);
	expect_path("0::relative\n", -EINVAL, NULL);
	expect_path("nonsense\n", -EINVAL, NULL);
	expect_path(":::/\n", -EINVAL, NULL);
	expect_path("", -ENOENT, NULL);

	snprintf(text, sizeof(text), "%s0::/user.slice/user-1000.slice/session-1.scope\n%s", v1,
		v1_rest);
	expect_path(text, 0, "/user.slice/user-1000.slice/session-1.scope");
	snprintf(text, sizeof(text), "%s%s", v1, v1_rest);
	expect_path(text, -ENOENT, NULL);
	/* Hierarchy 0 with controllers, and 10, are not it. */
	expect_path("0:memory:/x\n10::/y\n", -ENOENT, NULL);

	assert_int_equal(parse_proc_cgroup("0::/seven67\n", small, sizeof(small)), -ENAMETOOLONG);
	assert_int_equal(parse_proc_cgroup("0::/seven6\n", small, sizeof(small)), 0);
	assert_string_equal(small, "/seven6");
}

struct mounts {
	unsigned n;
	char point[4][PATH_MAX];
	char type[4][64];
	char options[4][PATH_MAX + 1];
};

static int collect_mount(const char *point, const char *type, const char *options, void *userdata)
{
	struct mounts *m = userdata;

	assert_true(m->n < 4);
	strcpy(m->point[m->n], point);
	strcpy(m->type[m->n], type);
	strcpy(m->options[m->n], options);
	return ++m->n == 4 ? 99 : 0;
}

/* Field case A14: the line of the report, and an octal escape. */
static void test_mountinfo(void **state)
{
	static struct mounts m;

	(void)state;
	m.n = 0;
	assert_int_equal(
		parse_mountinfo(
			"25 1 0:22 / /run rw,nosuid - tmpfs tmpfs rw,size=65288312k,huge=always\n"
			"28 1 0:24 / /mnt/a\\040b\\134c rw shared:3 master:1 - tmpfs t rw,huge=advise\n"
			"26 23 0:23 /sub /sys/fs/cgroup rw,relatime - cgroup2  rw,nsdelegate",
			collect_mount, &m),
		0);
	assert_int_equal(m.n, 3);
	assert_string_equal(m.point[0], "/run");
	assert_string_equal(m.type[0], "tmpfs");
	assert_string_equal(m.options[0], "rw,size=65288312k,huge=always");
	assert_string_equal(m.point[1], "/mnt/a b\\c");
	assert_string_equal(m.options[1], "rw,huge=advise");
	assert_string_equal(m.point[2], "/sys/fs/cgroup");
	assert_string_equal(m.type[2], "cgroup2");
	assert_string_equal(m.options[2], "rw,nsdelegate"); /* the source is empty */
}

static void test_mountinfo_malformed(void **state)
{
	static struct mounts m;
	static char text[3 * PATH_MAX];
	size_t len;

	(void)state;
	m.n = 0;
	assert_int_equal(
		parse_mountinfo("\n1\n1 2 3 4\n1 2 0:3 / /a rw\n1 2 0:3 / /b rw -\n1 2 0:3 / /c rw - x\n"
				"1 2 0:3 / /d rw - x y\n1 2 0:3 / rel rw - x y z\n"
				"1 2 0:3 / /nul\\000 rw - x y z\n1 2 0:3 / /end\\04 rw - x y z\n",
			collect_mount, &m),
		0);
	/* "/d": two words behind the type are source and options or, with an empty
	 * source, options alone; "\04" is no escape and is kept. */
	assert_int_equal(m.n, 2);
	assert_string_equal(m.point[0], "/d");
	assert_string_equal(m.point[1], "/end\\04");

	/* A mount point of PATH_MAX - 1 bytes is taken, one more is not. */
	for (size_t extra = 0; extra < 2; extra++) {
		m.n = 0;
		len = (size_t)snprintf(text, sizeof(text), "1 2 0:3 / /");
		memset(text + len, 'x', PATH_MAX - 2 + extra);
		strcpy(text + len + PATH_MAX - 2 + extra, " rw - tmpfs t rw\n");
		assert_int_equal(parse_mountinfo(text, collect_mount, &m), 0);
		assert_int_equal(m.n, extra ? 0 : 1);
	}

	/* What the callback says ends the walk. */
	m.n = 3;
	assert_int_equal(parse_mountinfo("1 2 0:3 / /a rw - x y z\n1 2 0:3 / /b rw - x y z\n",
				 collect_mount, &m),
		99);
	assert_int_equal(m.n, 4);
}

static void expect_swaps(const char *text, int result, uint64_t size, uint64_t used)
{
	uint64_t s = UNTOUCHED, u = UNTOUCHED;

	assert_int_equal(parse_swaps(text, &s, &u), result);
	assert_true(s == (result < 0 ? UNTOUCHED : size));
	assert_true(u == (result < 0 ? UNTOUCHED : used));
}

#define SWAPS_HEADER "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"

/* Field case C15: no device, then zram, then none again. */
static void test_swaps(void **state)
{
	(void)state;
	expect_swaps("", 0, 0, 0);
	expect_swaps(SWAPS_HEADER, 0, 0, 0);
	expect_swaps(SWAPS_HEADER
		"/dev/zram0                              partition\t4194304\t\t1024\t\t100\n",
		0, 4194304, 1024);
	expect_swaps(SWAPS_HEADER "/dev/zram0 partition 4194304 1024 100\n"
				  "/swap\\040file\\040(deleted) file 1000 1000 -2\n",
		0, 4195304, 2024);
	expect_swaps(SWAPS_HEADER "/dev/zram0 partition 4194304\n", -EINVAL, 0, 0);
	expect_swaps(SWAPS_HEADER "/dev/zram0 partition x 0 1\n", -EINVAL, 0, 0);
	expect_swaps(SWAPS_HEADER "/dev/zram0 partition 1x 0 1\n", -EINVAL, 0, 0);
	expect_swaps(SWAPS_HEADER "a b 18446744073709551616 0 1\n", -ERANGE, 0, 0);
	expect_swaps(
		SWAPS_HEADER "a b 18446744073709551615 0 1\nc d 5 0 1\n", -ERANGE, 0, 0);
	expect_swaps(SWAPS_HEADER "a b 9223372036854775808 0 1\n", -ERANGE, 0, 0);
}

static void test_read_at(void **state)
{
	struct fake_tree *t = *state;
	char buf[8];

	fake_file(t, "d/seven", "1234567");
	fake_file(t, "d/eight", "12345678");
	fake_file(t, "d/empty", "");
	assert_int_equal(parse_read_at(t->fd, "d/seven", buf, sizeof(buf)), 7);
	assert_string_equal(buf, "1234567");
	assert_int_equal(parse_read_at(t->fd, "d/eight", buf, sizeof(buf)), -EFBIG);
	assert_int_equal(parse_read_at(t->fd, "d/empty", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "");
	assert_int_equal(parse_read_at(t->fd, "d/none", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(parse_read_at(t->fd, "d", buf, sizeof(buf)), -EISDIR);
	assert_int_equal(parse_read_at(t->fd, "d/seven/x", buf, sizeof(buf)), -ENOTDIR);
	/* A fifo without a writer must not stop the caller. */
	assert_int_equal(mkfifoat(t->fd, "fifo", 0600), 0);
	assert_int_equal(parse_read_at(t->fd, "fifo", buf, sizeof(buf)), 0);
}

/* The same parsers over texts of three real kernels. */
static void test_real_kernels(void **state)
{
	static const struct {
		const char *dir;
		uint64_t some_usec, swap_kb, used_kb, high;
	} kernels[] = {
		{ "linux-6.1", 1520595, 262140, 11264, 502 },
		{ "linux-6.12", 2195214, 262140, 10496, 4677 },
		{ "linux-7.3", 6655768, 262140, 9900, 10133 },
	};
	char buf[32768], path[64];

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		int fd = fixture_dir(kernels[i].dir);
		uint64_t size, used;
		struct psi psi;
		struct events e;

		assert_true(parse_read_at(fd, "proc/pressure/memory", buf, sizeof(buf)) > 0);
		assert_int_equal(parse_psi(buf, &psi), 0);
		assert_int_equal(psi.some.total_usec, kernels[i].some_usec);
		assert_true(parse_read_at(fd, "proc/swaps", buf, sizeof(buf)) > 0);
		assert_int_equal(parse_swaps(buf, &size, &used), 0);
		assert_int_equal(size, kernels[i].swap_kb);
		assert_int_equal(used, kernels[i].used_kb);
		assert_true(parse_read_at(fd, "sys/fs/cgroup/outer/inner/memory.events", buf,
				    sizeof(buf)) > 0);
		assert_int_equal(parse_events(buf, &e), 0);
		assert_int_equal(e.high, kernels[i].high);
		assert_int_equal(e.oom_group_kill, 0);
		assert_true(parse_read_at(fd, "proc/self/cgroup", buf, sizeof(buf)) > 0);
		assert_int_equal(parse_proc_cgroup(buf, path, sizeof(path)), 0);
		assert_string_equal(path, "/outer/inner");
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_psi),
		cmocka_unit_test(test_psi_refused),
		cmocka_unit_test(test_flat_events),
		cmocka_unit_test(test_flat_bad_values),
		cmocka_unit_test(test_flat_long_line),
		cmocka_unit_test(test_flat_meminfo),
		cmocka_unit_test(test_flat_linear),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_choice_lists),
		cmocka_unit_test(test_proc_cgroup),
		cmocka_unit_test(test_mountinfo),
		cmocka_unit_test(test_mountinfo_malformed),
		cmocka_unit_test(test_swaps),
		cmocka_unit_test_setup_teardown(test_read_at, fake_tree_setup, fake_tree_teardown),
		cmocka_unit_test(test_real_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
