/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The actuator on a fake tree: when it writes, what it refuses, whom it yields to. */
#include "actuator_world.h"

/* B09: nothing is opened for writing in steady state. */
static void test_equal_is_not_written(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(apply(w, S16, "never"), ACTUATOR_SAME);
		assert_int_equal(apply(w, S64, "always"), ACTUATOR_SAME);
		assert_int_equal(apply(w, "defrag", "madvise"), ACTUATOR_SAME);
		assert_int_equal(apply(w, PTES, "511"), ACTUATOR_SAME);
		assert_int_equal(actuator_audit(w->actuator, "enabled"), ACTUATOR_SAME);
	}
	assert_true(untouched(w));
	assert_int_equal(w->said.warnings, 0);
	assert_int_equal(counts(w).writes, 0);
}

/* One change: one open, one write of the token alone, after the journal. */
static void test_one_write_after_the_journal(void **state)
{
	struct world *w = *state;
	char old[BASELINE_VALUE_LEN] = "";
	const char *journal, *kernel;
	char *log;

	assert_int_equal(actuator_apply(w->actuator, S64, "never", old), ACTUATOR_WRITTEN);
	assert_string_equal(old, "always");
	assert_string_equal(tree_get(&w->tree, S64), "never");
	assert_int_equal(logged(w, "open-write", "transparent_hugepage"), 1);
	assert_int_equal(logged(w, "write", S64 "\tnever\tok"), 1);
	log = strdup(tree_text(w->log));
	journal = strstr(log, "baseline.json.new");
	kernel = strstr(log, S64 "\tnever");
	assert_true(journal && kernel && journal < kernel);
	free(log);
	for (int i = 0; i < 100; i++)
		assert_int_equal(apply(w, S64, "never"), ACTUATOR_SAME);
	assert_int_equal(counts(w).writes, 1);
	assert_int_equal(logged(w, "write", "transparent_hugepage"), 1);
}

/* A18: lowered, and put back to the administrator's 409, not to 511. */
static void test_intermediate_value_comes_back(void **state)
{
	struct world *w = *state;

	stop(w);
	tree_put(&w->tree, PTES, "409\n");
	start(w);
	assert_int_equal(actuator_manage(w->actuator, PTES), 0);
	assert_string_equal(baseline_get(w->baseline, PTES), "409");
	assert_int_equal(apply(w, PTES, "0"), ACTUATOR_WRITTEN);
	assert_string_equal(tree_get(&w->tree, PTES), "0");
	assert_string_equal(baseline_written(w->baseline, PTES), "0");
	assert_int_equal(apply(w, PTES, "409"), ACTUATOR_WRITTEN);
	assert_string_equal(tree_get(&w->tree, PTES), "409");
	assert_null(baseline_written(w->baseline, PTES));
	assert_string_equal(baseline_get(w->baseline, PTES), "409");
}

/* B02: only tokens that the file lists. */
static void test_unlisted_token(void **state)
{
	struct world *w = *state;

	tree_put(&w->tree, "defrag", "always [madvise] never\n");
	for (int i = 0; i < 100; i++)
		assert_int_equal(apply(w, "defrag", "defer+madvise"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, "defrag"));
	assert_non_null(strstr(w->said.last_warning, "defer+madvise"));
	assert_true(untouched(w));
	assert_false(actuator_accepts(w->actuator, "defrag", "defer+madvise"));
	assert_true(actuator_accepts(w->actuator, "defrag", "never"));
	assert_int_equal(apply(w, "defrag", "never"), ACTUATOR_WRITTEN);
}

/* B02: EINVAL is one attempt and one warning, and only that value is out. */
static void test_einval_once(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/defrag write EINVAL\n");
	for (int i = 0; i < 100; i++)
		assert_int_equal(apply(w, "defrag", "defer"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "open-write", "/defrag"), 1);
	assert_int_equal(logged(w, "write", "/defrag\tdefer\tEINVAL"), 1);
	assert_int_equal(w->said.warnings, 1);
	assert_int_equal(counts(w).write_errors, 1);
	assert_int_equal(counts(w).writes, 0);
	assert_false(actuator_accepts(w->actuator, "defrag", "defer"));
	assert_string_equal(value_of(w, "defrag"), "madvise");
	assert_null(baseline_written(w->baseline, "defrag"));
	set_rules(w, "");
	assert_int_equal(apply(w, "defrag", "defer"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, "defrag", "never"), ACTUATOR_WRITTEN);
}

