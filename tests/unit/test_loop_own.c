/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop where groups have files of their own: nobody decides for another. */
#include "loop_rig.h"

static const struct own_values start_values = { { "max", "inherit", "inherit" } };

static struct memcg_sample *add_own(struct loop_rig *r, const char *path, uint64_t limit)
{
	struct memcg_sample *s = lrig_add(r, path, limit);

	s->thp_scanned = s->thp_young = s->pswpin = s->pswpout = 0;
	s->margin_anon = s->margin_swpin = s->margin_shmem = s->margin_collapse = 0;
	loop_group_own(r->loop, r->group[r->n - 1], &start_values, &start_values);
	return s;
}

/* As the engine does: what is wanted is written. Returns the number of writes. */
static unsigned apply_own(struct loop_rig *r, unsigned i)
{
	struct loop_group *g = r->group[i];
	unsigned n = 0;

	for (unsigned f = 0; f < OWN_FILES; f++)
		n += strcmp(g->own.want.value[f], g->own.stands.value[f]) != 0;
	g->own.stands = g->own.want;
	if (n)
		loop_group_applied(r->loop, g, r->now_usec);
	return n;
}

static unsigned tick(struct loop_rig *r)
{
	unsigned n = lrig_tick(r);

	for (unsigned i = 0; i < r->n; i++)
		n += apply_own(r, i);
	return n;
}

static const char *stands(const struct loop_rig *r, unsigned i, enum own_file f)
{
	return r->group[i]->own.stands.value[f];
}

/* A second at the limit with every page of the large folios in use. */
static void sample_dense(struct memcg_sample *s)
{
	sample_thrash(s);
	s->pswpin += 1100;
	s->margin_swpin += 70;
	s->thp_scanned += 1200;
	s->thp_young += 1190;
}

static void sample_scattered(struct memcg_sample *s)
{
	sample_thrash(s);
	s->refault_anon -= 2700; /* single pages: the kernel's gate is shut */
	s->pswpin += 1100;
	s->margin_swpin += 1;
	s->thp_scanned += 1600;
	s->thp_young += 320;
}

