/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the loop over a trace in virtual time, with the configuration that was
 * recorded or with another one. The same trace and configuration give the same
 * decisions, byte for byte. Called by mthpd --replay, by mthpctl replay and by
 * the tests. Never writes, never looks at this machine.
 */
#ifndef MTHPD_TRACE_REPLAY_H
#define MTHPD_TRACE_REPLAY_H

#include "trace.h"

/* The decisions of one tick; both arrays are valid during the call only. */
struct replay_step {
	uint64_t now_usec, realtime_usec;
	const struct trace_decision *recorded, *replayed;
	size_t n_recorded, n_replayed;
};
/* Called for each tick with at least one decision on either side. */
typedef void (*replay_fn)(const struct replay_step *step, void *userdata);

#define REPLAY_MODES 3 /* never, madvise, always */
struct replay_size {
	uint64_t size_kb;
	/* how long the size was in each mode (inherit resolved), indexed by enum thp_mode */
	uint64_t recorded_usec[REPLAY_MODES], replayed_usec[REPLAY_MODES];
};

struct replay_summary {
	uint64_t ticks, start_usec, end_usec;
	uint64_t recorded, replayed; /* decisions */
	uint64_t equal;		     /* of both: same tick, file, values, reason and group */
	unsigned n_sizes;
	struct replay_size sizes[THP_SIZES_MAX];
	/* Over all sampled groups: the highest shares of stall, where, and for how
	 * long at least one group was above its PressureHigh. */
	double worst_some, worst_full; /* -1 = no group was seen twice */
	char worst_group[128];
	uint64_t pressed_usec;
	uint64_t left_out; /* group samples that the trace does not hold */
	bool torn;	   /* the file ends in the middle of a line */
	uint64_t torn_line;
	bool ended;	   /* it has an end line */
	bool anonymized;
};

/* @config replaces the recorded configuration; NULL = as recorded. Returns 0;
 * -EBADMSG with @why (a fault of the trace; steps up to there were told), -EIO
 * with @why, or -ENOMEM. */
int replay_run(FILE *f, const struct config *config, replay_fn fn, void *userdata,
	struct replay_summary *ret, struct trace_why *why);

/* True when both say the same but for the outcome. A group's name that was cut
 * at its front ("...") is compared by its end. */
bool replay_same(const struct trace_decision *a, const struct trace_decision *b);

#endif
