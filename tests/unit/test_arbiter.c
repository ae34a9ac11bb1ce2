/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/arbiter.c: many wishes, one set of switches. */
#include "loop_world.h"

struct world {
	struct thp_tree tree;
	struct plan plan;
	struct hostrules host;
	struct arbiter a;
	struct arbiter_vote v[4];
	size_t n;
	uint64_t now_usec;
};

static const char *const group_name[] = { "g0", "g1", "g2", "g3" };

static void world_of(struct world *w, const struct thp_tree *t, const char *config)
{
	memset(w, 0, sizeof(*w));
	w->tree = *t;
	w->plan = plan_of(t, config);
	w->now_usec = 1000 * SEC;
	hostrules_init(&w->host);
	arbiter_init(&w->a, &w->plan, w->now_usec);
}

static void world_all_on(struct world *w)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);

	world_of(w, &t, "");
}

/* A group that is content with everything on; a test changes what it wants. */
static struct arbiter_vote *add_vote(struct world *w)
{
	struct arbiter_vote *v = &w->v[w->n];

	*v = (struct arbiter_vote){
		.wish = { .rung = plan_top(&w->plan), .reason = REASON_START_VALUES },
		.weight = 100,
		.anon_share = 0.01,
		.min_kb = VALUE_ABSENT, .max_kb = VALUE_ABSENT, .max_ptes_none = VALUE_ABSENT,
		.group = (void *)(uintptr_t)group_name[w->n],
	};
	w->n++;
	return v;
}

static struct arbiter_vote *add_hurt(struct world *w, double harm)
{
	struct arbiter_vote *v = add_vote(w);

	v->wish = (struct ctl_wish){ .rung = 0, .hurt = true, .harm_usec_per_sec = harm,
		.reason = REASON_DROP_PRESSURE };
	return v;
}

static struct arbiter_vote *add_gainer(struct world *w, double benefit)
{
	struct arbiter_vote *v = add_vote(w);

	v->wish.benefit_usec_per_sec = benefit;
	return v;
}

static void decide(struct world *w)
{
	w->now_usec += SEC;
	arbiter_decide(&w->a, &w->plan, w->v, w->n, &w->host, w->now_usec);
}

static const struct arbiter_size *size_at(const struct world *w, uint64_t kb)
{
	return &w->a.size[plan_find(&w->plan, kb) - w->plan.sizes];
}

static void expect(const struct world *w, uint64_t kb, enum plan_level level, const char *word,
	enum reason reason)
{
	const struct arbiter_size *z = size_at(w, kb);

	assert_int_equal(z->level, level);
	assert_string_equal(z->word, word);
	assert_int_equal(z->reason, reason);
}

/* ---- one wish ---------------------------------------------------------- */

static void test_nobody(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	for (int i = 0; i < 100; i++)
		decide(&w);
	for (unsigned i = 0; i < w.plan.n_sizes; i++)
		expect(&w, w.plan.sizes[i].size_kb, PLAN_BASE, "inherit", REASON_START_VALUES);
	assert_int_equal(w.a.max_ptes_none, 511);
	assert_string_equal(w.a.defrag, "madvise");
	assert_null(size_at(&w, 64)->cause);
}

static void test_one_hurt(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 700000);
	decide(&w);
	for (unsigned i = 0; i < w.plan.n_sizes; i++) {
		expect(&w, w.plan.sizes[i].size_kb, PLAN_OFF, "never", REASON_DROP_PRESSURE);
		assert_ptr_equal(w.a.size[i].cause, group_name[0]);
	}
	/* Up to a rung only: the others keep their say. */
	w.v[0].wish.rung = 2;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
	assert_int_equal(size_at(&w, 128)->level, PLAN_OFF);
	/* All is well again: by the plan's word, for its sake. */
	w.v[0].wish = (struct ctl_wish){ .rung = plan_top(&w.plan), .recovering = true,
		.reason = REASON_RECOVERED };
	decide(&w);
	expect(&w, 128, PLAN_BASE, "inherit", REASON_RECOVERED);
	assert_ptr_equal(size_at(&w, 128)->cause, group_name[0]);
}

/* What comes back in a tick in which the group says nothing came back for its sake all the same. */
static void test_recovered_has_a_cause(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 700000);
	decide(&w);
	w.v[0].wish = (struct ctl_wish){ .rung = plan_top(&w.plan), .reason = REASON_START_VALUES };
	decide(&w);
	expect(&w, 128, PLAN_BASE, "inherit", REASON_RECOVERED);
	assert_ptr_equal(size_at(&w, 128)->cause, group_name[0]);
}

