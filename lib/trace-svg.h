/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two parts of the drawing share: trace-svg.c (the panels) and
 * trace-svg-text.c (words, numbers, the list of changes). Included by nobody else.
 */
#ifndef MTHPD_TRACE_SVG_H
#define MTHPD_TRACE_SVG_H

#include "trace-plot.h"

/* The panels' left and right edge. */
#define LEFT 112
#define RIGHT 1176

/* Changes of one tick. */
struct event {
	size_t first, n;
	double x;
	int row; /* of the strip; -1 = no room for its number */
};

struct drawing {
	const struct plot *p;
	FILE *f;
	const struct plot_group *worst[PLOT_GROUPS];
	unsigned n_worst;
	struct event *events;
	size_t n_events;
	double y, stall_top, margin_top, strip_top, bands_top, bands_end;
	double top_bytes; /* of the margin's axis */
};

enum clock { CLOCK_DAY = 1, CLOCK_MINUTES = 2, CLOCK_SECONDS = 4 };

/* All escape what XML would take for its own. */
void svg_put_escaped(FILE *f, const char *s);
/* At most @max characters; a name is cut at its front, where it says less. */
void svg_put_cut(FILE *f, const char *s, size_t max, bool front);
void svg_put_bytes(FILE *f, double bytes);
void svg_put_kb(FILE *f, uint64_t kb);
void svg_put_clock(FILE *f, uint64_t realtime_usec, int what);
void svg_put_span(FILE *f, uint64_t usec);
void svg_put_knob(FILE *f, const struct plot_knob *k);
/* The tooltip of one change. */
void svg_put_title(const struct drawing *d, const struct plot_change *c);

void svg_draw_table(struct drawing *d);

#endif
