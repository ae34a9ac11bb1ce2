/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The group actuator on a fake cgroup2 tree: values, refusals, other people. */
#include "group_world.h"

static void unlink_file(struct world *w, const char *group, const char *file)
{
	char path[PATH_MAX];

	group_path_of(w, group, file, path);
	assert_int_equal(unlink(path), 0);
}

/* ---- looking ------------------------------------------------------------ */

static void test_look_at_an_untouched_group(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	look(w, WEB, &now, &base);
	assert_values(&now, "max", "inherit", "inherit");
	assert_values(&base, "max", "inherit", "inherit");
	put(w, WEB, MAX_SIZE, "65536\n");
	put(w, WEB, PTES_NONE, "0\n");
	put(w, WEB, MARGIN, "auto\n");
	look(w, WEB, &now, &base);
	assert_values(&now, "65536", "0", "auto");
	assert_values(&base, "65536", "0", "auto");
	assert_false(has_journal(w));
	assert_int_equal(w->said.warnings, 0);
	assert_int_equal(logged(w, "open-write", "/memory.thp."), 0);
}

static void test_look_where_files_are_missing(void **state)
{
	struct world *w = *state;
	struct own_values now = {.value = {"untouched"}}, base = now;
	uint64_t id = id_of(w, WEB);

	unlink_file(w, WEB, PTES_NONE);
	unlink_file(w, WEB, MAX_SIZE);
	look(w, WEB, &now, &base);
	assert_values(&now, "", "", "inherit");
	assert_values(&base, "", "", "inherit");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_GONE);
	unlink_file(w, WEB, MARGIN);
	assert_int_equal(group_actuator_look(w->a, WEB, id, &now, &base), -ENOENT);
	assert_values(&now, "", "", "inherit");
	assert_int_equal(group_actuator_look(w->a, "", id_of(w, ""), &now, &base), -ENOENT);
}

static void test_look_at_a_group_that_is_gone(void **state)
{
	struct world *w = *state;
	struct own_values now, base;
	uint64_t web = id_of(w, WEB), db = id_of(w, DB);

	group_create_anew(w, WEB);
	assert_int_equal(group_actuator_look(w->a, WEB, web, &now, &base), -ESTALE);
	group_remove(w, DB);
	assert_int_equal(group_actuator_look(w->a, DB, db, &now, &base), -ESTALE);
	assert_int_equal(group_actuator_look(w->a, "no.slice/no.service", 1, &now, &base), -ESTALE);
	assert_int_equal(group_actuator_look(w->a, DB "/" MAX_SIZE "/x", 1, &now, &base), -ESTALE);
}

static void test_texts_that_are_not_understood(void **state)
{
	static const char *const texts[] = {"", "\n", "64K\n", "100000\n", "2048\n", "-1\n", "max max\n",
		"Max\n", "065536\n", "18446744073709551616\n", "inherit\n",
		"99999999999999999999999999999999999999999999999999999999999999999999\n"};
	struct world *w = *state;
	struct own_values now, base;

	for (size_t i = 0; i < LEN(texts); i++) {
		put(w, WEB, MAX_SIZE, texts[i]);
		look(w, WEB, &now, &base);
		assert_values(&now, "", "inherit", "inherit");
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_string_equal(text_of(w, WEB, MAX_SIZE), texts[i]);
	}
	put(w, WEB, MARGIN, "max\n");
	put(w, WEB, PTES_NONE, "auto\n");
	look(w, WEB, &now, &base);
	assert_values(&now, "", "", "");
	assert_int_equal(w->said.warnings, 3); /* one for each of the three files */
	assert_int_equal(counts(w).write_errors, 0);
}

static void test_look_that_fails(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	set_rules(w, "*/" MARGIN " read EIO\n");
	assert_int_equal(group_actuator_look(w->a, WEB, id_of(w, WEB), &now, &base), -EIO);
	set_rules(w, "*/web.service open EMFILE\n");
	assert_int_equal(group_actuator_look(w->a, WEB, id_of(w, WEB), &now, &base), -EMFILE);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_non_null(strstr(w->said.last_warning, WEB "/" MARGIN ": cannot be set to \"0\": Too many"));
}

