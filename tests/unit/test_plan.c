/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/plan.c: ceilings, words and ladders ("Ceiling" in the design). */
#include "loop_world.h"

static const char *const mode_word[] = { "never", "madvise", "always", "inherit" };
static const char *const size_text[] = { SIZE_NEVER, SIZE_MADVISE, SIZE_ALWAYS, SIZE_INHERIT };
static const char *const top_text[] = { TOP_NEVER, TOP_MADVISE, TOP_ALWAYS };

static void expect_words(const struct plan *p, uint64_t size_kb, const char *off, const char *asked,
	const char *base, const char *raised)
{
	const struct plan_size *s = plan_find(p, size_kb);

	assert_true(s->managed);
	assert_string_equal(plan_word(p, s, PLAN_OFF), off);
	assert_string_equal(plan_word(p, s, PLAN_ASKED), asked);
	assert_string_equal(plan_word(p, s, PLAN_BASE), base);
	assert_string_equal(plan_word(p, s, PLAN_RAISED), raised);
}

/* ---- MaxMode=inherit --------------------------------------------------- */

static void test_kernel_default(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "");

	(void)state;
	/* never below a top level of always is only the kernel's default. */
	expect_words(&p, 64, "never", "never", "never", "inherit");
	expect_words(&p, 2048, "never", "madvise", "inherit", "inherit");
	assert_int_equal(plan_strength(&p, plan_find(&p, 64), PLAN_RAISED), THP_ALWAYS);
	assert_true(plan_can_raise(&p));
}

/* A34: madvise at the top: never more than madvise anywhere. */
static void test_a34_top_madvise(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct plan p = plan_of(&t, "");

	(void)state;
	for (unsigned i = 0; i < p.n_sizes; i++)
		for (int l = PLAN_OFF; l <= PLAN_RAISED; l++)
			assert_true(plan_strength(&p, &p.sizes[i], (enum plan_level)l) <= THP_MADVISE);
	expect_words(&p, 64, "never", "never", "never", "inherit");
	/* The administrator now says always: the ceiling follows. */
	set_choice(&t.enabled, TOP_ALWAYS);
	p = plan_of(&t, "");
	assert_int_equal(plan_strength(&p, plan_find(&p, 64), PLAN_RAISED), THP_ALWAYS);
}

static void test_own_above_top(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_ALWAYS);
	struct plan p = plan_of(&t, "");

	(void)state;
	expect_words(&p, 64, "never", "madvise", "always", "always");
	expect_words(&p, 2048, "never", "inherit", "inherit", "inherit");
}

/* A top level of never leaves each size its own start value. */
static void test_top_never(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_NEVER, SIZE_NEVER);
	struct plan p;

	(void)state;
	tree_size(&t, 64, SIZE_ALWAYS);
	tree_size(&t, 32, SIZE_MADVISE);
	p = plan_of(&t, "");
	expect_words(&p, 16, "never", "never", "never", "never");
	expect_words(&p, 32, "never", "madvise", "madvise", "madvise");
	expect_words(&p, 64, "never", "madvise", "always", "always");
	assert_int_equal(plan_strength(&p, plan_find(&p, 2048), PLAN_RAISED), THP_NEVER);
	assert_false(plan_can_raise(&p));
}

/* ---- MaxMode=madvise, always ------------------------------------------- */

static void test_max_mode_madvise(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p;

	(void)state;
	tree_size(&t, 64, SIZE_ALWAYS);
	p = plan_of(&t, "[Limits]\nMaxMode=madvise\n");
	expect_words(&p, 16, "never", "never", "never", "madvise");
	/* It bounds also what a step up puts back. */
	expect_words(&p, 64, "never", "madvise", "madvise", "madvise");
	expect_words(&p, 2048, "never", "madvise", "madvise", "madvise");
	/* Nobody granted anything here. */
	t = tree_full(4, 2048, TOP_NEVER, SIZE_NEVER);
	p = plan_of(&t, "[Limits]\nMaxMode=madvise\n");
	assert_int_equal(plan_strength(&p, plan_find(&p, 64), PLAN_RAISED), THP_NEVER);
}

static void test_max_mode_always(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_MADVISE, SIZE_NEVER);
	struct plan p = plan_of(&t, "[Limits]\nMaxMode=always\n");

	(void)state;
	expect_words(&p, 64, "never", "never", "never", "always");
	assert_int_equal(plan_strength(&p, plan_find(&p, 2048), PLAN_BASE), THP_MADVISE);
	assert_int_equal(plan_strength(&p, plan_find(&p, 2048), PLAN_RAISED), THP_ALWAYS);
}