/* A number file that refuses everything does not get a new try for each number. */
static void test_einval_for_every_number(void **state)
{
	struct world *w = *state;
	char value[16];

	set_rules(w, "*/max_ptes_none write EINVAL\n");
	for (int i = 0; i < 100; i++) {
		snprintf(value, sizeof(value), "%d", i);
		assert_int_equal(apply(w, PTES, value), ACTUATOR_REFUSED);
	}
	assert_true(logged(w, "write", "max_ptes_none\t") == 8);
	assert_int_equal(w->said.warnings, 8);
}

/* B06: EROFS for the whole directory is one attempt, one warning, and observing from then on. */
static void check_denied(struct world *w, const char *rule, bool hint)
{
	set_rules(w, rule);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(apply(w, S64, "never"), ACTUATOR_READONLY);
		assert_int_equal(apply(w, PTES, "0"), ACTUATOR_READONLY);
		assert_int_equal(apply(w, S16, "never"), ACTUATOR_SAME);
	}
	assert_true(actuator_read_only(w->actuator));
	assert_int_equal(logged(w, "open-write", "transparent_hugepage"), 1);
	assert_int_equal(w->said.warnings, 1);
	assert_int_equal(counts(w).write_errors, 1);
	assert_int_equal(hint,
		strstr(w->said.last_warning, "check the unit's hardening (ReadWritePaths=)") != NULL);
	assert_string_equal(tree_get(&w->tree, S64), "[always] inherit madvise never\n");
	assert_null(baseline_written(w->baseline, S64));
}

static void test_erofs_on_open(void **state)
{
	struct world *w = *state;

	check_denied(w, "*/transparent_hugepage/* open-write EROFS\n", false);
	assert_non_null(strstr(w->said.last_warning, "sysfs is mounted read-only"));
}

static void test_eacces(void **state)
{
	struct world *w = *state;

	check_denied(w, "*/transparent_hugepage/* open-write EACCES\n", false);
	assert_null(strstr(w->said.last_warning, "read-only:"));
}

/* B08: under systemd the unit is the first suspect. */
static void test_erofs_under_systemd(void **state)
{
	setenv("INVOCATION_ID", "0123456789abcdef0123456789abcdef", 1);
	check_denied(*state, "*/transparent_hugepage/* open-write EROFS\n", true);
}

/* The probe learns it without opening anything, and unlearns it. */
static void test_probe(void **state)
{
	struct world *w = *state;

	assert_int_equal(actuator_probe(w->actuator), 0);
	set_rules(w, "*/hugepages-64kB/enabled open-write EACCES\n");
	assert_int_equal(actuator_probe(w->actuator), 0);
	assert_true(actuator_denied(w->actuator, S64));
	assert_int_equal(w->said.warnings, 1);
	set_rules(w, "*/transparent_hugepage/* open-write EROFS\n");
	assert_int_equal(actuator_probe(w->actuator), -EROFS);
	assert_int_equal(actuator_probe(w->actuator), -EROFS);
	assert_true(actuator_read_only(w->actuator));
	assert_int_equal(w->said.warnings, 2);
	assert_string_equal(w->said.last_recovered, S64); /* one sentence stands for all */
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_READONLY);
	assert_true(untouched(w));
	set_rules(w, "");
	assert_int_equal(actuator_probe(w->actuator), 0);
	assert_false(actuator_read_only(w->actuator));
	assert_string_equal(w->said.last_recovered, "");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
}

/* Nothing is managed: nothing is denied. */
static void test_probe_before_manage(void **state)
{
	struct world *w = *state;

	stop(w);
	start(w);
	set_rules(w, "*/enabled open-write EROFS\n");
	assert_int_equal(actuator_probe(w->actuator), 0);
	assert_false(actuator_read_only(w->actuator));
	assert_int_equal(manage_all(w), 0);
	set_rules(w, "*/transparent_hugepage/* open-write EROFS\n");
	assert_int_equal(actuator_probe(w->actuator), -EROFS);
}

static void test_dry_run(void **state)
{
	struct world *w = *state;

	actuator_set_dry_run(w->actuator, true);
	for (int i = 0; i < 10; i++)
		assert_int_equal(apply(w, S64, "never"), ACTUATOR_DRY);
	assert_int_equal(apply(w, S64, "always"), ACTUATOR_SAME);
	assert_int_equal(apply(w, S64, "sometimes"), ACTUATOR_REFUSED);
	assert_true(untouched(w));
	assert_int_equal(counts(w).writes, 0);
	actuator_set_dry_run(w->actuator, false);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
}