static void test_raise(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct world w;

	(void)state;
	world_of(&w, &t, "");
	add_gainer(&w, 500000)->wish.raised = true;
	w.v[0].wish.reason = REASON_RAISE_PROBE;
	add_vote(&w);
	decide(&w);
	expect(&w, 16, PLAN_RAISED, "inherit", REASON_RAISE_PROBE);
	expect(&w, 64, PLAN_RAISED, "inherit", REASON_RAISE_PROBE);
	assert_int_equal(size_at(&w, 128)->level, PLAN_BASE);
	assert_string_equal(size_at(&w, 128)->word, "never");
	assert_ptr_equal(size_at(&w, 64)->cause, group_name[0]);
}

/* ---- sums -------------------------------------------------------------- */

static void test_ratios(void **state)
{
	static const struct {
		double benefit, harm;
		enum plan_level level;
		const char *word;
	} cases[] = {
		{ 126, 100, PLAN_BASE, "inherit" },
		{ 124, 100, PLAN_ASKED, "madvise" },
		{ 81, 100, PLAN_ASKED, "madvise" },
		{ 79, 100, PLAN_OFF, "never" },
		{ 0, 100, PLAN_OFF, "never" },
		{ 0, 0, PLAN_OFF, "never" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w;

		world_all_on(&w);
		add_hurt(&w, cases[i].harm * 1000);
		add_gainer(&w, cases[i].benefit * 1000);
		decide(&w);
		expect(&w, 64, cases[i].level, cases[i].word,
			cases[i].level == PLAN_OFF ? REASON_DROP_PRESSURE : REASON_OUTVOTED);
		assert_ptr_equal(size_at(&w, 64)->cause, group_name[0]);
	}
}

static void test_weights(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 100000);
	add_gainer(&w, 100000);
	w.v[0].weight = 50;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
	w.v[0].weight = 200;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
	w.v[1].weight = 10000;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
	w.v[0].weight = 1;
	w.v[1].weight = 1;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_ASKED);
}

/* Many small harms add up; the largest one is named. */
static void test_sums_add(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_gainer(&w, 100000);
	add_hurt(&w, 50000);
	add_hurt(&w, 60000);
	add_hurt(&w, 40000);
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
	assert_ptr_equal(size_at(&w, 64)->cause, group_name[2]);
}

/* C20: a large group and a tiny one stall alike; the large one is the cause. */
static void test_c20_the_large_one_is_named(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 850000)->anon_share = 0.9997;
	add_hurt(&w, 860000)->anon_share = 0.0003;
	decide(&w);
	assert_ptr_equal(size_at(&w, 2048)->cause, group_name[0]);
}

/* A policy's MaxSize weighs one hundredth of a CPU. */
static void test_policy_limit(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_vote(&w)->wish = (struct ctl_wish){ .rung = 2, .reason = REASON_POLICY_LIMIT };
	w.v[0].limits = true;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
	expect(&w, 128, PLAN_OFF, "never", REASON_POLICY_LIMIT);
	add_gainer(&w, 5000);
	decide(&w);
	expect(&w, 128, PLAN_OFF, "never", REASON_POLICY_LIMIT);
	w.v[1].wish.benefit_usec_per_sec = 20000;
	decide(&w);
	assert_int_equal(size_at(&w, 128)->level, PLAN_BASE);
}

/* Between the rungs a policy's sizes hold to the size, in both directions. */
static void test_policy_between_rungs(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_vote(&w)->wish = (struct ctl_wish){ .rung = 1, .reason = REASON_POLICY_LIMIT };
	w.v[0].limits = true;
	w.v[0].max_kb = 32;
	decide(&w);
	assert_int_equal(size_at(&w, 32)->level, PLAN_BASE);
	expect(&w, 64, PLAN_OFF, "never", REASON_POLICY_LIMIT);
	world_all_on(&w);
	add_hurt(&w, 50000)->min_kb = 32;
	decide(&w);
	assert_int_equal(size_at(&w, 32)->level, PLAN_BASE);
	assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
}

/* ---- veto, shield ------------------------------------------------------ */

