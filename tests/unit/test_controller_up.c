/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/controller.c: up again, what it costs, above the start values, other reasons.
 * Bounds, not exact ticks: constants may be tuned, behaviour may not. */
#include "controller_rig.h"

/* ---- up again ---------------------------------------------------------- */

static void test_recovery_by_rungs(void **state)
{
	bool seen[CTL_NO_EFFECT + 1] = { false };
	unsigned rung = 0, ups = 0;
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	for (int i = 0; i < 200 && r.c.dropped; i++) {
		rig_quiet(&r, 1);
		seen[r.c.state] = true;
		if (i < 8)
			assert_int_equal(r.c.rung, 0);
		if (r.c.rung == rung)
			continue;
		/* One rung at a time up to 64K, then the rest. */
		assert_int_equal(r.c.rung, rung < r.plan.raise_rung ? rung + 1 : TOP(&r));
		assert_true(r.wish.recovering);
		rung = r.c.rung;
		ups++;
	}
	assert_int_equal(ups, r.plan.raise_rung + 1);
	assert_true(seen[CTL_RUN] && seen[CTL_PROBE] && seen[CTL_SETTLE] && seen[CTL_MEASURE]);
	assert_int_equal(r.wish.reason, REASON_RECOVERED);
	assert_false(r.wish.hurt);
	rig_quiet(&r, 60);
	assert_int_equal(r.wish.ptes, CTL_PTES_AMPLE);
	assert_int_equal(controller_wake_usec(&r.c, r.s.now_usec), VALUE_ABSENT);
	rig_stop(&r);
}

/* Quiet but without room: no step. */
static void test_no_room_no_step(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	for (int i = 0; i < 120; i++) {
		rig_full(&r);
		rig_second(&r, 0.001, 0);
	}
	assert_int_equal(r.c.rung, 0);
	assert_true(r.c.dropped);
	/* Nothing announces room: the audit looks. */
	assert_int_equal(controller_wake_usec(&r.c, r.s.now_usec), VALUE_ABSENT);
	rig_stop(&r);
}

static void test_gates_on_steps_up(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	r.in.may_probe = false;
	rig_quiet(&r, 100);
	assert_int_equal(r.c.rung, 0);
	r.in.may_probe = true;
	r.in.clamped = true;
	rig_quiet(&r, 100);
	assert_int_equal(r.c.rung, 0);
	r.in.clamped = false;
	rig_quiet(&r, 5);
	assert_int_equal(r.c.rung, 1);
	rig_stop(&r);
}

/* A step up that brings the trouble back is undone and held longer each time,
 * up to the maximum of Hold=. */
static void test_hold_doubles(void **state)
{
	uint64_t hold, last = 0;
	struct rig r;

	(void)state;
	start_all_on(&r, "[Controller]\nHold=10s..80s\n");
	drop_it(&r);
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < 400 && r.c.rung == 0; i++)
			rig_quiet(&r, 1);
		assert_int_equal(r.c.rung, 1);
		for (int i = 0; i < 3 && r.c.rung; i++) {
			r.s.events.max += 10;
			rig_thrash(&r, 0.5);
		}
		assert_int_equal(r.c.rung, 0);
		hold = r.c.hold_usec;
		assert_true(last == 80 * SEC ? hold == last : hold == (last ? 2 * last : 20 * SEC));
		assert_true(r.c.hold_until_usec >= r.s.now_usec + hold - 2 * SEC);
		last = hold;
	}
	assert_int_equal(last, 80 * SEC);
	rig_stop(&r);
}

static void test_probe_failed(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	for (int i = 0; i < 60 && r.c.rung == 0; i++)
		rig_quiet(&r, 1);
	assert_true(r.c.state == CTL_PROBE || r.c.state == CTL_SETTLE);
	/* Pressed, though there is room: not a drop, but no success. */
	for (int i = 0; i < 2; i++) {
		rig_room(&r);
		rig_second(&r, 0.3, 0.1);
	}
	assert_int_equal(r.c.rung, 0);
	assert_int_equal(r.wish.reason, REASON_PROBE_FAILED);
	rig_stop(&r);
}

/* A relapse soon after it was all back lengthens the hold too. */
static void test_relapse(void **state)
{
	uint64_t hold;
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	hold = r.c.hold_usec;
	for (int i = 0; i < 300 && r.c.dropped; i++)
		rig_quiet(&r, 1);
	assert_int_equal(r.c.rung, TOP(&r));
	drop_it(&r);
	assert_int_equal(r.c.hold_usec, 2 * hold);
	rig_stop(&r);
}