/* A33: transparent_hugepage=never on the command line is absolute. */
static void test_a33_boot_never(void **state)
{
	static const char *const modes[] = { "inherit", "madvise", "always" };
	struct thp_tree t = tree_full(4, 2048, TOP_NEVER, SIZE_NEVER);
	char text[64];
	struct plan p;

	(void)state;
	tree_size(&t, 64, SIZE_MADVISE);
	for (int i = 0; i < 3; i++) {
		struct config *c;

		snprintf(text, sizeof(text), "[Limits]\nMaxMode=%s\n", modes[i]);
		c = config_of(text);
		plan_build(&t, c, true, 16 * MIB, &p);
		config_free(c);
		assert_true(p.boot_never);
		assert_false(plan_can_raise(&p));
		expect_words(&p, 16, "never", "never", "never", "never");
		/* Only what was found at start may be put back. */
		expect_words(&p, 64, "never", "madvise", "madvise", "madvise");
	}
}

/* ---- files that are different ------------------------------------------ */

/* A03: no per-size files, the switch itself is what is steered. */
static void test_a03_legacy(void **state)
{
	struct thp_tree t = tree_empty(4, 2048, TOP_ALWAYS);
	struct plan p;

	(void)state;
	t.shrink_underused = VALUE_ABSENT;
	p = plan_of(&t, "");
	assert_true(p.legacy);
	assert_int_equal(p.n_sizes, 1);
	assert_int_equal(p.n_rungs, 2);
	expect_words(&p, 2048, "never", "madvise", "always", "always");
	assert_false(plan_can_raise(&p));
	assert_int_equal(p.shrink_underused, VALUE_ABSENT);
	set_choice(&t.enabled, TOP_NEVER);
	p = plan_of(&t, "");
	expect_words(&p, 2048, "never", "never", "never", "never");
	set_choice(&t.enabled, TOP_MADVISE);
	p = plan_of(&t, "");
	expect_words(&p, 2048, "never", "madvise", "madvise", "madvise");
	p = plan_of(&t, "[Limits]\nMaxMode=always\n");
	expect_words(&p, 2048, "never", "madvise", "madvise", "always");
	set_choice(&t.enabled, TOP_ALWAYS);
	p = plan_of(&t, "[Limits]\nMaxMode=madvise\n");
	expect_words(&p, 2048, "never", "madvise", "madvise", "madvise");
}

/* B02: only words that the file lists; a weaker one otherwise. */
static void test_b02_words_not_listed(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p;

	(void)state;
	tree_size(&t, 16, "always madvise [never]");
	tree_size(&t, 32, "madvise [never]");
	tree_size(&t, 64, "[always] never");
	tree_size(&t, 128, "[always] madvise");
	t.sizes[4].enabled.n = 0;
	t.sizes[4].enabled_unparseable = true;
	p = plan_of(&t, "");
	/* No inherit: what inherit comes to. */
	expect_words(&p, 16, "never", "never", "never", "always");
	expect_words(&p, 32, "never", "never", "never", "madvise");
	/* No madvise: never. */
	expect_words(&p, 64, "never", "never", "always", "always");
	/* Cannot be turned off, or not understood: not steered. */
	assert_false(plan_find(&p, 128)->managed);
	assert_false(plan_find(&p, 256)->managed);
}

static void test_sizes_named(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "[Limits]\nSizes=smallest 64K pmd\n");

	(void)state;
	for (unsigned i = 0; i < p.n_sizes; i++)
		assert_int_equal(p.sizes[i].managed, p.sizes[i].size_kb == 16 ||
							     p.sizes[i].size_kb == 64 ||
							     p.sizes[i].size_kb == 2048);
	assert_int_equal(p.n_rungs, 4);
	assert_int_equal(p.rung_max_kb[1], 16);
	assert_int_equal(p.rung_max_kb[2], 64);
	assert_int_equal(p.rung_max_kb[3], 2048);
}