/* ---- writing ------------------------------------------------------------ */

/* Somebody was there first: not a byte is written before that was thought over. */
static void test_unexpected_in_a_file_that_is_not_ours(void **state)
{
	struct world *w = *state;
	uint64_t id = id_of(w, WEB);
	struct own_values now, base;

	put(w, WEB, MAX_SIZE, "8192\n");
	assert_int_equal(group_actuator_apply(w->a, WEB, id, OWN_MAX_SIZE, "65536", "max"), ACTUATOR_FOREIGN);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "8192\n");
	assert_int_equal(counts(w).writes, 0);
	assert_int_equal(counts(w).foreign_changes, 1);
	assert_int_equal(group_actuator_apply(w->a, WEB, id, OWN_MAX_SIZE, "4096", "8192"), ACTUATOR_WRITTEN);
	look(w, WEB, &now, &base);
	assert_string_equal(base.value[OWN_MAX_SIZE], "8192");
	/* It is ours now: what we wrote is what is expected. */
	assert_int_equal(group_actuator_apply(w->a, WEB, id, OWN_MAX_SIZE, "8192", "max"), ACTUATOR_WRITTEN);
	assert_int_equal(counts(w).foreign_changes, 1);
}

static void test_write_and_write_back(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	assert_int_equal(group_actuator_apply(w->a, WEB, id_of(w, WEB), OWN_MAX_SIZE, "65536", "max"),
		ACTUATOR_WRITTEN);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "65536\n");
	assert_string_equal(text_of(w, DB, MAX_SIZE), "max\n");
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	look(w, WEB, &now, &base);
	assert_values(&now, "65536", "inherit", "0");
	assert_values(&base, "max", "inherit", "inherit");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	look(w, WEB, &now, &base);
	assert_values(&base, "max", "inherit", "inherit");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "max"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "inherit"), ACTUATOR_WRITTEN);
	assert_null(strstr(tree_text(w->journal), "groups"));
	assert_int_equal(counts(w).writes, 5);
	assert_int_equal(counts(w).write_errors + counts(w).foreign_changes, 0);
}

static void test_what_stands_is_not_written(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "max"), ACTUATOR_SAME);
	assert_false(has_journal(w));
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_SAME);
	assert_int_equal(logged(w, "write", "/" MAX_SIZE), 1);
}

struct value_case {
	enum own_file k;
	const char *value;
};

static void test_values_that_no_file_shows(void **state)
{
	static const struct value_case good[] = {
		{OWN_MAX_SIZE, "4096"}, {OWN_MAX_SIZE, "1099511627776"},
		{OWN_MAX_PTES_NONE, "511"}, {OWN_MAX_PTES_NONE, "0"}, {OWN_MARGIN, "auto"},
		{OWN_MARGIN, "2147483647"},
	};
	static const struct value_case bad[] = {
		{OWN_MAX_SIZE, "64K"}, {OWN_MAX_SIZE, "100000"}, {OWN_MAX_SIZE, "0"},
		{OWN_MAX_SIZE, "2048"}, {OWN_MAX_SIZE, "2199023255552"}, {OWN_MAX_SIZE, ""},
		{OWN_MAX_SIZE, "inherit"}, {OWN_MAX_SIZE, "auto"}, {OWN_MAX_SIZE, "max\n"},
		{OWN_MAX_PTES_NONE, "-1"}, {OWN_MAX_PTES_NONE, "max"},
		{OWN_MAX_PTES_NONE, "auto"}, {OWN_MARGIN, "2147483648"}, {OWN_MARGIN, "00"},
		{OWN_MARGIN, "1 "}, {OWN_MARGIN, "11111111111111111111111111"},
	};
	struct world *w = *state;

	for (size_t i = 0; i < LEN(good); i++)
		assert_int_equal(apply(w, WEB, good[i].k, good[i].value), ACTUATOR_WRITTEN);
	for (size_t i = 0; i < LEN(bad); i++) {
		assert_false(own_value_valid(bad[i].k, bad[i].value));
		assert_int_equal(apply(w, WEB, bad[i].k, bad[i].value), ACTUATOR_REFUSED);
	}
	assert_int_equal(logged(w, "write", "/memory.thp."), LEN(good));
	assert_int_equal(w->said.warnings, 0);
}

