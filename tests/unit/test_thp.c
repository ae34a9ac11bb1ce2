/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* lib/thp.c: the transparent_hugepage directory of many kernels. */
#include "fake_tree.h"

#include "thp.h"

static void expect_choice(const struct choice *c, const char *value)
{
	assert_non_null(choice_value(c));
	assert_string_equal(choice_value(c), value);
}

/* The directories hugepages-<from>kB ... hugepages-<to>kB, doubling. */
static void fake_sizes(const struct fake_tree *t, uint64_t from_kb, uint64_t to_kb)
{
	char path[THP_PATH_MAX];

	for (uint64_t kb = from_kb; kb <= to_kb; kb *= 2)
		fake_file(t, thp_size_path(path, kb, "enabled"),
			"always inherit madvise [never]\n");
}

static void test_modes(void **state)
{
	struct choice c = { 0 };

	(void)state;
	assert_int_equal(thp_choice_mode(&c), THP_MODE_NONE);
	assert_int_equal(parse_choice("always [inherit] madvise never", &c), 0);
	assert_int_equal(thp_choice_mode(&c), THP_INHERIT);
	assert_int_equal(parse_choice("always [within_size] never", &c), 0);
	assert_int_equal(thp_choice_mode(&c), THP_MODE_NONE);
	assert_int_equal(thp_mode_from_string(NULL), THP_MODE_NONE);
	assert_int_equal(thp_mode_from_string("Always"), THP_MODE_NONE);
	for (int m = THP_NEVER; m <= THP_INHERIT; m++)
		assert_int_equal(thp_mode_from_string(thp_mode_to_string((enum thp_mode)m)), m);
	assert_null(thp_mode_to_string(THP_MODE_NONE));
	assert_null(thp_mode_to_string((enum thp_mode)4));
	assert_true(THP_NEVER < THP_MADVISE && THP_MADVISE < THP_ALWAYS);

	assert_int_equal(thp_effective(THP_INHERIT, THP_MADVISE), THP_MADVISE);
	assert_int_equal(thp_effective(THP_INHERIT, THP_MODE_NONE), THP_MODE_NONE);
	assert_int_equal(thp_effective(THP_ALWAYS, THP_NEVER), THP_ALWAYS);
	assert_int_equal(thp_effective(THP_NEVER, THP_ALWAYS), THP_NEVER);
}

/* Field case A16: what never at the top and inherit come to. */
static void test_effective(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "always madvise [never]\n");
	fake_file(t, "shmem_enabled", "[always] within_size advise never deny force\n");
	fake_file(t, "hugepages-2048kB/enabled", "always [inherit] madvise never\n");
	fake_file(t, "hugepages-2048kB/shmem_enabled",
		"always [inherit] within_size advise never\n");
	fake_file(t, "hugepages-64kB/enabled", "[always] inherit madvise never\n");
	assert_int_equal(thp_guess_page_kb(t->fd, 4), 4);
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.n_sizes, 2);
	assert_int_equal(tree.sizes[0].size_kb, 64);
	assert_int_equal(tree.sizes[1].size_kb, 2048);
	assert_int_equal(thp_effective(thp_choice_mode(&tree.sizes[1].enabled),
				 thp_choice_mode(&tree.enabled)),
		THP_NEVER);
	assert_int_equal(thp_effective(thp_choice_mode(&tree.sizes[0].enabled),
				 thp_choice_mode(&tree.enabled)),
		THP_ALWAYS);
	assert_string_equal(
		thp_shmem_effective(&tree.sizes[1].shmem_enabled, &tree.shmem_enabled), "always");
	assert_null(thp_shmem_effective(&tree.sizes[0].shmem_enabled, &tree.shmem_enabled));
}

