/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The group actuator: values are given back, and groups go at any moment. */
#include "group_world.h"

/* ---- giving back --------------------------------------------------------- */

static void test_give_back(void **state)
{
	struct world *w = *state;
	uint64_t web = id_of(w, WEB);

	put(w, WEB, MAX_SIZE, "1048576\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MAX_PTES_NONE, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	assert_true(written(w, WEB) && written(w, DB));
	group_actuator_set_reassert(w->a, true);
	put(w, WEB, PTES_NONE, "100\n");
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "1048576\n");
	assert_string_equal(text_of(w, WEB, PTES_NONE), "100\n"); /* somebody else's */
	assert_string_equal(text_of(w, WEB, MARGIN), "inherit\n");
	assert_string_equal(w->said.foreign_text, WEB "/" PTES_NONE " 0->100");
	assert_string_equal(text_of(w, DB, MARGIN), "0\n");
	assert_true(written(w, DB) && !written(w, WEB));
	assert_string_equal(w->said.given_back, WEB "/" MARGIN " 0->inherit");
	tree_write(w->log, "");
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), 0);
	assert_int_equal(logged(w, "open-write", ""), 0);
}

static void test_give_back_that_fails(void **state)
{
	struct world *w = *state;
	uint64_t web = id_of(w, WEB);

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	set_rules(w, "*/" MAX_SIZE " open-write EROFS\n");
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), -EACCES);
	assert_string_equal(text_of(w, WEB, MARGIN), "inherit\n");
	set_rules(w, "*/" MAX_SIZE " write EIO\n");
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), -EIO);
	set_rules(w, "*/web.service open EMFILE\n");
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), -EMFILE);
	set_rules(w, "");
	group_create_anew(w, WEB);
	assert_int_equal(group_actuator_give_back(w->a, WEB, web), 0);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
	assert_null(strstr(tree_text(w->journal), "groups"));
}

/* ---- groups that go ------------------------------------------------------ */

static unsigned ops_left;
static struct world *ops_world;
static bool ops_anew;

/* Before the n-th operation below the group, it goes. */
static void go_before(const char *path)
{
	if (!strstr(path, "/web.service") || --ops_left != 0)
		return;
	shim_before = NULL;
	if (ops_anew)
		group_create_anew(ops_world, WEB);
	else
		group_remove(ops_world, WEB);
}

static void each_call(struct world *w, unsigned call, uint64_t id)
{
	struct own_values now, base;

	switch (call) {
	case 0:
		assert_int_not_equal(
			group_actuator_apply(w->a, WEB, id, OWN_MAX_SIZE, "32768", NULL),
			ACTUATOR_REFUSED);
		break;
	case 1:
		/* not "a kernel without these files" */
		assert_int_not_equal(group_actuator_look(w->a, WEB, id, &now, &base), -ENOENT);
		break;
	case 2:
		audit(w);
		break;
	case 3:
		assert_int_equal(group_actuator_give_back(w->a, WEB, id), 0);
		break;
	default:
		assert_int_equal(restore(w), 0);
		assert_null(strstr(w->said.reports, "left")); /* a group that is gone is not reported */
		break;
	}
}

/* At every point of every call: no crash, no warning, no word about somebody
 * else, and nothing in the new group of that name. Returns false when the call
 * is over before the n-th operation. */
static bool goes_at(struct world *w, unsigned call, unsigned n, bool anew)
{
	uint64_t id;
	bool gone;

	group_create_anew(w, WEB);
	id = id_of(w, WEB);
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, WEB, OWN_MARGIN, "0"), ACTUATOR_WRITTEN);
	ops_left = n;
	ops_world = w;
	ops_anew = anew;
	shim_before = go_before;
	each_call(w, call, id);
	gone = !shim_before;
	shim_before = NULL;
	if (gone && anew) {
		assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
		assert_string_equal(text_of(w, WEB, MARGIN), "inherit\n");
	}
	audit(w);
	if (gone)
		assert_null(groups_find(baseline_groups(w->baseline), id));
	if (gone && !anew)
		group_make(w, WEB);
	return gone;
}

static void test_the_group_goes_at_every_point(void **state)
{
	struct world *w = *state;
	unsigned points = 0;

	for (unsigned call = 0; call < 5; call++) {
		for (int anew = 0; anew < 2; anew++)
			for (unsigned n = 1; goes_at(w, call, n, anew); n++)
				points++;
	}
	assert_true(points >= 50);
	assert_int_equal(w->said.foreign + w->said.warnings, 0);
	assert_int_equal(counts(w).write_errors, 0);
}

