/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What mthpctl prints, from fixtures of the status object. */
#include "ctl_world.h"

static void status_text(void **state)
{
	static const char *const names[] = {"active", "degraded", "held", "own"};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		json_t *j = load(names[i]);
		char path[128], *text = render(j, CTL_STATUS_GROUPS);

		snprintf(path, sizeof(path), "tests/fixtures/status-%s.txt", names[i]);
		assert_string_equal(text, read_file(path));
		assert_harmless(text);
		free(text);
		json_decref(j);
	}
}

static void hostile_status(void **state)
{
	json_t *j = load("hostile");
	char *text = render(j, 100);

	(void)state;
	assert_harmless(text);
	assert_non_null(strstr(text, "\\x1b[2J"));
	assert_non_null(strstr(text, "two words "));
	free(text);
	json_decref(j);
	j = load("null");
	text = render(j, 10);
	assert_harmless(text);
	assert_non_null(strstr(text, "state: -"));
	free(text);
	json_decref(j);
}

/* Not a status at all, of any type. */
static void odd_status(void **state)
{
	static const char *const texts[] = {"null", "[]", "7", "\"x\"", "{}",
		"{\"cgroups\":{},\"sizes\":7}",
		"{\"cgroups\":[[],{},null],\"sizes\":[[]],\"khugepaged\":[],\"degraded\":{},"
		"\"counters\":[]}"};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
		json_t *j = json_loads(texts[i], JSON_DECODE_ANY, NULL);
		char *text = render(j, 3);

		assert_harmless(text);
		free(text);
		json_decref(j);
	}
}

static void group_order(void **state)
{
	/* name, some, full, margin: as they must come out */
	static const struct {
		const char *name;
		double some, full, margin;
	} order[] = {
		{"g-a", .9, .1, 900},
		{"g-b", .5, .4, 800},
		{"g-c", .5, .3, 10},
		{"g-d", .5, .3, 20},
		{"g-e", .5, .3, -1},
		{"g-f", .5, -1, 1},
		{"g-g", 0, 0, 5},
		{"g-h", -1, -1, 1},
		{"g-i", -1, -1, 1},
	};
	static const unsigned mixed[] = {4, 8, 0, 2, 7, 6, 1, 3, 5};
	json_t *list = json_array(), *status;
	char *text, *at;

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		json_t *g = json_pack("{s:s}", "path", order[mixed[i]].name);

		if (order[mixed[i]].some >= 0)
			json_object_set_new(g, "some", json_real(order[mixed[i]].some));
		if (order[mixed[i]].full >= 0)
			json_object_set_new(g, "full", json_real(order[mixed[i]].full));
		if (order[mixed[i]].margin >= 0)
			json_object_set_new(g, "margin_bytes", json_real(order[mixed[i]].margin));
		json_array_append_new(list, g);
	}
	status = json_pack("{s:o}", "cgroups", list);
	text = at = render(status, 20);
	for (size_t i = 0; i < ELEMENTSOF(order); i++) {
		at = strstr(at, order[i].name);
		assert_non_null(at);
	}
	assert_null(strstr(text, " more"));
	free(text);
	text = render(status, 2);
	assert_non_null(strstr(text, "g-b"));
	assert_null(strstr(text, "g-c"));
	assert_non_null(strstr(text, "and 7 more"));
	free(text);
	text = render(status, 0);
	assert_non_null(strstr(text, "and 9 more"));
	free(text);
	json_decref(status);
}

