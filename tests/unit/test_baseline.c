/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The baseline journal: one instance, kills, entries, unusable journals, holds. */
#include "baseline_world.h"
#include "journal.h"

/* ---- one instance ------------------------------------------------------- */

static void test_second_instance_is_refused(void **state)
{
	struct world *w = *state;
	struct baseline *other = NULL;
	const char *warning = "untouched";

	assert_int_equal(baseline_open(w->tree.run, w->tree.root, &other, &warning), -EBUSY);
	assert_null(other);
	assert_string_equal(warning, "untouched");
	assert_int_equal(command(w, false), -EBUSY);
	stop(w);
	assert_int_equal(start(w), 0);
}

static void nothing(struct world *w)
{
	(void)w;
}

static void test_lock_ends_with_the_process(void **state)
{
	killed_after(*state, nothing);
}

static void test_runtime_dir(void **state)
{
	struct world *w = *state;
	struct baseline *b = NULL;
	struct stat st;
	const char *warning;
	char path[160];

	assert_int_equal(stat(w->tree.run, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	snprintf(path, sizeof(path), "%s/lock", w->tree.run);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(path, sizeof(path), "%s/no/such/parent", w->tree.root);
	assert_int_equal(baseline_open(path, "", &b, &warning), -ENOENT);
	assert_int_equal(baseline_open(w->rules, "", &b, &warning), -ENOTDIR);
	assert_int_equal(baseline_open(w->tree.run, "/tmp/\xff", &b, &warning), -EILSEQ);
	assert_null(b);
}

/* ---- kills -------------------------------------------------------------- */

static void journal_only(struct world *w)
{
	note(w, S64, "always");
	baseline_journal(w->b, S64, "always", "never");
}

static void test_killed_between_journal_and_write(void **state)
{
	struct world *w = *state;

	killed_after(w, journal_only);
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_false(note(w, S64, "always"));
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_null(baseline_written(w->b, S64));
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_int_equal(kernel_writes(w), 0);
	assert_false(has_journal(w));
}

static void journal_and_write(struct world *w)
{
	journal_only(w);
	knob_write(w->tree.thp_fd, S64, "never");
}

static void test_killed_between_write_and_done(void **state)
{
	struct world *w = *state;

	killed_after(w, journal_and_write);
	assert_false(note(w, S64, "never"));
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_string_equal(baseline_written(w->b, S64), "never");
	assert_int_equal(restore(w), 0);
	assert_string_equal(w->said.reports, "restored " S64 " never->always 0\n");
	assert_tree_is_as_at_start(w);
}

static void second_step_journaled(struct world *w)
{
	note(w, S64, "always");
	change(w, S64, "always", "madvise");
	baseline_journal(w->b, S64, "madvise", "never");
}

static void test_killed_before_the_second_write(void **state)
{
	struct world *w = *state;

	killed_after(w, second_step_journaled);
	assert_false(note(w, S64, "madvise"));
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_string_equal(baseline_written(w->b, S64), "madvise");
	assert_int_equal(restore(w), 0);
	assert_tree_is_as_at_start(w);
}

/* kill -9, then `mthpd --restore` without a start in between. */
static void test_killed_then_restored_by_command(void **state)
{
	static void (*const steps[])(struct world *) = {
		journal_only, journal_and_write, second_step_journaled};
	struct world *w = *state;

	for (size_t i = 0; i < LEN(steps); i++) {
		killed_after(w, steps[i]);
		stop(w);
		assert_int_equal(command(w, true), 0);
		assert_null(w->warning);
		assert_tree_is_as_at_start(w);
		assert_false(has_journal(w));
		assert_int_equal(start(w), 0);
	}
}

static void written_and_back(struct world *w)
{
	note(w, S64, "always");
	change(w, S64, "always", "never");
	baseline_journal(w->b, S64, "never", "always");
}

/* A kill on the way back to the baseline, before the write. */
static void test_killed_on_the_way_back(void **state)
{
	struct world *w = *state;

	killed_after(w, written_and_back);
	assert_false(note(w, S64, "never"));
	assert_string_equal(baseline_written(w->b, S64), "never");
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_int_equal(restore(w), 0);
	assert_tree_is_as_at_start(w);
}

/* A value of ours that was replaced long ago is not ours any more when somebody
 * else sets it. */
static void test_replaced_value_is_foreign(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	change(w, S64, "always", "madvise");
	change(w, S64, "madvise", "never");
	stop(w);
	assert_int_equal(start(w), 0);
	assert_true(note(w, S64, "madvise"));
	assert_string_equal(baseline_get(w->b, S64), "madvise");
	assert_null(baseline_written(w->b, S64));
}

static void reassert_journaled(struct world *w)
{
	note(w, S64, "always");
	change(w, S64, "always", "never");
	/* somebody set madvise, never is about to be written over it */
	baseline_journal(w->b, S64, "madvise", "never");
}

/* A kill in the middle of a re-assertion does not make their value ours. */
static void test_killed_before_a_reassertion(void **state)
{
	struct world *w = *state;

	killed_after(w, reassert_journaled);
	assert_true(note(w, S64, "madvise"));
	assert_string_equal(baseline_get(w->b, S64), "madvise");
}

/* ---- entries ------------------------------------------------------------ */

static void test_note_start(void **state)
{
	struct world *w = *state;
	bool foreign = true;
	char path[THP_PATH_MAX];

	assert_null(baseline_get(w->b, S64));
	assert_false(note(w, S64, "always"));
	assert_false(note(w, S64, "never")); /* has one already */
	assert_string_equal(baseline_get(w->b, S64), "always");
	assert_int_equal(baseline_note_start(w->b, "../enabled", "always", &foreign), -EINVAL);
	assert_int_equal(baseline_note_start(w->b, S16, "[always]", &foreign), -EINVAL);
	assert_int_equal(baseline_note_start(w->b, PTES, "always", &foreign), -EINVAL);
	for (int i = 1; i < BASELINE_FILES_MAX; i++) {
		snprintf(path, sizeof(path), "hugepages-%dkB/enabled", i * 1000);
		note(w, path, "never");
	}
	assert_int_equal(baseline_note_start(w->b, S16, "never", &foreign), -ENOSPC);
	assert_true(foreign);
}

static void test_failed_write_puts_the_old_state_back(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	assert_int_equal(baseline_journal(w->b, S64, "always", "never"), 0);
	assert_int_equal(baseline_written_done(w->b, S64, false), 0);
	assert_null(baseline_written(w->b, S64));
	change(w, S64, "always", "madvise");
	assert_int_equal(baseline_journal(w->b, S64, "madvise", "never"), 0);
	assert_int_equal(baseline_written_done(w->b, S64, false), 0);
	assert_string_equal(baseline_written(w->b, S64), "madvise");
	assert_int_equal(restore(w), 0);
	assert_tree_is_as_at_start(w);
}

static void test_journal_checks_its_caller(void **state)
{
	struct world *w = *state;

	assert_int_equal(baseline_journal(w->b, S64, "always", "never"), -ENOENT);
	assert_int_equal(baseline_written_done(w->b, S64, true), -ENOENT);
	assert_int_equal(baseline_adopt(w->b, S64, "never"), -ENOENT);
	note(w, S64, "always");
	assert_int_equal(baseline_journal(w->b, S64, "always", "a b"), -EINVAL);
	assert_int_equal(baseline_adopt(w->b, S64, "a b"), -EINVAL);
	assert_null(baseline_written(w->b, S64));
}

static void test_back_at_the_baseline_drops_the_entry(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	change(w, S64, "always", "never");
	assert_non_null(strstr(tree_text(w->journal), "hugepages-64kB"));
	change(w, S64, "never", "always");
	assert_null(strstr(tree_text(w->journal), "hugepages-64kB"));
	assert_null(baseline_written(w->b, S64));
}

static void test_adopted_value_is_not_put_back(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	change(w, S64, "always", "never");
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(baseline_adopt(w->b, S64, "madvise"), 0);
	stop(w);
	assert_int_equal(command(w, false), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_string_equal(tree_get(&w->tree, S64), "always inherit [madvise] never\n");
	assert_int_equal(start(w), 0);
}

/* ---- journals that cannot be used --------------------------------------- */

/* Writes @text as the journal, starts, and expects it to be ignored. */
static void check_ignored(struct world *w, const char *text, const char *why)
{
	char aside[160];

	stop(w);
	snprintf(aside, sizeof(aside), "%s/baseline.json.ignored", w->tree.run);
	tree_write(w->journal, text);
	assert_int_equal(command(w, false), strstr(why, "another boot") ? 0 : -EBADMSG);
	assert_non_null(w->warning);
	assert_string_equal(tree_text(w->journal), text);
	assert_int_equal(start(w), 0);
	if (!w->warning || !strstr(w->warning, why))
		fail_msg("\"%s\" for %.200s", w->warning ? w->warning : "(nothing)", text);
	assert_string_equal(tree_text(aside), text);
	assert_false(has_journal(w));
	assert_null(baseline_get(w->b, S64));
	assert_null(baseline_hold(w->b));
	assert_true(baseline_restore_wanted(w->b));
	assert_false(note(w, S64, "never"));
	assert_string_equal(baseline_get(w->b, S64), "never");
}

static void test_truncated_anywhere(void **state)
{
	struct world *w = *state;
	char *text = real_journal(w);

	tree_write(w->log, "");
	for (size_t n = strlen(text); n-- > 0;) {
		text[n] = '\0';
		check_ignored(w, text, "truncated or corrupt");
	}
	assert_int_equal(kernel_writes(w), 0);
	free(text);
}

/* @text with the first @from replaced by @to. */
static char *edited(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *r = NULL;

	assert_non_null(at);
	assert_true(asprintf(&r, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return r;
}

static void test_foreign_and_faulty_journals(void **state)
{
	static const struct {
		const char *from, *to, *why;
	} edits[] = {
		{"\"none\"", "\"0b5ca1e0-0000-4000-8000-000000000000\"", "another boot"},
		{"\"none\"", "null", "another boot"},
		{"\"format\": 1", "\"format\": 2", "format"},
		{"\"format\": 1", "\"format\": \"1\"", "format"},
		{"\"restore_on_exit\": true", "\"restore_on_exit\": 1", "corrupt"},
		{"\"files\": [", "\"files\": 1, \"f\": [", "corrupt"},
		{"\"reason\": \"an incident\"", "\"reason\": 5", "corrupt"},
		{"hugepages-64kB/", "../", "never writes"},
		{"hugepages-64kB/", "/sys/kernel/mm/transparent_hugepage/", "never writes"},
		{"hugepages-64kB/", "hugepages-64kB/../", "never writes"},
		{"hugepages-64kB/", "khugepaged/", "never writes"},
		{"hugepages-64kB/", "hugepages-64kB/stats/", "never writes"},
		{"\"always\"", "\"al ways\"", "never writes"},
		{"\"always\"", "\"\"", "never writes"},
		{"\"always\"", "null", "never writes"},
		{"\"always\"", "7", "never writes"},
		{"\"always\"", "\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst\"",
			"never writes"},
		{"\"never\"", "\"never\\n\"", "never writes"},
		{"\"never\"", "null", "never writes"},
		{"\"old\": null", "\"old\": false", "never writes"},
		{"\"old\": null", "\"old\": \"[x]\"", "never writes"},
		{"\"old\": null", "\"nothing\": null", "never writes"},
		{"\"path\":", "\"path\": \"enabled\", \"path\":", "corrupt"},
		{"\"path\":", "\"name\":", "never writes"},
		{"{\n", "[\n", "corrupt"},
		{"an incident", "an \\u0000 incident", "corrupt"},
		{"an incident", "an \xff incident", "corrupt"},
	};
	struct world *w = *state;
	char *text = real_journal(w);

	tree_write(w->log, "");
	for (size_t i = 0; i < LEN(edits); i++) {
		char *changed = edited(text, edits[i].from, edits[i].to);

		check_ignored(w, changed, edits[i].why);
		free(changed);
	}
	check_ignored(w, "[]", "format");
	check_ignored(w, "{}", "format");
	assert_int_equal(kernel_writes(w), 0);
	free(text);
}

/* It may be good for the one who wrote it. */
static void test_journal_of_another_root(void **state)
{
	struct world *w = *state;
	char *text = real_journal(w), *changed = edited(text, "/tmp/", "/var/tmp/");

	stop(w);
	tree_write(w->log, "");
	tree_write(w->journal, changed);
	assert_int_equal(command(w, false), -EBADMSG);
	assert_int_equal(start(w), -EXDEV);
	assert_string_equal(tree_text(w->journal), changed);
	assert_int_equal(kernel_writes(w), 0);
	free(changed);
	free(text);
}

static void test_too_many_and_twice(void **state)
{
	static const char entry[] = "{\"path\":\"hugepages-%dkB/enabled\",\"baseline\":\"always\","
				    "\"written\":\"never\",\"old\":null}%s";
	struct world *w = *state;
	char *text = NULL;
	size_t size;

	for (int twice = 0; twice < 2; twice++) {
		FILE *f = open_memstream(&text, &size);

		fprintf(f,
			"{\"format\":1,\"boot_id\":\"none\",\"root\":\"%s\","
			"\"restore_on_exit\":true,\"hold\":null,\"files\":[",
			w->tree.root);
		for (int i = 1; i <= (twice ? 2 : 65); i++)
			fprintf(f, entry, twice ? 16 : i * 16, i == (twice ? 2 : 65) ? "]}" : ",");
		fclose(f);
		check_ignored(w, text, "never writes");
		free(text);
	}
	/* one byte more than the limit */
	text = calloc(1, JOURNAL_BYTES_MAX + 2);
	memset(text, ' ', JOURNAL_BYTES_MAX + 1);
	check_ignored(w, text, "cannot be read");
	free(text);
}

static void test_no_regular_file(void **state)
{
	struct world *w = *state;

	for (int kind = 0; kind < 3; kind++) {
		stop(w);
		if (kind == 0)
			assert_int_equal(mkfifo(w->journal, 0600), 0);
		else if (kind == 1)
			assert_int_equal(symlink("/etc/passwd", w->journal), 0);
		else
			tree_write(w->rules, "*/baseline.json read EIO\n");
		if (kind == 2)
			tree_write(w->journal, "{}");
		assert_int_equal(start(w), 0);
		assert_non_null(w->warning);
	}
}

static void test_journal_of_the_same_root_spelt_differently(void **state)
{
	struct world *w = *state;
	char spelt[160];

	free(real_journal(w));
	assert_int_equal(baseline_set_hold(w->b, NULL), 0);
	stop(w);
	snprintf(spelt, sizeof(spelt), "%s/./sys/..//", w->tree.root);
	assert_int_equal(
		baseline_restore_command(w->tree.run, spelt, false, note_report, &w->said, &w->warning), 0);
	assert_null(w->warning);
	assert_tree_is_as_at_start(w);
	assert_int_equal(start(w), 0);
}

/* ---- holds and RestoreOnExit -------------------------------------------- */

static void test_hold(void **state)
{
	struct world *w = *state;
	char reason[BASELINE_REASON_MAX + 2];

	assert_null(baseline_hold(w->b));
	assert_int_equal(baseline_set_hold(w->b, "upgrade \"x\" läuft"), 0);
	assert_false(baseline_restore_wanted(w->b));
	stop(w);
	assert_int_equal(start(w), 0);
	assert_string_equal(baseline_hold(w->b), "upgrade \"x\" läuft");
	assert_int_equal(baseline_set_hold(w->b, "\xc3\x28"), -EINVAL);
	memset(reason, 'r', sizeof(reason) - 1);
	reason[sizeof(reason) - 1] = '\0';
	assert_int_equal(baseline_set_hold(w->b, reason), -EINVAL);
	assert_string_equal(baseline_hold(w->b), "upgrade \"x\" läuft");
	reason[BASELINE_REASON_MAX] = '\0';
	assert_int_equal(baseline_set_hold(w->b, reason), 0);
	assert_int_equal(baseline_set_hold(w->b, ""), 0);
	stop(w);
	assert_int_equal(start(w), 0);
	assert_string_equal(baseline_hold(w->b), "");
	assert_int_equal(baseline_set_hold(w->b, NULL), 0);
	stop(w);
	assert_int_equal(start(w), 0);
	assert_null(baseline_hold(w->b));
}

/* A hold freezes the knobs over a restart; plain --restore puts them back and
 * keeps the hold. */
static void test_hold_and_restore(void **state)
{
	struct world *w = *state;

	note(w, S64, "always");
	change(w, S64, "always", "never");
	assert_int_equal(baseline_set_hold(w->b, "frozen"), 0);
	stop(w);
	assert_int_equal(command(w, true), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_string_equal(tree_get(&w->tree, S64), "always inherit madvise [never]\n");
	assert_int_equal(command(w, false), 0);
	assert_tree_is_as_at_start(w);
	assert_int_equal(start(w), 0);
	assert_string_equal(baseline_hold(w->b), "frozen");
	assert_false(note(w, S64, "always"));
}

static void test_restore_on_exit(void **state)
{
	struct world *w = *state;

	assert_false(has_journal(w));
	assert_int_equal(baseline_set_restore_on_exit(w->b, true), 0);
	assert_true(has_journal(w));
	note(w, S64, "always");
	change(w, S64, "always", "never");
	assert_int_equal(baseline_set_restore_on_exit(w->b, false), 0);
	assert_false(baseline_restore_wanted(w->b));
	stop(w);
	assert_int_equal(command(w, true), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_true(has_journal(w));
	assert_int_equal(start(w), 0);
	assert_false(baseline_restore_wanted(w->b));
	assert_false(note(w, S64, "never"));
	assert_string_equal(baseline_get(w->b, S64), "always");
	stop(w);
	assert_int_equal(command(w, false), 0);
	assert_tree_is_as_at_start(w);
	assert_int_equal(start(w), 0);
}

/* A journal that cannot be replaced leaves the old one whole. */
static void test_full_disk(void **state)
{
	struct world *w = *state;
	char *before;

	note(w, S64, "always");
	note(w, S16, "never");
	change(w, S64, "always", "never");
	before = strdup(tree_text(w->journal));
	tree_write(w->rules, "*/baseline.json.new write ENOSPC\n");
	assert_int_equal(baseline_journal(w->b, S16, "never", "madvise"), -ENOSPC);
	assert_null(baseline_written(w->b, S16));
	assert_string_equal(tree_text(w->journal), before);
	tree_write(w->rules, "*/baseline.json.new open-write EMFILE\n");
	assert_int_equal(baseline_set_hold(w->b, "x"), -EMFILE);
	assert_string_equal(tree_text(w->journal), before);
	free(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_second_instance_is_refused),
		T(test_lock_ends_with_the_process),
		T(test_runtime_dir),
		T(test_killed_between_journal_and_write),
		T(test_killed_between_write_and_done),
		T(test_killed_before_the_second_write),
		T(test_killed_then_restored_by_command),
		T(test_killed_on_the_way_back),
		T(test_replaced_value_is_foreign),
		T(test_killed_before_a_reassertion),
		T(test_note_start),
		T(test_failed_write_puts_the_old_state_back),
		T(test_journal_checks_its_caller),
		T(test_back_at_the_baseline_drops_the_entry),
		T(test_adopted_value_is_not_put_back),
		T(test_truncated_anywhere),
		T(test_foreign_and_faulty_journals),
		T(test_journal_of_another_root),
		T(test_too_many_and_twice),
		T(test_no_regular_file),
		T(test_journal_of_the_same_root_spelt_differently),
		T(test_hold),
		T(test_hold_and_restore),
		T(test_restore_on_exit),
		T(test_full_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
