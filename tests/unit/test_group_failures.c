/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What is kept of values that groups refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "group-failures.h"

/* A value is the kernel's to refuse once three groups that are there have refused it. */
static void test_refusing_groups_are_counted_once(void **state)
{
	struct group_failures f = {0};

	(void)state;
	for (uint64_t id = 1; id <= 5; id++) {
		group_failures_note(&f, "a", id, OWN_MAX_SIZE, "4096", -EINVAL);
		assert_int_equal(group_failures_refusing(&f, OWN_MAX_SIZE, "4096"), 1);
		group_failures_forget(&f, id);
		assert_int_equal(group_failures_refusing(&f, OWN_MAX_SIZE, "4096"), 0);
	}
	/* what is known of a group makes room for what else it refuses */
	for (unsigned i = 0; i < 5; i++) {
		group_failures_note(&f, "a", 6, OWN_MAX_SIZE, "4096", -EINVAL);
		for (unsigned k = 0; k < GROUP_FAILURES_OF_FILE; k++) {
			char value[32];

			snprintf(value, sizeof(value), "%u", 100 + k);
			group_failures_note(&f, "a", 6, OWN_MAX_SIZE, value, -EINVAL);
		}
	}
	assert_int_equal(group_failures_refusing(&f, OWN_MAX_SIZE, "4096"), 1);
	assert_int_equal(group_failures_why(&f, 7, OWN_MAX_SIZE, "4096"), 0);
	group_failures_note(&f, "b", 7, OWN_MAX_SIZE, "4096", -EINVAL);
	assert_int_equal(group_failures_why(&f, 9, OWN_MAX_SIZE, "4096"), 0);
	group_failures_note(&f, "c", 8, OWN_MAX_SIZE, "4096", -EINVAL);
	assert_int_equal(group_failures_why(&f, 9, OWN_MAX_SIZE, "4096"), -EINVAL);
	/* settled: they may go */
	for (uint64_t id = 6; id <= 8; id++)
		group_failures_forget(&f, id);
	assert_int_equal(group_failures_why(&f, 9, OWN_MAX_SIZE, "4096"), -EINVAL);
	group_failures_clear(&f);
}

/* It is said that a value that was refused is not tried again before a reload: other
 * failures do not push that out. */
static void test_refused_is_kept_longest(void **state)
{
	struct group_failures f = {0};

	(void)state;
	group_failures_note(&f, "a", 1, OWN_MAX_SIZE, "4096", -EINVAL);
	for (uint64_t id = 2; id < 2 * GROUP_FAILURES_MAX; id++)
		group_failures_note(&f, "b", id, OWN_MAX_SIZE, "4096", -EIO);
	assert_int_equal(f.n, GROUP_FAILURES_MAX);
	assert_int_equal(group_failures_forbids(&f, 1, OWN_MAX_SIZE, "4096"), -EINVAL);
	assert_int_equal(group_failures_why(&f, 2, OWN_MAX_SIZE, "4096"), 0);
	group_failures_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusing_groups_are_counted_once),
		cmocka_unit_test(test_refused_is_kept_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
