/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/hostrules.c: what no single group can see. Windows of one second. */
#include "loop_world.h"

struct world {
	struct plan plan;
	struct hostrules rules;
	struct host_sample host;
	struct thp_stats stats[THP_SIZES_MAX];
	struct hostrules_input in;
};

static void world_start(struct world *w)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);

	memset(w, 0, sizeof(*w));
	w->plan = plan_of(&t, "");
	hostrules_init(&w->rules);
	w->host.now_usec = 100 * SEC;
	w->host.mem_total_kb = 16 * MIB;
	w->host.mem_available_kb = 8 * MIB;
	w->host.swap_total_kb = w->host.swaps_size_kb = 4 * MIB;
	w->host.swap_free_kb = 3 * MIB;
	w->host.swaps_used_kb = MIB;
	w->in = (struct hostrules_input){ .host = &w->host, .stats = w->stats };
	hostrules_step(&w->rules, &w->plan, &w->in);
}

static void tick(struct world *w)
{
	w->host.now_usec += SEC;
	hostrules_step(&w->rules, &w->plan, &w->in);
}

static struct thp_stats *stats(struct world *w, uint64_t size_kb)
{
	return &w->stats[plan_find(&w->plan, size_kb) - w->plan.sizes];
}

static const struct hostrules_size *rule(const struct world *w, uint64_t size_kb)
{
	return &w->rules.size[plan_find(&w->plan, size_kb) - w->plan.sizes];
}

static bool capped(const struct world *w, uint64_t size_kb)
{
	const struct hostrules_size *z = rule(w, size_kb);

	return z->reason != REASON_NONE && w->host.now_usec < z->until_usec && z->cap < PLAN_RAISED;
}

static void expect_no_cap_but(const struct world *w, uint64_t size_kb)
{
	for (unsigned i = 0; i < w->plan.n_sizes; i++)
		assert_int_equal(capped(w, w->plan.sizes[i].size_kb),
			w->plan.sizes[i].size_kb == size_kb);
}

/* ---- A02 --------------------------------------------------------------- */

static void compaction_window(struct world *w)
{
	w->host.compact_stall += 500;
	w->host.compact_fail += 450;
	w->host.thp_fault_fallback += 300;
	tick(w);
}

static void test_a02_fragmentation(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	compaction_window(&w);
	compaction_window(&w);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	compaction_window(&w);
	assert_true(hostrules_defrag_low(&w.rules, w.host.now_usec));
	assert_float_equal(w.rules.stall_per_sec, 500, 0.1);
	/* Sizes stay: memory is not short. */
	expect_no_cap_but(&w, 0);
	/* It lets go by itself, and says when it has to be looked at. */
	assert_int_equal(hostrules_wake_usec(&w.rules, &w.plan, w.host.now_usec),
		w.rules.defrag_until_usec);
	for (int i = 0; i < 61; i++)
		tick(&w);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	assert_int_equal(hostrules_wake_usec(&w.rules, &w.plan, w.host.now_usec), VALUE_ABSENT);
}

static void test_a02_shortage_is_something_else(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	w.host.mem_available_kb = w.host.mem_total_kb / 20;
	for (int i = 0; i < 10; i++)
		compaction_window(&w);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	/* Compaction that succeeds is no trouble either. */
	world_start(&w);
	for (int i = 0; i < 10; i++) {
		w.host.compact_stall += 500;
		w.host.compact_fail += 10;
		w.host.thp_fault_fallback += 300;
		tick(&w);
	}
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	/* A kernel without these counters. */
	world_start(&w);
	w.host.compact_stall = w.host.compact_fail = w.host.thp_fault_fallback = VALUE_ABSENT;
	for (int i = 0; i < 10; i++)
		tick(&w);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
}

/* ---- A10 --------------------------------------------------------------- */

static void a10(struct world *w, bool torn)
{
	static const uint64_t alloc[] = { 10000, 12500, 15000, 17500, 20000 };
	static const uint64_t split[] = { 9000, 11375, 13750, 16125, 18500 };
	static const uint64_t mapped[] = { 9000, 11250, 13500, 15750, 18000 };
	struct thp_stats *z;

	world_start(w);
	z = stats(w, 2048);
	for (int i = 0; i < 5; i++) {
		z->anon_fault_alloc = alloc[i];
		z->split_deferred = torn ? split[i] : 9000;
		z->nr_anon_partially_mapped = torn ? mapped[i] : 9000;
		if (!i)
			hostrules_rebase(&w->rules);
		tick(w);
	}
}

static void test_a10_split_churn(void **state)
{
	struct world w;

	(void)state;
	a10(&w, true);
	assert_int_equal(rule(&w, 2048)->reason, REASON_SPLIT_CHURN);
	/* madvise is preferred to always, not never. */
	assert_int_equal(rule(&w, 2048)->cap, PLAN_ASKED);
	expect_no_cap_but(&w, 2048);
	a10(&w, false);
	expect_no_cap_but(&w, 0);
	assert_int_equal(rule(&w, 2048)->reason, REASON_NONE);
}

