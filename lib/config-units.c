/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

/* 15 digits are below 2^53, so a double holds them, and their quotient by a
 * power of ten, as exactly as strtod() would, whatever the locale. */
#define DIGITS_MAX 15
#define DURATION_USEC_MAX (UINT64_C(1) << 53)
#define SIZE_KB_MIN 4
#define SIZE_KB_MAX (UINT64_C(16) << 20)
#define PMD_DIVISOR_MAX 4096
#define BYTES_KB_MAX (UINT64_C(1) << 30)

struct unit {
	const char *name;
	uint64_t scale;
};

static const struct unit duration_units[] = {
	{"us", 1},
	{"ms", 1000},
	{"s", 1000000},
	{"sec", 1000000},
	{"min", 60000000},
	{"m", 60000000},
	{"h", UINT64_C(3600000000)},
	{"hr", UINT64_C(3600000000)},
	{"d", UINT64_C(86400000000)},
};

static const struct unit size_units[] = {
	{"K", 1},
	{"M", 1024},
	{"G", 1024 * 1024},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *skip_blank(const char *s)
{
	return s + strspn(s, " \t");
}

/* Digits, with a fraction when @ret_divisor is not NULL: *ret_number over
 * *ret_divisor. Moves *s behind them. */
static int parse_number(const char **s, uint64_t *ret_number, uint64_t *ret_divisor)
{
	const char *p = *s;
	uint64_t number = 0, divisor = 1;
	unsigned digits = 0;
	bool fraction = false;

	if (!is_digit(*p))
		return -EINVAL;
	for (;; p++) {
		if (*p == '.' && ret_divisor && !fraction && is_digit(p[1])) {
			fraction = true;
			continue;
		}
		if (!is_digit(*p))
			break;
		if (digits == DIGITS_MAX)
			return -ERANGE;
		number = number * 10 + (uint64_t)(*p - '0');
		digits += number > 0;
		if (fraction)
			divisor *= 10;
		if (divisor > 1000000000)
			return -ERANGE;
	}
	*s = p;
	*ret_number = number;
	if (ret_divisor)
		*ret_divisor = divisor;
	return 0;
}

/* One "12.5 ms"; a bare number has *ret_bare set. */
static int parse_duration_part(const char **s, uint64_t *ret_usec, bool *ret_bare)
{
	const char *p = *s;
	uint64_t number, divisor, scale = 1000000;
	size_t n = 0;
	double usec;
	int r;

	r = parse_number(&p, &number, &divisor);
	if (r < 0)
		return r;
	p = skip_blank(p);
	while (is_letter(p[n]))
		n++;
	if (n > 0) {
		scale = 0;
		for (size_t i = 0; i < ELEMENTSOF(duration_units); i++)
			if (strlen(duration_units[i].name) == n &&
				strncmp(p, duration_units[i].name, n) == 0)
				scale = duration_units[i].scale;
		if (scale == 0)
			return -EINVAL;
	}
	usec = (double)number / (double)divisor * (double)scale;
	if (usec > (double)DURATION_USEC_MAX)
		return -ERANGE;
	*s = p + n;
	*ret_usec = (uint64_t)(usec + 0.5);
	*ret_bare = n == 0;
	return 0;
}

int config_parse_duration(const char *s, uint64_t *ret_usec)
{
	const char *p = skip_blank(s);
	uint64_t total = 0, part;
	unsigned parts = 0;
	bool bare, any_bare = false;

	do {
		int r = parse_duration_part(&p, &part, &bare);

		if (r < 0)
			return r;
		total += part;
		if (total > DURATION_USEC_MAX)
			return -ERANGE;
		any_bare |= bare;
		parts++;
		p = skip_blank(p);
	} while (*p);
	/* "1min 30" could mean anything. */
	if (any_bare && parts > 1)
		return -EINVAL;
	*ret_usec = total;
	return 0;
}

/* "150ms/2s", "50ms/s" */
static int parse_threshold(const char *s, const char *slash, double *ret_share)
{
	char threshold[32], window[32] = "1";
	const char *after = skip_blank(slash + 1);
	uint64_t threshold_usec = 0, window_usec = 0;
	size_t n = (size_t)(slash - s);
	int r;

	if (n >= sizeof(threshold) || strlen(after) >= sizeof(window) - 1)
		return -EINVAL;
	memcpy(threshold, s, n);
	threshold[n] = '\0';
	snprintf(window + is_letter(*after), sizeof(window) - 1, "%s", after);
	r = config_parse_duration(threshold, &threshold_usec);
	if (r == 0)
		r = config_parse_duration(window, &window_usec);
	if (r < 0)
		return r;
	if (window_usec == 0)
		return -EINVAL;
	if (threshold_usec > window_usec)
		return -ERANGE;
	*ret_share = (double)threshold_usec / (double)window_usec;
	return 0;
}

int config_parse_percent(const char *s, double *ret_share)
{
	const char *p = skip_blank(s), *slash = strchr(s, '/');
	uint64_t number, divisor;
	int r;

	if (slash)
		return parse_threshold(s, slash, ret_share);
	r = parse_number(&p, &number, &divisor);
	if (r < 0)
		return r;
	p = skip_blank(p);
	if (*p != '%' || *skip_blank(p + 1))
		return -EINVAL;
	if (number > 100 * divisor)
		return -ERANGE;
	*ret_share = (double)number / (double)(100 * divisor);
	return 0;
}

static bool power_of_two(uint64_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

/* "pmd" was read; @s is what follows. */
static int parse_pmd(const char *s, struct config_size *ret)
{
	uint64_t divisor = 1;

	if (*s) {
		if (*s++ != '/')
			return -EINVAL;
		if (parse_number(&s, &divisor, NULL) < 0 || *s)
			return -EINVAL;
		if (!power_of_two(divisor) || divisor > PMD_DIVISOR_MAX)
			return -ERANGE;
	}
	*ret = (struct config_size){divisor == 1 ? SIZE_PMD : SIZE_PMD_FRACTION, divisor};
	return 0;
}

int config_parse_size(const char *s, struct config_size *ret)
{
	uint64_t number;
	int r;

	if (strcasecmp(s, "smallest") == 0) {
		*ret = (struct config_size){SIZE_SMALLEST, 0};
		return 0;
	}
	if (strncasecmp(s, "pmd", 3) == 0)
		return parse_pmd(s + 3, ret);
	r = parse_number(&s, &number, NULL);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(size_units); i++) {
		if (strncasecmp(s, size_units[i].name, 1) != 0)
			continue;
		if (s[1] && strcasecmp(s + 1, "B") != 0 && strcasecmp(s + 1, "iB") != 0)
			return -EINVAL;
		if (number > SIZE_KB_MAX)
			return -ERANGE;
		number *= size_units[i].scale;
		if (!power_of_two(number) || number < SIZE_KB_MIN || number > SIZE_KB_MAX)
			return -ERANGE;
		*ret = (struct config_size){SIZE_KB, number};
		return 0;
	}
	return -EINVAL;
}

int config_parse_bytes(const char *s, uint64_t *ret_bytes)
{
	uint64_t number;
	int r = parse_number(&s, &number, NULL);

	if (r < 0)
		return r;
	if (number == 0 && !*s) {
		*ret_bytes = 0;
		return 0;
	}
	for (size_t i = 0; i < ELEMENTSOF(size_units); i++) {
		if (strncasecmp(s, size_units[i].name, 1) != 0)
			continue;
		if (s[1] && strcasecmp(s + 1, "B") != 0 && strcasecmp(s + 1, "iB") != 0)
			return -EINVAL;
		if (number > BYTES_KB_MAX / size_units[i].scale)
			return -ERANGE;
		*ret_bytes = number * size_units[i].scale * 1024;
		return 0;
	}
	return -EINVAL;
}

uint64_t config_size_kb(const struct config_size *s, uint64_t pmd_kb, uint64_t smallest_kb)
{
	switch (s->kind) {
	case SIZE_KB:
		return s->value;
	case SIZE_PMD:
		return value_or(pmd_kb, 0);
	case SIZE_PMD_FRACTION:
		return value_known(pmd_kb) && pmd_kb % s->value == 0 ? pmd_kb / s->value : 0;
	case SIZE_SMALLEST:
		return value_or(smallest_kb, 0);
	}
	return 0;
}

int config_parse_bool(const char *s, bool *ret)
{
	static const char *const words[2][4] = {
		{"no", "false", "off", "0"},
		{"yes", "true", "on", "1"},
	};

	for (unsigned v = 0; v < 2; v++)
		for (size_t i = 0; i < ELEMENTSOF(words[v]); i++)
			if (strcasecmp(s, words[v][i]) == 0) {
				*ret = v == 1;
				return 0;
			}
	return -EINVAL;
}

int config_parse_unsigned(const char *s, uint64_t *ret)
{
	uint64_t number;
	int r = parse_number(&s, &number, NULL);

	if (r < 0)
		return r;
	if (*s)
		return -EINVAL;
	*ret = number;
	return 0;
}
