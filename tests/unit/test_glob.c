/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Patterns over cgroup paths: tables, a brute-force second opinion, and cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "cleanup.h"
#include "glob.h"

struct match_case {
	const char *pattern, *path;
	bool match;
};

static const struct match_case match_cases[] = {
	{"", "", true},
	{"", "a", false},
	{"a", "", false},
	{"system.slice/nginx.service", "system.slice/nginx.service", true},
	{"system.slice/nginx.service", "system.slice/nginx.service2", false},
	{"system.slice/nginx*.service", "system.slice/nginx.service", true},
	{"system.slice/nginx*.service", "system.slice/nginx@a.service", true},
	{"system.slice/nginx*.service", "system.slice/nginx/a.service", false},
	{"system.slice/*", "system.slice/a", true},
	{"system.slice/*", "system.slice/a/b", false},
	{"system.slice/*", "system.slice", false},
	{"system.slice/**", "system.slice/a/b", true},
	{"system.slice/**", "system.slice", false},
	{"*", "", true},
	{"*", "a/b", false},
	{"**", "a/b/c", true},
	{"**", "", true},
	{"?", "/", false},
	{"a?c", "a/c", false},
	{"a[!b]c", "a/c", false},
	{"a[!b]c", "axc", true},
	{"a[^b]c", "abc", false},
	{"a[a-cx]", "ab", true},
	{"a[a-cx]", "ax", true},
	{"a[a-cx]", "ad", false},
	{"a[-x]", "a-", true},
	{"a[x-]", "a-", true},
	{"a[]x]", "a]", true},
	{"a[!]x]", "a]", false},
	{"a[\x80-\xff]", "a\xc3", true},
	{"[*]", "*", true},
	{"[*]", "a", false},
	{"[?][[]", "?[", true},
	{"a[b", "a[b", true},
	{"a[b", "ab", false},
	{"**/*", "*", true},
	{"**/*", "a/b", true},
	{"**/*x", "a/b", false},
	/* On-disk names of systemd: the backslash is a byte like any other. */
	{"app.slice/app-*\\x2dw-*.scope", "app.slice/app-gnome-firefox\\x2dw-96379.scope", true},
	{"app.slice/app-*\\x2dw-*.scope", "app.slice/app-gnome-firefox-w-96379.scope", false},
	{"app-*x2dw-*", "app-a\\x2dw-1", true},
	{"system-backup\\x2dprune.slice/*@*.service",
		"system-backup\\x2dprune.slice/backup@minio.service", true},
	{"a\\*", "a\\bc", true},
	{"a\\*", "a*", false},
	{"[\\]x", "\\x", true},
	{"**/a-b.slice", "a.slice/a-b.slice", true},
	{"**/a-b.slice", "a-b.slice", true},
	{"**/a-b.slice", "a.slice/xa-b.slice", false},
	{"a.slice/**/c.service", "a.slice/c.service", true},
	{"a.slice/**/c.service", "a.slice/a-b.slice/a-b-c.slice/c.service", true},
	{"a.slice/**/c.service", "a.slicec.service", false},
	{"a**/c", "ab/d/c", true},
	{"a**/c", "c", false},
	{"***/c", "c", true},
	{"**/kubepods*/**/cri-containerd-*.scope",
		"kubelet/kubepods.slice/kubepods-pod1.slice/cri-containerd-7f.scope", true},
	{"**b*c/d", "xb/bc/d", true},
	{"**b*c/d", "bbc/bc/e/bc/d", true},
	{"**b*c/d", "bc/e/bcx/d", false},
	{"**a*b**c", "xa/aab/c", true},
};

static void test_match(void **state)
{
	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(match_cases); i++) {
		const struct match_case *c = &match_cases[i];

		if (glob_match(c->pattern, c->path) != c->match)
			fail_msg("'%s' over '%s' should be %d", c->pattern, c->path, c->match);
	}
}

/* The definition, written down without any care for cost. */
static bool brute(const char *start, const char *p, const char *s)
{
	size_t stars = strspn(p, "*");

	if (stars > 0) {
		bool deep = stars > 1;
		bool dirs = deep && (p == start || p[-1] == '/') && p[stars] == '/';

		if (dirs && brute(start, p + stars + 1, s))
			return true;
		for (;; s++) {
			if (!dirs && brute(start, p + stars, s))
				return true;
			if (dirs && *s == '/' && brute(start, p + stars + 1, s + 1))
				return true;
			if (!*s || (!deep && *s == '/'))
				return false;
		}
	}
	if (!*p)
		return !*s;
	if (!*s || (*p == '?' ? *s == '/' : *p != *s))
		return false;
	return brute(start, p + 1, s + 1);
}

