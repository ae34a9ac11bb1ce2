/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/loop.c: samples in, values of files out; the rate of change; reload. */
#include "loop_rig.h"

/* ---- field cases ------------------------------------------------------- */

/* B09: a thousand quiet cycles write nothing; nor do the first ones. */
static void test_b09_steady(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	for (int i = 0; i < 4; i++)
		lrig_add(&r, "g", 256 * MIB);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(lrig_tick(&r), 0);
	assert_int_equal(r.loop->decisions, 0);
	assert_int_equal(loop_wake_usec(r.loop), VALUE_ABSENT);
	lrig_stop(&r);
}

/* A01: exactly one write, 0 to max_ptes_none, and none to any `enabled`. */
static void test_a01_khugepaged_bloat(void **state)
{
	static const uint64_t current[] = { 700, 758, 816, 874, 932, 990 };
	static const uint64_t anon[] = { 690, 748, 806, 864, 922, 980 };
	static const uint64_t thp[] = { 200, 336, 472, 608, 744, 880 };
	struct thp_tree t = kernel_default();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "go.service", 1073741824);
	for (int i = 0; i < 6; i++) {
		sample_use(s, current[i] * MIB);
		s->anon = anon[i] * MIB;
		s->anon_thp = thp[i] * MIB;
		sample_stall(s, 0.012 * i, 0);
		r.host.thp_collapse_alloc += 40;
		lrig_tick(&r);
	}
	assert_int_equal(r.writes, 1);
	assert_string_equal(lrig_value(&r, "khugepaged/max_ptes_none"), "0");
	assert_int_equal(
		loop_want_for(r.loop, "khugepaged/max_ptes_none")->reason, REASON_KHUGEPAGED_BLOAT);
	assert_ptr_equal(loop_want_for(r.loop, "khugepaged/max_ptes_none")->cause, r.group[0]);
	lrig_stop(&r);
}

/* A02: stalls on compaction with much memory free: defrag, no size. */
static void test_a02_fragmentation(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "db.service", GIB);
	for (int i = 0; i < 20; i++) {
		sample_use(s, GIB / 5);
		sample_stall(s, 0.18, 0.02);
		r.host.compact_stall += 500;
		r.host.compact_fail += 450;
		r.host.thp_fault_fallback += 300;
		lrig_tick(&r);
	}
	assert_int_equal(r.writes, 1);
	assert_string_equal(lrig_value(&r, "defrag"), "never");
	assert_int_equal(loop_want_for(r.loop, "defrag")->reason, REASON_FRAGMENTATION);
	for (int i = 0; i < 70; i++)
		lrig_tick(&r);
	assert_string_equal(lrig_value(&r, "defrag"), "madvise");
	lrig_stop(&r);
}

/* A08: only the 2 MiB switch is written. */
static void test_a08_tiny_limit(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	tree_size(&t, 64, SIZE_ALWAYS);
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "pod/ctr", 15728640);
	sample_use(s, 15623782);
	lrig_tick(&r);
	s->events.oom_kill = 1;
	lrig_tick(&r);
	assert_string_equal(size_value(&r, 2048), "never");
	assert_string_equal(size_value(&r, 64), "always");
	for (unsigned i = 0; i < r.n_stands; i++)
		if (r.stands[i].is_size && strcmp(r.stands[i].path, "hugepages-2048kB/enabled") != 0)
			assert_string_equal(r.stands[i].value,
				strcmp(r.stands[i].path, "hugepages-64kB/enabled") ? "never" : "always");
	lrig_stop(&r);
}

/* A11: the 512 MiB switch goes, and numbers stay within this kernel's range. */
static void test_a11_large_pmd(void **state)
{
	struct thp_tree t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "tikv", UINT64_C(17179869184));
	sample_use(s, UINT64_C(16900000000));
	for (int i = 0; i < 5; i++)
		lrig_tick(&r);
	assert_string_equal(size_value(&r, 524288), "never");
	assert_in_range(strtoul(lrig_value(&r, "khugepaged/max_ptes_none"), NULL, 10), 0, 8191);
	lrig_stop(&r);
}