static void test_shmem_effective(void **state)
{
	static const struct {
		const char *size, *top, *effective;
	} cases[] = {
		{ "[inherit] never", "[within_size] never deny force", "within_size" },
		{ "[inherit] never", "never [deny] force", "never" },
		{ "[always] inherit", "never [deny] force", "never" },
		{ "[inherit] never", "never deny [force]", "always" },
		{ "[advise] inherit", "never deny [force]", "never" },
		{ "[advise] inherit", "[never] deny force", "advise" },
		{ "[never] inherit", "[always] deny force", "never" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct choice size, top;

		assert_int_equal(parse_choice(cases[i].size, &size), 0);
		assert_int_equal(parse_choice(cases[i].top, &top), 0);
		assert_string_equal(thp_shmem_effective(&size, &top), cases[i].effective);
	}
}

/* Field case B15: what counts as a size, in which order. */
static void test_enumeration(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_sizes(t, 64, 32768);
	fake_dir(t, "hugepages-junk");
	fake_dir(t, "hugepages-12kBx");
	fake_file(t, "hugepages-96kB", "a plain file");
	fake_dir(t, "hugepages-kB");
	fake_dir(t, "hugepages-064kB");
	fake_dir(t, "hugepages-0kB");
	fake_dir(t, "hugepages--4kB");
	fake_dir(t, "hugepages-99999999999999999999kB");
	fake_dir(t, "xhugepages-4kB");
	assert_int_equal(symlinkat("hugepages-64kB", t->fd, "hugepages-48kB"), 0);
	assert_int_equal(thp_guess_page_kb(t->fd, 4), 16);
	assert_int_equal(thp_tree_read(t->fd, 16, &tree), 0);
	assert_int_equal(tree.n_sizes, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(tree.sizes[i].size_kb, UINT64_C(64) << i);
	assert_true(tree.per_size);
	assert_int_equal(tree.pmd_kb, 32768);
	assert_int_equal(tree.pmd_nr - 1, 2047);
	assert_false(tree.unparseable);
}

static void test_too_many_sizes(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;
	char path[THP_PATH_MAX];

	for (unsigned i = 1; i <= THP_SIZES_MAX + 3; i++)
		fake_file(t, thp_size_path(path, i * 16, "enabled"), "[never] always\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.n_sizes, THP_SIZES_MAX);
	assert_int_equal(tree.sizes[0].size_kb, 4 * 16);
	for (unsigned i = 1; i < THP_SIZES_MAX; i++)
		assert_int_equal(tree.sizes[i].size_kb, tree.sizes[i - 1].size_kb + 16);
}

/* Field case A11: 64 KiB pages, a PMD of 512 MiB, max_ptes_none up to 8191. */
static void test_big_pages(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "hpage_pmd_size", "536870912\n");
	fake_sizes(t, 256, 524288);
	fake_file(t, "khugepaged/max_ptes_none", "8191\n");
	assert_int_equal(thp_guess_page_kb(t->fd, 4), 64);
	assert_int_equal(thp_tree_read(t->fd, 64, &tree), 0);
	assert_int_equal(tree.n_sizes, 12);
	assert_int_equal(tree.sizes[0].size_kb, 256);
	assert_int_equal(tree.sizes[11].size_kb, 524288);
	assert_int_equal(tree.pmd_kb, 524288);
	assert_int_equal(tree.pmd_nr, 8192);
	assert_int_equal(tree.max_ptes_none, 8191);
}

static void test_pmd_size_validated(void **state)
{
	static const char *const bad[] = { "", "0\n", "2097153\n", "4096\n", "-1\n", "huge\n",
		"18446744073709551615\n", "3145728\n" };
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "always [madvise] never\n");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fake_file(t, "hpage_pmd_size", bad[i]);
		assert_int_equal(thp_tree_read(t->fd, 16, &tree), 0);
		assert_int_equal(tree.pmd_kb, 32768);
		assert_int_equal(tree.pmd_nr, 2048);
		assert_int_equal(thp_guess_page_kb(t->fd, 7), 7);
	}
	/* The largest directory comes before the page's arithmetic. */
	fake_sizes(t, 64, 1024);
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.pmd_kb, 1024);
	assert_int_equal(tree.pmd_nr, 256);
	/* 1 MiB is no PMD of 8-byte entries: the smallest anonymous size decides. */
	fake_file(t, "hugepages-8kB/shmem_enabled", "[never] always\n");
	assert_int_equal(thp_guess_page_kb(t->fd, 4), 16);
	assert_int_equal(thp_tree_read(t->fd, 0, &tree), -EINVAL);
}