static void quoting(void **state)
{
	static const struct {
		const char *name, *quoted;
	} cases[] = {
		{"", ""},
		{"system.slice/app-gnome\\x2dw.scope", "system.slice/app-gnome\\x2dw.scope"},
		{"a.slice/a-b.slice/backup@minio.service",
			"a.slice/a-b.slice/backup@minio.service"},
		{"two words", "two words"},
		{"it's", "it's"},
		{"\x1b[31mred", "$'\\x1b[31mred'"},
		{"a\nb", "$'a\\x0ab'"},
		{"a\\\tb'", "$'a\\\\\\x09b\\''"},
		{"caf\xc3\xa9", "$'caf\\xc3\\xa9'"},
		{"\x7f", "$'\\x7f'"},
		{"$'x'", "$'$\\'x\\''"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		char *q = ctl_quote(cases[i].name);

		assert_string_equal(q, cases[i].quoted);
		free(q);
	}
}

#define FOLD UINT_MAX

static char *wrap(unsigned indent, const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	if (indent == FOLD)
		ctl_put_folded(f, text);
	else
		ctl_put_wrapped(f, indent, text);
	fclose(f);
	return out;
}

static void wrapping(void **state)
{
	char word[201], expected[512], *out;

	(void)state;
	out = wrap(2, " a  b\nc ");
	assert_string_equal(out, "  a b c\n");
	free(out);
	out = wrap(0, "");
	assert_string_equal(out, "\n");
	free(out);
	/* exactly 80 columns fit */
	memset(word, 'x', 200);
	word[200] = '\0';
	snprintf(expected, sizeof(expected), "    %.70s yyyyy\n    z\n", word);
	out = wrap(4, "");
	free(out);
	char text[128];
	snprintf(text, sizeof(text), "%.70s yyyyy z", word);
	out = wrap(4, text);
	assert_string_equal(out, expected);
	free(out);
	/* a longer word is cut */
	snprintf(expected, sizeof(expected), "    %.76s\n    %.76s\n    %.48s\n", word, word, word);
	out = wrap(4, word);
	assert_string_equal(out, expected);
	free(out);
}

static void folding(void **state)
{
	char word[201], text[512], expected[512], *out;

	(void)state;
	memset(word, 'x', 200);
	word[200] = '\0';
	out = wrap(FOLD, "one\n\n two  three\x1b\n");
	assert_string_equal(out, "one\n\n two  three\\x1b\n");
	free(out);
	/* exactly 80 columns fit, what goes on is indented, a long word stays whole */
	snprintf(text, sizeof(text), "%.74s yyyyy z\n%s z", word, word);
	snprintf(expected, sizeof(expected), "%.74s yyyyy\n  z\n%s\n  z", word, word);
	out = wrap(FOLD, text);
	assert_string_equal(out, expected);
	free(out);
}

static void human_numbers(void **state)
{
	static const struct {
		double bytes;
		const char *text;
	} cases[] = {
		{0, "0B"},
		{1, "1B"},
		{1023, "1023B"},
		{1024, "1K"},
		{1536, "1.5K"},
		{1310720, "1.2M"},
		{1048575, "1.0M"},
		{33554432, "32M"},
		{4294967296, "4G"},
		{1125899906842624, "1P"},
		{1e30, ">1e9P"},
		{-1, "-"},
	};
	static const struct {
		double count;
		const char *text;
	} counts[] = {
		{0, "0"}, {999, "999"}, {999.6, "1.0k"}, {1000, "1.0k"}, {9949, "9.9k"}, {9951, "10k"},
		{999499, "999k"}, {999501, "1.0M"}, {9e18, ">999T"}, {-1, "-"},
	};
	char text[CTL_HUMAN_LEN];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		json_t *j = json_real(cases[i].bytes);

		ctl_human_bytes(j, text);
		assert_string_equal(text, cases[i].text);
		json_decref(j);
	}
	ctl_human_bytes(json_null(), text);
	assert_string_equal(text, "-");
	ctl_human_kb(NULL, text);
	assert_string_equal(text, "-");
	json_t *j = json_integer(2048);
	ctl_human_kb(j, text);
	assert_string_equal(text, "2M");
	json_decref(j);
	for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
		j = json_real(counts[i].count);
		ctl_human_count(j, text);
		assert_string_equal(text, counts[i].text);
		json_decref(j);
	}
	ctl_human_count(json_null(), text);
	assert_string_equal(text, "-");
	j = json_real(.9996);
	ctl_human_share(j, text);
	assert_string_equal(text, "100.0%");
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_text),
		cmocka_unit_test(hostile_status),
		cmocka_unit_test(odd_status),
		cmocka_unit_test(group_order),
		cmocka_unit_test(quoting),
		cmocka_unit_test(wrapping),
		cmocka_unit_test(folding),
		cmocka_unit_test(human_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