static void test_paths_that_are_none(void **state)
{
	static const char *const paths[] = {"", "/", "/" WEB, ".", "..", "../x", "system.slice/..",
		"system.slice/../system.slice/web.service", "system.slice//web.service",
		"system.slice/", "system.slice/./web.service", "system.slice/web.service\n"};
	struct world *w = *state;
	uint64_t id = id_of(w, WEB);
	char longest[PATH_MAX + 2];

	for (size_t i = 0; i < LEN(paths); i++) {
		assert_false(group_path_valid(paths[i]));
		assert_int_equal(group_actuator_apply(w->a, paths[i], id, OWN_MARGIN, "0", NULL),
			ACTUATOR_REFUSED);
	}
	memset(longest, 'a', sizeof(longest));
	for (size_t i = 200; i < sizeof(longest); i += 200)
		longest[i] = '/';
	longest[PATH_MAX] = '\0';
	assert_false(group_path_valid(longest));
	longest[PATH_MAX - 1] = '\0';
	assert_true(group_path_valid(longest));
	assert_int_equal(
		group_actuator_apply(w->a, longest, id, OWN_MARGIN, "0", NULL), ACTUATOR_GONE);
	longest[200] = 'a';
	assert_false(group_path_valid(longest)); /* a component beyond NAME_MAX */
	assert_string_equal(text_of(w, WEB, MARGIN), "inherit\n");
	assert_true(group_path_valid("a..b/...") && group_path_valid(".hidden"));
}

/* cgroup2 has no links; a tree that has one must not lead out of itself. */
static void test_links_are_not_followed(void **state)
{
	struct world *w = *state;
	char link[PATH_MAX], target[PATH_MAX];

	group_path_of(w, "system.slice", NULL, target);
	group_path_of(w, "link", NULL, link);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(group_actuator_apply(
				 w->a, "link/web.service", id_of(w, WEB), OWN_MARGIN, "0", NULL),
		ACTUATOR_GONE);
	group_path_of(w, "system.slice/link", NULL, link);
	group_path_of(w, WEB, NULL, target);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(group_actuator_apply(
				 w->a, "system.slice/link", id_of(w, WEB), OWN_MARGIN, "0", NULL),
		ACTUATOR_GONE);
	unlink_file(w, WEB, MARGIN);
	group_path_of(w, WEB, MARGIN, link);
	group_path_of(w, DB, MARGIN, target);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_string_equal(text_of(w, DB, MARGIN), "inherit\n");
}

/* ---- what cannot be had -------------------------------------------------- */

static int why(struct world *w, const char *group, enum own_file k, const char *value)
{
	return group_actuator_why(w->a, id_of(w, group), k, value);
}

static bool may_retry(struct world *w, const char *group, enum own_file k, const char *value)
{
	return group_actuator_may_retry(w->a, group, id_of(w, group), k, value);
}