/* B01: text that is not understood is never written, and warned about once. */
static void test_unparseable(void **state)
{
	static const char *const texts[] = {"always madvise never", "[always] [madvise] never", "",
		"never", "[", "always [ma", "\n", "[]"};
	struct world *w = *state;
	char big[4097];

	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	for (size_t i = 0; i <= sizeof(texts) / sizeof(texts[0]); i++) {
		stop(w);
		tree_put(&w->tree, S64, i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : big);
		w->said.warnings = 0;
		start(w);
		assert_int_equal(actuator_manage(w->actuator, S64), -EINVAL);
		for (int k = 0; k < 10; k++) {
			assert_int_equal(apply(w, S64, "never"), ACTUATOR_REFUSED);
			assert_int_equal(apply(w, S64, "always"), ACTUATOR_REFUSED);
			assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_REFUSED);
		}
		assert_null(value_of(w, S64));
		assert_int_equal(w->said.warnings, 1);
	}
	assert_true(untouched(w));
}

static void test_unparseable_number(void **state)
{
	static const char *const texts[] = {"", "-1", "x", "1 2", "0x1ff", "18446744073709551616"};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		tree_put(&w->tree, PTES, texts[i]);
		assert_int_equal(apply(w, PTES, "0"), ACTUATOR_REFUSED);
		assert_int_equal(actuator_audit(w->actuator, PTES), ACTUATOR_REFUSED);
	}
	assert_int_equal(w->said.warnings, 1);
	assert_true(untouched(w));
	tree_put(&w->tree, PTES, " 511 \n");
	assert_int_equal(apply(w, PTES, "0"), ACTUATOR_WRITTEN);
}

/* Values and paths that no caller should ask for. */
static void test_bad_requests(void **state)
{
	static const char *const paths[] = {"../x", "/sys/kernel/mm/ksm/run", "use_zero_page", "",
		"hugepages-64kB/../enabled", "hugepages-064kB/enabled", "hugepages-kB/enabled",
		"hugepages-64kB/defrag", "hugepages-64kB/stats/swpin", "khugepaged/full_scans",
		"khugepaged/../enabled", "khugepaged/", "hugepages-64kB", "hugepages-64kb/enabled",
		"hugepages-9999999999999kB/enabled"};
	static const char *const numbers[] = {
		"", "-1", "010", "1\n", "99999999999999999999", "max"};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(actuator_manage(w->actuator, paths[i]), -EINVAL);
		assert_int_equal(apply(w, paths[i], "never"), ACTUATOR_REFUSED);
		assert_int_equal(actuator_audit(w->actuator, paths[i]), ACTUATOR_REFUSED);
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		assert_int_equal(apply(w, PTES, numbers[i]), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, S64, "never\n"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, S64, "[never]"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, S64, ""), ACTUATOR_REFUSED);
	assert_true(untouched(w));
}

/* Files that go, at any point. */
static void test_gone(void **state)
{
	struct world *w = *state;

	assert_int_equal(actuator_manage(w->actuator, "hugepages-32kB/enabled"), -ENOENT);
	assert_int_equal(apply(w, "hugepages-32kB/enabled", "never"), ACTUATOR_REFUSED);
	set_rules(w, "*/hugepages-64kB/enabled read ENODEV times 1\n"
		     "*/hugepages-64kB/enabled open-write ENOENT times 1\n");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_GONE);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_GONE);
	assert_null(baseline_written(w->baseline, S64));
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	unlinkat(w->tree.thp_fd, S64, 0);
	assert_int_equal(apply(w, S64, "always"), ACTUATOR_GONE);
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_GONE);
	assert_int_equal(w->said.warnings, 0);
}

