/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Patterns over cgroup paths. Names are bytes: '*' and '?' do not cross '/',
 * '**' does, '[...]' is a set, and a backslash in the pattern stands for itself, because
 * systemd writes names such as app-gnome\x2dfirefox.scope on disk; a literal
 * '*', '?' or '[' is written as a one-character set ("[*]"). "**" followed by a
 * slash also matches no directory at all, so that it finds a name at any depth,
 * the top included. Called by config.c and the configuration reader; never
 * looks at a file system and knows nothing of policies.
 */
#ifndef MTHPD_GLOB_H
#define MTHPD_GLOB_H

#include <stdbool.h>

/* Whole-path match, no recursion and no allocation: a pattern of n bytes over
 * a path of m bytes costs at most O(n * m). In a set, "[!...]" and "[^...]"
 * negate, "a-z" is a range of bytes, ']' directly after the opening is literal,
 * and '/' never matches. A pattern that glob_check() refuses is matched all the
 * same, an unclosed '[' as a literal. */
bool glob_match(const char *pattern, const char *path);

/* How specific a pattern is, larger is more: 16 per literal byte (a set of one
 * is a literal), 8 per set, 4 per '?', minus 2 per '*' and 6 per '**'. So
 * a whole name > the same with '*' in it > a directory of '*' > "**". */
int glob_specificity(const char *pattern);

/* NULL, or a sentence that says what is wrong ("unclosed '['"): also refuses
 * what no cgroup path can ever equal (empty, "//", a slash at either end). */
const char *glob_check(const char *pattern);

#endif
