/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* memory.thp.* in baseline.json: limits, and journals of others. */
#include "group_world.h"
#include "journal.h"

/* ---- limits -------------------------------------------------------------- */

static void fill(struct world *w, unsigned n)
{
	struct group_table *t = baseline_groups(w->baseline);
	struct group_entry *e;
	char path[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "many/%u", i);
		assert_int_equal(groups_add(t, path, (UINT64_C(1) << 40) + i, &e), 0);
		strcpy(e->files[OWN_MAX_SIZE].baseline, "max");
		strcpy(e->files[OWN_MAX_SIZE].written, "65536");
		e->files[OWN_MAX_SIZE].noted = true;
	}
}

static void test_so_many_groups(void **state)
{
	struct world *w = *state;

	fill(w, BASELINE_GROUPS_MAX - 1);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, DB, OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
	assert_string_equal(w->said.last_warning, DB ": the journal of start values is full (4096 groups, "
					     "or 4 MiB of names): this group and others are not steered");
	assert_string_equal(text_of(w, DB, MAX_SIZE), "max\n");
	/* a full journal is a good one */
	stop(w);
	start(w);
	assert_null(w->journal_warning);
	assert_int_equal(baseline_groups(w->baseline)->n, BASELINE_GROUPS_MAX);
	/* those that are gone make room at the audit */
	audit(w);
	assert_int_equal(baseline_groups(w->baseline)->n, 1);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
}

static void test_names_of_such_length(void **state)
{
	struct group_table t = {0};
	struct group_entry *e;
	char path[PATH_MAX], *text;
	unsigned n = 0;
	int r;

	(void)state;
	/* \b is six bytes in JSON */
	memset(path, '\b', sizeof(path));
	for (size_t i = 200; i < sizeof(path); i += 200)
		path[i] = '/';
	path[PATH_MAX - 1] = '\0';
	do {
		snprintf(path, 20, "%019u", n);
		path[19] = 'a';
		r = groups_add(&t, path, n + 1, &e);
		for (unsigned k = 0; r == 0 && k < OWN_FILES; k++) {
			memset(e->files[k].baseline, '8', OWN_VALUE_LEN - 1);
			memset(e->files[k].written, '8', OWN_VALUE_LEN - 1);
			memset(e->files[k].old, '8', OWN_VALUE_LEN - 1);
		}
		n += r == 0;
	} while (r == 0);
	assert_int_equal(r, -ENOSPC);
	assert_in_range(n, 100, 1000);
	text = groups_append_text(&t, strdup("{\n \"format\": 1\n}"));
	assert_non_null(text);
	assert_true(strlen(text) <= BASELINE_GROUPS_BYTES_MAX + 64);
	free(text);
	groups_drop(&t, e);
	assert_int_equal(groups_add(&t, path, n + 1, &e), 0); /* there is room again */
	groups_clear(&t);
}

