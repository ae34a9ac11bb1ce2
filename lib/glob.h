/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Patterns over cgroup paths. Names are bytes: '*' and '?' do not cross '/',
 * '**' does, '[...]' is a set, and a backslash in the pattern stands for itself, because
 * systemd writes names such as app-gnome\x2dfirefox.scope on disk; a literal
 * '*', '?' or '[' is written as a one-character set ("[*]"). Used by config.c.
 */
#ifndef MTHPD_GLOB_H
#define MTHPD_GLOB_H

#include <stdbool.h>

/* Whole-path match, linear space, no recursion without bound (a pattern of n
 * stars over a path of m bytes costs O(n * m)). */
bool glob_match(const char *pattern, const char *path);

/* How specific a pattern is: the number of literal bytes, minus a penalty for
 * each wildcard, so that of two matching patterns the larger one wins.
 * system.slice/nginx.service > system.slice/nginx*.service > system.slice/[*] > [**]. */
int glob_specificity(const char *pattern);

/* NULL, or a sentence that says what is wrong ("unclosed '['"). */
const char *glob_check(const char *pattern);

#endif