static uint64_t looked_at;
static void remove_and_look(struct world *w)
{
	struct own_values now, base;

	group_remove(w, WEB);
	assert_int_equal(group_actuator_look(w->a, WEB, looked_at, &now, &base), -ESTALE);
}

/* The engine looks at once when it is told of somebody else's value. */
static void test_the_group_goes_while_it_is_told(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 8; i++) {
		bool crash = i & 4;

		group_actuator_set_reassert(w->a, i & 1);
		looked_at = id_of(w, WEB);
		assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
		if (crash) { /* told by the settling of the journal */
			stop(w);
			start(w);
		}
		put(w, WEB, MAX_SIZE, "131072\n");
		w->when_foreign = remove_and_look;
		if (i & 2)
			audit(w);
		else
			assert_int_not_equal(
				group_actuator_apply(
					w->a, WEB, looked_at, OWN_MAX_SIZE, "32768", NULL),
				ACTUATOR_REFUSED);
		w->when_foreign = NULL;
		assert_null(groups_find(baseline_groups(w->baseline), looked_at));
		group_make(w, WEB);
	}
	assert_int_equal(w->said.foreign, 8);
	assert_int_equal(w->said.warnings, 0);
}

/* What cgroup2 says of a group that went while its file was open, before its name is gone. */
static void test_no_such_device(void **state)
{
	struct world *w = *state;
	struct own_values now, base;

	set_rules(w, "*/" MAX_SIZE " write ENODEV\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_GONE);
	group_actuator_forget(w->a, id_of(w, WEB));
	set_rules(w, "*/" MAX_SIZE " open-write ENODEV\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_GONE);
	group_actuator_forget(w->a, id_of(w, WEB));
	set_rules(w, "*/" MAX_SIZE " read ENODEV\n");
	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_GONE);
	look(w, WEB, &now, &base);
	assert_values(&now, "", "inherit", "inherit");
	assert_null(strstr(tree_text(w->journal), "groups"));
	assert_int_equal(counts(w).write_errors + w->said.warnings, 0);
}

/* What nobody steers is given back and told; what is steered stays. */
static void test_unclaimed(void **state)
{
	struct world *w = *state;
	struct own_values now;

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	assert_int_equal(apply(w, DB, OWN_MAX_SIZE, "16384"), ACTUATOR_WRITTEN);
	group_actuator_audit_begin(w->a);
	assert_int_equal(group_actuator_audit_group(w->a, WEB, id_of(w, WEB), NULL, &now), 0);
	assert_string_equal(now.value[OWN_MAX_SIZE], "65536");
	group_actuator_audit_rest(w->a, true);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "65536\n");
	assert_string_equal(text_of(w, DB, MAX_SIZE), "max\n");
	assert_string_equal(w->said.given_back, DB "/" MAX_SIZE " 16384->max");
	group_actuator_audit_begin(w->a);
	group_actuator_audit_rest(w->a, true);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), "max\n");
	assert_false(written(w, WEB) || written(w, DB));
}

static void test_forget(void **state)
{
	struct world *w = *state;
	uint64_t id = id_of(w, WEB);

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	group_actuator_forget(w->a, id + 12345);
	assert_true(written(w, WEB));
	group_actuator_forget(w->a, id);
	group_actuator_forget(w->a, id);
	assert_false(written(w, WEB));
	audit(w);
	assert_null(strstr(tree_text(w->journal), "groups"));
}

/* Where numbers are used again, the path tells. */
static void test_the_number_of_another_group(void **state)
{
	struct world *w = *state;
	char from[PATH_MAX], to[PATH_MAX];

	assert_int_equal(apply(w, WEB, OWN_MAX_SIZE, "65536"), ACTUATOR_WRITTEN);
	group_path_of(w, WEB, NULL, from);
	group_path_of(w, "other", NULL, to);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(apply(w, "other", OWN_MAX_SIZE, "32768"), ACTUATOR_WRITTEN);
	assert_null(strstr(tree_text(w->journal), WEB));
	assert_int_equal(group_actuator_give_back(w->a, "other", id_of(w, "other")), 0);
	assert_string_equal(text_of(w, "other", MAX_SIZE), "65536\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_give_back),
		T(test_give_back_that_fails),
		T(test_the_group_goes_at_every_point),
		T(test_the_group_goes_while_it_is_told),
		T(test_no_such_device),
		T(test_unclaimed),
		T(test_forget),
		T(test_the_number_of_another_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