static void random_text(char *out, size_t max, const char *alphabet, uint32_t *seed)
{
	size_t n = (*seed = *seed * 1664525u + 1013904223u) % (max + 1);

	for (size_t i = 0; i < n; i++) {
		*seed = *seed * 1664525u + 1013904223u;
		out[i] = alphabet[(*seed >> 16) % strlen(alphabet)];
	}
	out[n] = '\0';
}

static void test_match_against_brute_force(void **state)
{
	uint32_t seed = 1;
	unsigned matched = 0;

	(void)state;
	for (unsigned i = 0; i < 400000; i++) {
		char pattern[16], path[16];
		bool want;

		random_text(pattern, 10, "ab/**?", &seed);
		random_text(path, 10, "aab/", &seed);
		want = brute(pattern, pattern, path);
		matched += want;
		if (glob_match(pattern, path) != want)
			fail_msg("'%s' over '%s' should be %d", pattern, path, want);
	}
	/* The comparison means something only when both outcomes are common. */
	assert_in_range(matched, 4000, 396000);
}

static double match_seconds(const char *pattern, const char *path)
{
	struct timespec a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	assert_false(glob_match(pattern, path));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

static void repeat(char *out, const char *unit, unsigned n, const char *tail)
{
	*out = '\0';
	for (unsigned i = 0; i < n; i++)
		out = stpcpy(out, unit);
	strcpy(out, tail);
}

/* 64 stars over 4 KiB that all but match. Exponential or cubic work would take
 * minutes; n * m is under a million steps, so 0.2 s holds under sanitizers too. */
static void test_match_cost(void **state)
{
	static const struct {
		const char *unit, *tail, *path_unit;
	} cases[] = {
		{"*a", "*b", "a"},
		{"**a", "**b", "a"},
		{"**a*a", "**b", "a"},
		{"*aaaaaaa", "b", "a"},
		{"**/*a", "*b", "a/"},
		{"*/", "**a*a*a*a*b", "a/"},
	};
	char pattern[2048], path[4097];

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		repeat(pattern, cases[i].unit, 64, cases[i].tail);
		repeat(path, cases[i].path_unit, 4096 / (unsigned)strlen(cases[i].path_unit), "");
		assert_true(match_seconds(pattern, path) < 0.2);
	}
}

/* Every start that '**' could try has a '*' behind it that runs to the end: 2^31
 * steps unless the later starts in the same name are known to be hopeless. */
static void test_match_cost_of_one_long_name(void **state)
{
	static char path[64 * 1024 + 1];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	assert_true(match_seconds("**a*b", path) < 0.2);
	assert_true(match_seconds("**a*a*b", path) < 0.2);
}

static void test_specificity_order(void **state)
{
	static const char *const falling[] = {
		"system.slice/nginx.service",
		"system.slice/nginx?service",
		"system.slice/nginx*service",
		"system.slice/nginx*",
		"system.slice/*",
		"system.slice/**",
		"**/*",
		"*",
		"**",
	};

	(void)state;
	for (size_t i = 1; i < ELEMENTSOF(falling); i++)
		if (glob_specificity(falling[i - 1]) <= glob_specificity(falling[i]))
			fail_msg("'%s' should rank before '%s'", falling[i - 1], falling[i]);
	assert_true(glob_specificity("a[xy]") > glob_specificity("a?"));
	assert_true(glob_specificity("a[xy]") < glob_specificity("ax"));
	assert_int_equal(glob_specificity("a[*]"), glob_specificity("ax"));
	assert_int_equal(glob_specificity("a[]]"), glob_specificity("ax"));
}

static void test_check(void **state)
{
	static const struct {
		const char *pattern, *wrong;
	} cases[] = {
		{"a/b*/[c-d]", NULL},
		{"**", NULL},
		{"[]]", NULL},
		{"[!]]", NULL},
		{"[x-]", NULL},
		{"a\\x2db", NULL},
		{"", "empty"},
		{"/a", "leading"},
		{"a/", "ends in"},
		{"a//b", "'//'"},
		{"a[b", "unclosed"},
		{"a[]", "unclosed"},
		{"a[", "unclosed"},
		{"a[b/]", "never matches '/'"},
		{"a[!-/]", "never matches '/'"},
		{"a[z-a]", "backwards"},
	};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		const char *wrong = glob_check(cases[i].pattern);

		if (!wrong != !cases[i].wrong || (wrong && !strstr(wrong, cases[i].wrong)))
			fail_msg("'%s': %s", cases[i].pattern, wrong ? wrong : "accepted");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_match_against_brute_force),
		cmocka_unit_test(test_match_cost),
		cmocka_unit_test(test_match_cost_of_one_long_name),
		cmocka_unit_test(test_specificity_order),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