/* Another limit is another problem: the holds are forgotten. */
static void test_new_limit_forgets_holds(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "[Controller]\nHold=10s..600s\n");
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 700 && r.c.dropped; i++)
			rig_quiet(&r, 1);
		drop_it(&r);
	}
	assert_true(r.c.hold_usec >= 40 * SEC);
	r.s.limit_bytes = r.s.max_bytes = 512 * MIB;
	rig_quiet(&r, 1);
	assert_int_equal(r.c.hold_usec, 10 * SEC);
	assert_true(r.c.hold_until_usec <= r.s.now_usec + 10 * SEC);
	rig_stop(&r);
}

/* ---- cost -------------------------------------------------------------- */

static void work_second(struct rig *r, double user, double system, double some)
{
	rig_full(r);
	r->s.events.max += 50;
	r->s.pgfault += 1000;
	r->s.pgmajfault += 1000;
	r->s.refault_anon += 3000;
	r->s.user_usec += (uint64_t)(user * 1e6);
	r->s.system_usec += (uint64_t)(system * 1e6);
	r->s.usage_usec += (uint64_t)((user + system) * 1e6);
	rig_second(r, some, some);
}

/* Drops and waits until the drop is over; false if it never is. */
static bool acquitted(struct rig *r, double user_after, double system_after)
{
	for (int i = 0; i < 60 && r->c.state != CTL_DROP; i++)
		work_second(r, 1.0, 0.5, 0.3);
	assert_int_equal(r->c.state, CTL_DROP);
	for (int i = 0; i < 60 && r->c.state == CTL_DROP; i++)
		work_second(r, user_after, system_after, 0.3);
	return r->c.state != CTL_DROP;
}

/* User time shows that the drop did not lower the cost: given back. */
static void test_exonerated(void **state)
{
	uint64_t first, second;
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	assert_true(acquitted(&r, 1.0, 0.5));
	assert_int_equal(r.wish.reason, REASON_EXONERATED);
	assert_int_equal(r.wish.rung, TOP(&r));
	assert_false(r.wish.hurt);
	assert_int_equal(r.wish.ptes, CTL_PTES_RECENT);
	first = r.c.exonerated_until_usec - r.s.now_usec;
	assert_true(first >= 30 * SEC);
	/* No new drop for as long, under the same pressure. */
	while (r.s.now_usec + SEC < r.c.exonerated_until_usec) {
		work_second(&r, 1.0, 0.5, 0.3);
		assert_int_equal(r.c.rung, TOP(&r));
	}
	/* The second acquittal lasts longer. */
	assert_true(acquitted(&r, 1.0, 0.5));
	second = r.c.exonerated_until_usec - r.s.now_usec;
	assert_true(second >= 2 * first - SEC);
	rig_stop(&r);
}

static void test_drop_kept(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	assert_false(acquitted(&r, 2.0, 0.2));
	assert_int_equal(r.wish.rung, 0);
	rig_stop(&r);
}

/* An acquittal ends when the cost leaves the range it was given for. */
static void test_acquittal_ends_with_its_regime(void **state)
{
	struct rig r;
	int i;

	(void)state;
	start_all_on(&r, "");
	assert_true(acquitted(&r, 1.0, 0.5));
	rig_quiet(&r, 2);
	for (i = 0; i < 12 && !r.c.dropped; i++)
		work_second(&r, 0.5, 1.6, 0.6);
	assert_true(r.c.dropped);
	assert_true(r.s.now_usec < r.c.since_usec + 30 * SEC);
	rig_stop(&r);
}

/* Single pages come back from swap, before and after: no large folio is in
 * use, nothing was gained, the switches go back. */
static void test_no_effect(void **state)
{
	struct rig r;
	int i;

	(void)state;
	start_all_on(&r, "");
	for (i = 0; i < 30 && r.c.state != CTL_NO_EFFECT; i++) {
		rig_full(&r);
		r.s.events.max += 60;
		r.s.pgfault += 3000;
		r.s.pgmajfault += 3000;
		r.s.refault_anon += 3000;
		rig_second(&r, 0.7, 0.7);
	}
	assert_int_equal(r.c.state, CTL_NO_EFFECT);
	assert_int_equal(r.wish.reason, REASON_NO_EFFECT);
	assert_int_equal(r.wish.rung, TOP(&r));
	assert_int_equal(r.wish.ptes, CTL_PTES_AMPLE);
	assert_false(r.wish.hurt);
	for (i = 0; i < 60; i++) {
		rig_full(&r);
		r.s.events.max += 60;
		r.s.pgfault += 3000;
		r.s.pgmajfault += 3000;
		r.s.refault_anon += 3000;
		rig_second(&r, 0.7, 0.7);
		assert_int_equal(r.c.rung, TOP(&r));
	}
	/* Large folios appear: now they count. */
	for (i = 0; i < 5; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.rung, 0);
	rig_stop(&r);
}

/* Dropped while the group is filled for the first time, when nothing has come back
 * from swap yet: growth by single pages tells as much. */