static void test_a_group_that_refuses_a_value(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/web.service/" PTES_NONE " write EINVAL\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_REFUSED);
	assert_string_equal(w->said.last_warning, WEB "/" PTES_NONE ": the kernel refuses \"511\": "
					     "not tried again in this group before the next reload");
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_REFUSED);
	assert_int_equal(why(w, WEB, OWN_MAX_PTES_NONE, "511"), -EINVAL);
	assert_int_equal(why(w, DB, OWN_MAX_PTES_NONE, "511"), 0);
	audit(w);
	assert_false(may_retry(w, WEB, OWN_MAX_PTES_NONE, "511"));
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "write", "/" PTES_NONE), 1);
	assert_int_equal(w->said.warnings, 1);
	assert_null(strstr(tree_text(w->journal), "groups"));
	/* others have it, and this one has others */
	assert_int_equal(apply(w, DB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	set_rules(w, "");
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_REFUSED);
	group_actuator_forget_conflicts(w->a);
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "511"), ACTUATOR_WRITTEN);
}

/* Many groups that refuse the same: it is the kernel's, and no further group is asked. */
static void test_a_value_that_the_kernel_refuses(void **state)
{
	static const char *const groups[] = {"a.service", "b.service", "c.service", "d.service"};
	struct world *w = *state;

	set_rules(w, "*/" MAX_SIZE " write EINVAL\n");
	for (size_t i = 0; i < LEN(groups); i++) {
		group_make(w, groups[i]);
		assert_int_equal(apply(w, groups[i], OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_int_equal(why(w, groups[i], OWN_MAX_SIZE, "65536"), -EINVAL);
	}
	assert_int_equal(logged(w, "write", "/" MAX_SIZE), GROUP_REFUSING_MAX);
	assert_int_equal(w->said.warnings, GROUP_REFUSING_MAX);
	assert_non_null(strstr(w->said.last_warning, "c.service/" MAX_SIZE
		": the kernel refuses \"65536\", as in 2 other groups: not tried again in any group"));
	/* for good, whatever becomes of these groups */
	for (size_t i = 0; i < LEN(groups); i++)
		group_actuator_forget(w->a, id_of(w, groups[i]));
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(logged(w, "write", "/" MAX_SIZE), GROUP_REFUSING_MAX);
}

static void test_groups_that_deny_writing(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/web.service/memory.thp.* open-write EROFS\n");
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_READONLY);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_READONLY);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_READONLY);
	assert_int_equal(w->said.warnings, 1); /* of the group, not of each file */
	assert_string_equal(
		w->said.last_warning, WEB "/" MARGIN ": Read-only file system: the group is not steered");
	assert_int_equal(group_actuator_denied(w->a, WEB, id_of(w, WEB)), -EROFS);
	assert_int_equal(group_actuator_denied(w->a, DB, id_of(w, DB)), 0);
	assert_false(has_journal(w));
	assert_int_equal(apply(w, DB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	audit(w);
	assert_false(may_retry(w, WEB, OWN_MARGIN, "0"));
	assert_int_equal(why(w, WEB, OWN_MARGIN, "0"), -EROFS);
	set_rules(w, "");
	assert_true(may_retry(w, WEB, OWN_MARGIN, "0"));
	/* what has no failure on record had one that made room for others */
	assert_true(may_retry(w, WEB, OWN_MAX_SIZE, "4096"));
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(why(w, WEB, OWN_MARGIN, "0"), 0);
	/* refused by the write itself */
	set_rules(w, "*/memory.thp.* write EPERM\n");
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "1"), ACTUATOR_READONLY);
	assert_int_equal(w->said.warnings, 2);
	assert_string_equal(text_of(w, WEB, MARGIN), "0\n");
	set_rules(w, "");
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_SAME);
	assert_int_equal(counts(w).foreign_changes, 0);
}

static void test_failed_write_leaves_no_trace(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	set_rules(w, "*/memory.thp.* write EIO times 2\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "32768"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 2);
	assert_int_equal(counts(w).write_errors, 2);
	assert_null(strstr(tree_text(w->journal), DB));
	look(w, WEB, &now, &base);
	assert_values(&now, "65536", "inherit", "inherit");
	assert_values(&base, "max", "inherit", "inherit");
	audit(w);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	set_rules(w, "*/memory.thp.* write short 2\n");
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "32768"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 2); /* EIO of that file, as before */
}

