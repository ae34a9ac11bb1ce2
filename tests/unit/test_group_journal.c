/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memory.thp.* in baseline.json: kills and restoring. */
#include "group_world.h"
#include "journal.h"

/* ---- what reaches the disk ----------------------------------------------- */

static unsigned n_fsyncs;
int fsync(int fd)
{
	n_fsyncs++;
	return (int)syscall(SYS_fsync, fd);
}

static void test_one_synced_journal_per_write(void **state)
{
	struct world *w = *state;

	n_fsyncs = 0;
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(n_fsyncs, 2); /* the file and its directory */
	assert_int_equal(logged(w, "open-write", "baseline.json.new"), 2);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_SAME);
	audit(w);
	assert_int_equal(n_fsyncs, 2);
	assert_int_equal(logged(w, "open-write", "baseline.json.new"), 2);
}

static void test_the_text(void **state)
{
	struct world *w = *state;
	char entry[512];

	put(w, WEB, MARGIN, "auto\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_PTES_NONE, "0"), ACTUATOR_WRITTEN);
	snprintf(entry, sizeof(entry),
		"{\"path\":\"" WEB "\",\"id\":%llu,\"files\":["
		"{\"file\":\"" MAX_SIZE "\",\"baseline\":\"max\",\"written\":\"65536\",\"old\":null},"
		"{\"file\":\"" MARGIN "\",\"baseline\":\"auto\",\"written\":\"0\",\"old\":null}]}",
		(unsigned long long)id_of(w, WEB));
	assert_non_null(strstr(tree_text(w->journal), entry));
	assert_non_null(strstr(tree_text(w->journal), "{\"path\":\"" DB "\""));
}

/* The journal cannot be written: nothing is. */
static void test_no_journal_no_write(void **state)
{
	struct world *w = *state;

	tree_write(w->rules, "*/baseline.json.new write ENOSPC\n" CGROUP_RULE);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "open-write", "/memory.thp."), 0);
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, "cannot write the journal"));
	assert_int_equal(baseline_groups(w->baseline)->n, 0);
	/* as any other failure that may pass it waits for the audit */
	set_rules(w, "");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
	audit(w);
	/* it fails behind the write: ours stands, and the next journal knows */
	tree_write(w->rules, "*/baseline.json.new write EIO after 1 times 1\n" CGROUP_RULE);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "65536\n");
	audit(w);
	assert_non_null(strstr(tree_text(w->journal), "\"written\":\"65536\",\"old\":null"));
}

/* ---- kills --------------------------------------------------------------- */

static void write_first(struct world *w)
{
	apply(w, WEB, OWN_MAX_SIZE, "65536");
}

static void write_second(struct world *w)
{
	apply(w, WEB, OWN_MAX_SIZE, "65536");
	apply(w, WEB, OWN_MAX_SIZE, "32768");
}

/* Killed before the kernel's file changes: at the opening for writing, which
 * comes after the journal. */
static unsigned kill_after_opens;
static void kill_at_write(const char *path)
{
	/* read: open, read; write: access, open, write */
	if (strstr(path, "/web.service/" MAX_SIZE) && kill_after_opens-- == 0)
		raise(SIGKILL);
}

static void first_journaled(struct world *w)
{
	kill_after_opens = 3;
	shim_before = kill_at_write;
	write_first(w);
}

static void second_journaled(struct world *w)
{
	kill_after_opens = 5 + 3;
	shim_before = kill_at_write;
	write_second(w);
}

static unsigned kill_after_journals;
static void kill_at_journal(const char *path)
{
	if (strstr(path, "/baseline.json.new") && kill_after_journals-- == 0)
		raise(SIGKILL);
}

/* A journal is opened and written; two per step. */
static void first_written(struct world *w)
{
	kill_after_journals = 2;
	shim_before = kill_at_journal;
	write_first(w);
}

static void second_written(struct world *w)
{
	kill_after_journals = 4 + 2;
	shim_before = kill_at_journal;
	write_second(w);
}

static void second_not_journaled(struct world *w)
{
	kill_after_journals = 4;
	shim_before = kill_at_journal;
	write_second(w);
}