/* A short write is a failure; other errors are told once until a write went well. */
static void test_other_write_errors(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/max_ptes_none write short 1 times 1\n");
	assert_int_equal(apply(w, PTES, "409"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "write", "max_ptes_none\t409\tshort"), 1);
	assert_int_equal(w->said.warnings, 1);
	assert_int_equal(counts(w).writes, 0);
	assert_null(baseline_written(w->baseline, PTES));
	set_rules(w, "*/defrag write ENOMEM times 5\n");
	for (int i = 0; i < 5; i++)
		assert_int_equal(apply(w, "defrag", "never"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 2);
	assert_non_null(strstr(w->said.last_warning, "Cannot allocate memory"));
	assert_int_equal(apply(w, "defrag", "never"), ACTUATOR_WRITTEN);
	assert_int_equal(counts(w).write_errors, 6);
}

/* The kernel sets the mode, then fails to start khugepaged: the value stands
 * and is ours; an audit must not take it for somebody else's. */
static void test_error_after_the_value_was_taken(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/max_ptes_none write ENOMEM late\n");
	assert_int_equal(apply(w, PTES, "0"), ACTUATOR_WRITTEN);
	assert_string_equal(baseline_written(w->baseline, PTES), "0");
	assert_int_equal(actuator_audit(w->actuator, PTES), ACTUATOR_SAME);
	assert_int_equal(w->said.foreign, 0);
}

/* What cannot be journaled is not written. */
static void test_no_journal_no_write(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/baseline.json.new write ENOSPC\n");
	for (int i = 0; i < 10; i++)
		assert_int_equal(apply(w, S64, "never"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "open-write", "transparent_hugepage"), 0);
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, "No space left"));
	assert_null(baseline_written(w->baseline, S64));
	set_rules(w, "*/baseline.json.new write short 10\n");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
}

/* B13, adopt: the new value is the baseline, and what is put back is theirs. */
static void test_adopt(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_FOREIGN);
	assert_string_equal(w->said.foreign_text, S64 " never->madvise");
	assert_int_equal(w->said.adopted, 1);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
	assert_null(baseline_written(w->baseline, S64));
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_SAME);
	tree_put(&w->tree, PTES, "100\n");
	assert_int_equal(apply(w, PTES, "0"), ACTUATOR_FOREIGN);
	assert_string_equal(tree_get(&w->tree, PTES), "100\n");
	assert_string_equal(w->said.foreign_text, PTES " 511->100");
	assert_int_equal(apply(w, PTES, "0"), ACTUATOR_WRITTEN);
	assert_string_equal(baseline_get(w->baseline, PTES), "100");
	assert_int_equal(counts(w).foreign_changes, 2);
	assert_int_equal(baseline_restore(w->baseline, w->tree.thp_fd, -1, NULL, NULL), 0);
	assert_string_equal(tree_get(&w->tree, S64), "always inherit [madvise] never\n");
	assert_string_equal(tree_get(&w->tree, PTES), "100");
}

/* They set what we are about to want: theirs, nothing to write. */
static void test_foreign_value_is_the_wanted_one(void **state)
{
	struct world *w = *state;

	for (int reassert = 0; reassert < 2; reassert++) {
		actuator_set_reassert(w->actuator, reassert);
		tree_put(&w->tree, S64,
			reassert ? "[always] madvise never\n" : "always madvise [never]\n");
		assert_int_equal(apply(w, S64, reassert ? "always" : "never"), ACTUATOR_FOREIGN);
		assert_string_equal(baseline_get(w->baseline, S64), reassert ? "always" : "never");
	}
	assert_true(untouched(w));
}

/* B13: whoever keeps changing a file gets it, in both modes; other files go on. */
static void check_contested(struct world *w, bool reassert, bool by_audit)
{
	unsigned ours = 0;

	actuator_set_reassert(w->actuator, reassert);
	assert_int_equal(apply(w, S64, "madvise"), ACTUATOR_WRITTEN);
	clear_log(w);
	for (int i = 0; i < 20; i++) {
		tree_put(&w->tree, S64, "[always] inherit madvise never\n");
		if (by_audit)
			actuator_audit(w->actuator, S64);
		apply(w, S64, "madvise");
		apply(w, S64, "madvise");
		ours += !strcmp(value_of(w, S64), "madvise");
		assert_int_equal(apply(w, "defrag", i % 2 ? "madvise" : "never"), ACTUATOR_WRITTEN);
	}
	assert_int_equal(ours, ACTUATOR_REASSERT_MAX);
	assert_int_equal(logged(w, "write", S64 "\tmadvise"), ACTUATOR_REASSERT_MAX);
	assert_string_equal(actuator_conflict(w->actuator, 0), S64);
	assert_null(actuator_conflict(w->actuator, 1));
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, S64));
	assert_non_null(strstr(w->said.last_warning, "\"madvise\""));
	assert_non_null(strstr(w->said.last_warning, "\"always\""));
	assert_string_equal(baseline_get(w->baseline, S64), "always");
	assert_null(baseline_written(w->baseline, S64));
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_FOREIGN);
	assert_int_equal(apply(w, S64, "always"), ACTUATOR_SAME);
	actuator_forget_conflicts(w->actuator);
	assert_null(actuator_conflict(w->actuator, 0));
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
}

