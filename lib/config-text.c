/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "config-internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DISTANCE_TEXT_MAX 64

void config_because(struct config_why *why, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why->text, sizeof(why->text), format, ap);
	va_end(ap);
}

/* Bytes of the character at @s, 0 when it is none that a message may carry:
 * over-long forms, surrogates and control characters (C0, DEL, C1) are refused. */
static size_t character(const unsigned char *s)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t low;
	} forms[] = {{0xe0, 0xc0, 0xa0}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	uint32_t code;

	if (s[0] < 0x80)
		return s[0] == '\t' || (s[0] >= 0x20 && s[0] != 0x7f);
	for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
		if ((s[0] & forms[f].mask) != forms[f].lead)
			continue;
		code = s[0] & (unsigned char)~forms[f].mask;
		for (size_t i = 1; i <= f + 1; i++) {
			if ((s[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (s[i] & 0x3f);
		}
		if (code < forms[f].low || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
			return 0;
		return f + 2;
	}
	return 0;
}

bool config_text_valid(const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		size_t n = character(p);

		if (n == 0)
			return false;
		p += n;
	}
	return true;
}

const char *config_text_show(char shown[CONFIG_SHOWN_MAX], const char *s)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t used = 0;

	while (*p && used + 5 < CONFIG_SHOWN_MAX) {
		size_t n = character(p);

		if (n > 0) {
			memcpy(shown + used, p, n);
			used += n;
			p += n;
		} else {
			used += (size_t)snprintf(shown + used, 5, "\\x%02x", *p++);
		}
	}
	shown[used] = '\0';
	return shown;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned config_text_distance(const char *typed, const char *known)
{
	/* The last three rows of the table of distances between beginnings. */
	unsigned rows[3][DISTANCE_TEXT_MAX + 1];
	size_t n = strlen(typed), m = strlen(known);

	if (n > DISTANCE_TEXT_MAX || m > DISTANCE_TEXT_MAX)
		return DISTANCE_TEXT_MAX;
	if (n >= 4 && n < m && strncasecmp(typed, known, n) == 0)
		return 1;
	for (unsigned j = 0; j <= m; j++)
		rows[0][j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			int a = tolower((unsigned char)typed[i - 1]);
			int b = tolower((unsigned char)known[j - 1]);

			row[j] = least(above[j - 1] + (a != b), least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a == tolower((unsigned char)known[j - 2]) &&
				b == tolower((unsigned char)typed[i - 2]))
				row[j] = least(row[j], above2[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

bool config_text_near(const char *typed, const char *known, unsigned *ret_distance)
{
	unsigned distance = config_text_distance(typed, known);
	size_t n = strlen(typed), m = strlen(known);

	/* A third of the letters wrong is still a typo; more is another word. */
	if (distance * 3 > (n > m ? n : m))
		return false;
	*ret_distance = distance;
	return true;
}
