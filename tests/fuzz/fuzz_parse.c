/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzz target of lib/parse.c: the first byte selects the parser, the rest is
 * its text. Beyond memory errors it checks what each parser promises about a
 * result. Seeds: tests/fuzz/corpus/parse, files of real kernels behind the
 * letter of their parser.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

#define PROMISE(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static void fuzz_number(const char *text)
{
	uint64_t number = 1, limit = 1;
	int a = parse_u64(text, &number), b = parse_limit(text, &limit);

	PROMISE(a == 0 || number == 1);
	PROMISE(b == 0 || limit == 1);
	PROMISE(b < 0 || value_known(limit) || limit == VALUE_MAX);
	PROMISE(a < 0 || (b == 0 && (limit == number || limit == VALUE_MAX)));
}

static void fuzz_psi(const char *text)
{
	struct psi psi = { { 1, 1 }, { 1, 1 } };

	if (parse_psi(text, &psi) < 0) {
		PROMISE(psi.some.total_usec == 1 && psi.full.avg10_centi == 1);
		return;
	}
	PROMISE(value_known(psi.some.total_usec) || value_known(psi.full.total_usec));
	PROMISE(psi.some.avg10_centi <= 10099 && psi.full.avg10_centi <= 10099);
}

static void fuzz_flat(const char *text)
{
	static const char *const names[] = { "low", "high", "max", "oom", "oom_kill", "anon",
		"file", "workingset_refault_anon", "pgscan", "pgsteal", "pgfault", "MemTotal",
		"usage_usec" };
	enum { N = sizeof(names) / sizeof(names[0]) };
	struct flat_key keys[N];
	uint64_t values[N + 1];
	int anomalies;

	values[N] = 0x5a5a;
	for (size_t i = 0; i < N; i++)
		keys[i] = (struct flat_key){ names[i], i * sizeof(values[0]) };
	anomalies = parse_flat_keyed(text, keys, N, values);
	PROMISE(anomalies >= 0 && values[N] == 0x5a5a);
	for (size_t i = 0; i < N; i++)
		PROMISE(value_known(values[i]) || values[i] == VALUE_ABSENT);
	/* A key that the text does not hold cannot have a value. */
	for (size_t i = 0; i < N; i++)
		PROMISE(values[i] == VALUE_ABSENT || strstr(text, names[i]));
	PROMISE(parse_flat_keyed(text, keys, 0, values) >= 0);
}

static void fuzz_choice(const char *text)
{
	struct choice c = { .n = 99 };

	if (parse_choice(text, &c) < 0) {
		PROMISE(c.n == 99);
		return;
	}
	PROMISE(c.n >= 1 && c.n <= CHOICE_MAX && c.selected < c.n);
	for (unsigned i = 0; i < c.n; i++) {
		size_t len = strnlen(c.token[i], CHOICE_LEN);

		PROMISE(len > 0 && len < CHOICE_LEN);
		PROMISE(!strpbrk(c.token[i], "[] \t\n"));
		PROMISE(strstr(text, c.token[i]) && choice_lists(&c, c.token[i]));
	}
	PROMISE(strcmp(choice_value(&c), c.token[c.selected]) == 0);
}

static void fuzz_proc_cgroup(const char *text)
{
	char small[16], path[PATH_MAX];
	int r = parse_proc_cgroup(text, path, sizeof(path));

	PROMISE(r < 0 || (path[0] == '/' && strstr(text, path) && !strchr(path, '\n')));
	if (parse_proc_cgroup(text, small, sizeof(small)) == 0)
		PROMISE(r == 0 && strcmp(small, path) == 0);
}

static int check_mount(
	const char *mount_point, const char *fs_type, const char *super_options, void *userdata)
{
	unsigned *n = userdata;

	PROMISE(mount_point[0] == '/' && strlen(mount_point) < PATH_MAX);
	PROMISE(fs_type[0] && strlen(fs_type) < 64);
	PROMISE(super_options[0] && strlen(super_options) <= PATH_MAX);
	return ++*n == 100 ? 7 : 0;
}

static void fuzz_mountinfo(const char *text)
{
	unsigned n = 0;
	int r = parse_mountinfo(text, check_mount, &n);

	PROMISE(n == 100 ? r == 7 : r == 0);
}

static void fuzz_swaps(const char *text)
{
	uint64_t size = 1, used = 2;

	if (parse_swaps(text, &size, &used) < 0)
		PROMISE(size == 1 && used == 2);
	else
		PROMISE(value_known(size) && value_known(used));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		char letter;
		void (*parse)(const char *text);
	} parsers[] = {
		{ 'n', fuzz_number },
		{ 'p', fuzz_psi },
		{ 'f', fuzz_flat },
		{ 'c', fuzz_choice },
		{ 'g', fuzz_proc_cgroup },
		{ 'm', fuzz_mountinfo },
		{ 's', fuzz_swaps },
	};
	enum { N = sizeof(parsers) / sizeof(parsers[0]) };
	size_t selected = size ? data[0] % N : 0;
	char *text;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < N; i++) {
		if (parsers[i].letter == (char)data[0])
			selected = i;
	}
	/* Of exactly the right length, so that a read beyond the end is seen. */
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	parsers[selected].parse(text);
	free(text);
	return 0;
}