static void test_names_that_json_cannot_hold(void **state)
{
	struct world *w = *state;

	group_make(w, "\xff.service");
	group_make(w, "\xfe.service");
	assert_int_equal(apply(w, "\xff.service", OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, "\xfe.service", OWN_MARGIN, "0"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
	assert_non_null(strstr(w->said.last_warning, "not UTF-8"));
	assert_string_equal(text_of(w, "\xff.service", MARGIN), "inherit\n");
	group_make(w, "m\xc3\xbcll \"x\" \\ \t.service");
	assert_int_equal(apply(w, "m\xc3\xbcll \"x\" \\ \t.service", OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	stop(w);
	assert_int_equal(command(w), 0);
	assert_string_equal(text_of(w, "m\xc3\xbcll \"x\" \\ \t.service", MARGIN), "inherit\n");
	start(w);
}

static void test_the_table(void **state)
{
	struct group_table t = {0};
	struct group_entry *e, *other;

	(void)state;
	assert_int_equal(groups_add(&t, "a", 0, &e), -EINVAL);
	assert_int_equal(groups_add(&t, "a", UINT64_C(1) << 63, &e), -EINVAL);
	assert_int_equal(groups_add(&t, "../a", 1, &e), -EINVAL);
	for (unsigned i = 0; i < 100; i++) {
		char path[16];

		snprintf(path, sizeof(path), "g%u", i);
		assert_int_equal(groups_add(&t, path, 1 + i * 37 % 101, &e), 0);
		assert_ptr_equal(groups_find(&t, 1 + i * 37 % 101), e);
	}
	for (unsigned i = 1; i < t.n; i++)
		assert_true(t.entries[i - 1]->id < t.entries[i]->id);
	/* the same name, or the same number: the older one is gone */
	assert_int_equal(groups_add(&t, "g50", 500, &other), 0);
	assert_int_equal(t.n, 100);
	assert_int_equal(groups_add(&t, "new", 500, &other), 0);
	assert_int_equal(t.n, 100);
	assert_null(groups_find(&t, 1 + 50 * 37 % 101));
	while (t.n > 0)
		groups_drop(&t, t.entries[t.n / 2]);
	assert_int_equal(t.bytes_max, 0);
	groups_clear(&t);
}

/* ---- journals that are not ours ------------------------------------------ */

static char *journal_with(struct world *w, const char *groups)
{
	char *text;

	assert_true(asprintf(&text,
			    "{\"format\":1,\"boot_id\":\"none\",\"root\":\"%s\",\"restore_on_exit\":"
			    "true,\"hold\":null,\"files\":[]%s%s}",
			    w->tree.root, *groups ? ",\"groups\":" : "", groups) > 0);
	return text;
}

/* Restored, or taken at a start: neither touches anything. */
static void check_ignored(struct world *w, const char *groups)
{
	char *text = journal_with(w, groups);

	stop(w);
	tree_write(w->journal, text);
	assert_int_equal(command(w), -EBADMSG);
	if (!w->journal_warning || !strstr(w->journal_warning, "a group's file or a value"))
		fail_msg("\"%s\" for %.300s", w->journal_warning ? w->journal_warning : "(nothing)",
			groups);
	assert_string_equal(tree_text(w->journal), text);
	start(w);
	assert_non_null(w->journal_warning);
	assert_int_equal(baseline_groups(w->baseline)->n, 0);
	assert_int_equal(logged(w, "open-write", "/memory."), 0);
	free(text);
}

#define FILES(text) "\"files\":[" text "]"
#define ENTRY(text) "[{\"path\":\"g\",\"id\":7,\"files\":[" text "]}]"
#define GOOD_FILE                                                                                  \
	"{\"file\":\"memory.thp.max_size\",\"baseline\":\"max\",\"written\":\"65536\",\"old\":null}"

static void test_sections_that_are_corrupt(void **state)
{
	static const char *const sections[] = {
		"null", "{}", "7", "\"\"", "[7]", "[null]", "[[]]", "[{}]",
		"[{\"path\":\"g\",\"id\":7}]",
		"[{\"path\":\"g\",\"id\":7,\"files\":{}}]",
		ENTRY(""),
		ENTRY("{}"),
		ENTRY("7"),
		ENTRY(GOOD_FILE "," GOOD_FILE),
		ENTRY("{\"file\":\"memory.max\",\"baseline\":\"max\",\"written\":\"65536\",\"old\":null}"),
		ENTRY("{\"file\":\"../memory.thp.max_size\",\"baseline\":\"max\",\"written\":\"65536\",\"old\":null}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":null,\"written\":\"65536\",\"old\":null}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":\"max\",\"written\":null,\"old\":null}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":\"max\",\"written\":\"65536\"}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":\"max\",\"written\":\"65536\",\"old\":1}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":\"64K\",\"written\":\"65536\",\"old\":null}"),
		ENTRY("{\"file\":\"memory.thp.max_size\",\"baseline\":\"max\",\"written\":\"65537\",\"old\":null}"),
		ENTRY("{\"file\":\"memory.thp.margin\",\"baseline\":\"max\",\"written\":\"0\",\"old\":null}"),
		"[{\"path\":\"g\",\"id\":0," FILES(GOOD_FILE) "}]",
		"[{\"path\":\"g\",\"id\":-7," FILES(GOOD_FILE) "}]",
		"[{\"path\":\"g\",\"id\":7.5," FILES(GOOD_FILE) "}]",
		"[{\"path\":\"g\",\"id\":\"7\"," FILES(GOOD_FILE) "}]",
		"[{\"path\":7,\"id\":7," FILES(GOOD_FILE) "}]",
		"[{\"path\":\"g\",\"id\":7," FILES(GOOD_FILE) "},{\"path\":\"h\",\"id\":7," FILES(GOOD_FILE) "}]",
	};
	struct world *w = *state;

	for (size_t i = 0; i < LEN(sections); i++)
		check_ignored(w, sections[i]);
}

static void test_hostile_paths(void **state)
{
	static const char *const paths[] = {"", "/", "/etc", "..", "../..", "a/../../b", "a/..", ".",
		"./a", "a//b", "a/", "a\\nb"};
	struct world *w = *state;
	char *section, outside[PATH_MAX];

	/* what each of them would reach */
	put(w, "..", MAX_SIZE, "65536\n");
	group_path_of(w, "..", MAX_SIZE, outside);
	for (size_t i = 0; i < LEN(paths); i++) {
		assert_true(asprintf(&section, "[{\"path\":\"%s\",\"id\":%llu," FILES(GOOD_FILE) "}]",
				    paths[i], (unsigned long long)id_of(w, "..")) > 0);
		check_ignored(w, section);
		free(section);
	}
	assert_string_equal(tree_text(outside), "65536\n");
}

/* A path that is well formed, and leads through a link. */
static void test_hostile_links(void **state)
{
	struct world *w = *state;
	char *section, *text, link[PATH_MAX], target[PATH_MAX];

	put(w, "..", MAX_SIZE, "65536\n");
	group_path_of(w, "..", NULL, target);
	group_path_of(w, "link", NULL, link);
	assert_int_equal(symlink(target, link), 0);
	put(w, WEB, MAX_SIZE, "65536\n");
	group_path_of(w, "system.slice", NULL, target);
	group_path_of(w, "slice", NULL, link);
	assert_int_equal(symlink(target, link), 0);
	assert_true(asprintf(&section,
			    "[{\"path\":\"link\",\"id\":%llu," FILES(GOOD_FILE)
			    "},{\"path\":\"slice/web.service\",\"id\":%llu," FILES(GOOD_FILE) "}]",
			    (unsigned long long)id_of(w, ".."),
			    (unsigned long long)id_of(w, WEB)) > 0);
	text = journal_with(w, section);
	stop(w);
	tree_write(w->journal, text);
	assert_int_equal(command(w), 0);
	assert_null(w->journal_warning);
	assert_int_equal(w->said.n_reports, 0);
	assert_int_equal(logged(w, "open-write", "/memory.thp."), 0);
	assert_stands(w, "65536");
	start(w);
	free(section);
	free(text);
}

static void test_one_group_too_many(void **state)
{
	struct world *w = *state;
	char *section;
	size_t size;

	for (unsigned n = BASELINE_GROUPS_MAX; n <= BASELINE_GROUPS_MAX + 1; n++) {
		FILE *f = open_memstream(&section, &size);

		for (unsigned i = 0; i < n; i++)
			fprintf(f, "%s{\"path\":\"g%u\",\"id\":%u," FILES(GOOD_FILE) "}", i ? "," : "[",
				i, i + 1);
		fputs("]", f);
		fclose(f);
		if (n > BASELINE_GROUPS_MAX) {
			check_ignored(w, section);
		} else {
			char *text = journal_with(w, section);

			stop(w);
			tree_write(w->journal, text);
			start(w);
			assert_null(w->journal_warning);
			assert_int_equal(baseline_groups(w->baseline)->n, n);
			free(text);
		}
		free(section);
	}
}

/* A journal of a version that knew no groups. */
static void test_a_journal_without_groups(void **state)
{
	struct world *w = *state;
	char *text = journal_with(w, "");

	stop(w);
	tree_write(w->journal, text);
	start(w);
	assert_null(w->journal_warning);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	stop(w);
	tree_write(w->journal, text);
	assert_int_equal(command(w), 0);
	assert_null(w->journal_warning);
	assert_int_equal(w->said.n_reports, 0);
	start(w);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_so_many_groups),
		T(test_names_of_such_length),
		T(test_names_that_json_cannot_hold),
		T(test_the_table),
		T(test_sections_that_are_corrupt),
		T(test_hostile_paths),
		T(test_hostile_links),
		T(test_one_group_too_many),
		T(test_a_journal_without_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