static void test_contested_adopt(void **state)
{
	check_contested(*state, false, false);
}

static void test_contested_adopt_audit(void **state)
{
	check_contested(*state, false, true);
}

static void test_contested_reassert(void **state)
{
	check_contested(*state, true, false);
}

static void test_contested_reassert_audit(void **state)
{
	check_contested(*state, true, true);
}

static void test_reassert_by_audit(void **state)
{
	struct world *w = *state;

	actuator_set_reassert(w->actuator, true);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_WRITTEN);
	assert_string_equal(value_of(w, S64), "never");
	assert_int_equal(w->said.foreign, 1);
	assert_int_equal(w->said.adopted, 0);
	/* the start value is still what is put back */
	assert_string_equal(baseline_get(w->baseline, S64), "always");
}

/* A file that mthpd never wrote has nothing to re-assert. */
static void test_reassert_only_what_we_wrote(void **state)
{
	struct world *w = *state;

	actuator_set_reassert(w->actuator, true);
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_FOREIGN);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
	assert_true(untouched(w));
}

/* Plain files keep only the token: read back as ours, along the remembered list. */
static void test_bare_words(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	assert_string_equal(tree_get(&w->tree, S64), "never");
	assert_string_equal(value_of(w, S64), "never");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_SAME);
	assert_int_equal(apply(w, S64, "inherit"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, S64, "bogus"), ACTUATOR_REFUSED);
	w->said.warnings = 0;
	tree_put(&w->tree, S64, "madvise\n");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_FOREIGN);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
	tree_put(&w->tree, S64, "bogus\n");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_REFUSED);
	tree_put(&w->tree, S64, "always madvise\n");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
}

/* A crash leaves a bare word in a fake file; the journal vouches for it. */
static void test_bare_word_after_a_crash(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	stop(w);
	start(w);
	assert_int_equal(manage_all(w), 0);
	assert_string_equal(value_of(w, S64), "never");
	assert_string_equal(baseline_get(w->baseline, S64), "always");
	assert_int_equal(w->said.foreign, 0);
	assert_int_equal(apply(w, S64, "always"), ACTUATOR_WRITTEN);
	assert_string_equal(tree_get(&w->tree, S64), "always");
}

/* Somebody changed a file while mthpd was away. */
static void test_foreign_at_start(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	stop(w);
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	start(w);
	assert_int_equal(actuator_manage(w->actuator, S64), 0);
	assert_string_equal(w->said.foreign_text, S64 " never->madvise");
	assert_int_equal(counts(w).foreign_changes, 1);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
	assert_int_equal(actuator_manage(w->actuator, S64), 0);
	assert_int_equal(counts(w).foreign_changes, 1);
}

/* Reading a file that is not managed, and a buffer that is too small. */
static void test_read(void **state)
{
	struct world *w = *state;
	char value[BASELINE_VALUE_LEN] = "untouched", small[4] = "abc";

	tree_put(&w->tree, "hugepages-128kB/enabled", "always [inherit] madvise never\n");
	assert_string_equal(value_of(w, "hugepages-128kB/enabled"), "inherit");
	assert_int_equal(
		actuator_read(w->actuator, "hugepages-256kB/enabled", value, sizeof(value)),
		-ENOENT);
	assert_string_equal(value, "untouched");
	assert_int_equal(actuator_read(w->actuator, S64, small, sizeof(small)), -ENOBUFS);
	assert_string_equal(small, "abc");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_equal_is_not_written),
		T(test_one_write_after_the_journal),
		T(test_intermediate_value_comes_back),
		T(test_unlisted_token),
		T(test_einval_once),
		T(test_einval_for_every_number),
		T(test_erofs_on_open),
		T(test_eacces),
		T(test_erofs_under_systemd),
		T(test_probe),
		T(test_probe_before_manage),
		T(test_dry_run),
		T(test_unparseable),
		T(test_unparseable_number),
		T(test_bad_requests),
		T(test_gone),
		T(test_other_write_errors),
		T(test_error_after_the_value_was_taken),
		T(test_no_journal_no_write),
		T(test_adopt),
		T(test_foreign_value_is_the_wanted_one),
		T(test_contested_adopt),
		T(test_contested_adopt_audit),
		T(test_contested_reassert),
		T(test_contested_reassert_audit),
		T(test_reassert_by_audit),
		T(test_reassert_only_what_we_wrote),
		T(test_bare_words),
		T(test_bare_word_after_a_crash),
		T(test_foreign_at_start),
		T(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
