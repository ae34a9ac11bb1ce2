/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Putting the start values back. */
#include "baseline_world.h"

/* ---- restoring ---------------------------------------------------------- */

static void test_restore_is_byte_exact_and_idempotent(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	note(w, S2M, "inherit");
	note(w, PTES, "511");
	note(w, "defrag", "madvise");
	note(w, "khugepaged/defrag", "1");
	change(w, S64, "always", "never");
	change(w, S2M, "inherit", "madvise");
	change(w, PTES, "511", "0");
	change(w, "defrag", "madvise", "never");
	change(w, "khugepaged/defrag", "1", "0");
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 5);
	assert_tree_is_as_at_start(w);
	assert_false(has_journal(w));
	assert_null(baseline_written(w->b, S64));
	tree_write(w->log, "");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(restore(w), 0);
		assert_int_equal(w->said.n_reports, 0);
	}
	stop(w);
	assert_int_equal(command(w, false), 0);
	assert_int_equal(command(w, true), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_int_equal(kernel_writes(w), 0);
	assert_int_equal(start(w), 0);
}

static void test_restore_leaves_foreign_values(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	note(w, PTES, "511");
	change(w, S64, "always", "never");
	change(w, PTES, "511", "0");
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 2);
	assert_non_null(strstr(w->said.reports, "left " S64 " madvise->always 0\n"));
	assert_non_null(strstr(w->said.reports, "restored " PTES " 0->511 0\n"));
	assert_string_equal(tree_get(&w->tree, S64), "always inherit [madvise] never\n");
	assert_false(has_journal(w));
	assert_string_equal(baseline_get(w->b, S64), "madvise");
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 0);
}

/* What gets weaker comes first, what gets stronger last and the top-level
 * switch at the very end; each file is opened once. */
static void test_restore_order(void **state)
{
	static const char *const order[] = {
		"shmem_enabled", S16, "khugepaged/scan_sleep_millisecs", S64, PTES, "enabled"};
	struct world *w = *state;
	const char *at;

	note(w, "enabled", "madvise");
	note(w, S64, "always");
	note(w, S16, "never");
	note(w, PTES, "511");
	note(w, "khugepaged/scan_sleep_millisecs", "10000");
	note(w, "shmem_enabled", "never");
	change(w, "enabled", "madvise", "never");
	change(w, S64, "always", "never");
	change(w, S16, "never", "madvise");
	change(w, PTES, "511", "0");
	change(w, "khugepaged/scan_sleep_millisecs", "10000", "100");
	change(w, "shmem_enabled", "never", "always");
	tree_write(w->log, "");
	assert_int_equal(restore(w), 0);
	at = w->said.reports;
	for (size_t i = 0; i < LEN(order); i++) {
		char line[160];

		snprintf(line, sizeof(line), "restored %s ", order[i]);
		at = strstr(at, line);
		if (!at)
			fail_msg("%s is out of order in\n%s", order[i], w->said.reports);
	}
	assert_int_equal(kernel_writes(w), LEN(order));
	assert_tree_is_as_at_start(w);
}

/* A sleep that was relaxed gets stronger on the way back; 0/1 shrinking too. */
static void test_riskier_direction(void **state)
{
	(void)state;
	assert_true(knob_raises(PTES, "0", "511"));
	assert_false(knob_raises(PTES, "511", "409"));
	assert_false(knob_raises(PTES, "9", "9"));
	assert_true(knob_raises("khugepaged/scan_sleep_millisecs", "60000", "10000"));
	assert_true(knob_raises("shrink_underused", "1", "0"));
	assert_true(knob_raises(S64, "never", "inherit"));
	assert_true(knob_raises(S64, "madvise", "always"));
	assert_false(knob_raises(S64, "always", "inherit"));
	assert_true(knob_raises("defrag", "defer", "madvise"));
	assert_true(knob_raises("defrag", "always", "a_new_token"));
}