/* B15: 16K pages, sizes named as pmd and as numbers, one that is not there. */
static void test_b15_sizes_16k(void **state)
{
	struct thp_tree t = tree_full(16, 32768, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "[Limits]\nSizes=64K 2M pmd 1G\n");
	unsigned managed = 0;

	(void)state;
	for (unsigned i = 0; i < p.n_sizes; i++)
		managed += p.sizes[i].managed;
	assert_int_equal(managed, 3);
	assert_true(plan_find(&p, 64)->managed);
	assert_true(plan_find(&p, 2048)->managed);
	assert_true(plan_find(&p, 32768)->managed);
	assert_int_equal(p.ptes_base, 2047);
}

/* ---- ladders ----------------------------------------------------------- */

static void expect_ladder(const struct plan *p, const uint64_t *max_kb, unsigned n)
{
	assert_int_equal(p->n_rungs, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(p->rung_max_kb[i], max_kb[i]);
}

static void test_ladders(void **state)
{
	static const uint64_t on_4k[] = { 0, 16, 64, 256, 1024, 2048 };
	static const uint64_t on_16k[] = { 0, 64, 256, 1024, 4096, 16384, 32768 };
	static const uint64_t on_64k[] = { 0, 256, 1024, 4096, 16384, 65536, 262144, 524288 };
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "");

	(void)state;
	expect_ladder(&p, on_4k, 6);
	assert_int_equal(p.rung_max_kb[p.raise_rung], 64);
	t = tree_full(16, 32768, TOP_ALWAYS, SIZE_NEVER);
	p = plan_of(&t, "");
	expect_ladder(&p, on_16k, 7);
	assert_int_equal(p.rung_max_kb[p.raise_rung], 256);
	t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	p = plan_of(&t, "");
	expect_ladder(&p, on_64k, 8);
	assert_int_equal(p.rung_max_kb[p.raise_rung], 1024);
	t = tree_empty(4, 2048, TOP_ALWAYS);
	tree_size(&t, 2048, SIZE_INHERIT);
	p = plan_of(&t, "");
	assert_int_equal(p.n_rungs, 2);
	assert_false(plan_can_raise(&p));
}

static void test_ladder_without_sizes(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "[Limits]\nSizes=1G\n");

	(void)state;
	assert_int_equal(p.n_rungs, 1);
	assert_int_equal(plan_top(&p), 0);
	assert_false(plan_can_raise(&p));
	assert_int_equal(plan_rung_up(&p, 0, false), 0);
	assert_int_equal(plan_largest_on_kb(&p, 0, true), 0);
}

/* Rungs whose sizes were off anyway are no steps. */
static void test_rungs_with_effect(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "");

	(void)state;
	assert_int_equal(plan_rung_up(&p, 0, false), 5);
	assert_int_equal(plan_rung_down(&p, 5, false), 4);
	assert_int_equal(plan_rung_down(&p, 4, false), 4);
	assert_int_equal(plan_rung_up(&p, 5, false), 5);
	assert_int_equal(plan_rung_up(&p, 0, true), 1);
	assert_int_equal(plan_rung_up(&p, 1, true), 4);
	assert_int_equal(plan_rung_up(&p, 4, true), 5);
	assert_int_equal(plan_largest_on_kb(&p, 4, false), 0);
	assert_int_equal(plan_largest_on_kb(&p, 5, false), 2048);
	assert_int_equal(plan_largest_on_kb(&p, 4, true), 64);
	assert_int_equal(plan_rung_for(&p, 15), 0);
	assert_int_equal(plan_rung_for(&p, 16), 1);
	assert_int_equal(plan_rung_for(&p, 63), 1);
	assert_int_equal(plan_rung_for(&p, 2048), 5);
	assert_int_equal(plan_rung_for(&p, UINT64_MAX / 2), 5);
	/* Raising stops at raise_rung. */
	assert_int_equal(plan_rung_level(&p, plan_find(&p, 64), 5, true), PLAN_RAISED);
	assert_int_equal(plan_rung_level(&p, plan_find(&p, 128), 5, true), PLAN_BASE);
	assert_int_equal(plan_rung_level(&p, plan_find(&p, 128), 2, true), PLAN_OFF);
}

/* ---- a PMD size that is a risk by itself ------------------------------- */

