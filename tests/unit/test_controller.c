/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/controller.c, lib/evidence.c: one group's loop. Bounds, not exact ticks:
 * constants may be tuned, behaviour may not. */
#include "controller_rig.h"

/* ---- down -------------------------------------------------------------- */

static void test_drop_on_thrashing(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_RUN); /* one second is a spike */
	rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	assert_int_equal(r.wish.reason, REASON_DROP_PRESSURE);
	assert_int_equal(r.wish.rung, 0);
	assert_true(r.wish.hurt);
	assert_true(r.wish.defrag_low);
	assert_int_equal(r.wish.ptes, CTL_PTES_FULL);
	assert_true(r.wish.harm_usec_per_sec > 500000);
	assert_float_equal(r.wish.benefit_usec_per_sec, 0, 1e-9);
	assert_int_equal(controller_wake_usec(&r.c, r.s.now_usec), 0);
	/* Without user time to prove the contrary the small sizes stay. */
	for (int i = 0; i < 120; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.state, CTL_DROP);
	assert_int_equal(r.wish.rung, 0);
	rig_stop(&r);
}

/* Pressure alone, the limit alone, hits of the limit alone: no reason. */
static void test_no_drop_without_both(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	for (int i = 0; i < 20; i++) {
		rig_room(&r);
		rig_second(&r, 0.7, 0.3);
	}
	assert_int_equal(r.c.rung, TOP(&r));
	for (int i = 0; i < 20; i++) {
		rig_full(&r);
		rig_second(&r, 0.01, 0);
	}
	assert_int_equal(r.c.rung, TOP(&r));
	/* A stream through the page cache: at its limit for ever. */
	for (int i = 0; i < 60; i++) {
		rig_full(&r);
		r.s.inactive_file = r.s.file = 32 * MIB;
		r.s.events.max += 300;
		r.s.refault_anon += 20;
		rig_second(&r, 0.15, 0.1);
	}
	assert_int_equal(r.c.rung, TOP(&r));
	assert_false(r.c.dropped);
	rig_stop(&r);
}

/* 1b.6: memory grows by far more than is touched, up to the limit. */
static void test_drop_on_bloat(void **state)
{
	struct rig r;
	uint64_t used = 64 * MIB;
	int i;

	(void)state;
	start_all_on(&r, "");
	for (i = 0; i < 20 && r.c.state != CTL_DROP; i++) {
		used = used + 40 * MIB > 256 * MIB ? 256 * MIB : used + 40 * MIB;
		sample_use(&r.s, used);
		r.s.events.max += used == 256 * MIB ? 10 : 0;
		r.s.pgfault += 300;
		r.s.thp_fault_alloc += 8;
		rig_second(&r, 0.01, 0);
	}
	assert_int_equal(r.c.state, CTL_DROP);
	assert_int_equal(r.wish.reason, REASON_DROP_BLOAT);
	assert_int_equal(r.wish.rung, 0);
	assert_true(i <= 5);
	rig_stop(&r);
	/* Growth that is touched is a program at work. */
	start_all_on(&r, "");
	for (i = 0, used = 64 * MIB; i < 20; i++) {
		used = used + 40 * MIB > 250 * MIB ? 250 * MIB : used + 40 * MIB;
		rig_use(&r, used);
		rig_second(&r, 0.01, 0);
	}
	assert_false(r.c.dropped);
	rig_stop(&r);
}

/* C11: 12 % full with half of the limit free, then 45 % with less than 5 %. */
static void test_c11_strong(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "", "g", GIB);
	for (int i = 0; i < 10; i++) {
		rig_use(&r, GIB / 2);
		rig_second(&r, 0.12, 0.12);
		assert_int_equal(r.c.rung, TOP(&r));
	}
	rig_stop(&r);
	rig_start(&r, &t, "", "g", GIB);
	rig_use(&r, GIB - GIB / 25);
	r.prev = r.s;
	for (int i = 0; i < 3; i++)
		rig_second(&r, 0.45, 0.45);
	assert_int_equal(r.wish.reason, REASON_DROP_STRONG);
	assert_int_equal(r.wish.rung, 0);
	rig_stop(&r);
}

/* C12: noise never, one spike never, sustained yes, and out again. */
static void test_c12_spike_and_noise(void **state)
{
	struct rig r;
	double left;

	(void)state;
	start_all_on(&r, "");
	for (int i = 0; i < 100; i++) {
		rig_full(&r);
		r.s.events.max += 1;
		rig_second(&r, 0.0005 + 0.0035 * (i % 10) / 10, 0);
		assert_int_equal(r.c.rung, TOP(&r));
	}
	for (int i = 0; i < 10; i++) {
		rig_full(&r);
		r.s.events.max += 10;
		rig_second(&r, i == 5 ? 0.6 : 0.05, 0);
		assert_int_equal(r.c.rung, TOP(&r));
	}
	for (int i = 0; i < 10; i++)
		rig_thrash(&r, 0.3);
	assert_int_equal(r.c.rung, 0);
	/* Falling: no new step. */
	for (int i = 0; i < 10; i++) {
		unsigned rung = r.c.rung;

		rig_full(&r);
		rig_second(&r, 0.09 - 0.005 * i, 0);
		assert_true(r.c.rung <= rung);
	}
	/* Noise again: out, within the hold and some settling for each rung. */
	left = rig_age(&r);
	while (r.c.dropped && rig_age(&r) < left + 300)
		rig_quiet(&r, 1);
	assert_false(r.c.dropped);
	assert_int_equal(r.c.rung, TOP(&r));
	rig_stop(&r);
}