/* Field case A03: an old kernel with one switch and one khugepaged file. */
static void test_legacy(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "[always] madvise never");
	fake_file(t, "defrag", "always defer defer+madvise [madvise] never\n");
	fake_file(t, "khugepaged/max_ptes_none", "511\n");
	assert_int_equal(thp_guess_page_kb(t->fd, 4), 4);
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_false(tree.per_size);
	assert_int_equal(tree.n_sizes, 0);
	expect_choice(&tree.enabled, "always");
	expect_choice(&tree.defrag, "madvise");
	assert_null(choice_value(&tree.shmem_enabled));
	assert_int_equal(tree.pmd_kb, 2048);
	assert_int_equal(tree.pmd_nr, 512);
	assert_int_equal(tree.max_ptes_none, 511);
	assert_true(tree.shrink_underused == VALUE_ABSENT);
	assert_true(tree.max_ptes_swap == VALUE_ABSENT && tree.pages_to_scan == VALUE_ABSENT);
	assert_true(tree.full_scans == VALUE_ABSENT && tree.khugepaged_defrag == VALUE_ABSENT);
	assert_false(tree.mthp_collapse || tree.size_swpin || tree.unparseable);
}

static void test_nothing_there(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	memset(&tree, 0x5a, sizeof(tree));
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), -ENOENT);
	assert_int_equal(tree.page_kb, 0x5a5a5a5a);
	fake_file(t, "defrag", "always [madvise] never\n");
	fake_file(t, "khugepaged/max_ptes_none", "511\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), -ENOENT);
}

/* Field case B01: a text that is not understood marks its field, no more. */
static void test_unparseable(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;
	char long_text[4097];

	memset(long_text, 'a', 4096);
	long_text[4096] = '\0';
	fake_file(t, "enabled", "always [madvise] never\n");
	fake_file(t, "hugepages-16kB/enabled", "always madvise never");
	fake_file(t, "hugepages-32kB/enabled", "[always] [madvise] never");
	fake_file(t, "hugepages-64kB/enabled", "");
	fake_file(t, "hugepages-128kB/enabled", long_text);
	fake_file(t, "hugepages-256kB/enabled", "always [inherit] madvise never\n");
	fake_file(t, "hugepages-512kB/shmem_enabled", "[never] always\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.n_sizes, 6);
	assert_true(tree.unparseable);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(tree.sizes[i].enabled_unparseable);
		assert_int_equal(tree.sizes[i].enabled.n, 0);
	}
	assert_false(tree.sizes[4].enabled_unparseable);
	expect_choice(&tree.sizes[4].enabled, "inherit");
	/* shmem only: no file is not the same as no sense. */
	assert_false(tree.sizes[5].enabled_unparseable);
	assert_int_equal(tree.sizes[5].enabled.n, 0);
	expect_choice(&tree.sizes[5].shmem_enabled, "never");
	expect_choice(&tree.enabled, "madvise");

	fake_file(t, "enabled", "madvise");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.enabled.n, 0);
	assert_true(tree.unparseable);
}

static void test_shmem_only_is_not_per_size(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "always [madvise] never\n");
	fake_file(t, "hugepages-8kB/shmem_enabled", "[never] always\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.n_sizes, 1);
	assert_false(tree.per_size || tree.unparseable);
}