/* What may pass is tried again, once per audit. */
static void test_a_failure_that_may_pass(void **state)
{
	static const char *const errors[] = {"EIO", "EINTR", "EBUSY", "ENOMEM"};
	struct world *w = *state;
	char rule[64];

	for (size_t i = 0; i < LEN(errors); i++) {
		snprintf(rule, sizeof(rule), "*/" MAX_SIZE " write %s times 2\n", errors[i]);
		set_rules(w, rule);
		tree_write(w->log, "");
		w->said.warnings = 0;
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_int_equal(logged(w, "write", "/" MAX_SIZE), 1);
		assert_true(why(w, WEB, OWN_MAX_SIZE, "65536") < 0);
		assert_non_null(strstr(w->said.last_warning, ": tried again at the next audit"));
		audit(w);
		assert_true(may_retry(w, WEB, OWN_MAX_SIZE, "65536"));
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
		assert_int_equal(logged(w, "write", "/" MAX_SIZE), 2);
		assert_int_equal(w->said.warnings, 1);
		audit(w);
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
		assert_int_equal(why(w, WEB, OWN_MAX_SIZE, "65536"), 0);
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "max"), ACTUATOR_WRITTEN);
	}
}

/* The group lives, its file does not: told once, and no attempt in every tick. */
static void test_a_missing_file_of_a_group_that_lives(void **state)
{
	struct world *w = *state;

	set_rules(w, "*/" MARGIN " write ENODEV\n");
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_GONE);
	assert_int_equal(w->said.warnings, 0); /* it may be about to go */
	for (int i = 0; i < 5; i++)
		assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, "No such device: tried again at the next audit"));
	assert_int_equal(logged(w, "write", "/" MARGIN), 2);
	audit(w);
	for (int i = 0; i < 5; i++)
		assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_int_equal(logged(w, "write", "/" MARGIN), 3);
	assert_int_equal(w->said.warnings, 1);
}

/* However much fails in however many groups: what is kept, and told, has an end. */
static void test_failures_are_bounded(void **state)
{
	struct group_failures f = {0};
	struct world *w = *state;
	char name[32];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%u", i);
		group_failures_note(&f, "a", 1, OWN_MAX_PTES_NONE, name, -EINVAL);
	}
	assert_int_equal(f.n, GROUP_FAILURES_OF_FILE);
	assert_int_equal(group_failures_why(&f, 1, OWN_MAX_PTES_NONE, "99"), -EINVAL);
	assert_int_equal(group_failures_why(&f, 1, OWN_MAX_PTES_NONE, "0"), 0);
	for (unsigned i = 0; i < 2 * GROUP_FAILURES_MAX; i++)
		group_failures_note(&f, "b", 2 + i, OWN_MARGIN, "0", -EIO);
	assert_int_equal(f.n, GROUP_FAILURES_MAX);
	group_failures_clear(&f);
	assert_int_equal(f.n, 0);
	set_rules(w, "*/memory.thp.* write EIO\n");
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "n%u.service", i);
		group_make(w, name);
		assert_int_equal(apply(w, name, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	}
	assert_int_equal(w->said.warnings, 16);
	assert_non_null(strstr(w->said.last_warning, "further groups"));
}

/* Is there a value that an audit does not expect? */
static bool check(struct world *w, const struct own_values *expected)
{
	unsigned before = w->said.foreign;
	struct own_values now;

	group_actuator_audit_begin(w->a);
	assert_int_equal(group_actuator_audit_group(w->a, WEB, id_of(w, WEB), expected, &now), 0);
	assert_string_equal(now.value[OWN_MARGIN], strtok(strdupa(text_of(w, WEB, MARGIN)), "\n"));
	group_actuator_audit_rest(w->a, false);
	return w->said.foreign > before;
}