/* A29: a group's own threshold, in microseconds per second. */
static void test_a29_own_threshold(void **state)
{
	static const char *const limit[] = { "50ms/s", "100ms/s" };
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
	char text[128];

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;

		snprintf(text, sizeof(text), "[Policy \"db\"]\nMatch=db.slice\nPressureHigh=%s\n", limit[k]);
		rig_start(&r, &t, text, "db.slice", 256 * MIB);
		assert_non_null(r.policy);
		for (int i = 0; i < 10; i++) {
			rig_full(&r);
			r.s.psi.some.avg10_centi = 30;
			r.s.events.max += 20;
			r.s.refault_anon += 800;
			r.s.pgmajfault += 300;
			r.s.pgfault += 300;
			rig_second(&r, 0.060, 0);
		}
		assert_int_equal(r.c.dropped, k == 0);
		rig_stop(&r);
	}
}

/* C01, C03: without PSI the counters of the limit have to do. */
static void test_c01_without_psi(void **state)
{
	struct rig r;
	int i;

	(void)state;
	start_all_on(&r, "");
	r.s.psi_off = true;
	for (i = 0; i < 10 && !r.c.dropped; i++)
		rig_thrash(&r, -1);
	assert_true(r.c.dropped);
	assert_true(i <= 4);
	assert_float_equal(r.c.some, -1, 1e-9);
	assert_true(r.wish.harm_usec_per_sec >= 0);
	/* And it recovers. */
	for (i = 0; i < 300 && r.c.dropped; i++) {
		rig_room(&r);
		rig_second(&r, -1, -1);
	}
	assert_false(r.c.dropped);
	/* memory.events alone, with anonymous memory up to the limit. */
	for (i = 0; i < 10 && !r.c.dropped; i++) {
		rig_full(&r);
		r.s.events.high += 20;
		r.s.events.max += 20;
		rig_second(&r, -1, -1);
	}
	assert_true(r.c.dropped);
	rig_stop(&r);
}

/* D10: very many dying cgroups explain pressure; folios are not blamed. */
static void test_d10_dying(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	r.in.dying = true;
	for (int i = 0; i < 20; i++) {
		rig_full(&r);
		r.s.anon_thp = r.s.anon / 100;
		r.s.events.max += 20;
		rig_second(&r, 0.2, 0.1);
	}
	assert_int_equal(r.c.rung, TOP(&r));
	/* Memory that comes back from swap is a cost whatever else dies. */
	for (int i = 0; i < 5; i++)
		rig_thrash(&r, 0.7);
	assert_int_equal(r.c.rung, 0);
	rig_stop(&r);
}

/* ---- OOM kills and folios that do not fit ------------------------------ */

/* A08: a 15 MiB container is killed; only the 2 MiB size goes. */
static void test_a08_tiny_limit(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct rig r;

	(void)state;
	tree_size(&t, 64, SIZE_ALWAYS);
	for (int two = 0; two < 2; two++) {
		if (two) {
			t = tree_empty(4, 2048, TOP_MADVISE);
			tree_size(&t, 64, SIZE_ALWAYS);
			tree_size(&t, 2048, SIZE_INHERIT);
		}
		rig_start(&r, &t, "", "pod/ctr", 15728640);
		sample_use(&r.s, 15623782);
		r.prev = r.s;
		r.s.events.oom_kill = r.s.events.oom = 1;
		rig_second(&r, 0, 0);
		for (unsigned i = 0; i < r.plan.n_sizes; i++) {
			const struct plan_size *z = &r.plan.sizes[i];
			enum plan_level l = plan_rung_level(&r.plan, z, r.wish.rung, r.wish.raised);

			if (z->size_kb == 2048)
				assert_int_equal(plan_strength(&r.plan, z, l), THP_NEVER);
			if (z->size_kb == 64)
				assert_int_equal(plan_strength(&r.plan, z, l), THP_ALWAYS);
		}
		assert_int_equal(r.wish.reason, REASON_OOM_KILL);
		rig_stop(&r);
	}
}

/* A08 at zero PSI and before any kill: a 2 MiB folio does not fit any more. */
static void test_a08_risk_without_kill(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct rig r;

	(void)state;
	tree_size(&t, 64, SIZE_ALWAYS);
	rig_start(&r, &t, "", "pod/ctr", 15728640);
	sample_use(&r.s, 15623782);
	r.prev = r.s;
	rig_second(&r, 0, 0);
	assert_int_equal(r.wish.reason, REASON_OVERSIZED_FOLIO);
	assert_int_equal(plan_largest_on_kb(&r.plan, r.wish.rung, r.wish.raised), 64);
	assert_false(r.wish.defrag_low);
	rig_stop(&r);
}

