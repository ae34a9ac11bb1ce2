/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "glob.h"

#include <stddef.h>
#include <string.h>

enum {
	SCORE_LITERAL = 16,
	SCORE_SET = 8,
	SCORE_ONE = 4,
	SCORE_STAR = -2,
	SCORE_DEEP = -6,
};

/* The first member of the set that opens at @p. */
static const char *set_members(const char *p)
{
	p++;
	return *p == '!' || *p == '^' ? p + 1 : p;
}

/* The ']' that closes the set that opens at @p, NULL when there is none. */
static const char *set_end(const char *p)
{
	p = set_members(p);
	return *p ? strchr(p + 1, ']') : NULL;
}

static bool set_has(const char *p, const char *end, unsigned char byte)
{
	const char *m = set_members(p);
	bool negated = m != p + 1, found = false;

	while (m < end && !found) {
		unsigned char low = (unsigned char)*m, high = low;

		if (m + 2 < end && m[1] == '-') {
			high = (unsigned char)m[2];
			m += 2;
		}
		found = low <= byte && byte <= high;
		m++;
	}
	return found != negated;
}

/* Bytes of pattern that stand for @byte at @p, 0 when they do not match it. */
static size_t match_one(const char *p, unsigned char byte)
{
	const char *end;

	switch (*p) {
	case '\0':
		return 0;
	case '?':
		return byte != '/';
	case '[':
		end = set_end(p);
		if (end)
			return byte != '/' && set_has(p, end, byte) ? (size_t)(end - p) + 1 : 0;
		break;
	default:
		break;
	}
	return (unsigned char)*p == byte;
}

/* Where a star stands: the pattern behind it and the path that it leaves over. */
struct restart {
	const char *pattern, *path;
};

/* The last '**'. "dirs" came with its slash and covers whole directories only;
 * "starred" says that a '*' was reached behind it. */
struct deep {
	struct restart at;
	bool dirs, starred;
};

/* Lets the last '**' cover more of the path. What follows a '*' is tried at
 * every place up to the next slash, and a later start in the same directory
 * has fewer of them: so once a '*' was reached, only the next directory can
 * help. This is what keeps the whole at O(n * m). */
static bool deep_advance(struct deep *d)
{
	const char *s = d->at.path;

	if (d->dirs) {
		s = strchr(s, '/');
		s = s ? s + 1 : NULL;
	} else if (!*s) {
		s = NULL;
	} else {
		s = d->starred ? strchr(s + 1, '/') : s + 1;
	}
	if (!s)
		return false;
	d->at.path = s;
	d->starred = false;
	return true;
}

bool glob_match(const char *pattern, const char *path)
{
	const char *p = pattern, *s = path;
	struct restart star = {NULL, NULL};
	struct deep deep = {{NULL, NULL}, false, false};

	for (;;) {
		size_t n = strspn(p, "*");

		if (n == 1) {
			star = (struct restart){++p, s};
			deep.starred = true;
			continue;
		}
		if (n > 1) {
			/* Whatever stood before is settled: '**' can cover any rest,
			 * so the earliest place found for it is as good as a later. */
			bool dirs = (p == pattern || p[-1] == '/') && p[n] == '/';

			p += n + dirs;
			deep = (struct deep){{p, s}, dirs, false};
			star.pattern = NULL;
			continue;
		}
		if (!*p && !*s)
			return true;
		n = *s ? match_one(p, (unsigned char)*s) : 0;
		if (n > 0) {
			p += n;
			s++;
		} else if (star.pattern && *star.path && *star.path != '/') {
			p = star.pattern;
			s = ++star.path;
		} else if (deep.at.pattern && deep_advance(&deep)) {
			p = deep.at.pattern;
			s = deep.at.path;
			star.pattern = NULL;
		} else {
			return false;
		}
	}
}

int glob_specificity(const char *pattern)
{
	int score = 0;

	for (const char *p = pattern; *p;) {
		size_t stars = strspn(p, "*");
		const char *end = *p == '[' ? set_end(p) : NULL;

		if (stars > 0) {
			score += stars == 1 ? SCORE_STAR : SCORE_DEEP;
			p += stars;
		} else if (end) {
			score += end == p + 2 ? SCORE_LITERAL : SCORE_SET;
			p = end + 1;
		} else {
			score += *p == '?' ? SCORE_ONE : SCORE_LITERAL;
			p++;
		}
	}
	return score;
}

static const char *check_set(const char *p, const char *end)
{
	for (const char *m = set_members(p); m < end; m++) {
		if (*m == '/')
			return "a set never matches '/'";
		if (m + 2 < end && m[1] == '-') {
			if ((unsigned char)m[0] > (unsigned char)m[2])
				return "a range in a set runs backwards";
			m += 2;
			if (*m == '/')
				return "a set never matches '/'";
		}
	}
	return NULL;
}

const char *glob_check(const char *pattern)
{
	const char *wrong = NULL;

	if (!*pattern)
		return "an empty pattern matches nothing";
	if (*pattern == '/')
		return "a cgroup path is written without the leading '/'";
	for (const char *p = pattern; *p && !wrong; p++) {
		if (p[0] == '/' && p[1] == '/')
			return "no cgroup path contains '//'";
		if (p[0] == '/' && p[1] == '\0')
			return "no cgroup path ends in '/'";
		if (*p == '[') {
			const char *end = set_end(p);

			if (!end)
				return "unclosed '[' (a literal one is written [[])";
			wrong = check_set(p, end);
			p = end;
		}
	}
	return wrong;
}