static const struct kill {
	void (*step)(struct world *w);
	const char *stands, *journal; /* then */
} kills[] = {
	{first_journaled, "max", "\"written\":\"65536\",\"old\":\"max\""},
	{first_written, "65536", "\"written\":\"65536\",\"old\":\"max\""},
	{write_first, "65536", "\"written\":\"65536\",\"old\":null"},
	{second_not_journaled, "65536", "\"written\":\"65536\",\"old\":null"},
	{second_journaled, "65536", "\"written\":\"32768\",\"old\":\"65536\""},
	{second_written, "32768", "\"written\":\"32768\",\"old\":\"65536\""},
	{write_second, "32768", "\"written\":\"32768\",\"old\":null"},
};

static void test_kill_then_restore(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < LEN(kills); i++) {
		killed_in(w, kills[i].step);
		assert_stands(w, kills[i].stands);
		assert_non_null(strstr(tree_text(w->journal), kills[i].journal));
		assert_int_equal(command(w), 0);
		assert_null(w->journal_warning);
		assert_stands(w, "max");
		assert_int_equal(w->said.n_reports, strcmp(kills[i].stands, "max") != 0);
		assert_false(has_journal(w));
		assert_int_equal(command(w), 0);
		assert_int_equal(w->said.n_reports, 0);
		start(w);
	}
}

static void test_kill_then_start(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	for (size_t i = 0; i < LEN(kills); i++) {
		killed_in(w, kills[i].step);
		start(w);
		assert_null(w->journal_warning);
		assert_int_equal(group_actuator_look(w->a, WEB, id_of(w, WEB), &now, &base), 0);
		assert_string_equal(now.value[OWN_MAX_SIZE], kills[i].stands);
		assert_string_equal(base.value[OWN_MAX_SIZE], "max");
		audit(w);
		assert_int_equal(w->said.foreign, 0);
		assert_int_equal(group_actuator_give_back(w->a, WEB, id_of(w, WEB)), 0);
		assert_stands(w, "max");
		assert_null(strstr(tree_text(w->journal), "groups"));
	}
}

/* In every one of these states somebody else's value is left, and named. */
static void test_kill_then_somebody_else(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	for (size_t i = 0; i < LEN(kills); i++) {
		killed_in(w, kills[i].step);
		put(w, WEB, MAX_SIZE, "131072\n");
		if (i % 2) {
			assert_int_equal(command(w), 0);
			assert_string_equal(
				w->said.reports, "left " WEB "/" MAX_SIZE " 131072->max 0\n");
			assert_false(has_journal(w));
		}
		start(w);
		assert_int_equal(group_actuator_look(w->a, WEB, id_of(w, WEB), &now, &base), 0);
		assert_string_equal(base.value[OWN_MAX_SIZE], "131072");
		assert_int_equal(w->said.foreign, i % 2 == 0);
		assert_int_equal(w->said.adopted, w->said.foreign);
		assert_stands(w, "131072");
		put(w, WEB, MAX_SIZE, "max\n");
		w->said.foreign = w->said.adopted = 0;
	}
}

static void reassertion_journaled(struct world *w)
{
	group_actuator_set_reassert(w->a, true);
	write_first(w);
	put(w, WEB, MAX_SIZE, "131072\n");
	kill_after_opens = 3;
	shim_before = kill_at_write;
	apply(w, WEB, OWN_MAX_SIZE, "32768");
}

/* Killed between the journal and the write over somebody else's value: that one
 * does not pass for ours. */
static void test_kill_in_a_reassertion(void **state)
{
	struct world *w = *state;

	killed_in(w, reassertion_journaled);
	assert_non_null(strstr(tree_text(w->journal), "\"written\":\"32768\",\"old\":null"));
	assert_int_equal(command(w), 0);
	assert_string_equal(w->said.reports, "left " WEB "/" MAX_SIZE " 131072->max 0\n");
	assert_stands(w, "131072");
	start(w);
}

