/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Groups' own files: values from wishes (own), the margin gate, and the rate of change. */
#include "loop_world.h"

#define T0 (1000 * SEC)

/* ---- values ------------------------------------------------------------ */

static const struct own_limits none = { VALUE_ABSENT, VALUE_ABSENT, VALUE_ABSENT };

static struct own own_of(const char *size, const char *ptes, const char *margin)
{
	struct own o = { .present = true };
	const char *const v[OWN_FILES] = { size, ptes, margin };

	for (unsigned f = 0; f < OWN_FILES; f++) {
		snprintf(o.base.value[f], sizeof(o.base.value[f]), "%s", v[f]);
		memcpy(o.stands.value[f], o.base.value[f], sizeof(o.base.value[f]));
	}
	return o;
}

static void expect_wants(const struct own *o, const char *size, const char *ptes, const char *margin)
{
	assert_string_equal(o->want.value[OWN_MAX_SIZE], size);
	assert_string_equal(o->want.value[OWN_MAX_PTES_NONE], ptes);
	assert_string_equal(o->want.value[OWN_MARGIN], margin);
}

static void test_values(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	struct own o = own_of("max", "inherit", "inherit");
	struct ctl_wish w = { .rung = plan_top(&p) };

	(void)state;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "max", "inherit", "inherit");
	assert_false(own_differs(&o));
	w.rung = plan_rung_for(&p, 64);
	w.ptes = CTL_PTES_RECENT;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "65536", "409", "inherit");
	assert_true(own_differs(&o));
	w.rung = 0;
	w.ptes = CTL_PTES_FULL;
	w.gate_open = true;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "4096", "0", "0");
	/* A policy's own bound; the global value is the smaller one anyway from 511 on. */
	w = (struct ctl_wish){ .rung = plan_top(&p) };
	own_decide(&o, &p, &w, &(struct own_limits){ VALUE_ABSENT, VALUE_ABSENT, 64 });
	expect_wants(&o, "max", "64", "inherit");
	assert_int_equal(o.reason[OWN_MAX_PTES_NONE], REASON_POLICY_LIMIT);
	own_decide(&o, &p, &w, &(struct own_limits){ VALUE_ABSENT, VALUE_ABSENT, 511 });
	expect_wants(&o, "max", "inherit", "inherit");
}

/* Never above what an administrator has chosen for the group; a margin of his stays. */
static void test_start_values_bound(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	struct own o = own_of("65536", "100", "auto");
	struct ctl_wish w = { .rung = plan_top(&p), .gate_open = true };

	(void)state;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "65536", "100", "auto");
	w.rung = plan_rung_for(&p, 1024);
	w.ptes = CTL_PTES_RECENT;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "65536", "100", "auto");
	w.rung = plan_rung_for(&p, 16);
	own_decide(&o, &p, &w, &(struct own_limits){ VALUE_ABSENT, VALUE_ABSENT, 50 });
	expect_wants(&o, "16384", "50", "auto");
	/* Files that are not there, or not understood, are not wanted otherwise. */
	o = own_of("", "inherit", "");
	own_decide(&o, &p, &w, &(struct own_limits){ VALUE_ABSENT, VALUE_ABSENT, 50 });
	expect_wants(&o, "", "50", "");
}

/* To the size, between the rungs too; below MaxSize= the ladder goes on. */
static void test_policy_sizes(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	struct own o = own_of("max", "inherit", "inherit");
	struct own_limits l = { 8, 32, VALUE_ABSENT };
	struct ctl_wish w = { .rung = plan_rung_for(&p, 32), .reason = REASON_POLICY_LIMIT };

	(void)state;
	own_decide(&o, &p, &w, &l);
	expect_wants(&o, "32768", "inherit", "inherit");
	w.rung = 0;
	own_decide(&o, &p, &w, &l);
	expect_wants(&o, "8192", "inherit", "inherit");
	l.max_kb = 512;
	w.rung = plan_rung_for(&p, 64);
	own_decide(&o, &p, &w, &l);
	expect_wants(&o, "65536", "inherit", "inherit");
}

