/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/loop.c: reload, removal, holds, idle groups. */
#include "loop_rig.h"

/* Long enough for a drop. */
static void thrash(struct loop_rig *r, struct memcg_sample *s)
{
	for (int i = 0; i < 5; i++) {
		sample_thrash(s);
		lrig_tick(r);
	}
}

/* ---- life -------------------------------------------------------------- */

static void test_reconfigure_keeps_what_was_learned(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	thrash(&r, s);
	expect_sizes(&r, "never");
	lrig_reload(&r, "[Limits]\nSizes=16K 64K 2M\n[Controller]\nMaxChangesPerHour=7\n");
	assert_int_equal(r.group[0]->ctl.state, CTL_DROP);
	/* No passing through the start values. */
	for (int i = 0; i < 5; i++) {
		sample_thrash(s);
		loop_begin(r.loop, r.now_usec);
		loop_decide(r.loop, false);
		for (unsigned k = 0; k < r.loop->n_wants; k++)
			if (r.loop->wants[k].is_size)
				assert_string_equal(r.loop->wants[k].value, "never");
		lrig_tick(&r);
	}
	assert_int_equal(r.loop->rate.size, 7);
	assert_int_equal(r.loop->rate.n, 1);
	assert_string_equal(size_value(&r, 32), "");
	for (int i = 0; i < 300; i++) {
		sample_quiet(s);
		lrig_tick(&r);
	}
	assert_string_equal(size_value(&r, 64), "inherit");
	assert_string_equal(size_value(&r, 2048), "inherit");
	lrig_stop(&r);
}

/* A policy that appears with a reload is looked up anew. */
static void test_reconfigure_looks_up_policies(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	lrig_add(&r, "web", 256 * MIB);
	for (int i = 0; i < 5; i++)
		lrig_tick(&r);
	lrig_reload(&r, "[Policy \"w\"]\nMatch=web\nMaxSize=64K\n");
	for (int i = 0; i < 5; i++)
		lrig_tick(&r);
	assert_string_equal(size_value(&r, 64), "inherit");
	assert_string_equal(size_value(&r, 128), "never");
	assert_int_equal(
		loop_want_for(r.loop, "hugepages-128kB/enabled")->reason, REASON_POLICY_LIMIT);
	lrig_reload(&r, "[Policy \"w\"]\nMatch=web\nControlled=no\n");
	for (int i = 0; i < 5; i++)
		lrig_tick(&r);
	assert_string_equal(size_value(&r, 128), "inherit");
	lrig_stop(&r);
}

/* A group in the middle of a step up is not controlled any more: the others are not kept waiting. */
static void test_left_alone_in_a_step_up(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *a, *b;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	a = lrig_add(&r, "a", 256 * MIB);
	b = lrig_add(&r, "b", 256 * MIB);
	lrig_tick(&r);
	for (int i = 0; i < 5; i++) {
		sample_thrash(a);
		sample_thrash(b);
		lrig_tick(&r);
	}
	for (int i = 0; i < 100 && r.group[0]->ctl.state != CTL_SETTLE; i++) {
		sample_quiet(a);
		sample_thrash(b);
		lrig_tick(&r);
	}
	assert_int_equal(r.group[0]->ctl.state, CTL_SETTLE);
	lrig_reload(&r, "[Policy \"x\"]\nMatch=a\nControlled=no\n");
	for (int i = 0; i < 300; i++) {
		sample_quiet(b);
		lrig_tick(&r);
	}
	assert_false(r.group[1]->ctl.dropped);
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

/* What a drop has taken is known after a reload too. */
static void test_reload_in_a_drop(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;
	unsigned from;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	thrash(&r, s);
	from = r.group[0]->ctl.from_rung;
	assert_int_equal(r.group[0]->ctl.rung, 0);
	assert_int_equal(from, plan_top(&r.loop->plan));
	lrig_reload(&r, "");
	assert_int_equal(r.group[0]->ctl.rung, 0);
	assert_int_equal(r.group[0]->ctl.from_rung, from);
	lrig_stop(&r);
}

/* A start value above MaxMode= is left alone until it was lowered; from then on it is bound. */
static void test_way_back_below_the_ceiling(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "[Limits]\nMaxMode=madvise\n[Policy \"p\"]\nMatch=p\nProtect=yes\n");
	lrig_add(&r, "p", 256 * MIB);
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	expect_sizes(&r, "inherit");
	thrash(&r, s);
	expect_sizes(&r, "madvise");
	for (int i = 0; i < 300; i++) {
		sample_quiet(s);
		lrig_tick(&r);
		expect_sizes(&r, "madvise");
	}
	assert_false(r.group[1]->ctl.dropped);
	lrig_stop(&r);
}

