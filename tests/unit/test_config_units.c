/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The units of the configuration, and the texts of its messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cleanup.h"
#include "config-internal.h"

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int r;
		uint64_t usec;
	} cases[] = {
		{"250ms", 0, 250000},
		{"1s", 0, 1000000},
		{"2min", 0, 120000000},
		{"1h", 0, 3600000000},
		{"5", 0, 5000000},
		{"0.5", 0, 500000},
		{"1.5min", 0, 90000000},
		{"100us", 0, 100},
		{"1d", 0, 86400000000},
		{"1min 30s", 0, 90000000},
		{"1h30min", 0, 5400000000},
		{" 3 s ", 0, 3000000},
		{"2m", 0, 120000000},
		{"2hr", 0, 7200000000},
		{"7sec", 0, 7000000},
		{"0", 0, 0},
		{"0.000001s", 0, 1},
		{"000000000000000000001s", 0, 1000000},
		{"", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1x", -EINVAL, 0},
		{"1S", -EINVAL, 0},
		{"-1s", -EINVAL, 0},
		{"+1s", -EINVAL, 0},
		{"1.s", -EINVAL, 0},
		{".5s", -EINVAL, 0},
		{"1,5s", -EINVAL, 0},
		{"1min 30", -EINVAL, 0},
		{"1.2.3s", -EINVAL, 0},
		{"0x10", -EINVAL, 0},
		{"1e3", -EINVAL, 0},
		{"nan", -EINVAL, 0},
		{"inf", -EINVAL, 0},
		{"1s;", -EINVAL, 0},
		{"18446744073709551616", -ERANGE, 0},
		{"999999999999999d", -ERANGE, 0},
		{"1.00000000001s", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		uint64_t usec = 42;
		int r = config_parse_duration(cases[i].text, &usec);

		if (r != cases[i].r || usec != (r == 0 ? cases[i].usec : 42))
			fail_msg("'%s': %d, %lu", cases[i].text, r, usec);
	}
}

static void test_percents(void **state)
{
	static const struct {
		const char *text;
		int r;
		double share;
	} cases[] = {
		{"10%", 0, 0.1},
		{"0.5%", 0, 0.005},
		{"100%", 0, 1},
		{"0%", 0, 0},
		{"12.5 %", 0, 0.125},
		{"0.1%", 0, 0.001},
		{"33.333%", 0, 0.33333},
		{"50ms/s", 0, 0.05},
		{"150ms/2s", 0, 0.075},
		{"200ms / 2s", 0, 0.1},
		{"2s/2s", 0, 1},
		{"", -EINVAL, 0},
		{"10", -EINVAL, 0},
		{"%", -EINVAL, 0},
		{"10%%", -EINVAL, 0},
		{"-1%", -EINVAL, 0},
		{"ten%", -EINVAL, 0},
		{"1s/", -EINVAL, 0},
		{"/1s", -EINVAL, 0},
		{"1s/0s", -EINVAL, 0},
		{"1s/2s/3s", -EINVAL, 0},
		{"1s/00000000000000000000000000000000000001s", -EINVAL, 0},
		{"100.1%", -ERANGE, 0},
		{"3s/2s", -ERANGE, 0},
		{"99999999999999999%", -ERANGE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		double share = 42;
		int r = config_parse_percent(cases[i].text, &share);

		if (r != cases[i].r || fabs(share - (r == 0 ? cases[i].share : 42)) > 1e-15)
			fail_msg("'%s': %d, %g", cases[i].text, r, share);
	}
}

/* B15: sizes by number or relative to whatever the machine has. */
static void test_sizes(void **state)
{
	static const struct {
		const char *text;
		int r;
		/* with a PMD of 2 MiB over 4K pages, then of 32 MiB over 16K pages */
		uint64_t kb_4k, kb_16k;
	} cases[] = {
		{"64K", 0, 64, 64},
		{"64k", 0, 64, 64},
		{"64kB", 0, 64, 64},
		{"64KiB", 0, 64, 64},
		{"2M", 0, 2048, 2048},
		{"2048K", 0, 2048, 2048},
		{"1G", 0, 1048576, 1048576},
		{"16G", 0, 16777216, 16777216},
		{"4K", 0, 4, 4},
		{"pmd", 0, 2048, 32768},
		{"PMD", 0, 2048, 32768},
		{"pmd/2", 0, 1024, 16384},
		{"pmd/1", 0, 2048, 32768},
		{"pmd/4096", 0, 0, 8},
		{"smallest", 0, 16, 64},
		{"", -EINVAL, 0, 0},
		{"64", -EINVAL, 0, 0},
		{"K", -EINVAL, 0, 0},
		{"64T", -EINVAL, 0, 0},
		{"64Kx", -EINVAL, 0, 0},
		{"6.4K", -EINVAL, 0, 0},
		{"-64K", -EINVAL, 0, 0},
		{"pmdx", -EINVAL, 0, 0},
		{"pmd/", -EINVAL, 0, 0},
		{"pmd/2x", -EINVAL, 0, 0},
		{"all", -EINVAL, 0, 0},
		{"48K", -ERANGE, 0, 0},
		{"2K", -ERANGE, 0, 0},
		{"0K", -ERANGE, 0, 0},
		{"32G", -ERANGE, 0, 0},
		{"999999999999999G", -ERANGE, 0, 0},
		{"17592186044417G", -ERANGE, 0, 0},
		{"pmd/3", -ERANGE, 0, 0},
		{"pmd/0", -ERANGE, 0, 0},
		{"pmd/8192", -ERANGE, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct config_size s = {SIZE_SMALLEST, 42};
		int r = config_parse_size(cases[i].text, &s);

		if (r != cases[i].r || (r < 0 && s.value != 42))
			fail_msg("'%s': %d", cases[i].text, r);
		if (r == 0 && (config_size_kb(&s, 2048, 16) != cases[i].kb_4k ||
				      config_size_kb(&s, 32768, 64) != cases[i].kb_16k))
			fail_msg("'%s' is %lu and %lu", cases[i].text, config_size_kb(&s, 2048, 16),
				config_size_kb(&s, 32768, 64));
		if (r == 0 && s.kind != SIZE_KB)
			assert_int_equal(config_size_kb(&s, VALUE_ABSENT, VALUE_ABSENT), 0);
	}
}

static void test_booleans(void **state)
{
	static const char *const yes[] = {"yes", "true", "on", "1", "Yes", "TRUE"};
	static const char *const no[] = {"no", "false", "off", "0", "No", "OFF"};
	static const char *const neither[] = {"", "2", "y", "enable", "yess", "10"};
	bool b;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(config_parse_bool(yes[i], &b), 0);
		assert_true(b);
		assert_int_equal(config_parse_bool(no[i], &b), 0);
		assert_false(b);
		assert_int_equal(config_parse_bool(neither[i], &b), -EINVAL);
	}
}

static void test_text_helpers(void **state)
{
	static const char *const valid[] = {
		"", "a\tb", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	static const char *const invalid[] = {"\x01", "\x7f",
		"\xc2\x9b"
		"2J",
		"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xf8\x88\x80\x80\x80", "\xe2\x82"};
	char shown[CONFIG_SHOWN_MAX];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(valid); i++) {
		assert_true(config_text_valid(valid[i]));
		assert_string_equal(config_text_show(shown, valid[i]), valid[i]);
	}
	for (size_t i = 0; i < ELEMENTSOF(invalid); i++) {
		assert_false(config_text_valid(invalid[i]));
		assert_true(config_text_valid(config_text_show(shown, invalid[i])));
	}
	assert_string_equal(config_text_show(shown, "a\xff\xc3\xa9\x1b"), "a\\xff\xc3\xa9\\x1b");
	assert_int_equal(config_text_distance("Hold", "hold"), 0);
	assert_int_equal(config_text_distance("Hlod", "Hold"), 1);
	assert_int_equal(config_text_distance("", "Hold"), 4);
	assert_int_equal(config_text_distance("kitten", "sitting"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_percents),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_booleans),
		cmocka_unit_test(test_text_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