/* The reason is that of the policy in force, however old the wish is. */
static void test_policy_reasons(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	struct own o = own_of("max", "inherit", "inherit");
	const struct own_limits l = { 16, 64, VALUE_ABSENT };
	struct ctl_wish w = { .rung = plan_top(&p), .reason = REASON_START_VALUES };

	(void)state;
	own_decide(&o, &p, &w, &l);
	expect_wants(&o, "65536", "inherit", "inherit");
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_POLICY_LIMIT);
	w.reason = REASON_POLICY_LIMIT;
	own_decide(&o, &p, &w, &none);
	expect_wants(&o, "max", "inherit", "inherit");
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_START_VALUES);
	w = (struct ctl_wish){ .rung = plan_rung_for(&p, 64), .reason = REASON_DROP_PRESSURE };
	own_decide(&o, &p, &w, &l);
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_DROP_PRESSURE);
	w.rung = 0;
	own_decide(&o, &p, &w, &l);
	expect_wants(&o, "16384", "inherit", "inherit");
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_POLICY_LIMIT);
	/* What an administrator set below the policy's bound is not the policy's. */
	o = own_of("8192", "inherit", "inherit");
	own_decide(&o, &p, &(struct ctl_wish){ .rung = plan_top(&p) }, &l);
	expect_wants(&o, "8192", "inherit", "inherit");
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_START_VALUES);
}

/* With two values only a bound that is met already leaves what stands; another one takes 0. */
static void test_two_values(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	static const struct { const char *base; uint64_t bound; const char *wanted; } cases[] = {
		{ "inherit", 511, "inherit" }, { "inherit", 510, "0" }, { "64", 200, "64" },
		{ "64", 64, "64" }, { "64", 63, "0" }, { "0", 0, "0" },
	};

	(void)state;
	p.ptes_two_values = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct own o = own_of("max", cases[i].base, "inherit");
		struct own_limits l = { VALUE_ABSENT, VALUE_ABSENT, cases[i].bound };

		own_decide(&o, &p, &(struct ctl_wish){ .rung = plan_top(&p) }, &l);
		expect_wants(&o, "max", cases[i].wanted, "inherit");
	}
}

static void test_hold_back(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");
	struct own o = own_of("max", "inherit", "inherit");
	struct ctl_wish w = { .rung = plan_top(&p), .gate_open = true, .ptes = CTL_PTES_FULL };

	(void)state;
	memcpy(o.stands.value[OWN_MAX_SIZE], "4096", 5);
	own_decide(&o, &p, &w, &none);
	own_hold_back(&o);
	/* What goes up waits, what goes down does not. */
	expect_wants(&o, "4096", "0", "inherit");
	assert_int_equal(o.reason[OWN_MAX_SIZE], REASON_RATE_LIMITED);
	assert_int_equal(o.reason[OWN_MARGIN], REASON_RATE_LIMITED);
}

static void test_valid(void **state)
{
	(void)state;
	assert_true(own_value_valid(OWN_MAX_SIZE, "max"));
	assert_true(own_value_valid(OWN_MAX_SIZE, "65536"));
	assert_false(own_value_valid(OWN_MAX_SIZE, "inherit"));
	assert_false(own_value_valid(OWN_MAX_SIZE, "-1"));
	assert_true(own_value_valid(OWN_MAX_PTES_NONE, "inherit"));
	assert_false(own_value_valid(OWN_MAX_PTES_NONE, "max"));
	assert_true(own_value_valid(OWN_MARGIN, "auto"));
	assert_false(own_value_valid(OWN_MAX_PTES_NONE, "auto"));
	assert_false(own_value_valid(OWN_MARGIN, ""));
}

/* ---- the gate ---------------------------------------------------------- */

struct gate_rig {
	struct config *config;
	struct gate g;
	uint64_t now_usec, limit_pages;
	struct memcg_delta d;
	bool begins; /* what the last step said */
};

static void gate_start(struct gate_rig *r, const char *config)
{
	*r = (struct gate_rig){
		.config = config_of(config),
		.now_usec = T0,
		.limit_pages = 64 * MIB / 4096,
		.d = { .dt_usec = SEC },
	};
	gate_init(&r->g, &r->config->controller);
}

/* One tick in which reclaim looked at @scanned pages and found @young in use, and of
 * @swpin pages that came back @refused could have come as large folios. */