/* Field case A22: mTHP collapse is seen in the per-size counters. */
static void test_collapse(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "always [madvise] never\n");
	fake_file(t, "hpage_pmd_size", "2097152\n");
	fake_file(t, "hugepages-64kB/enabled", "[always] inherit madvise never\n");
	fake_file(t, "hugepages-64kB/stats/anon_fault_alloc", "1\n");
	fake_file(t, "khugepaged/max_ptes_none", "256\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_false(tree.mthp_collapse);
	fake_file(t, "hugepages-64kB/stats/collapse_exceed_none_pte", "0\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_true(tree.mthp_collapse);
	assert_int_equal(tree.max_ptes_none, 256);
	assert_int_equal(tree.pmd_nr - 1, 511);
	assert_false(tree.size_swpin);
	fake_file(t, "hugepages-64kB/stats/swpin", "0\n");
	/* The same tree on 16 KiB pages. */
	fake_file(t, "hpage_pmd_size", "33554432\n");
	assert_int_equal(thp_tree_read(t->fd, thp_guess_page_kb(t->fd, 4), &tree), 0);
	assert_int_equal(tree.page_kb, 16);
	assert_int_equal(tree.pmd_nr - 1, 2047);
	assert_true(tree.mthp_collapse && tree.size_swpin);
}

static void test_numbers(void **state)
{
	struct fake_tree *t = *state;
	struct thp_tree tree;

	fake_file(t, "enabled", "always [madvise] never\n");
	fake_file(t, "shrink_underused", "1\n");
	fake_file(t, "khugepaged/max_ptes_none", "abc\n");
	fake_file(t, "khugepaged/max_ptes_swap", "-1\n");
	fake_file(t, "khugepaged/max_ptes_shared", "18446744073709551615\n");
	fake_file(t, "khugepaged/pages_to_scan", "4096\n");
	fake_file(t, "khugepaged/scan_sleep_millisecs", "10000\n");
	fake_file(t, "khugepaged/alloc_sleep_millisecs", "60000\n");
	fake_file(t, "khugepaged/defrag", "0\n");
	fake_file(t, "khugepaged/full_scans", "12\n");
	fake_file(t, "khugepaged/pages_collapsed", "34\n");
	assert_int_equal(thp_tree_read(t->fd, 4, &tree), 0);
	assert_int_equal(tree.shrink_underused, 1);
	assert_true(tree.max_ptes_none == VALUE_ABSENT);
	assert_true(tree.max_ptes_swap == VALUE_ABSENT);
	assert_true(tree.max_ptes_shared == VALUE_ABSENT);
	assert_int_equal(tree.pages_to_scan, 4096);
	assert_int_equal(tree.scan_sleep_millisecs, 10000);
	assert_int_equal(tree.alloc_sleep_millisecs, 60000);
	assert_int_equal(tree.khugepaged_defrag, 0);
	assert_int_equal(tree.full_scans, 12);
	assert_int_equal(tree.pages_collapsed, 34);
}

static void test_stats(void **state)
{
	struct fake_tree *t = *state;
	struct thp_stats stats;

	memset(&stats, 0x5a, sizeof(stats));
	assert_int_equal(thp_stats_read(t->fd, 2048, &stats), -ENOENT);
	assert_true(stats.anon_fault_alloc == UINT64_C(0x5a5a5a5a5a5a5a5a));
	fake_file(t, "hugepages-2048kB/stats/anon_fault_alloc", "20000\n");
	fake_file(t, "hugepages-2048kB/stats/split_deferred", "18500\n");
	fake_file(t, "hugepages-2048kB/stats/nr_anon_partially_mapped", "1100\n");
	fake_file(t, "hugepages-2048kB/stats/swpout", "x\n");
	assert_int_equal(thp_stats_read(t->fd, 2048, &stats), 0);
	assert_int_equal(stats.anon_fault_alloc, 20000);
	assert_int_equal(stats.split_deferred, 18500);
	assert_int_equal(stats.nr_anon_partially_mapped, 1100);
	assert_true(stats.swpout == VALUE_ABSENT && stats.swpin == VALUE_ABSENT);
	assert_int_equal(thp_stats_read(t->fd, 64, &stats), -ENOENT);
}

static int open_real(const char *kernel)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/sys/kernel/mm/transparent_hugepage", kernel);
	return fixture_dir(path);
}

/* One test per generation: before mTHP, with mTHP, with mTHP collapse. */
static void test_linux_6_1(void **state)
{
	int fd = open_real("linux-6.1");
	struct thp_tree tree;

	(void)state;
	assert_int_equal(thp_tree_read(fd, thp_guess_page_kb(fd, 16), &tree), 0);
	close(fd);
	assert_int_equal(tree.page_kb, 4);
	assert_int_equal(tree.n_sizes, 0);
	assert_false(tree.per_size || tree.mthp_collapse || tree.size_swpin || tree.unparseable);
	expect_choice(&tree.enabled, "always");
	assert_int_equal(tree.shmem_enabled.n, 6);
	assert_int_equal(tree.pmd_nr, 512);
	assert_int_equal(tree.max_ptes_none, 511);
	assert_true(tree.shrink_underused == VALUE_ABSENT);
}