/* Nobody asked for the group in the second run; the audit settles it. */
static void test_kill_then_audit(void **state)
{
	struct world *w = *state;

	killed_in(w, second_journaled);
	start(w);
	assert_true(written(w, WEB));
	audit(w);
	assert_non_null(strstr(tree_text(w->journal), "\"written\":\"65536\",\"old\":null"));
	assert_int_equal(w->said.foreign, 0);
	put(w, WEB, MAX_SIZE, "32768\n"); /* no longer a value of ours */
	audit(w);
	assert_string_equal(w->said.foreign_text, WEB "/" MAX_SIZE " 65536->32768");
	put(w, WEB, MAX_SIZE, "max\n");
	killed_in(w, second_written);
	start(w);
	audit(w);
	put(w, WEB, MAX_SIZE, "65536\n"); /* was ours before the write that had happened */
	audit(w);
	assert_string_equal(w->said.foreign_text, WEB "/" MAX_SIZE " 32768->65536");
}

static void test_kill_then_re_created(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	for (int i = 0; i < 3; i++) {
		killed_in(w, i == 1 ? second_journaled : write_second);
		group_create_anew(w, WEB);
		/* even if it holds just what we wrote into the old one */
		put(w, WEB, MAX_SIZE, "32768\n");
		if (i == 2)
			group_remove(w, WEB);
		assert_int_equal(command(w), 0);
		assert_int_equal(w->said.n_reports, 0);
		assert_false(has_journal(w));
		if (i == 2)
			group_make(w, WEB);
		else
			assert_stands(w, "32768");
		put(w, WEB, MAX_SIZE, "max\n");
		start(w);
	}
	killed_in(w, write_second);
	group_create_anew(w, WEB);
	put(w, WEB, MAX_SIZE, "32768\n");
	start(w);
	assert_int_equal(group_actuator_look(w->a, WEB, id_of(w, WEB), &now, &base), 0);
	assert_string_equal(base.value[OWN_MAX_SIZE], "32768");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "16384"), ACTUATOR_WRITTEN);
	assert_int_equal(restore(w), 0);
	assert_stands(w, "32768");
}

/* ---- restoring ----------------------------------------------------------- */

static void three_groups(struct world *w)
{
	group_make(w, "plain");
	put(w, "plain", PTES_NONE, "100\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "16384"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, "plain", OWN_MAX_PTES_NONE, "0"), ACTUATOR_WRITTEN);
}

static void assert_restored(struct world *w)
{
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
	assert_string_equal(text_of(w, WEB, MARGIN), "inherit\n");
	assert_string_equal(text_of(w, DB, MAX_SIZE), "max\n");
	assert_string_equal(text_of(w, "plain", PTES_NONE), "100\n");
}

static void test_restore_in_the_daemon(void **state)
{
	struct world *w = *state;

	three_groups(w);
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 4);
	assert_non_null(strstr(w->said.reports, "restored " WEB "/" MARGIN " 0->inherit 0\n"));
	assert_restored(w);
	assert_false(has_journal(w));
	assert_int_equal(baseline_groups(w->baseline)->n, 0);
	assert_int_equal(restore(w), 0);
	assert_int_equal(w->said.n_reports, 0);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
}

static void test_restore_that_fails(void **state)
{
	struct world *w = *state;

	three_groups(w);
	stop(w);
	tree_write(w->rules, "*/db.service/* open-write EROFS\n*/plain/* read EIO\n" CGROUP_RULE);
	assert_int_equal(command(w), 2);
	assert_non_null(strstr(w->said.reports, "failed " DB "/" MAX_SIZE " ->max 30\n"));
	assert_non_null(strstr(w->said.reports, "failed plain/" PTES_NONE " ->100 5\n"));
	assert_null(strstr(tree_text(w->journal), WEB));
	tree_write(w->rules, "*/db.service/* open EACCES\n" CGROUP_RULE);
	assert_int_equal(command(w), 1);
	tree_write(w->rules, CGROUP_RULE);
	put(w, DB, MAX_SIZE, "what?\n");
	assert_int_equal(command(w), 1);
	assert_string_equal(w->said.reports, "failed " DB "/" MAX_SIZE " ->max 22\n");
	put(w, DB, MAX_SIZE, "16384\n");
	assert_int_equal(command(w), 0);
	assert_restored(w);
	assert_false(has_journal(w));
	start(w);
}

