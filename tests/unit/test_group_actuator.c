/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The group actuator on a fake cgroup2 tree: values, refusals, other people. */
#include "group_world.h"

static void assert_values(const struct group_values *v, const char *size, const char *ptes,
	const char *margin)
{
	assert_string_equal(v->value[GROUP_MAX_SIZE], size);
	assert_string_equal(v->value[GROUP_MAX_PTES_NONE], ptes);
	assert_string_equal(v->value[GROUP_MARGIN], margin);
}

static void look(struct world *w, const char *group, struct group_values *now,
	struct group_values *base)
{
	assert_int_equal(group_actuator_look(w->a, group, id_of(w, group), now, base), 0);
}

static void test_look_at_an_untouched_group(void **state)
{
	struct world *w = *state;
	struct group_values now, base;

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
	assert_int_equal(w->warnings, 0);
}

static void test_write_and_write_back(void **state)
{
	struct world *w = *state;
	struct group_values now, base;
	char old[GROUP_VALUE_LEN] = "";

	assert_int_equal(group_actuator_apply(w->a, WEB, id_of(w, WEB), GROUP_MAX_SIZE, "65536", old),
		ACTUATOR_WRITTEN);
	assert_string_equal(old, "max");
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "65536\n");
	assert_string_equal(text_of(w, DB, MAX_SIZE), "max\n");
	assert_int_equal(apply(w, WEB, GROUP_MARGIN, "0"), ACTUATOR_WRITTEN);
	look(w, WEB, &now, &base);
	assert_values(&now, "65536", "inherit", "0");
	assert_values(&base, "max", "inherit", "inherit");
	assert_int_equal(apply(w, WEB, GROUP_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	look(w, WEB, &now, &base);
	assert_values(&base, "max", "inherit", "inherit");
	assert_int_equal(apply(w, WEB, GROUP_MAX_SIZE, "max"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, GROUP_MARGIN, "inherit"), ACTUATOR_WRITTEN);
	assert_null(strstr(tree_text(w->journal), "groups"));
	assert_int_equal(counts(w).writes, 5);
	assert_int_equal(counts(w).write_errors + counts(w).foreign_changes, 0);
}

static void test_what_stands_is_not_written(void **state)
{
	struct world *w = *state;

	assert_int_equal(apply(w, WEB, GROUP_MAX_SIZE, "max"), ACTUATOR_SAME);
	assert_false(has_journal(w));
	assert_int_equal(apply(w, WEB, GROUP_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, GROUP_MAX_SIZE, "65536"), ACTUATOR_SAME);
	assert_int_equal(logged(w, "write", "/" MAX_SIZE), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_look_at_an_untouched_group),
		T(test_write_and_write_back),
		T(test_what_stands_is_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
