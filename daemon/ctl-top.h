/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpctl top: the status object as a screen that is drawn again each second,
 * and the drawing of one such screen. Plain escape codes of any terminal since
 * the VT100, bold and reverse only; fits 80x24, and anything smaller shows less
 * of it. ctl-top.c talks to the terminal, ctl-top-screen.c only draws. Takes any
 * JSON without harm; everything printed is printable ASCII.
 */
#ifndef MTHPD_CTL_TOP_H
#define MTHPD_CTL_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "ctl.h"

#define CTL_TOP_INTERVAL_MSEC 1000
/* How long one answer may take before the screen says that there is none. */
#define CTL_TOP_TIMEOUT_MSEC 3000

enum top_sort { TOP_BY_STALL, TOP_BY_MARGIN, TOP_BY_ANON, TOP_BY_NAME, TOP_SORTS };

struct top_view {
	unsigned width, height; /* height 0: as many lines as there are, without escape codes */
	size_t first;           /* group in the first row; cut to what there is */
	size_t max_groups;
	enum top_sort sort;
	const char *notice; /* instead of what is degraded; NULL = none */
};

/* Draws @status (NULL = there is none yet). Returns the rows for groups, 0 on a
 * screen too small for any; *ret_groups (may be NULL) is the number of groups. */
size_t top_draw(FILE *f, const json_t *status, struct top_view *view, size_t *ret_groups);

int ctl_top(const struct ctl *ctl);

#endif