static void test_removed_group_is_no_cause(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	thrash(&r, s);
	assert_ptr_equal(loop_want_for(r.loop, "hugepages-64kB/enabled")->cause, r.group[0]);
	loop_group_remove(r.loop, r.group[0]);
	r.n = 0;
	for (unsigned i = 0; i < r.loop->n_wants; i++)
		assert_null(r.loop->wants[i].cause);
	/* Its wish goes with it. */
	lrig_tick(&r);
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

static void test_held(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	for (int i = 0; i < 20; i++) {
		sample_thrash(s);
		r.now_usec += SEC;
		r.host.now_usec = s->now_usec = r.now_usec;
		loop_begin(r.loop, r.now_usec);
		loop_observe_host(r.loop, &r.in);
		loop_observe(r.loop, r.group[0], s);
		assert_false(loop_decide(r.loop, true));
	}
	expect_sizes(&r, "inherit");
	for (unsigned i = 0; i < r.loop->n_wants; i++)
		if (r.loop->wants[i].is_size)
			assert_string_equal(r.loop->wants[i].value, "inherit");
	/* What was seen meanwhile counts at once. */
	sample_thrash(s);
	assert_true(lrig_tick(&r) > 0);
	expect_sizes(&r, "never");
	lrig_stop(&r);
}

/* D21: another inode under the same path is a new start, not a jump. */
static void test_d21_new_inode(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "unit.service", 256 * MIB);
	s->events.max = 500;
	lrig_tick(&r);
	lrig_tick(&r);
	s->id++;
	s->events.max = 3;
	s->events.oom_kill = 1;
	lrig_tick(&r);
	lrig_tick(&r);
	assert_int_equal(r.writes, 0);
	s->events.max = 1; /* backwards on the same inode */
	lrig_tick(&r);
	assert_int_equal(r.group[0]->delta.d_max, 0);
	assert_int_equal(r.group[0]->delta.anomalies, 1);
	assert_int_equal(r.writes, 0);
	lrig_stop(&r);
}

static void test_legacy_switch(void **state)
{
	struct thp_tree t = tree_empty(4, 2048, TOP_ALWAYS);
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	t.shrink_underused = VALUE_ABSENT;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	lrig_tick(&r);
	thrash(&r, s);
	assert_string_equal(lrig_value(&r, "enabled"), "never");
	assert_string_equal(lrig_value(&r, "khugepaged/max_ptes_none"), "0");
	assert_null(loop_want_for(r.loop, "shrink_underused"));
	lrig_stop(&r);
}

/* A group whose memory is gone from sight is quiet, and forgotten. */
static void test_idle_and_wake(void **state)
{
	struct thp_tree t = all_on();
	struct memcg_sample *s;
	struct loop_rig r;

	(void)state;
	lrig_start(&r, &t, "");
	s = lrig_add(&r, "g", 256 * MIB);
	for (int i = 0; i < 3; i++)
		lrig_tick(&r);
	assert_true(loop_group_idle(r.loop, r.group[0]));
	thrash(&r, s);
	assert_false(loop_group_idle(r.loop, r.group[0]));
	assert_int_equal(loop_wake_usec(r.loop), 0);
	for (int i = 0; i < 400; i++) {
		sample_quiet(s);
		lrig_tick(&r);
	}
	assert_true(loop_group_idle(r.loop, r.group[0]));
	assert_int_equal(loop_wake_usec(r.loop), VALUE_ABSENT);
	lrig_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reconfigure_keeps_what_was_learned),
		cmocka_unit_test(test_reconfigure_looks_up_policies),
		cmocka_unit_test(test_left_alone_in_a_step_up),
		cmocka_unit_test(test_reload_in_a_drop),
		cmocka_unit_test(test_way_back_below_the_ceiling),
		cmocka_unit_test(test_removed_group_is_no_cause),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_d21_new_inode),
		cmocka_unit_test(test_legacy_switch),
		cmocka_unit_test(test_idle_and_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