static enum gate_state gate_tick(
	struct gate_rig *r, uint64_t scanned, uint64_t young, uint64_t swpin, uint64_t refused)
{
	struct gate_input in = { .d = &r->d, .limit_pages = r->limit_pages, .nearly_full = true,
		.quiet = swpin == 0 && !r->d.d_pswpout, .may_probe = true };

	r->d.d_thp_scanned = scanned;
	r->d.d_thp_young = young;
	r->d.d_pswpin = r->d.d_refault_anon = swpin;
	r->d.d_margin_swpin = refused;
	r->now_usec += SEC;
	in.now_usec = r->now_usec;
	r->begins = gate_step(&r->g, &r->config->controller, &in);
	return r->g.state;
}

/* One tick of a fill that overflows, with @refused large folios refused at faults. */
static enum gate_state fill_tick(struct gate_rig *r, uint64_t refused, uint64_t scanned, uint64_t young)
{
	enum gate_state state;

	r->d.d_margin_anon = refused;
	r->d.d_pswpout = r->limit_pages / 10;
	state = gate_tick(r, scanned, young, 0, 0);
	r->d.d_margin_anon = r->d.d_pswpout = 0;
	return state;
}

/* Sequential: refusals, and with the gate open all of each folio is used. */
static void test_gate_opens_for_dense(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	assert_int_equal(r.g.reason, REASON_GATE_PROBE);
	assert_int_equal(gate_tick(&r, 1200, 1190, 1100, 0), GATE_TRIAL); /* one tick is too early */
	assert_int_equal(gate_tick(&r, 1200, 1190, 1100, 0), GATE_OPEN);
	for (int i = 0; i < 600; i++)
		assert_int_equal(gate_tick(&r, 1200, 1150, 1100, 0), GATE_OPEN);
	/* The access changes: the first low reading shuts it. */
	assert_int_equal(gate_tick(&r, 4500, 800, 960, 0), GATE_KERNEL);
	assert_int_equal(r.g.reason, REASON_GATE_SHUT);
	config_free(r.config);
}

/* From scans to random touches and back, with nothing to announce the way back but
 * swap-ins that are refused: what was read of the random touches speaks against a
 * trial for ten seconds, not for half a minute. */
static void test_gate_tries_again_after_a_change(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	gate_tick(&r, 0, 0, 800, 48);
	gate_tick(&r, 1200, 1190, 1100, 0);
	assert_int_equal(gate_tick(&r, 1200, 1190, 1100, 0), GATE_OPEN);
	assert_int_equal(gate_tick(&r, 4500, 800, 960, 0), GATE_KERNEL);
	/* What went out in large pieces is refused for some seconds, and the readings of what
	 * is left of the scans are high. */
	for (int i = 1; i < 4; i++)
		assert_int_equal(gate_tick(&r, 7745, 5229, 1093, 315), GATE_KERNEL);
	for (int i = 4; i < 10; i++)
		assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_KERNEL);
	assert_int_equal(gate_tick(&r, 0, 0, 800, 1), GATE_KERNEL);
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	config_free(r.config);
}

/* Random touches: hardly any refusal, so no trial at all. */
static void test_gate_stays_for_scattered(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	for (int i = 0; i < 600; i++)
		assert_int_equal(gate_tick(&r, 1600, 400, 770, 1), GATE_KERNEL);
	assert_true(gate_density(&r.g, r.now_usec) > 0.24 && gate_density(&r.g, r.now_usec) < 0.26);
	config_free(r.config);
}

/* A trial that shows little use ends at once; the next waits twice as long each time. */
static void test_failed_trials_double_the_hold(void **state)
{
	struct gate_rig r;
	unsigned trials = 0, open_ticks = 0;
	uint64_t last = 0, gap, last_gap = 0;

	(void)state;
	gate_start(&r, "[Controller]\nHold=10s..80s\n");
	for (int i = 0; i < 600; i++) {
		enum gate_state was = r.g.state;
		/* Refusals, and no reading while it is shut. */
		enum gate_state is = was == GATE_KERNEL ? gate_tick(&r, 0, 0, 800, 80) :
							  gate_tick(&r, 4500, 900, 960, 0);

		open_ticks += is != GATE_KERNEL;
		if (was != GATE_KERNEL || is != GATE_TRIAL)
			continue;
		trials++;
		gap = last ? r.now_usec - last : 0;
		assert_true(gap >= last_gap);
		assert_true(!last || gap >= 10 * SEC);
		last_gap = gap;
		last = r.now_usec;
	}
	/* 600 s: after 10, 20, 40 and then every 80 s. */
	assert_in_range(trials, 9, 11);
	assert_int_equal(open_ticks, trials);
	config_free(r.config);
}

