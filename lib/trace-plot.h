/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as a picture for an incident report: pressure and margin of the worst
 * groups, what every size was set to, and the decisions with their reasons. One
 * SVG file without scripts, fonts or links; nothing in it depends on colour
 * alone. Called by mthpctl plot and by the fuzz target. trace-plot.c collects,
 * trace-svg.c draws.
 */
#ifndef MTHPD_TRACE_PLOT_H
#define MTHPD_TRACE_PLOT_H

#include "trace.h"

#define PLOT_GROUPS 3 /* drawn; the worst by time lost to stalls */
/* Kept in memory while reading: more is a fault of the trace. */
#define PLOT_POINTS_MAX 4000000
#define PLOT_GROUPS_MAX 100000
#define PLOT_CHANGES_MAX 20000

/* One sample of one group. Shares are -1 where unknown. */
struct plot_point {
	uint64_t now_usec;
	float some, full;
	uint64_t margin_bytes; /* VALUE_MAX: no limit, VALUE_ABSENT: unknown */
};
struct plot_group {
	char *path;
	struct plot_point *points;
	size_t n_points, size_points;
	double stalled_usec, worst_some;
	uint64_t least_margin_bytes;
	struct memcg_sample prev;
	bool has_prev;
};

/* A file got another value: by a decision, or by other hands. */
struct plot_change {
	uint64_t now_usec, realtime_usec;
	unsigned knob; /* index into plot.knobs */
	char old_value[CHOICE_LEN], new_value[CHOICE_LEN];
	bool foreign;
	char reason[32], group[96], outcome[16];
	double some, full;
	uint64_t margin_bytes;
};
struct plot_knob {
	char path[THP_PATH_MAX];
	char first[CHOICE_LEN]; /* at the start of the trace */
	char now[CHOICE_LEN];	/* while it is read */
	uint64_t size_kb;	/* 0 = not the `enabled` of a size */
	bool changed;
};
struct plot_kill {
	uint64_t now_usec, n;
	size_t group;
};
struct plot_span {
	uint64_t from_usec, to_usec;
};

struct plot {
	char kernel[128], mthpd[32];
	bool anonymized, torn;
	double pressure_high;
	uint64_t start_usec, end_usec, realtime_usec; /* realtime at start */
	uint64_t interval_usec, ticks;
	enum thp_mode top; /* at the start */
	struct plot_group *groups;
	size_t n_groups, size_groups, n_points;
	struct plot_knob knobs[LOOP_KNOBS_MAX];
	unsigned n_knobs;
	struct plot_change *changes;
	size_t n_changes, size_changes;
	struct plot_kill *kills;
	size_t n_kills, size_kills;
	struct plot_span *held;
	size_t n_held, size_held;
};

/* Reads the whole trace. 0 (plot_free() it), -EBADMSG or -EIO with @why, -ENOMEM. */
int plot_read(FILE *f, struct plot **ret, struct trace_why *why);
void plot_free(struct plot *p);
/* Draws it; ferror(@out) tells whether it arrived. -ENOMEM or 0. */
int plot_draw(const struct plot *p, FILE *out);

#endif