/* Seconds of a run in which the size is off against a larger benefit. */
static void run_veto(struct world *w, uint64_t step_usec, unsigned seconds, bool *off)
{
	for (unsigned t = 0; t < seconds;) {
		w->now_usec += step_usec;
		arbiter_decide(&w->a, &w->plan, w->v, w->n, &w->host, w->now_usec);
		for (unsigned k = 0; k < step_usec / SEC && t < seconds; k++)
			off[t++] = size_at(w, 64)->level == PLAN_OFF;
		if (size_at(w, 64)->level == PLAN_OFF)
			assert_int_equal(size_at(w, 64)->reason, REASON_VETO);
		else
			assert_int_equal(size_at(w, 64)->reason, REASON_VETO_SPENT);
	}
}

static void test_veto_half_of_any_ten_minutes(void **state)
{
	static const unsigned steps[] = { 1, 2, 7, 60 };
	static bool off[6000];

	(void)state;
	for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		unsigned total = 0, in_window = 0;
		struct world w;

		world_all_on(&w);
		add_hurt(&w, 100000)->anon_share = 0.05;
		add_gainer(&w, 1000000);
		run_veto(&w, steps[s] * SEC, 6000, off);
		assert_true(off[0]);
		for (unsigned i = 0; i < 6000; i++) {
			total += off[i];
			in_window += off[i];
			if (i >= 600)
				in_window -= off[i - 600];
			assert_true(in_window <= 300 + steps[s]);
		}
		/* It comes back, too. */
		assert_true(total > 2000);
	}
}

static void test_who_may_veto(void **state)
{
	static const struct {
		double share;
		bool protect, hurt;
		enum plan_level level;
	} cases[] = {
		{ 0.051, false, true, PLAN_OFF },
		{ 0.049, false, true, PLAN_BASE },
		{ 0.001, true, true, PLAN_OFF },
		/* On its way up again, or only bounded: no veto. */
		{ 0.900, true, false, PLAN_BASE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct arbiter_vote *v;
		struct world w;

		world_all_on(&w);
		v = add_hurt(&w, 1000);
		v->anon_share = cases[i].share;
		v->protect = cases[i].protect;
		v->wish.hurt = cases[i].hurt;
		add_gainer(&w, 1000000);
		decide(&w);
		assert_int_equal(size_at(&w, 64)->level, cases[i].level);
	}
}

/* An exonerated group wants everything on: it has no veto, whatever its share. */
static void test_exonerated_has_no_veto(void **state)
{
	struct arbiter_vote *v;
	struct world w;

	(void)state;
	world_all_on(&w);
	v = add_vote(&w);
	v->wish.reason = REASON_EXONERATED;
	v->wish.harm_usec_per_sec = 900000;
	v->anon_share = 0.9;
	v->protect = true;
	add_gainer(&w, 1000);
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
}

/* A veto that agrees with the sums spends nothing. */
static void test_veto_not_spent_in_vain(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 700000)->anon_share = 0.5;
	for (int i = 0; i < 2000; i++) {
		decide(&w);
		assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
	}
	assert_int_equal(size_at(&w, 64)->veto_left_usec, ARBITER_VETO_USEC);
}

static void test_shield(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 900000)->anon_share = 0.5;
	add_vote(&w)->protect = true;
	decide(&w);
	expect(&w, 64, PLAN_ASKED, "madvise", REASON_SHIELDED);
	/* Not against one that is protected itself. */
	w.v[0].protect = true;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
	/* Nor when the protected one is hurt. */
	w.v[0].protect = false;
	w.v[1].wish = w.v[0].wish;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_OFF);
}

static void test_clamps(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 900000);
	add_vote(&w);
	decide(&w);
	assert_true(arbiter_clamps(&w.a, &w.plan, &w.v[1].wish));
	assert_false(arbiter_clamps(&w.a, &w.plan, &w.v[0].wish));
}

/* ---- max_ptes_none ----------------------------------------------------- */

static void test_ptes(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_vote(&w)->wish.ptes = CTL_PTES_RECENT;
	add_vote(&w);
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 409);
	assert_int_equal(w.a.ptes_reason, REASON_RECENT_PRESSURE);
	w.v[1].wish.ptes = CTL_PTES_FULL;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 0);
	assert_int_equal(w.a.ptes_reason, REASON_NEAR_FULL);
	assert_ptr_equal(w.a.ptes_cause, group_name[1]);
	w.v[1].wish.reason = REASON_KHUGEPAGED_BLOAT;
	decide(&w);
	assert_int_equal(w.a.ptes_reason, REASON_KHUGEPAGED_BLOAT);
	w.n = 0;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 511);
	assert_int_equal(w.a.ptes_reason, REASON_START_VALUES);
}