static void test_opposite_wishes(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;
	struct memcg_sample *dense, *scattered, *killed, *quiet;
	unsigned writes;

	(void)state;
	lrig_start(&r, &t, "");
	dense = add_own(&r, "dense.service", 64 * MIB);
	scattered = add_own(&r, "scattered.service", 64 * MIB);
	killed = add_own(&r, "killed.service", 64 * MIB);
	quiet = add_own(&r, "quiet.service", 64 * MIB);
	writes = r.writes;
	for (int i = 0; i < 20; i++) {
		sample_dense(dense);
		sample_scattered(scattered);
		sample_thrash(killed);
		if (i == 5)
			killed->events.oom_kill++;
		sample_quiet(quiet);
		tick(&r);
	}
	assert_string_equal(stands(&r, 0, OWN_MARGIN), "0");
	assert_string_equal(stands(&r, 0, OWN_MAX_SIZE), "max");
	assert_int_equal(r.group[0]->wish.gate_reason, REASON_GATE_OPEN);
	assert_string_equal(stands(&r, 1, OWN_MARGIN), "inherit");
	assert_string_equal(stands(&r, 1, OWN_MAX_SIZE), "max");
	assert_string_equal(stands(&r, 2, OWN_MAX_SIZE), "4096");
	assert_int_equal(r.group[2]->wish.reason, REASON_OOM_KILL);
	assert_string_equal(stands(&r, 3, OWN_MAX_SIZE), "max");
	/* The switches of all never moved. */
	assert_int_equal(r.writes, writes);
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

/* With PerGroup=no the files are left alone, and the switches of all are steered. */
static void test_switched_off(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;
	struct memcg_sample *s;

	(void)state;
	lrig_start(&r, &t, "[Limits]\nPerGroup=no\n");
	s = add_own(&r, "a.service", 64 * MIB);
	for (int i = 0; i < 20; i++) {
		sample_thrash(s);
		tick(&r);
	}
	assert_string_equal(stands(&r, 0, OWN_MAX_SIZE), "max");
	expect_sizes(&r, "never");
	lrig_stop(&r);
}

/* The memory that a verdict was about is gone: nothing waits for a hold. An OOM kill's
 * freeze lasts all the same. */
static void test_fresh_start(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;
	struct memcg_sample *dense, *killed;

	(void)state;
	lrig_start(&r, &t, "");
	dense = add_own(&r, "dense.service", 64 * MIB);
	killed = add_own(&r, "killed.service", 64 * MIB);
	for (int i = 0; i < 20; i++) {
		sample_dense(dense);
		sample_thrash(killed);
		if (i == 3)
			killed->events.oom_kill++;
		tick(&r);
	}
	assert_string_equal(stands(&r, 0, OWN_MARGIN), "0");
	assert_string_equal(stands(&r, 1, OWN_MAX_SIZE), "4096");
	sample_use(dense, 4 * MIB);
	sample_use(killed, 4 * MIB);
	tick(&r);
	assert_string_equal(stands(&r, 0, OWN_MARGIN), "inherit");
	assert_int_equal(r.group[0]->wish.gate_reason, REASON_FRESH_START);
	assert_string_equal(stands(&r, 1, OWN_MAX_SIZE), "4096");
	lrig_stop(&r);
}

static void test_policy_and_small_groups(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;
	struct memcg_sample *small, *large;

	(void)state;
	lrig_start(&r, &t, "[Controller]\nSmallGroup=16M\n[Policy \"x\"]\nMatch=large.service\n"
			   "MaxSize=64K\nMaxPtesNone=7\n");
	small = add_own(&r, "small.service", 64 * MIB);
	large = add_own(&r, "large.service", GIB);
	for (int i = 0; i < 3; i++) {
		sample_use(small, 8 * MIB);
		sample_use(large, 512 * MIB);
		tick(&r);
	}
	assert_string_equal(stands(&r, 0, OWN_MAX_SIZE), "4096");
	assert_int_equal(r.group[0]->own.reason[OWN_MAX_SIZE], REASON_SMALL_GROUP);
	assert_string_equal(stands(&r, 1, OWN_MAX_SIZE), "65536");
	assert_string_equal(stands(&r, 1, OWN_MAX_PTES_NONE), "7");
	assert_false(loop_group_idle(r.loop, r.group[0]));
	/* Only a policy keeps the one; that the other outgrows SmallGroup= is seen by looking. */
	assert_false(loop_group_rests(r.loop, r.group[0]));
	sample_use(small, 32 * MIB);
	sample_use(large, 512 * MIB);
	tick(&r);
	assert_string_equal(stands(&r, 0, OWN_MAX_SIZE), "max");
	expect_sizes(&r, "inherit");
	lrig_stop(&r);
}

/* Never more than six decisions a minute for one group, whatever it does; others do not count. */
static void test_rate_per_group(void **state)
{
	struct thp_tree t = all_on();
	struct loop_rig r;
	struct memcg_sample *a, *b;
	unsigned n = 0;

	(void)state;
	lrig_start(&r, &t, "[Controller]\nSmallGroup=16M\n");
	a = add_own(&r, "a.service", 64 * MIB);
	b = add_own(&r, "b.service", 64 * MIB);
	for (int i = 0; i < 60; i++) {
		sample_use(a, i & 1 ? 8 * MIB : 32 * MIB);
		sample_use(b, i < 50 ? 32 * MIB : 8 * MIB);
		lrig_tick(&r);
		n += apply_own(&r, 0) > 0;
		apply_own(&r, 1);
	}
	assert_in_range(n, 5, RATE_PER_MINUTE);
	assert_string_equal(stands(&r, 1, OWN_MAX_SIZE), "4096");
	lrig_stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opposite_wishes),
		cmocka_unit_test(test_switched_off),
		cmocka_unit_test(test_fresh_start),
		cmocka_unit_test(test_policy_and_small_groups),
		cmocka_unit_test(test_rate_per_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