static void test_check_of_files_that_are_not_ours(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	look(w, WEB, &now, &base);
	assert_false(check(w, &base));
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_false(check(w, &base));
	put(w, WEB, MARGIN, "auto\n");
	assert_true(check(w, &base));
	assert_string_equal(w->said.foreign_text, WEB "/" MARGIN " inherit->auto");
	assert_int_equal(w->said.adopted, 1);
	look(w, WEB, &now, &base);
	assert_values(&base, "max", "inherit", "auto");
	assert_false(check(w, &base));
	assert_int_equal(counts(w).foreign_changes, 1);
}

static void test_dry_run(void **state)
{
	struct world *w = *state;

	group_actuator_set_dry_run(w->a, true);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_DRY);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "max"), ACTUATOR_SAME);
	assert_false(has_journal(w));
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
	group_actuator_set_dry_run(w->a, false);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	group_actuator_set_dry_run(w->a, true);
	group_actuator_set_reassert(w->a, true);
	put(w, WEB, MAX_SIZE, "16384\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_FOREIGN);
	audit(w);
	assert_int_equal(group_actuator_give_back(w->a, WEB, id_of(w, WEB)), 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "16384\n");
	assert_int_equal(logged(w, "write", "/" MAX_SIZE), 1);
}

/* ---- other people -------------------------------------------------------- */

static void test_foreign_value_is_adopted(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	put(w, WEB, MAX_SIZE, "131072\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_FOREIGN);
	assert_string_equal(w->said.foreign_text, WEB "/" MAX_SIZE " 65536->131072");
	assert_int_equal(w->said.adopted, 1);
	look(w, WEB, &now, &base);
	assert_values(&base, "131072", "inherit", "inherit");
	assert_null(strstr(tree_text(w->journal), "groups"));
	/* it is where we start from now */
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	assert_int_equal(group_actuator_give_back(w->a, WEB, id_of(w, WEB)), 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "131072\n");
}

static void test_files_that_we_never_wrote_are_free(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	put(w, WEB, MARGIN, "7\n");
	put(w, DB, MAX_SIZE, "16384\n");
	audit(w);
	look(w, WEB, &now, &base);
	assert_values(&base, "max", "inherit", "7");
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(counts(w).foreign_changes, 0);
}

static void test_reassert_three_times_then_yield(void **state)
{
	struct world *w = *state;

	group_actuator_set_reassert(w->a, true);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	for (unsigned i = 0; i < ACTUATOR_REASSERT_MAX; i++) {
		put(w, WEB, MAX_SIZE, "max\n");
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
		assert_string_equal(text_of(w, WEB, MAX_SIZE), "65536\n");
	}
	assert_int_equal(w->said.adopted, 0);
	assert_null(group_actuator_conflict(w->a, 0));
	put(w, WEB, MAX_SIZE, "131072\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_FOREIGN);
	assert_int_equal(w->said.adopted, 1);
	assert_string_equal(w->said.last_warning, WEB "/" MAX_SIZE
		": expected \"65536\", found \"131072\": left to others until the next reload");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_FOREIGN);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "131072"), ACTUATOR_SAME);
	audit(w);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "131072\n");
	assert_int_equal(w->said.foreign, ACTUATOR_REASSERT_MAX + 1);
	assert_int_equal(w->said.warnings, 1);
	assert_string_equal(group_actuator_conflict(w->a, 0), WEB "/" MAX_SIZE);
	assert_null(group_actuator_conflict(w->a, 1));
	/* only this file of this group */
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	group_actuator_forget_conflicts(w->a);
	assert_null(group_actuator_conflict(w->a, 0));
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
}

static void test_adopting_too_often_yields_as_well(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i <= ACTUATOR_REASSERT_MAX; i++) {
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
		put(w, WEB, MAX_SIZE, "131072\n");
		audit(w);
	}
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_FOREIGN);
	assert_int_equal(w->said.adopted, ACTUATOR_REASSERT_MAX + 1);
	assert_string_equal(group_actuator_conflict(w->a, 0), WEB "/" MAX_SIZE);
	/* a group of the same name is not in that fight */
	group_create_anew(w, WEB);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	audit(w);
	assert_null(group_actuator_conflict(w->a, 0));
}