/* A18: 409 at start, 0 under pressure, 409 (not 511) afterwards. */
static void test_a18_returns_to_the_baseline(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct world w;

	(void)state;
	t.max_ptes_none = 409;
	world_of(&w, &t, "");
	add_vote(&w);
	for (int i = 0; i < 10; i++) {
		decide(&w);
		assert_int_equal(w.a.max_ptes_none, 409);
	}
	w.v[0].wish.ptes = CTL_PTES_FULL;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 0);
	w.v[0].wish.ptes = CTL_PTES_RECENT;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 409);
	w.v[0].wish.ptes = CTL_PTES_AMPLE;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 409);
}

static void test_policy_ptes(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_vote(&w)->max_ptes_none = 100;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 100);
	assert_int_equal(w.a.ptes_reason, REASON_POLICY_LIMIT);
	/* A policy never raises it. */
	w.v[0].wish.ptes = CTL_PTES_FULL;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 0);
	w.v[0].max_ptes_none = 511;
	decide(&w);
	assert_int_equal(w.a.max_ptes_none, 0);
}

/* A22: only 0 and PMD_NR - 1, but for the baseline itself. */
static void test_a22_two_values(void **state)
{
	static const enum ctl_ptes wishes[] = { CTL_PTES_AMPLE, CTL_PTES_RECENT, CTL_PTES_FULL };
	static const uint64_t bases[] = { 511, 256, 0 }, policies[] = { VALUE_ABSENT, 100, 0, 511 };

	(void)state;
	for (int b = 0; b < 3; b++)
		for (int i = 0; i < 3; i++)
			for (int k = 0; k < 4; k++) {
				struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
				struct world w;

				t.mthp_collapse = true;
				t.max_ptes_none = bases[b];
				world_of(&w, &t, "");
				assert_true(w.plan.ptes_two_values);
				add_vote(&w)->wish.ptes = wishes[i];
				w.v[0].max_ptes_none = policies[k];
				decide(&w);
				assert_true(w.a.max_ptes_none == 0 || w.a.max_ptes_none == 511 ||
					    w.a.max_ptes_none == bases[b]);
				assert_true(w.a.max_ptes_none <= bases[b]);
			}
}

/* Configured for the whole host on such a kernel: also only 0 or PMD_NR - 1. */
static void test_a22_configured_limit(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct world w;

	(void)state;
	t.mthp_collapse = true;
	world_of(&w, &t, "[Limits]\nMaxPtesNone=300\n");
	add_vote(&w);
	decide(&w);
	assert_true(w.a.max_ptes_none == 0 || w.a.max_ptes_none == 511);
}

/* ---- defrag, khugepaged, caps of the host rules ------------------------ */

static void test_defrag(void **state)
{
	struct world w;

	(void)state;
	world_all_on(&w);
	add_hurt(&w, 100000)->wish.defrag_low = true;
	decide(&w);
	/* With every size off there is nothing to compact for. */
	assert_string_equal(w.a.defrag, "madvise");
	assert_int_equal(w.a.khugepaged_defrag, 1);
	add_gainer(&w, 1000000);
	decide(&w);
	assert_string_equal(w.a.defrag, "never");
	assert_int_equal(w.a.khugepaged_defrag, 0);
	assert_int_equal(w.a.defrag_reason, REASON_NEAR_FULL);
	w.n = 0;
	decide(&w);
	assert_string_equal(w.a.defrag, "madvise");
	assert_int_equal(w.a.khugepaged_defrag, 1);
	/* A02: fragmentation changes defrag and nothing else. */
	w.host.defrag_until_usec = w.now_usec + 10 * SEC;
	decide(&w);
	assert_string_equal(w.a.defrag, "never");
	assert_int_equal(w.a.defrag_reason, REASON_FRAGMENTATION);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
}