static void test_restore_where_a_file_is_missing(void **state)
{
	struct world *w = *state;
	char path[PATH_MAX];

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	group_path_of(w, WEB, MAX_SIZE, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(restore(w), 0);
	assert_string_equal(w->said.reports, "left " WEB "/" MAX_SIZE " ->max 2\n");
	assert_false(has_journal(w));
}

static void test_restore_without_a_cgroup_tree(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	w->said.reports[0] = '\0';
	assert_int_equal(baseline_restore(w->baseline, w->tree.thp_fd, -1, note_report, &w->said), 1);
	assert_string_equal(w->said.reports, "failed " WEB "/" MAX_SIZE " ->max 19\n");
	stop(w);
	put(w, "../../..", "proc/self/mountinfo", "24 1 0:21 / /sys/fs/cgroup rw - tmpfs cgroup rw\n");
	assert_int_equal(command(w), 0); /* no mount is named, and the directory is there */
	assert_stands(w, "max");
	start(w);
}

/* Where mountinfo says, as for the daemon. */
static void test_restore_in_a_tree_elsewhere(void **state)
{
	struct world *w = *state;
	char to[sizeof(w->cg)];

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	stop(w);
	put(w, "../../..", "proc/self/mountinfo", "24 1 0:21 / /mnt/groups rw - cgroup2 cgroup2 rw\n");
	snprintf(to, sizeof(to), "%s/mnt", w->tree.root);
	assert_int_equal(mkdir(to, 0755), 0);
	snprintf(to, sizeof(to), "%s/mnt/groups", w->tree.root);
	assert_int_equal(rename(w->cg, to), 0);
	snprintf(w->cg, sizeof(w->cg), "%s", to);
	assert_int_equal(command(w), 0);
	assert_stands(w, "max");
	assert_int_equal(w->said.n_reports, 1);
	start(w);
}

/* With a hold the journal stays, without the groups. */
static void test_restore_keeps_a_hold(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(baseline_set_hold(w->baseline, "an incident"), 0);
	assert_non_null(strstr(tree_text(w->journal), "groups"));
	stop(w);
	start(w);
	assert_string_equal(baseline_hold(w->baseline), "an incident");
	assert_int_equal(restore(w), 0);
	assert_stands(w, "max");
	assert_null(strstr(tree_text(w->journal), "groups"));
	assert_non_null(strstr(tree_text(w->journal), "an incident"));
}

/* What gets weaker for the whole machine, then the groups, then what gets
 * stronger: no group has more on the way than before or after. */
static void test_order_of_restoring(void **state)
{
	static const char *const order[] = {"hugepages-64kB/enabled", "/web.service/" MAX_SIZE,
		"hugepages-16kB/enabled"};
	struct world *w = *state;
	char *at = NULL, *text;
	bool foreign;

	tree_put(&w->tree, "hugepages-64kB/enabled", "always inherit madvise [never]\n");
	tree_put(&w->tree, "hugepages-16kB/enabled", "[always] inherit madvise never\n");
	for (int i = 0; i < 3; i += 2) {
		const char *from = i ? "always" : "never", *to = i ? "never" : "always";

		assert_int_equal(baseline_note_start(w->baseline, order[i], from, &foreign), 0);
		assert_int_equal(baseline_journal(w->baseline, order[i], from, to), 0);
		assert_int_equal(knob_write(w->tree.thp_fd, order[i], to), 0);
		assert_int_equal(baseline_written_done(w->baseline, order[i], true), 0);
	}
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "16384"), ACTUATOR_WRITTEN);
	tree_write(w->log, "");
	assert_int_equal(restore(w), 0);
	text = strdup(tree_text(w->log));
	at = text;
	for (size_t i = 0; i < LEN(order); i++) {
		at = strstr(at, order[i]);
		assert_non_null(at);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_synced_journal_per_write),
		T(test_the_text),
		T(test_no_journal_no_write),
		T(test_kill_then_restore),
		T(test_kill_then_start),
		T(test_kill_then_somebody_else),
		T(test_kill_in_a_reassertion),
		T(test_kill_then_audit),
		T(test_kill_then_re_created),
		T(test_restore_in_the_daemon),
		T(test_restore_that_fails),
		T(test_restore_where_a_file_is_missing),
		T(test_restore_without_a_cgroup_tree),
		T(test_restore_in_a_tree_elsewhere),
		T(test_restore_keeps_a_hold),
		T(test_order_of_restoring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