static void test_they_want_what_we_want(void **state)
{
	struct world *w = *state;

	group_actuator_set_reassert(w->a, true);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	put(w, WEB, MAX_SIZE, "32768\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_FOREIGN);
	assert_int_equal(w->said.adopted, 1);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "32768"), ACTUATOR_SAME);
	/* the value is theirs: giving the group back leaves it */
	assert_int_equal(group_actuator_give_back(w->a, WEB, id_of(w, WEB)), 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "32768\n");
}

/* ---- the audit ----------------------------------------------------------- */

static void test_audit_reasserts_and_adopts(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_PTES_NONE, "0"), ACTUATOR_WRITTEN);
	tree_write(w->log, "");
	audit(w);
	assert_int_equal(logged(w, "open-write", "") + w->said.foreign, 0);

	put(w, WEB, MARGIN, "auto\n");
	put(w, DB, PTES_NONE, "inherit\n");
	group_actuator_set_reassert(w->a, true);
	audit(w);
	assert_int_equal(w->said.foreign, 2);
	assert_int_equal(w->said.adopted, 0);
	assert_string_equal(text_of(w, WEB, MARGIN), "0\n");
	assert_string_equal(text_of(w, DB, PTES_NONE), "0\n");

	put(w, WEB, MARGIN, "auto\n");
	group_actuator_set_reassert(w->a, false);
	audit(w);
	assert_int_equal(w->said.adopted, 1);
	assert_string_equal(text_of(w, WEB, MARGIN), "auto\n");
	assert_null(strstr(tree_text(w->journal), MARGIN)); /* on disk by the end of the audit */
	assert_non_null(strstr(tree_text(w->journal), MAX_SIZE));
}

static void test_audit_forgets_groups_that_are_gone(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	group_create_anew(w, WEB);
	group_remove(w, DB);
	audit(w);
	assert_false(written(w, WEB) || written(w, DB));
	assert_int_equal(w->said.foreign + w->said.warnings, 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
	assert_null(strstr(tree_text(w->journal), "groups"));
}

static void test_audit_where_reading_fails(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	set_rules(w, "*/" MAX_SIZE " read EIO\n");
	audit(w);
	set_rules(w, "*/web.service open EMFILE\n*/web.service/" MAX_SIZE " open EMFILE\n");
	audit(w);
	set_rules(w, "");
	audit(w);
	look(w, WEB, &now, &base);
	assert_values(&base, "max", "inherit", "inherit");
	assert_int_equal(w->said.foreign, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_look_at_an_untouched_group),
		T(test_look_where_files_are_missing),
		T(test_look_at_a_group_that_is_gone),
		T(test_texts_that_are_not_understood),
		T(test_look_that_fails),
		T(test_unexpected_in_a_file_that_is_not_ours),
		T(test_write_and_write_back),
		T(test_what_stands_is_not_written),
		T(test_values_that_no_file_shows),
		T(test_paths_that_are_none),
		T(test_links_are_not_followed),
		T(test_a_group_that_refuses_a_value),
		T(test_a_value_that_the_kernel_refuses),
		T(test_groups_that_deny_writing),
		T(test_failed_write_leaves_no_trace),
		T(test_a_failure_that_may_pass),
		T(test_a_missing_file_of_a_group_that_lives),
		T(test_failures_are_bounded),
		T(test_check_of_files_that_are_not_ours),
		T(test_dry_run),
		T(test_foreign_value_is_adopted),
		T(test_files_that_we_never_wrote_are_free),
		T(test_reassert_three_times_then_yield),
		T(test_adopting_too_often_yields_as_well),
		T(test_they_want_what_we_want),
		T(test_audit_reasserts_and_adopts),
		T(test_audit_forgets_groups_that_are_gone),
		T(test_audit_where_reading_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