/* A11: 512 MiB PMD folios against a 16 GiB limit at 16.9 GB. */
static void test_a11_large_pmd(void **state)
{
	struct thp_tree t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	struct rig r;

	(void)state;
	assert_int_equal(t.max_ptes_none, 8191);
	rig_start(&r, &t, "", "db", UINT64_C(17179869184));
	sample_use(&r.s, UINT64_C(16900000000));
	r.prev = r.s;
	rig_second(&r, 0, 0);
	assert_int_equal(r.wish.reason, REASON_OVERSIZED_FOLIO);
	assert_true(r.plan.rung_max_kb[r.wish.rung] < 524288);
	rig_stop(&r);
	/* The same folio with room around it is nobody's risk. */
	rig_start(&r, &t, "", "db", UINT64_C(17179869184));
	sample_use(&r.s, GIB);
	r.prev = r.s;
	rig_second(&r, 0, 0);
	assert_int_equal(r.wish.rung, TOP(&r));
	rig_stop(&r);
}

static void test_oom_freezes(void **state)
{
	struct rig r;
	uint64_t killed;

	(void)state;
	start_all_on(&r, "");
	r.s.events.oom_kill++;
	rig_full(&r);
	rig_second(&r, 0.05, 0.05);
	killed = r.s.now_usec;
	assert_int_equal(r.c.state, CTL_FROZEN);
	assert_true(r.wish.rung < TOP(&r));
	assert_true(r.wish.hurt);
	assert_true(r.wish.harm_usec_per_sec >= SEC); /* whatever it stalled before */
	/* Nothing goes up for a minute, however quiet it is. */
	while (r.s.now_usec < killed + 59 * SEC) {
		unsigned rung = r.c.rung;

		rig_quiet(&r, 1);
		assert_int_equal(r.c.state, CTL_FROZEN);
		assert_int_equal(r.c.rung, rung);
	}
	rig_quiet(&r, 240);
	assert_int_equal(r.c.rung, TOP(&r));
	rig_stop(&r);
	/* A limit against which no folio is large: the larger half goes, and all of
	 * them where the group stalls as well. */
	start_all_on(&r, "");
	r.s.limit_bytes = r.s.max_bytes = GIB;
	rig_full(&r);
	r.s.events.oom_kill++;
	rig_second(&r, 0.05, 0.05);
	assert_int_equal(r.wish.rung, plan_rung_for(&r.plan, 64));
	rig_stop(&r);
	start_all_on(&r, "");
	r.s.limit_bytes = r.s.max_bytes = GIB;
	rig_full(&r);
	r.s.events.oom_kill++;
	rig_second(&r, 0.5, 0.5);
	assert_int_equal(r.wish.rung, 0);
	rig_stop(&r);
}

/* Killed while some sizes are back: those that are on have to go. */
static void test_oom_on_the_way_up(void **state)
{
	struct rig r;

	(void)state;
	start_all_on(&r, "");
	drop_it(&r);
	for (int i = 0; i < 100 && r.c.rung < 2; i++)
		rig_quiet(&r, 1);
	assert_int_equal(r.plan.rung_max_kb[r.c.rung], 64);
	r.s.events.oom_kill++;
	rig_full(&r);
	rig_second(&r, 0.05, 0.05);
	assert_int_equal(r.c.state, CTL_FROZEN);
	assert_int_equal(r.wish.rung, 0);
	rig_stop(&r);
}

/* With everything off a kill says nothing about folios. */
static void test_oom_with_nothing_on(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_NEVER, SIZE_NEVER);
	struct rig r;

	(void)state;
	rig_start(&r, &t, "", "g", 64 * MIB);
	for (int i = 0; i < 5; i++) {
		r.s.events.oom_kill++;
		rig_thrash(&r, 0.7);
	}
	assert_false(r.c.dropped);
	assert_int_equal(r.c.state, CTL_RUN);
	rig_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_on_thrashing),
		cmocka_unit_test(test_no_drop_without_both),
		cmocka_unit_test(test_drop_on_bloat),
		cmocka_unit_test(test_c11_strong),
		cmocka_unit_test(test_c12_spike_and_noise),
		cmocka_unit_test(test_a29_own_threshold),
		cmocka_unit_test(test_c01_without_psi),
		cmocka_unit_test(test_d10_dying),
		cmocka_unit_test(test_a08_tiny_limit),
		cmocka_unit_test(test_a08_risk_without_kill),
		cmocka_unit_test(test_a11_large_pmd),
		cmocka_unit_test(test_oom_freezes),
		cmocka_unit_test(test_oom_on_the_way_up),
		cmocka_unit_test(test_oom_with_nothing_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