/* ---- A24 --------------------------------------------------------------- */

static void attempts(struct world *w, uint64_t size_kb, uint64_t alloc, uint64_t fallback)
{
	stats(w, size_kb)->anon_fault_alloc += alloc;
	stats(w, size_kb)->anon_fault_fallback += fallback;
}

static void test_a24_fallback_dominates(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 6; i++) {
		expect_no_cap_but(&w, 0);
		attempts(&w, 64, 20, 980);
		attempts(&w, 2048, 900, 100);
		tick(&w);
	}
	assert_int_equal(rule(&w, 64)->reason, REASON_FALLBACK_DOMINATED);
	assert_int_equal(rule(&w, 64)->cap, PLAN_OFF);
	expect_no_cap_but(&w, 64);
	/* 0/0 windows change nothing while the hold lasts. */
	for (int i = 0; i < 30; i++) {
		tick(&w);
		expect_no_cap_but(&w, 64);
	}
}

static void test_a24_no_attempts_is_no_data(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 20; i++)
		tick(&w);
	expect_no_cap_but(&w, 0);
	/* Between bad windows it is neither 0 % nor 100 %. */
	for (int i = 0; i < 6; i++) {
		expect_no_cap_but(&w, 0);
		attempts(&w, 64, 20, 980);
		tick(&w);
		if (i < 5) {
			tick(&w);
			tick(&w);
		}
	}
	expect_no_cap_but(&w, 64);
	/* One good window starts the count anew. */
	world_start(&w);
	for (int i = 0; i < 15; i++) {
		if (i % 5 == 4)
			attempts(&w, 64, 500, 500);
		else
			attempts(&w, 64, 20, 980);
		tick(&w);
	}
	expect_no_cap_but(&w, 0);
}

/* Tried again later, with back-off. */
static void test_a24_back_off(void **state)
{
	uint64_t last = 0;
	struct world w;

	(void)state;
	world_start(&w);
	for (int round = 0; round < 4; round++) {
		uint64_t held;

		for (int i = 0; i < 6; i++) {
			attempts(&w, 64, 20, 980);
			tick(&w);
		}
		assert_true(capped(&w, 64));
		held = rule(&w, 64)->until_usec - w.host.now_usec;
		assert_true(round ? held == 2 * last : held > 0);
		last = held;
		for (int i = 0; i < 4000 && capped(&w, 64); i++)
			tick(&w);
		assert_false(capped(&w, 64));
		assert_true(rule(&w, 64)->cap > PLAN_BASE);
	}
	/* Never for ever. */
	for (int round = 0; round < 12; round++) {
		for (int i = 0; i < 6; i++) {
			attempts(&w, 64, 20, 980);
			tick(&w);
		}
		assert_true(rule(&w, 64)->until_usec - w.host.now_usec <= 3600 * SEC + SEC);
		w.host.now_usec = rule(&w, 64)->until_usec;
		tick(&w);
	}
}

/* A charge that fails says that a group is full, not that memory is torn. */
static void test_a24_charges_do_not_count(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 12; i++) {
		attempts(&w, 64, 20, 980);
		stats(&w, 64)->anon_fault_fallback_charge += 980;
		tick(&w);
	}
	expect_no_cap_but(&w, 0);
}

/* Nor do attempts that our kernel's gate does not even make. */
static void test_margin_does_not_count(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 12; i++) {
		attempts(&w, 64, 20, 980);
		stats(&w, 64)->anon_fault_fallback_margin += 980;
		tick(&w);
	}
	expect_no_cap_but(&w, 0);
}

static void test_absent_statistics(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	memset(w.stats, 0xff, sizeof(w.stats));
	for (int i = 0; i < 12; i++)
		tick(&w);
	expect_no_cap_but(&w, 0);
	/* They appear: the first look is no window of 10^9 allocations. */
	memset(w.stats, 0, sizeof(w.stats));
	attempts(&w, 64, 0, UINT64_C(1000000000));
	tick(&w);
	assert_int_equal(rule(&w, 64)->fallback_windows, 0);
}

/* ---- A26: four trees --------------------------------------------------- */