/* A28: longer sleep, never shorter, never 0. */
static void test_a28_scan_sleep(void **state)
{
	static const uint64_t bases[] = { 0, 1, 1000, 10000, 100000, 10000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
		struct world w;

		t.scan_sleep_millisecs = bases[i];
		world_of(&w, &t, "");
		decide(&w);
		assert_int_equal(w.a.scan_sleep_millisecs, bases[i]);
		w.host.slow_until_usec = w.now_usec + 10 * SEC;
		decide(&w);
		assert_true(w.a.scan_sleep_millisecs >= bases[i]);
		assert_true(w.a.scan_sleep_millisecs >= 60000);
		/* The kernel keeps it in an unsigned int. */
		assert_true(w.a.scan_sleep_millisecs <= UINT32_MAX);
		assert_int_equal(w.a.scan_reason, REASON_KHUGEPAGED_RUNAWAY);
		w.now_usec += 20 * SEC;
		decide(&w);
		assert_int_equal(w.a.scan_sleep_millisecs, bases[i]);
	}
}

static void test_a28_largest_sleep(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct world w;

	(void)state;
	t.scan_sleep_millisecs = UINT32_MAX;
	world_of(&w, &t, "");
	w.host.slow_until_usec = w.now_usec + 10 * SEC;
	decide(&w);
	assert_int_equal(w.a.scan_sleep_millisecs, UINT32_MAX);
}

static void test_caps(void **state)
{
	unsigned i;
	struct world w;

	(void)state;
	world_all_on(&w);
	i = (unsigned)(plan_find(&w.plan, 64) - w.plan.sizes);
	w.host.size[i].reason = REASON_FALLBACK_DOMINATED;
	w.host.size[i].cap = PLAN_OFF;
	w.host.size[i].until_usec = w.now_usec + 5 * SEC;
	add_gainer(&w, 1000000);
	decide(&w);
	expect(&w, 64, PLAN_OFF, "never", REASON_FALLBACK_DOMINATED);
	assert_null(size_at(&w, 64)->cause);
	assert_int_equal(size_at(&w, 32)->level, PLAN_BASE);
	w.host.size[i].reason = REASON_SPLIT_CHURN;
	w.host.size[i].cap = PLAN_ASKED;
	decide(&w);
	expect(&w, 64, PLAN_ASKED, "madvise", REASON_SPLIT_CHURN);
	w.now_usec += 10 * SEC;
	decide(&w);
	assert_int_equal(size_at(&w, 64)->level, PLAN_BASE);
	assert_string_equal(size_at(&w, 64)->word, "inherit");
}

/* A12: a PMD size that is a risk on this host starts at madvise. */
static void test_a12_start(void **state)
{
	struct thp_tree t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	struct config *c = config_of("");
	struct world w;

	(void)state;
	world_of(&w, &t, "");
	plan_build(&t, c, false, 6291456, &w.plan);
	config_free(c);
	arbiter_init(&w.a, &w.plan, w.now_usec);
	decide(&w);
	assert_string_equal(size_at(&w, 524288)->word, "madvise");
	assert_int_equal(size_at(&w, 524288)->reason, REASON_PMD_TOO_LARGE);
	assert_string_equal(size_at(&w, 1024)->word, "never");
}

/* Sizes that are not ours are never named. */
static void test_unmanaged(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	struct world w;

	(void)state;
	world_of(&w, &t, "[Limits]\nSizes=64K\n");
	add_hurt(&w, 900000);
	decide(&w);
	assert_string_equal(size_at(&w, 64)->word, "never");
	assert_null(size_at(&w, 32)->word);
	assert_int_equal(size_at(&w, 32)->reason, REASON_NOT_MANAGED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_one_hurt),
		cmocka_unit_test(test_recovered_has_a_cause),
		cmocka_unit_test(test_raise),
		cmocka_unit_test(test_ratios),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_sums_add),
		cmocka_unit_test(test_c20_the_large_one_is_named),
		cmocka_unit_test(test_policy_limit),
		cmocka_unit_test(test_policy_between_rungs),
		cmocka_unit_test(test_veto_half_of_any_ten_minutes),
		cmocka_unit_test(test_who_may_veto),
		cmocka_unit_test(test_exonerated_has_no_veto),
		cmocka_unit_test(test_veto_not_spent_in_vain),
		cmocka_unit_test(test_shield),
		cmocka_unit_test(test_clamps),
		cmocka_unit_test(test_ptes),
		cmocka_unit_test(test_a18_returns_to_the_baseline),
		cmocka_unit_test(test_policy_ptes),
		cmocka_unit_test(test_a22_two_values),
		cmocka_unit_test(test_a22_configured_limit),
		cmocka_unit_test(test_defrag),
		cmocka_unit_test(test_a28_scan_sleep),
		cmocka_unit_test(test_a28_largest_sleep),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_a12_start),
		cmocka_unit_test(test_unmanaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