static void test_no_effect_while_filling(void **state)
{
	(void)state;
	for (uint64_t pages_per_fault = 1; pages_per_fault <= 4; pages_per_fault += 3) {
		struct rig r;
		int i;

		start_all_on(&r, "");
		for (i = 0; i < 5 && !r.c.dropped; i++) {
			rig_full(&r);
			r.s.events.max += 60;
			r.s.pgfault += 3000;
			r.s.swap_current_bytes += 3000 * pages_per_fault * r.in.page_bytes;
			rig_second(&r, 0.7, 0.7);
		}
		assert_true(r.c.dropped);
		for (i = 0; i < 30 && r.c.state != CTL_NO_EFFECT; i++) {
			rig_full(&r);
			r.s.events.max += 60;
			r.s.pgfault += 3000;
			r.s.pgmajfault += 3000;
			r.s.refault_anon += 3000;
			rig_second(&r, 0.7, 0.7);
		}
		assert_int_equal(r.c.state, pages_per_fault == 1 ? CTL_NO_EFFECT : CTL_DROP);
		rig_stop(&r);
	}
}

/* ---- raising above the start values ------------------------------------ */

static void test_raise(void **state)
{
	struct rig r;
	int i;

	(void)state;
	start_kernel_default(&r, "");
	assert_false(r.c.raised);
	rig_quiet(&r, 60);
	assert_false(r.c.raised); /* nothing to gain without faults */
	for (i = 0; i < 20 && !r.c.raised; i++)
		rig_fill(&r, 1);
	assert_true(r.c.raised);
	assert_true(i >= 2);
	assert_int_equal(r.wish.reason, REASON_RAISE_PROBE);
	rig_fill(&r, 60);
	assert_int_equal(r.c.state, CTL_RUN);
	assert_int_equal(r.wish.reason, REASON_RAISED);
	assert_true(r.wish.raised);
	assert_true(r.wish.benefit_usec_per_sec > 100000);
	rig_stop(&r);
}

static void test_raise_failed(void **state)
{
	struct rig r;

	(void)state;
	start_kernel_default(&r, "");
	rig_fill(&r, 5);
	assert_true(r.c.raised);
	for (int i = 0; i < 2; i++) {
		rig_room(&r);
		rig_second(&r, 0.3, 0.1);
	}
	assert_false(r.c.raised);
	assert_int_equal(r.wish.reason, REASON_RAISE_FAILED);
	/* Held: not at once again. */
	rig_fill(&r, 9);
	assert_false(r.c.raised);
	rig_stop(&r);
}

static void test_no_raise_without_a_ceiling(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_NEVER, SIZE_NEVER);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "", "g", 64 * MIB);
	rig_fill(&r, 60);
	assert_false(r.c.raised);
	assert_int_equal(r.wish.reason, REASON_START_VALUES);
	rig_stop(&r);
}

/* ---- other reasons ----------------------------------------------------- */

/* A01: khugepaged adds the memory: its knob first, no size. */
static void test_a01_khugepaged_bloat(void **state)
{
	static const uint64_t current[] = { 700, 758, 816, 874, 932, 990 };
	static const uint64_t anon[] = { 690, 748, 806, 864, 922, 980 };
	static const uint64_t thp[] = { 200, 336, 472, 608, 744, 880 };
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "", "go", 1073741824);
	r.in.d_collapse = 40;
	for (int i = 0; i < 6; i++) {
		sample_use(&r.s, current[i] * MIB);
		r.s.anon = anon[i] * MIB;
		r.s.anon_thp = thp[i] * MIB;
		if (i == 0) {
			r.prev = r.s;
			continue;
		}
		rig_second(&r, 0.012 * i, 0);
		assert_int_equal(r.wish.rung, TOP(&r));
		assert_false(r.c.dropped);
	}
	assert_int_equal(r.wish.ptes, CTL_PTES_FULL);
	assert_int_equal(r.wish.reason, REASON_KHUGEPAGED_BLOAT);
	rig_stop(&r);
}

static void test_foreign_change(void **state)
{
	struct rig r;

	(void)state;
	start_kernel_default(&r, "");
	r.in.foreign = true;
	rig_fill(&r, 1);
	assert_int_equal(r.c.state, CTL_FROZEN);
	assert_int_equal(r.wish.reason, REASON_FROZEN_FOREIGN);
	rig_fill(&r, 8);
	assert_false(r.c.raised);
	rig_fill(&r, 20);
	assert_true(r.c.raised);
	rig_stop(&r);
}

/* A drop is not put off by somebody else's write, nor forgotten. */
static void test_foreign_during_drop(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	r.in.foreign = true;
	rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	rig_stop(&r);
	start_all_on(&r, "");
	rig_thrash(&r, 0.7);
	r.in.foreign = true;
	rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	rig_stop(&r);
}