static void test_a26_swap(void **state)
{
	struct world w;

	(void)state;
	/* 1: no swap at all. */
	world_start(&w);
	w.host.swaps_size_kb = w.host.swaps_used_kb = w.host.swap_total_kb = w.host.swap_free_kb = 0;
	for (int i = 0; i < 6; i++) {
		stats(&w, 64)->swpout_fallback += 1000;
		tick(&w);
	}
	assert_string_equal(swap_state_to_string(w.rules.swap), "none");
	expect_no_cap_but(&w, 0);
	/* 2: full. */
	world_start(&w);
	w.host.swaps_used_kb = w.host.swaps_size_kb;
	for (int i = 0; i < 6; i++) {
		stats(&w, 64)->swpout_fallback += 1000;
		tick(&w);
	}
	assert_string_equal(swap_state_to_string(w.rules.swap), "full");
	expect_no_cap_but(&w, 0);
	/* 3: room, but no contiguous slots. */
	world_start(&w);
	w.host.swaps_used_kb = w.host.swaps_size_kb * 2 / 5;
	for (int i = 0; i < 6; i++) {
		stats(&w, 64)->swpout_fallback += 1000;
		tick(&w);
	}
	assert_string_equal(swap_state_to_string(w.rules.swap), "fragmented");
	assert_int_equal(rule(&w, 64)->reason, REASON_SWAP_FRAGMENTED);
	expect_no_cap_but(&w, 64);
	/* 4: memory.swap.max=0 of a group: nothing is swapped, the host has room. */
	world_start(&w);
	for (int i = 0; i < 6; i++)
		tick(&w);
	assert_string_equal(swap_state_to_string(w.rules.swap), "room");
	expect_no_cap_but(&w, 0);
}

/* C15: swap that comes and goes later is noticed. */
static void test_c15_swap_comes_and_goes(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	w.host.swaps_size_kb = w.host.swaps_used_kb = 0;
	for (int i = 0; i < 10; i++)
		tick(&w);
	assert_int_equal(w.rules.swap, SWAP_NONE);
	w.host.swaps_size_kb = 4 * MIB;
	tick(&w);
	assert_int_equal(w.rules.swap, SWAP_ROOM);
	w.host.swaps_size_kb = 0;
	tick(&w);
	assert_int_equal(w.rules.swap, SWAP_NONE);
	/* /proc/swaps cannot be read: meminfo says it as well. */
	w.host.swaps_size_kb = w.host.swaps_used_kb = VALUE_ABSENT;
	tick(&w);
	assert_int_equal(w.rules.swap, SWAP_ROOM);
	w.host.swap_total_kb = VALUE_ABSENT;
	tick(&w);
	assert_int_equal(w.rules.swap, SWAP_UNKNOWN);
}

/* C19: a fill level alone is never a trigger. */
static void test_c19_swap_used(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	w.host.swaps_size_kb = w.host.swaps_used_kb = VALUE_ABSENT;
	w.host.swap_total_kb = 1048576;
	w.host.swap_free_kb = 40000;
	for (int i = 0; i < 20; i++)
		tick(&w);
	expect_no_cap_but(&w, 0);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	assert_false(hostrules_slow_khugepaged(&w.rules, w.host.now_usec));
	assert_true(w.rules.swap == SWAP_ROOM || w.rules.swap == SWAP_FULL);
	w.host.swap_total_kb = w.host.swap_free_kb = 0;
	tick(&w);
	assert_int_equal(w.rules.swap, SWAP_NONE);
}

/* ---- A28 --------------------------------------------------------------- */

static void test_a28_runaway(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 3; i++) {
		assert_false(hostrules_slow_khugepaged(&w.rules, w.host.now_usec));
		w.in.full_scans += 50;
		tick(&w);
	}
	assert_true(hostrules_slow_khugepaged(&w.rules, w.host.now_usec));
	expect_no_cap_but(&w, 0);
	for (int i = 0; i < 61; i++)
		tick(&w);
	assert_false(hostrules_slow_khugepaged(&w.rules, w.host.now_usec));
	/* Scans that find something are work. */
	world_start(&w);
	for (int i = 0; i < 10; i++) {
		w.in.full_scans += 50;
		w.in.pages_collapsed += 1;
		tick(&w);
	}
	assert_false(hostrules_slow_khugepaged(&w.rules, w.host.now_usec));
}

/* After a pause one difference would span it. */
static void test_rebase(void **state)
{
	struct world w;

	(void)state;
	world_start(&w);
	for (int i = 0; i < 2; i++)
		compaction_window(&w);
	hostrules_rebase(&w.rules);
	w.host.thp_collapse_alloc += 100;
	compaction_window(&w);
	assert_int_equal(w.rules.d_collapse, 0);
	for (int i = 0; i < 2; i++)
		compaction_window(&w);
	assert_false(hostrules_defrag_low(&w.rules, w.host.now_usec));
	compaction_window(&w);
	assert_true(hostrules_defrag_low(&w.rules, w.host.now_usec));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a02_fragmentation),
		cmocka_unit_test(test_a02_shortage_is_something_else),
		cmocka_unit_test(test_a10_split_churn),
		cmocka_unit_test(test_a24_fallback_dominates),
		cmocka_unit_test(test_a24_no_attempts_is_no_data),
		cmocka_unit_test(test_a24_back_off),
		cmocka_unit_test(test_a24_charges_do_not_count),
		cmocka_unit_test(test_margin_does_not_count),
		cmocka_unit_test(test_absent_statistics),
		cmocka_unit_test(test_a26_swap),
		cmocka_unit_test(test_c15_swap_comes_and_goes),
		cmocka_unit_test(test_c19_swap_used),
		cmocka_unit_test(test_a28_runaway),
		cmocka_unit_test(test_rebase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