static void expect_mthp_tree(const struct thp_tree *tree)
{
	static const uint64_t sizes_kb[] = { 8, 16, 32, 64, 128, 256, 512, 1024, 2048 };

	assert_int_equal(tree->page_kb, 4);
	assert_int_equal(tree->n_sizes, 9);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(tree->sizes[i].size_kb, sizes_kb[i]);
	assert_int_equal(tree->sizes[0].enabled.n, 0); /* shmem only */
	expect_choice(&tree->sizes[0].shmem_enabled, "never");
	expect_choice(&tree->sizes[1].enabled, "never");
	expect_choice(&tree->sizes[3].enabled, "always");
	expect_choice(&tree->sizes[8].enabled, "inherit");
	expect_choice(&tree->defrag, "madvise");
	assert_true(choice_lists(&tree->defrag, "defer+madvise"));
	assert_true(tree->per_size && !tree->unparseable);
	assert_int_equal(tree->pmd_nr, 512);
	assert_int_equal(tree->max_ptes_none, 511);
	assert_int_equal(tree->max_ptes_swap, 64);
	assert_int_equal(tree->max_ptes_shared, 256);
	assert_int_equal(tree->pages_to_scan, 4096);
	assert_int_equal(tree->scan_sleep_millisecs, 10000);
	assert_int_equal(tree->alloc_sleep_millisecs, 60000);
	assert_int_equal(tree->khugepaged_defrag, 1);
	assert_int_equal(tree->shrink_underused, 1);
}

static void test_linux_6_12(void **state)
{
	int fd = open_real("linux-6.12");
	struct thp_tree tree;
	struct thp_stats stats;

	(void)state;
	assert_int_equal(thp_tree_read(fd, thp_guess_page_kb(fd, 16), &tree), 0);
	assert_int_equal(thp_stats_read(fd, 64, &stats), 0);
	close(fd);
	expect_mthp_tree(&tree);
	assert_false(tree.mthp_collapse || tree.size_swpin);
	assert_true(value_known(stats.anon_fault_alloc) && stats.anon_fault_alloc > 0);
	assert_true(value_known(stats.nr_anon_partially_mapped));
	assert_true(stats.swpin == VALUE_ABSENT && stats.collapse_alloc == VALUE_ABSENT);
}

static void test_linux_7_3(void **state)
{
	int fd = open_real("linux-7.3");
	struct thp_tree tree;
	struct thp_stats stats;

	(void)state;
	assert_int_equal(thp_tree_read(fd, thp_guess_page_kb(fd, 16), &tree), 0);
	assert_int_equal(thp_stats_read(fd, 64, &stats), 0);
	close(fd);
	expect_mthp_tree(&tree);
	assert_true(tree.mthp_collapse && tree.size_swpin);
	/* Only our kernel counts what its gate refuses. */
	assert_int_equal(stats.anon_fault_fallback_margin, VALUE_ABSENT);
	stats.anon_fault_fallback_margin = 0;
	for (size_t i = 0; i < sizeof(stats) / sizeof(uint64_t); i++)
		assert_true(value_known(((const uint64_t *)&stats)[i]));
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, fake_tree_setup, fake_tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes),
		TREE_TEST(test_effective),
		cmocka_unit_test(test_shmem_effective),
		TREE_TEST(test_enumeration),
		TREE_TEST(test_too_many_sizes),
		TREE_TEST(test_big_pages),
		TREE_TEST(test_pmd_size_validated),
		TREE_TEST(test_legacy),
		TREE_TEST(test_nothing_there),
		TREE_TEST(test_unparseable),
		TREE_TEST(test_shmem_only_is_not_per_size),
		TREE_TEST(test_collapse),
		TREE_TEST(test_numbers),
		TREE_TEST(test_stats),
		cmocka_unit_test(test_linux_6_1),
		cmocka_unit_test(test_linux_6_12),
		cmocka_unit_test(test_linux_7_3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