static void test_a12_pmd_too_large(void **state)
{
	struct thp_tree t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	struct config *c = config_of("");
	struct plan p;

	(void)state;
	plan_build(&t, c, false, 6291456, &p);
	assert_int_equal(p.pmd_too_large_kb, 524288);
	expect_words(&p, 524288, "never", "madvise", "madvise", "madvise");
	/* Others keep what they had. */
	assert_int_equal(plan_strength(&p, plan_find(&p, 1024), PLAN_RAISED), THP_ALWAYS);
	/* Memory enough, or not known, or asked for: no such bound. */
	plan_build(&t, c, false, UINT64_C(64) << 20, &p);
	assert_int_equal(p.pmd_too_large_kb, 0);
	plan_build(&t, c, false, VALUE_ABSENT, &p);
	assert_int_equal(p.pmd_too_large_kb, 0);
	config_free(c);
	c = config_of("[Limits]\nMaxMode=always\n");
	plan_build(&t, c, false, 6291456, &p);
	assert_int_equal(plan_strength(&p, plan_find(&p, 524288), PLAN_BASE), THP_ALWAYS);
	config_free(c);
	/* 2 MiB folios are no risk on any such host. */
	t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	c = config_of("");
	plan_build(&t, c, false, 262144, &p);
	assert_int_equal(p.pmd_too_large_kb, 0);
	config_free(c);
}

static void test_a12_legacy(void **state)
{
	struct thp_tree t = tree_empty(64, 524288, TOP_ALWAYS);
	struct config *c = config_of("");
	struct plan p;

	(void)state;
	plan_build(&t, c, false, 6291456, &p);
	config_free(c);
	expect_words(&p, 524288, "never", "madvise", "madvise", "madvise");
}

/* ---- numbers ----------------------------------------------------------- */

static void test_ptes(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p = plan_of(&t, "");

	(void)state;
	assert_int_equal(p.ptes_base, 511);
	assert_int_equal(p.ptes_recent, 409);
	assert_false(p.ptes_two_values);
	p = plan_of(&t, "[Limits]\nMaxPtesNone=100\n");
	assert_int_equal(p.ptes_base, 100);
	assert_int_equal(p.ptes_recent, 100);
	/* A18: an intermediate value found at start is the administrator's. */
	t.max_ptes_none = 409;
	p = plan_of(&t, "");
	assert_int_equal(p.ptes_base, 409);
	assert_int_equal(p.ptes_recent, 409);
	/* A limit above what stands raises nothing. */
	p = plan_of(&t, "[Limits]\nMaxPtesNone=511\n");
	assert_int_equal(p.ptes_base, 409);
	t.max_ptes_none = VALUE_ABSENT;
	p = plan_of(&t, "[Limits]\nMaxPtesNone=100\n");
	assert_int_equal(p.ptes_base, VALUE_ABSENT);
	t = tree_full(16, 32768, TOP_ALWAYS, SIZE_NEVER);
	p = plan_of(&t, "");
	assert_int_equal(p.ptes_recent, 1638);
	t = tree_full(64, 524288, TOP_ALWAYS, SIZE_NEVER);
	p = plan_of(&t, "");
	assert_in_range(p.ptes_recent, 6500, 6600);
}

/* A22: a kernel that collapses to small sizes honours 0 and PMD_NR - 1 only. */
static void test_a22_two_values(void **state)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
	struct plan p;

	(void)state;
	t.mthp_collapse = true;
	tree_size(&t, 64, SIZE_ALWAYS);
	t.max_ptes_none = 256;
	p = plan_of(&t, "");
	assert_true(p.ptes_two_values);
	assert_int_equal(p.ptes_base, 256);
	assert_int_equal(p.ptes_recent, 256);
	t.max_ptes_none = 511;
	p = plan_of(&t, "");
	assert_int_equal(p.ptes_recent, 511);
	t.mthp_collapse = false;
	p = plan_of(&t, "");
	assert_false(p.ptes_two_values);
	assert_int_equal(p.ptes_recent, 409);
}

static void test_defrag(void **state)
{
	static const struct {
		const char *file, *low;
	} cases[] = {
		{ "[always] defer defer+madvise madvise never", "madvise" },
		{ "always defer [defer+madvise] madvise never", "defer" },
		{ "always defer defer+madvise [madvise] never", "never" },
		{ "always [defer] defer+madvise madvise never", "never" },
		{ "always defer defer+madvise madvise [never]", "" },
		{ "[always] defer never", "never" },
		{ "always [defer+madvise] madvise never", "never" },
		{ "[always]", "" },
	};
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct plan p;

		set_choice(&t.defrag, cases[i].file);
		p = plan_of(&t, "");
		assert_string_equal(p.defrag_low, cases[i].low);
		if (*cases[i].low)
			assert_string_equal(p.defrag_base, choice_value(&t.defrag));
		p = plan_of(&t, "[Limits]\nDefrag=no\n");
		assert_string_equal(p.defrag_low, "");
		assert_int_equal(p.khugepaged_defrag, VALUE_ABSENT);
	}
}