static void test_failed_restore_is_tried_again(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	note(w, PTES, "511");
	change(w, S64, "always", "never");
	change(w, PTES, "511", "0");
	tree_write(w->rules, "*" S64 " open-write EROFS\n*/transparent_hugepage/* write sysfs\n");
	assert_int_equal(restore(w), 1);
	assert_non_null(strstr(w->said.reports, "failed " S64 " never->always 30\n"));
	assert_non_null(strstr(w->said.reports, "restored " PTES " 0->511 0\n"));
	assert_true(has_journal(w));
	assert_null(strstr(tree_text(w->journal), "max_ptes_none"));
	stop(w);
	assert_int_equal(command(w, false), 1);
	tree_write(w->rules, "*" S64 " read EIO\n*/transparent_hugepage/* write sysfs\n");
	assert_int_equal(command(w, false), 1);
	assert_non_null(strstr(w->said.reports, "failed " S64 " ->always 5\n"));
	tree_write(w->rules, "*/transparent_hugepage/* write sysfs\n");
	assert_int_equal(command(w, false), 0);
	assert_tree_is_as_at_start(w);
	assert_false(has_journal(w));
	assert_int_equal(start(w), 0);
}

static void test_restore_of_odd_files(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	note(w, S16, "never");
	note(w, S2M, "inherit");
	change(w, S64, "always", "never");
	change(w, S16, "never", "always");
	change(w, S2M, "inherit", "never");
	unlinkat(w->tree.thp_fd, S64, 0);
	tree_put(&w->tree, S16, "always madvise\n");
	tree_put(&w->tree, S2M, "always madvise [never]\n");
	tree_write(w->log, "");
	assert_int_equal(restore(w), 2);
	assert_non_null(strstr(w->said.reports, "left " S64 " ->always 2\n"));
	assert_non_null(strstr(w->said.reports, "failed " S16 " ->never 22\n"));
	assert_non_null(strstr(w->said.reports, "failed " S2M " never->inherit 22\n"));
	assert_int_equal(kernel_writes(w), 0);
}

/* A file in the tree that leads out of it is not written through. */
static void test_restore_follows_no_link(void **state)
{
	struct world *w = *state;
	char outside[160], link[256];

	note(w, S64, "always");
	change(w, S64, "always", "never");
	snprintf(outside, sizeof(outside), "%s/outside", w->tree.root);
	snprintf(link, sizeof(link), "%s/%s", w->tree.thp, S64);
	tree_write(outside, "always inherit madvise [never]\n");
	unlink(link);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(restore(w), 1);
	assert_string_equal(tree_text(outside), "always inherit madvise [never]\n");
}

/* A plain file as a write leaves it; see knob_read(). */
static void test_restore_of_bare_words(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	note(w, S16, "never");
	change(w, S64, "always", "never");
	change(w, S16, "never", "madvise");
	tree_write(w->rules, "");
	tree_put(&w->tree, S64, "never");
	tree_put(&w->tree, S16, "inherit");
	stop(w);
	assert_int_equal(command(w, false), 1);
	assert_string_equal(tree_get(&w->tree, S64), "always");
	assert_string_equal(tree_get(&w->tree, S16), "inherit");
	assert_non_null(strstr(w->said.reports, "failed " S16 " ->never 22\n"));
	assert_int_equal(start(w), 0);
}

static void test_command_without_a_journal(void **state)
{
	struct world *w = *state;
	char nowhere[160];

	stop(w);
	assert_int_equal(command(w, false), 0);
	snprintf(nowhere, sizeof(nowhere), "%s/nowhere", w->tree.root);
	assert_int_equal(
		baseline_restore_command(nowhere, w->tree.root, false, note_report, &w->said, &w->warning),
		0);
	assert_null(w->warning);
	assert_int_equal(access(nowhere, F_OK), -1);
	assert_int_equal(start(w), 0);
}

/* No THP directory: fine when there is nothing to put back, an error otherwise. */
static void test_command_without_thp(void **state)
{
	struct world *w = *state;
	char moved[160];

	assert_int_equal(baseline_set_restore_on_exit(w->b, true), 0);
	stop(w);
	snprintf(moved, sizeof(moved), "%s/moved", w->tree.root);
	assert_int_equal(rename(w->tree.thp, moved), 0);
	assert_int_equal(command(w, false), 0);
	assert_false(has_journal(w));
	assert_int_equal(start(w), 0);
	note(w, S64, "always");
	assert_int_equal(baseline_journal(w->b, S64, "always", "never"), 0);
	stop(w);
	assert_int_equal(command(w, false), -ENOENT);
	assert_true(has_journal(w));
	assert_int_equal(start(w), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_restore_is_byte_exact_and_idempotent),
		T(test_restore_leaves_foreign_values),
		T(test_restore_order),
		T(test_riskier_direction),
		T(test_failed_restore_is_tried_again),
		T(test_restore_of_odd_files),
		T(test_restore_follows_no_link),
		T(test_restore_of_bare_words),
		T(test_command_without_a_journal),
		T(test_command_without_thp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
