/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory cgroups made of plain files, as the kernel would show them. Included
 * by the tests of lib/memcg.c, with errors planned through fault_io.h.
 */
#ifndef MTHPD_TEST_MEMCG_TREE_H
#define MTHPD_TEST_MEMCG_TREE_H

#include "fake_tree.h"
#include "fault_io.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include "memcg.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TOTAL (16 * GIB)

/* The tree of the running test, for faults that change it. */
static struct fake_tree *tree;

/* Whether the tree passes for the real file system of cgroup2. */
static bool as_cgroup2;

int fstatfs(int fd, struct statfs *fs)
{
	(void)fd;
	memset(fs, 0, sizeof(*fs));
	fs->f_type = as_cgroup2 ? CGROUP2_SUPER_MAGIC : TMPFS_MAGIC;
	return 0;
}

static inline int setup(void **state)
{
	int r = fake_tree_setup(state);

	tree = *state;
	fault_reset();
	as_cgroup2 = false;
	return r;
}

static inline void put(const char *group, const char *file, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	fake_file(tree, path, text);
}

static inline void put_bytes(const char *group, const char *file, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)v);
	put(group, file, text);
}

/* A group as the kernel makes it: every file of the memory controller. */
static inline void make_group(const char *group, uint64_t current)
{
	static const char *const zero[] = { "memory.low", "memory.min", "memory.swap.current" };
	static const char *const max[] = { "memory.max", "memory.high", "memory.swap.max" };
	static const char events[] = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n";

	for (size_t i = 0; i < 3; i++) {
		put(group, zero[i], "0\n");
		put(group, max[i], "max\n");
	}
	put_bytes(group, "memory.current", current);
	put(group, "memory.events", events);
	put(group, "memory.events.local", events);
	put(group, "memory.swap.events", "high 0\nmax 0\nfail 0\n");
	put(group, "memory.pressure",
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=100\n"
		"full avg10=0.00 avg60=0.00 avg300=0.00 total=50\n");
	put(group, "memory.stat", "anon 4096\nfile 0\nkernel 0\npgfault 7\n");
	put(group, "cpu.stat", "usage_usec 30\nuser_usec 10\nsystem_usec 20\n");
}

static inline struct memcg_sample read_ok(const char *path, enum memcg_depth depth, uint64_t now)
{
	struct memcg_sample s;

	assert_int_equal(memcg_sample_read(tree->fd, path, depth, now, TOTAL, &s), MEMCG_OK);
	return s;
}

static inline struct memcg_delta delta_ok(
	const struct memcg_sample *a, const struct memcg_sample *b)
{
	struct memcg_delta d;

	assert_int_equal(memcg_delta(a, b, &d), 0);
	return d;
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, fake_tree_teardown)

#endif