/* Without samples a trial proves nothing: it ends with Settle='s longer time, or when the
 * group has turned over once. */
static void test_trial_without_samples_ends(void **state)
{
	struct gate_rig r;
	int ticks = 1;

	(void)state;
	gate_start(&r, "[Controller]\nSettle=2s..12s\n");
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	while (gate_tick(&r, 10, 10, 2000, 0) == GATE_TRIAL)
		assert_true(++ticks < 20);
	assert_int_equal(r.g.state, GATE_KERNEL);
	assert_int_equal(ticks, 12);
	gate_forget(&r.g, &r.config->controller, r.now_usec);
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	for (ticks = 1; gate_tick(&r, 1, 1, 800, 0) == GATE_TRIAL;)
		assert_true(++ticks < 40);
	assert_int_equal(ticks, 25); /* 1.2 x 16384 / 800 */
	config_free(r.config);
}

/* A fill is let through from its beginning; fresh memory reads as used whatever becomes
 * of it, so that only what comes back from swap can keep the gate open. */
static void test_fill(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	assert_int_equal(fill_tick(&r, 63, 16000, 14400), GATE_KERNEL);
	assert_false(r.begins);
	assert_int_equal(fill_tick(&r, 64, 0, 0), GATE_TRIAL);
	assert_true(r.begins);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fill_tick(&r, 0, 16000, 16000), GATE_TRIAL);
	assert_int_equal(fill_tick(&r, 0, 11000, 900), GATE_KERNEL);
	/* The same fill that goes on is not another one, however long it lasts. */
	for (int i = 0; i < 600; i++)
		assert_int_equal(fill_tick(&r, 500, 0, 0), i ? GATE_KERNEL : r.g.state);
	config_free(r.config);
}

/* What was known was known of memory that is gone: a fill that begins starts anew, and
 * swap-ins that could be large are tried at once. */
static void test_fill_forgets(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	assert_int_equal(gate_tick(&r, 4000, 600, 800, 0), GATE_KERNEL);
	for (int i = 0; i < 5; i++)
		assert_int_equal(gate_tick(&r, 4000, 600, 800, 48), GATE_KERNEL);
	/* A kernel that refuses by max_size says so by another count. */
	r.d.d_size_limited = 900;
	r.d.d_pgmajfault = 800;
	r.d.d_pswpout = 4000;
	assert_int_equal(gate_tick(&r, 0, 0, 800, 0), GATE_TRIAL);
	assert_true(r.begins);
	assert_true(gate_density(&r.g, r.now_usec) < 0);
	config_free(r.config);
}

/* Fills that turn out scattered again and again are tried less and less. */
static void test_failed_fills_back_off(void **state)
{
	struct gate_rig r;
	unsigned trials = 0;

	(void)state;
	gate_start(&r, "[Controller]\nHold=10s..600s\n");
	for (int phase = 0; phase < 60; phase++) {
		trials += fill_tick(&r, 500, 0, 0) == GATE_TRIAL;
		for (int i = 0; i < 29; i++)
			gate_tick(&r, 4000, 600, 800, 1);
		assert_int_equal(r.g.state, GATE_KERNEL);
	}
	/* 1800 s: after 10, 20, 40, 80, 160, 320, 600 s, in steps of 30 s. */
	assert_in_range(trials, 6, 9);
	config_free(r.config);
}

/* All counts are parts of the group's size: 8 MiB with a hundredth of a CPU. */
static void test_small_group(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	r.limit_pages = 8 * MIB / 4096;
	assert_int_equal(fill_tick(&r, 26, 0, 0), GATE_TRIAL);
	assert_int_equal(gate_tick(&r, 100, 100, 80, 0), GATE_TRIAL);
	assert_int_equal(gate_tick(&r, 100, 98, 80, 0), GATE_OPEN);
	assert_int_equal(gate_tick(&r, 200, 40, 80, 0), GATE_KERNEL);
	config_free(r.config);
}

