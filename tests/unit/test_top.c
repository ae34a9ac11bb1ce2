/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One screen of mthpctl top: what is drawn, its order, and that nothing leaves the
 * screen, whatever the status holds and however small the terminal is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl-top.h"

#define STATUS                                                                                                 \
	"{\"version\":\"1\",\"state\":\"active\",\"kernel\":{\"release\":\"6.12\"},\"degraded\":[],"           \
	"\"sizes\":[{\"size_kb\":8,\"effective\":null},{\"size_kb\":64,\"baseline\":\"always\",\"actual\":"    \
	"\"never\",\"effective\":\"never\"},{\"size_kb\":2048,\"baseline\":\"inherit\",\"actual\":\"inherit\"," \
	"\"effective\":\"madvise\"}],\"cgroups\":["                                                             \
	"{\"path\":\"quiet\",\"some\":0.0,\"full\":0.0,\"margin_bytes\":1024,\"anon_bytes\":5,"                \
	"\"max_size_kb\":2048,\"reason\":\"start-values\",\"state\":\"run\"},"                                 \
	"{\"path\":\"system.slice/hurt.service\",\"some\":0.5,\"full\":0.04,\"margin_bytes\":1048576,"         \
	"\"anon_bytes\":7,\"max_size_kb\":0,\"reason\":\"drop-pressure\",\"state\":\"drop\"},"                 \
	"{\"path\":\"new\",\"some\":null,\"full\":null,\"margin_bytes\":null,\"anon_bytes\":null,"             \
	"\"max_size_kb\":64,\"reason\":\"raised\",\"clamped\":true,\"state\":\"run\"}]}"

static char *draw(const char *status, struct top_view *v)
{
	json_t *j = json_loads(status, JSON_DECODE_ANY, NULL);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(j);
	assert_non_null(f);
	top_draw(f, j, v, NULL);
	assert_int_equal(fclose(f), 0);
	json_decref(j);
	return text;
}

static struct top_view paper(void)
{
	return (struct top_view){.width = 80, .max_groups = SIZE_MAX};
}

/* Visible columns of each row and the number of rows; only known escape codes. */
static unsigned check_screen(const char *text, unsigned width)
{
	unsigned rows = 1, columns = 0;

	for (const char *c = text; *c; c++) {
		if (*c == '\033') {
			size_t n = strcspn(c, "mHJK");

			assert_true(c[1] == '[' && n < 5 && c[n]);
			c += n;
		} else if (*c == '\n') {
			rows++;
			columns = 0;
		} else if (*c != '\r') {
			assert_true(*c >= 0x20 && *c <= 0x7e);
			assert_true(++columns <= width);
		}
	}
	return rows;
}

static void test_rows(void **state)
{
	struct top_view v = paper();
	char *text = draw(STATUS, &v);

	(void)state;
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "\n.../hurt.service "));
	assert_non_null(strstr(text, "####....  50% #.....   4%     1M  none drop-pressure\n"));
	assert_non_null(strstr(text, "........   0% ......   0%     1K    2M start-values\n"));
	/* What is not known is a dash, and a group that gets less says so. */
	assert_non_null(strstr(text, "            -           -      -   64K clamped\n"));
	assert_non_null(strstr(text, "     64K       2M"));
	assert_non_null(strstr(text, "  never* madvise\n"));
	free(text);
}

static void test_trouble(void **state)
{
	struct top_view v = paper();
	char *text = draw("{\"degraded\":[\"first\",\"second\"]}", &v);

	(void)state;
	assert_non_null(strstr(text, "Degraded: (1 of 2) first\n"));
	assert_non_null(strstr(text, "No memory cgroups."));
	free(text);
	text = draw("{\"hold\":\"why\",\"degraded\":[\"first\"]}", &v);
	assert_non_null(strstr(text, "Held: why\n"));
	free(text);
	v.notice = "old news";
	text = draw("{\"hold\":\"why\"}", &v);
	assert_non_null(strstr(text, "old news\n"));
	assert_null(strstr(text, "Held"));
	free(text);
}

static void test_order(void **state)
{
	static const char *const first[TOP_SORTS] = {"hurt.se", "quiet", "hurt.se", "new"};

	(void)state;
	for (unsigned sort = 0; sort < TOP_SORTS; sort++) {
		struct top_view v = paper();
		char *text, *row;

		v.sort = sort;
		text = draw(STATUS, &v);
		row = strchr(strstr(text, "GROUP"), '\n') + 1;
		*strchr(row, '\n') = '\0';
		if (!strstr(row, first[sort]))
			fail_msg("sort %u: first is %s", sort, row);
		free(text);
	}
}

static json_t *many(unsigned n)
{
	json_t *j = json_pack("{s:[]}", "cgroups");

	for (unsigned i = 0; i < n; i++) {
		char path[32];

		snprintf(path, sizeof(path), "g%03u", i);
		json_array_append_new(json_object_get(j, "cgroups"), json_pack("{s:s, s:i}", "path", path, "anon_bytes",
			(int)i));
	}
	return j;
}