/* ---- every combination ------------------------------------------------- */

static enum thp_mode stronger(enum thp_mode a, enum thp_mode b)
{
	return a > b ? a : b;
}

/* The ceiling as the design words it, computed apart. */
static enum thp_mode ceiling(
	enum thp_mode own, enum thp_mode top, enum config_max_mode max, bool boot_never)
{
	if (boot_never)
		return own;
	if (max == MAX_MODE_ALWAYS)
		return THP_ALWAYS;
	if (max == MAX_MODE_MADVISE && stronger(own, top) > THP_MADVISE)
		return THP_MADVISE;
	return stronger(own, top);
}

static void check_one(const struct thp_tree *t, enum thp_mode baseline, enum thp_mode top,
	const char *max_word, enum config_max_mode max, bool boot_never)
{
	enum thp_mode own = thp_effective(baseline, top), most = ceiling(own, top, max, boot_never);
	enum thp_mode last = THP_NEVER;
	char text[64];
	struct config *c;
	struct plan p;

	snprintf(text, sizeof(text), "[Limits]\nMaxMode=%s\n", max_word);
	c = config_of(text);
	plan_build(t, c, boot_never, 16 * MIB, &p);
	config_free(c);
	for (int l = PLAN_OFF; l <= PLAN_RAISED; l++) {
		const struct plan_size *s = plan_find(&p, 64);
		const char *word = plan_word(&p, s, (enum plan_level)l);
		enum thp_mode m = plan_strength(&p, s, (enum plan_level)l);

		assert_true(choice_lists(&t->sizes[2].enabled, word));
		assert_int_equal(thp_effective(thp_mode_from_string(word), top), m);
		/* Never above the ceiling, and each level at least the one before. A
		 * boot of never lets the start value itself be put back. */
		if (m > most)
			fail_msg("%s above %s: baseline %s top %s MaxMode=%s", mode_word[m],
				mode_word[most], mode_word[baseline], mode_word[top], max_word);
		assert_true(m >= last);
		last = m;
		if (l == PLAN_OFF)
			assert_int_equal(m, THP_NEVER);
		if (l <= PLAN_BASE)
			assert_true(m <= own);
		if (l == PLAN_ASKED)
			assert_true(m <= THP_MADVISE);
	}
	assert_int_equal(last, most);
}

static void test_all_combinations(void **state)
{
	static const char *const max_word[] = { "inherit", "madvise", "always" };
	unsigned n = 0;

	(void)state;
	for (int baseline = 0; baseline < 4; baseline++)
		for (int top = 0; top < 3; top++)
			for (int max = 0; max < 3; max++)
				for (int boot = 0; boot < 2; boot++) {
					struct thp_tree t =
						tree_full(4, 2048, top_text[top], size_text[baseline]);

					check_one(&t, (enum thp_mode)baseline, (enum thp_mode)top,
						max_word[max], (enum config_max_mode)max, boot);
					n++;
				}
	assert_int_equal(n, 72);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel_default),
		cmocka_unit_test(test_a34_top_madvise),
		cmocka_unit_test(test_own_above_top),
		cmocka_unit_test(test_top_never),
		cmocka_unit_test(test_max_mode_madvise),
		cmocka_unit_test(test_max_mode_always),
		cmocka_unit_test(test_a33_boot_never),
		cmocka_unit_test(test_a03_legacy),
		cmocka_unit_test(test_b02_words_not_listed),
		cmocka_unit_test(test_sizes_named),
		cmocka_unit_test(test_b15_sizes_16k),
		cmocka_unit_test(test_ladders),
		cmocka_unit_test(test_ladder_without_sizes),
		cmocka_unit_test(test_rungs_with_effect),
		cmocka_unit_test(test_a12_pmd_too_large),
		cmocka_unit_test(test_a12_legacy),
		cmocka_unit_test(test_ptes),
		cmocka_unit_test(test_a22_two_values),
		cmocka_unit_test(test_defrag),
		cmocka_unit_test(test_all_combinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
