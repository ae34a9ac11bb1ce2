/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The text of metrics from JSON facts, and facts of any shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"

static char *print(const char *facts)
{
	json_t *j = json_loads(facts, JSON_DECODE_ANY, NULL);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(j);
	assert_non_null(f);
	metrics_print(f, j);
	assert_int_equal(fclose(f), 0);
	json_decref(j);
	return text;
}

static void has(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line %s in:\n%s", line, text);
}

static void has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("%s in:\n%s", part, text);
}

static void test_machine(void **state)
{
	char *text = print("{\"version\":\"1\",\"release\":\"6.12\",\"state\":\"held\",\"degraded\":[\"a\",\"b\"],"
			   "\"counters\":{\"writes\":3,\"cpu_usec\":1500000,\"wakeups\":9007199254740993},"
			   "\"swap\":{\"size_kb\":2,\"used_kb\":null},\"khugepaged\":{\"max_ptes_none\":511}}");

	(void)state;
	has(text, "mthpd_build_info{version=\"1\",kernel=\"6.12\"} 1");
	has(text, "mthpd_state{state=\"held\"} 1");
	has(text, "mthpd_state{state=\"active\"} 0");
	has(text, "mthpd_degraded_reasons 2");
	has(text, "# TYPE mthpd_writes_total counter");
	has(text, "mthpd_writes_total 3");
	has(text, "mthpd_cpu_seconds_total 1.5");
	has(text, "mthpd_wakeups_total 9007199254740993");
	has(text, "mthpd_swap_size_bytes 2048");
	has(text, "mthpd_khugepaged_max_ptes_none 511");
	has_not(text, "mthpd_swap_used_bytes");
	has_not(text, "mthpd_cgroup_");
	free(text);
}

static void test_sizes(void **state)
{
	char *text = print(
		"{\"sizes\":[{\"size_kb\":64,\"baseline\":\"always\",\"actual\":\"never\",\"wanted\":null,"
		"\"effective\":\"never\"},{\"size_kb\":2048,\"effective\":\"always\"},{\"size_kb\":8,\"effective\":null}],"
		"\"stats\":{\"swpout\":{\"64\":1,\"2048\":null},\"nr_anon\":{\"64\":5}}}");

	(void)state;
	has(text, "mthpd_size_mode_info{size_kb=\"64\",kind=\"baseline\",mode=\"always\"} 1");
	has(text, "mthpd_size_mode_info{size_kb=\"64\",kind=\"actual\",mode=\"never\"} 1");
	has_not(text, "kind=\"wanted\"");
	has(text, "mthpd_size_mode{size_kb=\"64\"} 0");
	has(text, "mthpd_size_mode{size_kb=\"2048\"} 2");
	has_not(text, "size_kb=\"8\"");
	has(text, "# TYPE mthpd_size_swpout_total counter");
	has(text, "mthpd_size_swpout_total{size_kb=\"64\"} 1");
	has_not(text, "mthpd_size_swpout_total{size_kb=\"2048\"}");
	has(text, "# TYPE mthpd_size_anon_folios gauge");
	has(text, "mthpd_size_anon_folios{size_kb=\"64\"} 5");
	/* By name, whatever the order of the directory. */
	assert_true(strstr(text, "mthpd_size_anon_folios") < strstr(text, "mthpd_size_swpout_total"));
	free(text);
}

static void test_groups(void **state)
{
	char *text = print("{\"groups\":[{\"path\":\"a\\\"b\\\\c\\nd\",\"anon_bytes\":1,\"rung\":-1,\"some\":0.25,"
			   "\"max_size_kb\":64,\"state\":\"drop\",\"reason\":\"oom-kill\",\"some_usec\":2500000},"
			   "{\"path\":\"e\",\"rung\":3,\"some\":null}],"
			   "\"changes\":{\"reasons\":{\"oom-kill\":2},\"cgroups\":{\"e\":7},\"others\":1}}");

	(void)state;
	has(text, "mthpd_cgroup_anon_bytes{cgroup=\"a\\\"b\\\\c\\nd\"} 1");
	has(text, "mthpd_cgroup_pressure_some_ratio{cgroup=\"a\\\"b\\\\c\\nd\"} 0.25");
	has(text, "mthpd_cgroup_stall_some_seconds_total{cgroup=\"a\\\"b\\\\c\\nd\"} 2.5");
	has(text, "mthpd_cgroup_largest_size_bytes{cgroup=\"a\\\"b\\\\c\\nd\"} 65536");
	has(text, "mthpd_cgroup_state_info{cgroup=\"a\\\"b\\\\c\\nd\",state=\"drop\",reason=\"oom-kill\"} 1");
	has(text, "mthpd_cgroup_rung{cgroup=\"e\"} 3");
	has_not(text, "} -1");
	has(text, "mthpd_switch_changes_total{reason=\"oom-kill\"} 2");
	has(text, "mthpd_cgroup_changes_total{cgroup=\"e\"} 7");
	has(text, "mthpd_cgroup_changes_total{cgroup=\"a\\\"b\\\\c\\nd\"} 0");
	has(text, "mthpd_cgroups_rest_changes_total 1");
	free(text);
}

/* A path of more than HISTORY_GROUP_LEN bytes is counted under its end. */
static void test_long_path(void **state)
{
	char facts[1024], path[301], line[512];
	char *text;

	(void)state;
	memset(path, 'x', 300);
	path[300] = '\0';
	snprintf(facts, sizeof(facts), "{\"groups\":[{\"path\":\"%s\"}],\"changes\":{\"cgroups\":{\"...%s\":4}}}", path,
		path + 300 - 124);
	text = print(facts);
	snprintf(line, sizeof(line), "mthpd_cgroup_changes_total{cgroup=\"%s\"} 4", path);
	has(text, line);
	free(text);
}

static void test_any_shape(void **state)
{
	static const char *const facts[] = {
		"null", "[]", "7", "\"x\"", "{}",
		"{\"sizes\":7,\"stats\":[],\"groups\":{},\"changes\":[],\"counters\":\"x\",\"degraded\":{},\"swap\":1}",
		"{\"sizes\":[null,7,[],{}],\"groups\":[null,7,[],{},{\"path\":7},{\"path\":\"a\",\"anon_bytes\":\"x\"}]}",
		"{\"stats\":{\"a\":7,\"b\":{\"64\":\"x\"},\"c\":null},\"changes\":{\"reasons\":[],\"cgroups\":7}}",
		"{\"state\":7,\"version\":null,\"counters\":{\"writes\":\"3\",\"cpu_usec\":null}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		char *text = print(facts[i]);

		has(text, "# TYPE mthpd_state gauge");
		has_not(text, "(null)");
		has_not(text, "mthpd_writes_total");
		free(text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_long_path),
		cmocka_unit_test(test_any_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