/* A18: 409 at start: no write; 0 under pressure; 409 afterwards. */
static void test_a18_intermediate_baseline(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	t.max_ptes_none = 409;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	for (int i = 0; i < 10; i++)
		assert_int_equal(lrig_tick(&r), 0);
	for (int i = 0; i < 5; i++) {
		sample_thrash(s);
		lrig_tick(&r);
	}
	assert_string_equal(lrig_value(&r, "khugepaged/max_ptes_none"), "0");
	for (int i = 0; i < 300; i++) {
		sample_quiet(s);
		lrig_tick(&r);
		assert_true(!strcmp(lrig_value(&r, "khugepaged/max_ptes_none"), "0") ||
			    !strcmp(lrig_value(&r, "khugepaged/max_ptes_none"), "409"));
	}
	assert_string_equal(lrig_value(&r, "khugepaged/max_ptes_none"), "409");
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

/* A26, fourth tree: a group may not swap (memory.swap.max=0). Its folios are
 * split at page-out, the host's swap has room: no size is to blame. */
static void test_a26_swap_limit_of_a_group(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "noswap", 256 * MIB);
	for (int i = 0; i < 20; i++) {
		sample_use(s, 200 * MIB);
		s->swap_max_bytes = 0;
		s->swap_events_fail += 1000;
		s->thp_swpout_fallback += 1000;
		r.host.thp_swpout_fallback += 1000;
		r.stats[7].swpout_fallback += 1000;
		lrig_tick(&r);
	}
	expect_sizes(&r, "inherit");
	assert_int_equal(r.writes, 0);
	lrig_stop(&r);
}

/* A28: pressure and a khugepaged that runs in circles: it sleeps longer. */
static void test_a28_runaway(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	for (int i = 0; i < 6; i++) {
		r.in.full_scans += 50;
		lrig_tick(&r);
	}
	assert_int_equal(r.writes, 1);
	assert_true(strtoul(lrig_value(&r, "khugepaged/scan_sleep_millisecs"), NULL, 10) > 10000);
	lrig_stop(&r);
}

/* A30: pressure on and off each 2 s for a minute: at most 6 changes per file. */
static void test_a30_dwell(void **state)
{
	struct thp_tree t = all_on();
	unsigned changes[LOOP_KNOBS_MAX] = { 0 };
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "redis", 256 * MIB);
	for (int i = 0; i < 60; i++) {
		struct loop_want was[LOOP_KNOBS_MAX];

		memcpy(was, r.stands, sizeof(was));
		if (i / 2 % 2)
			sample_quiet(s);
		else
			sample_thrash(s);
		lrig_tick(&r);
		for (unsigned k = 0; k < r.n_stands; k++)
			changes[k] += strcmp(was[k].value, r.stands[k].value) != 0;
	}
	for (unsigned k = 0; k < r.n_stands; k++)
		assert_true(changes[k] <= 6);
	assert_true(changes[0] >= 1);
	lrig_stop(&r);
}

/* A34: madvise at the top for a long quiet time with many faults; then the
 * administrator says always, and the sizes are looked at anew. */
static void test_a34_ceiling_follows_the_top(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct memcg_sample *s;
	struct loop_rig r;
	struct plan p;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "broker", 256 * MIB);
	for (int i = 0; i < 120; i++) {
		sample_fill(s);
		lrig_tick(&r);
		for (unsigned k = 0; k < r.loop->plan.n_sizes; k++)
			assert_true(thp_effective(thp_mode_from_string(size_value(&r,
							  r.loop->plan.sizes[k].size_kb)),
					    THP_MADVISE) <= THP_MADVISE);
	}
	assert_string_equal(size_value(&r, 64), "inherit");
	/* Back to never at the top: nothing that was raised may stay above it. */
	set_choice(&r.tree.enabled, TOP_NEVER);
	p = lrig_plan(&r);
	r.loop->foreign = true;
	loop_reconfigure(r.loop, r.config, &p);
	for (int i = 0; i < 60; i++) {
		sample_fill(s);
		lrig_tick(&r);
		assert_int_equal(thp_effective(thp_mode_from_string(size_value(&r, 64)), THP_NEVER),
			THP_NEVER);
	}
	lrig_stop(&r);
}

/* C20: the cause is the group whose harm weighs most, by size. */
static void test_c20_cause(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *a, *b;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	b = lrig_add(&r, "resolver.service", 12 * MIB);
	a = lrig_add(&r, "builder.service", 43 * GIB);
	for (int i = 0; i < 10; i++) {
		sample_thrash(a);
		sample_stall(a, 0.15, 0.15);
		sample_thrash(b);
		sample_stall(b, 0.16, 0.16);
		lrig_tick(&r);
	}
	assert_string_equal(size_value(&r, 2048), "never");
	assert_ptr_equal(loop_want_for(r.loop, "hugepages-2048kB/enabled")->cause, r.group[1]);
	lrig_stop(&r);
}