static void test_scrolling(void **state)
{
	struct top_view v = {.width = 80, .height = 24, .max_groups = SIZE_MAX, .sort = TOP_BY_NAME};
	json_t *j = many(100);
	char *text = NULL;
	size_t size, n;
	FILE *f;

	(void)state;
	for (size_t first = 0; first < 300; first += 37) {
		size_t rows;

		v.first = first;
		f = open_memstream(&text, &size);
		rows = top_draw(f, j, &v, &n);
		fclose(f);
		assert_int_equal(n, 100);
		assert_int_equal(rows, 16);
		assert_int_equal(v.first, first < 84 ? first : 84);
		assert_int_equal(check_screen(text, 80), 24);
		free(text);
	}
	json_decref(j);
}

static void test_all_sizes_of_terminals(void **state)
{
	(void)state;
	for (unsigned width = 1; width < 260; width += width < 90 ? 1 : 13)
		for (unsigned height = 1; height < 60; height += height < 16 ? 1 : 7) {
			struct top_view v = {.width = width, .height = height, .max_groups = SIZE_MAX};
			char *text = draw(STATUS, &v);

			assert_int_equal(check_screen(text, width), height);
			free(text);
		}
}

static void test_max_groups(void **state)
{
	struct top_view v = paper();
	char *text;

	(void)state;
	v.max_groups = 1;
	text = draw(STATUS, &v);
	assert_non_null(strstr(text, "and 2 more\n"));
	assert_null(strstr(text, "quiet"));
	free(text);
	v.max_groups = 0;
	text = draw(STATUS, &v);
	assert_non_null(strstr(text, "and 3 more\n"));
	free(text);
}

static void test_any_shape(void **state)
{
	static const char *const status[] = {
		"null", "[]", "7", "{}", "{\"sizes\":7,\"cgroups\":{},\"degraded\":\"x\",\"counters\":[],\"swap\":7}",
		"{\"sizes\":[null,{},7],\"cgroups\":[null,{},7,[],{\"path\":7,\"some\":\"x\",\"max_size_kb\":[]}]}",
		"{\"cgroups\":[{\"path\":\"\\u001b[2J\\n\\u0007\",\"some\":1e308,\"full\":-5,\"margin_bytes\":-1,"
		"\"max_size_kb\":1e300,\"reason\":\"\\u001b]0;x\\u0007\\n\",\"reason_text\":\"\\u009b\"}],"
		"\"hold\":\"\\u001b[31m\\r\\n\",\"version\":\"\\u001bc\",\"kernel\":{\"release\":\"%s%n\"}}",
		"{\"cgroups\":[{\"path\":\"\",\"some\":0.004,\"full\":0.006,\"margin_bytes\":18446744073709551615.0}]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(status) / sizeof(status[0]); i++)
		for (unsigned width = 1; width < 200; width += 31) {
			struct top_view v = {.width = width, .height = 24, .max_groups = SIZE_MAX};
			char *text = draw(status[i], &v);

			assert_int_equal(check_screen(text, width), 24);
			free(text);
		}
}

/* A kernel with files for each group: how much of its large folios is used, and the
 * gate in the reason. */
static void test_own(void **state)
{
	static const char status[] =
		"{\"cgroups\":[{\"path\":\"a\",\"max_size_kb\":64,\"reason\":\"gate-open\","
		"\"own\":{\"gate\":\"open\",\"density\":0.987,\"counters\":{"
		"\"margin_anon\":3070,\"margin_swpin\":6476,\"size_limited\":4,\"split_avoided\":12}}},"
		"{\"path\":\"b\",\"max_size_kb\":64,\"reason\":\"start-values\",\"own\":{\"density\":null}},"
		"{\"path\":\"c\",\"max_size_kb\":0,\"reason\":\"oom-kill\",\"own\":null}]}";
	struct top_view v = paper();
	char *text = draw(status, &v);

	(void)state;
	assert_non_null(strstr(text, " SIZE USED NOFIT  KEPT REASON"));
	assert_non_null(strstr(text, "   64K  99%  9.6k    12 gate-open"));
	assert_non_null(strstr(text, "   64K    -     -     - start-values"));
	assert_non_null(strstr(text, "  none    -     -     - oom-kill"));
	free(text);
	for (unsigned width = 1; width < 200; width += 13) {
		v = (struct top_view){.width = width, .height = 24, .max_groups = SIZE_MAX};
		text = draw(status, &v);
		assert_int_equal(check_screen(text, width), 24);
		free(text);
	}
}

static void test_many_sizes(void **state)
{
	struct top_view v = {.width = 80, .height = 24, .max_groups = SIZE_MAX};
	json_t *j = json_pack("{s:[]}", "sizes");
	char *text;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		json_array_append_new(json_object_get(j, "sizes"), json_pack("{s:i, s:s, s:s, s:s}", "size_kb", 4 << (i % 20),
			"baseline", "always", "actual", "madvise-and-much-more", "effective", "madvise-and-much-more"));
	text = json_dumps(j, 0);
	json_decref(j);
	for (v.width = 1; v.width < 1200; v.width += 97) {
		char *screen = draw(text, &v);

		assert_int_equal(check_screen(screen, v.width), 24);
		free(screen);
	}
	free(text);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_scrolling),
		cmocka_unit_test(test_all_sizes_of_terminals),
		cmocka_unit_test(test_max_groups),
		cmocka_unit_test(test_any_shape),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_many_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