static void test_policy_range(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "[Policy \"p\"]\nMatch=g\nMinSize=16K\nMaxSize=256K\n", "g", 64 * MIB);
	rig_quiet(&r, 2);
	assert_int_equal(r.plan.rung_max_kb[r.wish.rung], 256);
	assert_int_equal(r.wish.reason, REASON_POLICY_LIMIT);
	for (int i = 0; i < 5; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.plan.rung_max_kb[r.wish.rung], 16);
	for (int i = 0; i < 300 && r.c.dropped; i++)
		rig_quiet(&r, 1);
	assert_false(r.c.dropped);
	assert_int_equal(r.plan.rung_max_kb[r.wish.rung], 256);
	rig_quiet(&r, 1);
	assert_int_equal(r.wish.reason, REASON_POLICY_LIMIT);
	rig_stop(&r);
}

/* Who waits for the way back and is hurt again is hurt, with all that follows from it. */
static void test_hurt_while_it_waits(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "[Controller]\nHold=60s..600s\n");
	drop_it(&r);
	for (int i = 0; i < 30 && r.c.state != CTL_RUN; i++)
		rig_quiet(&r, 1);
	assert_int_equal(r.c.state, CTL_RUN);
	assert_int_equal(r.c.rung, 0);
	assert_false(r.wish.hurt);
	for (int i = 0; i < 4; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	assert_true(r.wish.hurt);
	assert_int_equal(r.c.from_rung, TOP(&r));
	rig_stop(&r);
}

/* At its policy's smallest size there is nothing to take away: one drop, not one in each second. */
static void test_smallest_size_is_one_drop(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	uint64_t hold_usec, since_usec;
	struct rig r;

	(void)state;
	rig_start(&r, &t, "[Policy \"p\"]\nMatch=g\nMinSize=16K\n", "g", 64 * MIB);
	rig_quiet(&r, 2);
	for (int i = 0; i < 5; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	since_usec = r.c.since_usec;
	hold_usec = r.c.hold_usec;
	for (int i = 0; i < 4; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.since_usec, since_usec);
	assert_int_equal(r.c.hold_usec, hold_usec);
	/* A relapse doubles the hold once. */
	for (int i = 0; i < 100 && r.c.state != CTL_MEASURE; i++)
		rig_quiet(&r, 1);
	for (int i = 0; i < 20; i++)
		rig_thrash(&r, 0.7);
	assert_true(r.c.hold_usec <= 2 * hold_usec);
	rig_stop(&r);
}

/* A group without a limit shares the machine's room. */
static void test_without_limit(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "", "g", VALUE_MAX);
	for (int k = 0; k < 2; k++) {
		r.in.host_available_bytes = k ? 100 * MIB : 8 * GIB;
		for (int i = 0; i < 10; i++) {
			rig_use(&r, GIB);
			r.s.pgmajfault += 1000;
			r.s.pgfault += 1000;
			r.s.refault_anon += 3000;
			rig_second(&r, 0.5, 0.2);
		}
		assert_int_equal(r.c.dropped, k);
	}
	rig_stop(&r);
}

static void test_state_words(void **state)
{
	static const char *const words[] = { "run", "probe", "settle", "measure", "drop", "frozen",
		"no-effect" };

	(void)state;
	for (int s = CTL_RUN; s <= CTL_NO_EFFECT; s++)
		assert_string_equal(ctl_state_to_string((enum ctl_state)s), words[s]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recovery_by_rungs),
		cmocka_unit_test(test_no_room_no_step),
		cmocka_unit_test(test_gates_on_steps_up),
		cmocka_unit_test(test_hold_doubles),
		cmocka_unit_test(test_probe_failed),
		cmocka_unit_test(test_relapse),
		cmocka_unit_test(test_new_limit_forgets_holds),
		cmocka_unit_test(test_exonerated),
		cmocka_unit_test(test_drop_kept),
		cmocka_unit_test(test_acquittal_ends_with_its_regime),
		cmocka_unit_test(test_no_effect),
		cmocka_unit_test(test_no_effect_while_filling),
		cmocka_unit_test(test_raise),
		cmocka_unit_test(test_raise_failed),
		cmocka_unit_test(test_no_raise_without_a_ceiling),
		cmocka_unit_test(test_a01_khugepaged_bloat),
		cmocka_unit_test(test_foreign_change),
		cmocka_unit_test(test_foreign_during_drop),
		cmocka_unit_test(test_policy_range),
		cmocka_unit_test(test_smallest_size_is_one_drop),
		cmocka_unit_test(test_hurt_while_it_waits),
		cmocka_unit_test(test_without_limit),
		cmocka_unit_test(test_state_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
