/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What keeps one file from being steered while the others are: told once, until it ends. */
#include "actuator_world.h"

/* One file that cannot be written: it alone is left, with one attempt and one sentence. */
static void check_one_denied(struct world *w, const char *rule, const char *why)
{
	set_rules(w, rule);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(apply(w, S64, "never"), ACTUATOR_READONLY);
		assert_int_equal(apply(w, PTES, "0"), i ? ACTUATOR_SAME : ACTUATOR_WRITTEN);
	}
	assert_false(actuator_read_only(w->actuator));
	assert_true(actuator_denied(w->actuator, S64));
	assert_false(actuator_denied(w->actuator, PTES));
	assert_int_equal(logged(w, "open-write", "hugepages-64kB"), 1);
	assert_int_equal(w->said.warnings, 1);
	assert_int_equal(counts(w).write_errors, 1);
	assert_non_null(strstr(w->said.last_warning, S64 " cannot be written ("));
	assert_non_null(strstr(w->said.last_warning, why));
	assert_null(strstr(w->said.last_warning, "sysfs"));
	assert_null(baseline_written(w->baseline, S64));
	set_rules(w, "");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_READONLY);
	assert_int_equal(actuator_probe(w->actuator), 0);
	assert_string_equal(w->said.last_recovered, S64);
	assert_int_equal(w->said.recovered, 1);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
}

static void test_one_file_erofs(void **state)
{
	check_one_denied(*state, "*/hugepages-64kB/enabled open-write EROFS\n", "Read-only file system");
}

static void test_one_file_eperm(void **state)
{
	check_one_denied(*state, "*/hugepages-64kB/enabled write EPERM\n", "Operation not permitted");
}

/* What only the write itself tells is learned file by file; when the last one is refused, one
 * sentence stands for all. */
static void test_each_file_denied(void **state)
{
	struct world *w = *state;
	unsigned n = 0;

	set_rules(w, "*/transparent_hugepage/* write EPERM\n");
	for (size_t i = 0; i < TREE_FILES; i++) {
		const char *path = tree_files[i].path, *other = NULL;
		char now[BASELINE_VALUE_LEN];

		assert_false(actuator_read_only(w->actuator));
		assert_int_equal(actuator_read(w->actuator, path, now, sizeof(now)), 0);
		other = knob_kind(path) == KNOB_NUMBER ? "7" : strcmp(now, "never") ? "never" : "always";
		assert_int_equal(apply(w, path, other), ACTUATOR_READONLY);
		assert_int_equal(apply(w, path, other), ACTUATOR_READONLY);
		n++;
	}
	assert_true(actuator_read_only(w->actuator));
	assert_int_equal(w->said.warnings, n);
	assert_int_equal(w->said.recovered, n - 1);
	assert_non_null(strstr(w->said.last_warning, "observing only"));
	assert_int_equal(counts(w).write_errors, n);
}

/* Each kind of text that cannot be steered: the sentence says what stood there, for people. */
static void test_troubles(void **state)
{
	static const struct {
		const char *text, *words;
	} kinds[] = {
		{"always madvise never\n", "is not understood (it holds \"always madvise never\")"},
		{"", "is not understood (it holds \"\")"},
		{"\033[2J\xff\n", "is not understood (it holds \"?[2J?\")"},
		{"always [frobnicate] never\n",
			"holds a word that mthpd does not know (\"always [frobnicate] never\")"},
		{"[always] madvise\n", "does not list \"never\" (it holds \"[always] madvise\")"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
			"aaaa...\")"},
	};
	struct world *w = *state;

	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		w->said = (struct notices){0};
		tree_put(&w->tree, S64, kinds[i].text);
		clear_log(w);
		for (int k = 0; k < 10; k++) {
			assert_int_equal(apply(w, S64, "always"), ACTUATOR_REFUSED);
			assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_REFUSED);
		}
		assert_false(actuator_usable(w->actuator, S64));
		assert_true(untouched(w));
		assert_int_equal(w->said.warnings, 1);
		assert_int_equal(w->said.foreign, 0);
		assert_non_null(strstr(w->said.last_warning, S64));
		assert_non_null(strstr(w->said.last_warning, kinds[i].words));
		assert_int_equal(apply(w, S16, "always"), ACTUATOR_WRITTEN);
		assert_int_equal(apply(w, S16, "never"), ACTUATOR_WRITTEN);
		tree_put(&w->tree, S64, "always inherit madvise [never]\n");
		assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_SAME);
		assert_true(actuator_usable(w->actuator, S64));
		assert_int_equal(w->said.recovered, 1);
		assert_string_equal(w->said.last_recovered, S64);
	}
}

/* A directory in a file's place, and back. */
static void test_directory(void **state)
{
	struct world *w = *state;

	assert_int_equal(unlinkat(w->tree.thp_fd, S64, 0), 0);
	assert_int_equal(mkdirat(w->tree.thp_fd, S64, 0755), 0);
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_REFUSED);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_REFUSED);
	assert_int_equal(w->said.warnings, 1);
	assert_string_equal(w->said.last_warning,
		S64 " cannot be read (Is a directory): it is left alone");
	assert_int_equal(unlinkat(w->tree.thp_fd, S64, AT_REMOVEDIR), 0);
	tree_put(&w->tree, S64, "[always] inherit madvise never\n");
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	assert_int_equal(w->said.recovered, 1);
}

/* A file that is gone is in no trouble. */
static void test_garbage_then_gone(void **state)
{
	struct world *w = *state;

	tree_put(&w->tree, S64, "garbage");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_REFUSED);
	assert_int_equal(unlinkat(w->tree.thp_fd, S64, 0), 0);
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_GONE);
	assert_int_equal(w->said.warnings, 1);
	assert_int_equal(w->said.recovered, 1);
}

/* Not understood at the start: the start value is what stands when it is. */
static void test_start_value_taken_late(void **state)
{
	struct world *w = *state;

	stop(w);
	tree_put(&w->tree, S64, "garbage");
	start(w);
	assert_int_equal(actuator_manage(w->actuator, S64), -EINVAL);
	assert_null(actuator_choice(w->actuator, S64));
	tree_put(&w->tree, S64, "always inherit [madvise] never\n");
	assert_int_equal(actuator_audit(w->actuator, S64), ACTUATOR_SAME);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
	assert_string_equal(choice_value(actuator_choice(w->actuator, S64)), "madvise");
	assert_int_equal(w->said.foreign, 0);
	assert_int_equal(apply(w, S64, "never"), ACTUATOR_WRITTEN);
	assert_string_equal(baseline_get(w->baseline, S64), "madvise");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_one_file_erofs),
		T(test_one_file_eperm),
		T(test_each_file_denied),
		T(test_troubles),
		T(test_directory),
		T(test_garbage_then_gone),
		T(test_start_value_taken_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