/* D10: thousands of dying cgroups: no size step. */
static void test_d10_dying(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "churny", 256 * MIB);
	r.in.dying_cgroups = 25000;
	for (int i = 0; i < 30; i++) {
		s->pgfault += value_sub(s->limit_bytes, s->current_bytes) / 4096;
		sample_use(s, s->limit_bytes);
		s->anon_thp = s->anon / 100;
		s->events.max += 30;
		sample_stall(s, 0.2, 0.1);
		lrig_tick(&r);
	}
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

/* ---- the rate of change ------------------------------------------------ */

static void test_hourly_limit_spares_the_way_down(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;
	unsigned rungs = 0;

	(void)state;
	lrig_start(&r, &t, "[Controller]\nMaxChangesPerHour=3\n");
	s = lrig_add(&r, "g", 256 * MIB);
	for (int i = 0; i < 3; i++) {
		sample_quiet(s);
		lrig_tick(&r);
	}
	for (int i = 0; i < 5; i++) {
		sample_thrash(s);
		lrig_tick(&r);
	}
	expect_sizes(&r, "never");
	/* Two steps up are left in this hour. */
	for (int i = 0; i < 600; i++) {
		sample_quiet(s);
		lrig_tick(&r);
	}
	for (unsigned i = 0; i < r.loop->plan.n_sizes; i++)
		rungs += strcmp(size_value(&r, r.loop->plan.sizes[i].size_kb), "never") != 0;
	assert_true(rungs >= 1 && rungs < r.loop->plan.n_sizes);
	assert_true(r.loop->rate_limited);
	/* Down is always open. */
	for (int i = 0; i < 5; i++) {
		sample_thrash(s);
		lrig_tick(&r);
	}
	expect_sizes(&r, "never");
	/* An hour later there is a new budget. */
	for (int i = 0; i < 3700; i++) {
		sample_quiet(s);
		lrig_tick(&r);
	}
	rungs = 0;
	for (unsigned i = 0; i < r.loop->plan.n_sizes; i++)
		rungs += strcmp(size_value(&r, r.loop->plan.sizes[i].size_kb), "never") != 0;
	assert_true(rungs >= 1);
	lrig_stop(&r);
}

/* Whatever the groups do: never more than six decisions in a minute, never a
 * word that is not listed or above the ceiling, never a number above its start. */
static uint64_t rnd(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return *x * UINT64_C(0x2545F4914F6CDD1D);
}

static void hammer_group(struct memcg_sample *s, uint64_t *x)
{
	switch (rnd(x) >> 32 & 7) {
	case 0:
	case 1:
	case 2:
		sample_thrash(s);
		break;
	case 3:
		sample_fill(s);
		break;
	case 4:
		s->events.oom_kill += rnd(x) >> 60 == 0;
		break;
	default:
		sample_quiet(s);
		break;
	}
}

static void check_wants(const struct loop_rig *r)
{
	const struct loop *l = r->loop;

	for (unsigned i = 0; i < l->n_wants; i++) {
		const struct loop_want *w = &l->wants[i];

		if (w->is_size) {
			const struct plan_size *z = &l->plan.sizes[w->size];
			enum thp_mode m = thp_effective(thp_mode_from_string(w->value), l->plan.top);

			assert_true(choice_lists(&r->tree.sizes[w->size].enabled, w->value));
			assert_true(m <= thp_effective(z->ceiling, l->plan.top) ||
				    (!strcmp(w->value, thp_mode_to_string(z->baseline))));
		} else if (!strcmp(w->path, "khugepaged/max_ptes_none")) {
			assert_true(strtoull(w->value, NULL, 10) <= r->tree.max_ptes_none);
		} else if (!strcmp(w->path, "khugepaged/scan_sleep_millisecs")) {
			assert_true(strtoull(w->value, NULL, 10) >= r->tree.scan_sleep_millisecs);
		} else if (!strcmp(w->path, "defrag")) {
			assert_true(!strcmp(w->value, "madvise") || !strcmp(w->value, "never"));
		}
	}
}