static void test_gate_is_given_back_when_quiet(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "");
	gate_tick(&r, 0, 0, 800, 48);
	gate_tick(&r, 1200, 1200, 1100, 0);
	assert_int_equal(gate_tick(&r, 1200, 1200, 1100, 0), GATE_OPEN);
	for (int i = 0; i < 9; i++)
		gate_tick(&r, 0, 0, 0, 0);
	assert_int_equal(gate_tick(&r, 0, 0, 0, 0), GATE_KERNEL);
	/* All forgotten when the memory is gone. */
	r.g.hold_until_usec = VALUE_MAX;
	gate_forget(&r.g, &r.config->controller, r.now_usec);
	assert_true(gate_density(&r.g, r.now_usec) < 0);
	assert_int_equal(gate_tick(&r, 0, 0, 800, 48), GATE_TRIAL);
	config_free(r.config);
}

/* Density= moves both decisions. */
static void test_density_key(void **state)
{
	struct gate_rig r;

	(void)state;
	gate_start(&r, "[Controller]\nDensity=20%..30%\n");
	gate_tick(&r, 0, 0, 800, 48);
	gate_tick(&r, 1200, 360, 1100, 0);
	assert_int_equal(gate_tick(&r, 1200, 360, 1100, 0), GATE_OPEN);
	assert_int_equal(gate_tick(&r, 1200, 260, 1100, 0), GATE_OPEN);
	assert_int_equal(gate_tick(&r, 1200, 230, 1100, 0), GATE_KERNEL);
	config_free(r.config);
}

/* ---- rate -------------------------------------------------------------- */

static void test_rate(void **state)
{
	struct rate r = { 0 };

	(void)state;
	rate_set(&r, 60);
	for (unsigned i = 0; i < RATE_PER_MINUTE - 1; i++) {
		assert_true(rate_may_step_up(&r, T0 + i * SEC));
		rate_note(&r, T0 + i * SEC);
	}
	/* The last of a minute is for a way down. */
	assert_false(rate_may_step_up(&r, T0 + 6 * SEC));
	assert_true(rate_may_change(&r, T0 + 6 * SEC));
	rate_note(&r, T0 + 6 * SEC);
	assert_false(rate_may_change(&r, T0 + 59 * SEC));
	assert_true(rate_may_change(&r, T0 + 61 * SEC));
	/* A smaller bound keeps the newest times. */
	rate_set(&r, 2);
	assert_false(rate_may_step_up(&r, T0 + 600 * SEC));
	assert_true(rate_may_step_up(&r, T0 + 3700 * SEC));
	rate_done(&r);
}

/* An hour's bound of any size, full and over. */
static void test_rate_of_an_hour(void **state)
{
	struct rate r = { 0 };
	uint64_t now_usec = T0;

	(void)state;
	rate_set(&r, 100);
	for (unsigned i = 0; i < 300; i++) {
		now_usec += 30 * SEC;
		assert_int_equal(rate_may_step_up(&r, now_usec), i < 100);
		rate_note(&r, now_usec);
	}
	assert_int_equal(r.n, 100);
	assert_int_equal(r.times[99], now_usec);
	assert_int_equal(r.times[0], now_usec - 99 * 30 * SEC);
	rate_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_start_values_bound),
		cmocka_unit_test(test_policy_sizes),
		cmocka_unit_test(test_policy_reasons),
		cmocka_unit_test(test_two_values),
		cmocka_unit_test(test_hold_back),
		cmocka_unit_test(test_valid),
		cmocka_unit_test(test_gate_opens_for_dense),
		cmocka_unit_test(test_gate_tries_again_after_a_change),
		cmocka_unit_test(test_gate_stays_for_scattered),
		cmocka_unit_test(test_failed_trials_double_the_hold),
		cmocka_unit_test(test_trial_without_samples_ends),
		cmocka_unit_test(test_fill),
		cmocka_unit_test(test_fill_forgets),
		cmocka_unit_test(test_failed_fills_back_off),
		cmocka_unit_test(test_small_group),
		cmocka_unit_test(test_gate_is_given_back_when_quiet),
		cmocka_unit_test(test_density_key),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_rate_of_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
