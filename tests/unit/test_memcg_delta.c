/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/memcg.c: what is derived from one sample, and the change between two. */
#include "memcg_tree.h"

/* Field case A05: nearly all of anon is THP, close to the limit. */
static void test_thp_share(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("coordination", 2100000000);
	put("coordination", "memory.max", "2147483648\n");
	put("coordination", "memory.stat",
		"anon_thp 1900000000\nslab 5\nfile 78925824\nanon 2008334336\n");
	s = read_ok("coordination", MEMCG_FULL, 1);
	assert_true(memcg_thp_share(&s) > 0.946 && memcg_thp_share(&s) < 0.947);
	assert_int_equal(s.margin_bytes, 47483648); /* 45.3 MiB */

	s.anon_thp = VALUE_ABSENT;
	assert_true(memcg_thp_share(&s) == -1);
	s.anon = s.anon_thp = 0;
	assert_true(memcg_thp_share(&s) == 0);
	s.anon_thp = 1; /* read at different moments */
	assert_true(memcg_thp_share(&s) == 1);
}

/* Field case A06: the charge that no list explains. */
static void test_slack(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("g", 2556129280);
	put("g", "memory.stat",
		"anon 218734592\nfile 0\nkernel 9000000\ninactive_anon 2554662912\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(memcg_slack_bytes(&s), 2328394688);
	assert_int_equal(s.inactive_anon, 2554662912);
	s.kernel = VALUE_ABSENT;
	assert_true(memcg_slack_bytes(&s) == VALUE_ABSENT);
}

static void test_margin_with_cache(void **state)
{
	struct memcg_sample s;

	(void)state;
	make_group("g", 90 * MIB);
	put_bytes("g", "memory.max", 100 * MIB);
	put("g", "memory.stat",
		"inactive_file 41943040\nfile_dirty 10485760\nfile_writeback 5242880\n");
	s = read_ok("g", MEMCG_FULL, 1);
	assert_int_equal(memcg_margin_with_cache(&s), (10 + 40 - 10 - 5) * MIB);
	s.file_dirty = 50 * MIB;
	assert_int_equal(memcg_margin_with_cache(&s), 10 * MIB);
	s.file_dirty = s.file_writeback = VALUE_ABSENT;
	assert_int_equal(memcg_margin_with_cache(&s), 50 * MIB);
	s.inactive_file = VALUE_ABSENT;
	assert_int_equal(memcg_margin_with_cache(&s), 10 * MIB);
}

static void test_delta(void **state)
{
	struct memcg_sample a, b;
	struct memcg_delta d;

	(void)state;
	make_group("g", 10 * MIB);
	a = read_ok("g", MEMCG_FULL, 1000000);
	put("g", "memory.pressure", "some avg10=0.00 total=60100\nfull avg10=0.00 total=30050\n");
	put("g", "memory.current", "5242880\n");
	put("g", "memory.swap.current", "4096\n");
	put("g", "memory.swap.events", "high 0\nmax 2\nfail 5\n");
	put("g", "memory.events.local", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 1\n");
	put("g", "memory.stat", "anon 8192\npgfault 107\npgmajfault 9\n");
	put("g", "cpu.stat", "usage_usec 130\nuser_usec 20\nsystem_usec 110\n");
	b = read_ok("g", MEMCG_FULL, 2000000);
	d = delta_ok(&a, &b);
	assert_int_equal(d.dt_usec, 1000000);
	assert_true(d.some > 0.0599 && d.some < 0.0601); /* field case A29: 60 ms in 1 s */
	assert_true(d.full > 0.0299 && d.full < 0.0301);
	assert_int_equal(d.d_high, 3);
	assert_int_equal(d.d_max, 4);
	assert_int_equal(d.d_oom, 1);
	assert_int_equal(d.d_oom_kill, 1);
	assert_int_equal(d.d_oom_victim, 1);
	assert_int_equal(d.d_pgfault, 100);
	assert_int_equal(d.d_pgmajfault, 0); /* absent before */
	assert_int_equal(d.d_swap_fail, 7);
	assert_int_equal(d.d_usage_usec, 100);
	assert_int_equal(d.d_user_usec, 10);
	assert_int_equal(d.d_system_usec, 90);
	assert_int_equal(d.d_current_bytes, -5 * (int64_t)MIB);
	assert_int_equal(d.d_anon_bytes, 4096);
	assert_int_equal(d.d_anon_thp_bytes, 0);
	assert_int_equal(d.d_swap_bytes, 4096);
	assert_int_equal(d.anomalies, 0);
}

/* Every counter of memory.stat reaches its own field. */
static void test_delta_stat(void **state)
{
	struct memcg_sample a, b;
	struct memcg_delta d;

	(void)state;
	make_group("g", MIB);
	put("g", "memory.stat",
		"pgfault 0\npgmajfault 0\nworkingset_refault_anon 0\nworkingset_refault_file 0\n"
		"pgscan 0\npgsteal 0\nthp_fault_alloc 0\nthp_collapse_alloc 0\n"
		"thp_swpout_fallback 0\nanon_thp 0\nshmem_thp 0\nswapcached 0\n");
	a = read_ok("g", MEMCG_FULL, 1);
	put("g", "memory.stat",
		"pgfault 1\npgmajfault 2\nworkingset_refault_anon 3\nworkingset_refault_file 4\n"
		"pgscan 5\npgsteal 6\nthp_fault_alloc 7\nthp_collapse_alloc 8\n"
		"thp_swpout_fallback 9\nanon_thp 10\nshmem_thp 11\nswapcached 12\n");
	b = read_ok("g", MEMCG_FULL, 2);
	d = delta_ok(&a, &b);
	assert_int_equal(d.d_pgfault, 1);
	assert_int_equal(d.d_pgmajfault, 2);
	assert_int_equal(d.d_refault_anon, 3);
	assert_int_equal(d.d_refault_file, 4);
	assert_int_equal(d.d_pgscan, 5);
	assert_int_equal(d.d_pgsteal, 6);
	assert_int_equal(d.d_thp_fault_alloc, 7);
	assert_int_equal(d.d_thp_collapse_alloc, 8);
	assert_int_equal(d.d_swpout_fallback, 9);
	assert_int_equal(d.d_anon_thp_bytes, 10);
	assert_int_equal(b.shmem_thp, 11);
	assert_int_equal(b.swapcached, 12);
}

/* Field case D21: a new group under the old path, and a counter that falls. */
static void test_backwards(void **state)
{
	struct memcg_sample a, b, c;
	struct memcg_delta d;

	(void)state;
	make_group("g", MIB);
	put("g", "memory.events.local", "high 0\nmax 500\noom 0\noom_kill 0\n");
	a = read_ok("g", MEMCG_FULL, 1000000);
	put("g", "memory.events.local", "high 0\nmax 3\noom 0\noom_kill 0\n");
	b = read_ok("g", MEMCG_FULL, 2000000);
	d = delta_ok(&a, &b);
	assert_int_equal(d.d_max, 0);
	assert_int_equal(d.anomalies, 1);
	put("g", "memory.events.local", "high 0\nmax 8\noom 0\noom_kill 0\n");
	c = read_ok("g", MEMCG_FULL, 3000000);
	d = delta_ok(&b, &c);
	assert_int_equal(d.d_max, 5);
	assert_int_equal(d.anomalies, 0);

	assert_int_equal(renameat(tree->fd, "g", tree->fd, "old"), 0);
	make_group("g", MIB);
	put("g", "memory.events.local", "high 0\nmax 3\noom 0\noom_kill 0\n");
	b = read_ok("g", MEMCG_FULL, 4000000);
	memset(&d, 0x5a, sizeof(d));
	assert_int_equal(memcg_delta(&c, &b, &d), -ESTALE);
	assert_int_equal(d.anomalies, 0x5a5a5a5a);
	put("g", "memory.events.local", "high 0\nmax 4\noom 0\noom_kill 0\n");
	c = read_ok("g", MEMCG_FULL, 5000000);
	d = delta_ok(&b, &c);
	assert_int_equal(d.d_max, 1);

	/* Time that stands or goes back is no interval. */
	assert_int_equal(memcg_delta(&c, &c, &d), -ESTALE);
	assert_int_equal(memcg_delta(&c, &b, &d), -ESTALE);
}

static void test_stall_share(void **state)
{
	struct memcg_sample a, b;
	struct memcg_delta d;

	(void)state;
	make_group("g", MIB);
	a = read_ok("g", MEMCG_CHEAP, 1000);
	put("g", "memory.pressure", "some total=999999\n");
	b = read_ok("g", MEMCG_CHEAP, 2000);
	d = delta_ok(&a, &b);
	assert_true(d.some == 1); /* never more than all of the time */
	assert_true(d.full == -1); /* the line went away */
	put("g", "memory.pressure", "some total=99\nfull total=50\n");
	b = read_ok("g", MEMCG_CHEAP, 2000);
	d = delta_ok(&a, &b);
	assert_true(d.some == 0 && d.full == 0);
	assert_int_equal(d.anomalies, 1);
	fake_remove(tree, "g/memory.pressure");
	b = read_ok("g", MEMCG_CHEAP, 2000);
	d = delta_ok(&a, &b);
	assert_true(d.some == -1 && d.full == -1);
}

/* Field case D11: whose limit, whose victim; three kills, not six. */
static void test_local_events(void **state)
{
	struct memcg_sample pod[2], ctr[2];
	struct memcg_delta dp, dc;

	(void)state;
	make_group("pod", MIB);
	make_group("pod/ctr", MIB);
	pod[0] = read_ok("pod", MEMCG_FULL, 1);
	ctr[0] = read_ok("pod/ctr", MEMCG_FULL, 1);
	put("pod", "memory.events", "high 0\nmax 9\noom 3\noom_kill 3\n");
	put("pod", "memory.events.local", "high 0\nmax 9\noom 3\noom_kill 0\n");
	put("pod/ctr", "memory.events", "high 0\nmax 0\noom 0\noom_kill 3\n");
	put("pod/ctr", "memory.events.local", "high 0\nmax 0\noom 0\noom_kill 3\n");
	pod[1] = read_ok("pod", MEMCG_FULL, 2);
	ctr[1] = read_ok("pod/ctr", MEMCG_FULL, 2);
	dp = delta_ok(&pod[0], &pod[1]);
	dc = delta_ok(&ctr[0], &ctr[1]);
	assert_int_equal(dp.d_oom, 3);
	assert_int_equal(dp.d_oom_victim, 0);
	assert_int_equal(dc.d_oom, 0);
	assert_int_equal(dc.d_oom_victim, 3);
	assert_int_equal(dp.d_oom_kill + dc.d_oom_kill, 3);
	assert_int_equal(dp.d_max, 9);
	assert_int_equal(dc.d_max, 0);
}

/* A kernel without memory.events.local, and cheap looks beside full ones. */
static void test_events_fallback(void **state)
{
	struct memcg_sample a, b;
	struct memcg_delta d;

	(void)state;
	make_group("g", MIB);
	a = read_ok("g", MEMCG_CHEAP, 1);
	put("g", "memory.events", "high 1\nmax 7\noom 2\noom_kill 2\n");
	put("g", "memory.events.local", "high 1\nmax 5\noom 0\noom_kill 1\n");
	b = read_ok("g", MEMCG_FULL, 2);
	d = delta_ok(&a, &b);
	assert_int_equal(d.d_max, 7); /* a cheap look has no local ones */
	assert_int_equal(d.d_oom_victim, 0);

	fake_remove(tree, "g/memory.events.local");
	a = read_ok("g", MEMCG_FULL, 3);
	assert_true(a.events_local.max == VALUE_ABSENT);
	assert_int_equal(a.events.max, 7);
	put("g", "memory.events", "high 1\nmax 17\noom 2\noom_kill 4\n");
	b = read_ok("g", MEMCG_FULL, 4);
	d = delta_ok(&a, &b);
	assert_int_equal(d.d_max, 10);
	assert_int_equal(d.d_oom_kill, 2);
	assert_int_equal(d.d_oom_victim, 0); /* nobody says where they lived */

	/* Local on one side only: the hierarchical ones, which both have. */
	a = b;
	put("g", "memory.events", "high 1\nmax 20\noom 2\noom_kill 4\n");
	put("g", "memory.events.local", "high 1\nmax 99\noom 0\noom_kill 1\n");
	b = read_ok("g", MEMCG_FULL, 5);
	d = delta_ok(&a, &b);
	assert_int_equal(d.d_max, 3);
	assert_int_equal(d.anomalies, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_thp_share),
		TREE_TEST(test_slack),
		TREE_TEST(test_margin_with_cache),
		TREE_TEST(test_delta),
		TREE_TEST(test_delta_stat),
		TREE_TEST(test_backwards),
		TREE_TEST(test_stall_share),
		TREE_TEST(test_local_events),
		TREE_TEST(test_events_fallback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