static void hammer(unsigned n_groups, const struct thp_tree *t, uint64_t seed, unsigned dwell)
{
	struct loop_rig r;
	uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) | 1, mood[RIG_GROUPS];

	lrig_start(&r, t, "");
	for (unsigned g = 0; g < n_groups; g++)
		lrig_add(&r, "g", 256 * MIB);
	for (int i = 0; i < 3600; i++) {
		for (unsigned g = 0; g < n_groups; g++) {
			/* The same mood for a while, so that states are walked through. */
			uint64_t same;

			if (rnd(&x) % dwell == 0 || i == 0)
				mood[g] = rnd(&x) | 1;
			same = mood[g];
			hammer_group(&r.s[g], &same);
		}
		if (rnd(&x) % 500 == 0)
			r.loop->foreign = true;
		lrig_tick(&r);
		check_wants(&r);
	}
	for (unsigned i = 0, first = 0; i < r.decisions; i++) {
		while (r.decided_usec[i] - r.decided_usec[first] >= 60 * SEC)
			first++;
		if (i - first + 1 > RATE_PER_MINUTE)
			fail_msg("%u groups, seed %lu, dwell %u: %u decisions in the minute before second %lu",
				n_groups, (unsigned long)seed, dwell, i - first + 1,
				(unsigned long)(r.decided_usec[i] / SEC - 1000));
	}
	assert_true(r.decisions > 0);
	lrig_stop(&r);
}

static void test_hammered(void **state)
{
	static const unsigned groups[] = { 1, 2, 5, 8 };
	struct thp_tree t[3] = { all_on(), kernel_default(),
		tree_full(4, 2048, TOP_MADVISE, SIZE_ALWAYS) };

	(void)state;
	for (unsigned k = 0; k < 3; k++)
		for (unsigned g = 0; g < 4; g++)
			for (uint64_t seed = 1; seed <= 3; seed++) {
				hammer(groups[g], &t[k], seed, 4);
				hammer(groups[g], &t[k], seed, 25);
			}
}

/* ---- determinism ------------------------------------------------------- */

static void record(uint64_t seed, char *buf, size_t size)
{
	struct thp_tree t = kernel_default();
	struct loop_rig r;
	uint64_t x = seed;
	size_t n = 0;

	lrig_start(&r, &t, "[Policy \"p\"]\nMatch=b\nProtect=yes\nWeight=300\n");
	lrig_add(&r, "a", 256 * MIB);
	lrig_add(&r, "b", 64 * MIB);
	lrig_add(&r, "c", VALUE_MAX);
	r.s[2].limit_bytes = r.s[2].max_bytes = 512 * MIB;
	for (int i = 0; i < 900; i++) {
		for (unsigned g = 0; g < 3; g++)
			hammer_group(&r.s[g], &x);
		lrig_tick(&r);
		for (unsigned k = 0; k < r.loop->n_wants; k++) {
			const struct loop_want *w = &r.loop->wants[k];

			n += (size_t)snprintf(buf + n, size - n, "%s=%s %d %s\n", w->path, w->value,
				(int)w->reason, w->cause ? w->cause->path : "-");
			assert_true(n < size);
		}
	}
	lrig_stop(&r);
}

static void test_determinism(void **state)
{
	size_t size = 4 << 20;
	char *one = calloc(1, size), *two = calloc(1, size);

	(void)state;
	assert_non_null(one);
	assert_non_null(two);
	record(12345, one, size);
	record(12345, two, size);
	assert_memory_equal(one, two, size);
	record(54321, two, size);
	assert_memory_not_equal(one, two, size);
	free(one);
	free(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_b09_steady),
		cmocka_unit_test(test_a01_khugepaged_bloat),
		cmocka_unit_test(test_a02_fragmentation),
		cmocka_unit_test(test_a08_tiny_limit),
		cmocka_unit_test(test_a11_large_pmd),
		cmocka_unit_test(test_a18_intermediate_baseline),
		cmocka_unit_test(test_a26_swap_limit_of_a_group),
		cmocka_unit_test(test_a28_runaway),
		cmocka_unit_test(test_a30_dwell),
		cmocka_unit_test(test_a34_ceiling_follows_the_top),
		cmocka_unit_test(test_c20_cause),
		cmocka_unit_test(test_d10_dying),
		cmocka_unit_test(test_hourly_limit_spares_the_way_down),
		cmocka_unit_test(test_hammered),
		cmocka_unit_test(test_determinism),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
