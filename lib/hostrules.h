/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What no single group can see: compaction stalls, sizes that nearly always
 * fail or are torn apart at once, swap that is full or fragmented, a khugepaged
 * that runs in circles. Each rule looks at differences of host-wide counters,
 * needs several windows in a row, and lets go again by itself. Called by
 * loop.c once per tick while something is hot; its caps go to the arbiter.
 */
#ifndef MTHPD_HOSTRULES_H
#define MTHPD_HOSTRULES_H

#include "host.h"
#include "plan.h"
#include "reason.h"

enum swap_state { SWAP_UNKNOWN, SWAP_NONE, SWAP_ROOM, SWAP_FULL, SWAP_FRAGMENTED };
const char *swap_state_to_string(enum swap_state s);

struct hostrules_size {
	unsigned fallback_windows, churn_windows, frag_windows;
	enum reason reason; /* NONE = no cap */
	enum plan_level cap;
	uint64_t until_usec, hold_usec;
};

struct hostrules {
	bool has_prev;
	struct host_sample prev;
	struct thp_stats prev_stats[THP_SIZES_MAX];
	uint64_t prev_full_scans, prev_collapsed;
	struct hostrules_size size[THP_SIZES_MAX]; /* as plan.sizes */
	enum swap_state swap;
	unsigned frag_windows, runaway_windows;
	uint64_t defrag_until_usec, slow_until_usec;
	/* differences of the last tick, for the controllers and for explain */
	uint64_t d_collapse, d_pswpin, d_pgmajfault;
	double stall_per_sec; /* compaction stalls */
};

struct hostrules_input {
	const struct host_sample *host;
	const struct thp_stats *stats; /* one per plan size */
	uint64_t full_scans, pages_collapsed;
	uint64_t dying_cgroups;
	bool swap_limited; /* some group fails to swap at its own limit; set by loop.c */
};

void hostrules_init(struct hostrules *h);
/* Back to "no previous sample": after a pause the differences would span it. */
void hostrules_rebase(struct hostrules *h);
void hostrules_step(struct hostrules *h, const struct plan *p, const struct hostrules_input *in);

static inline bool hostrules_defrag_low(const struct hostrules *h, uint64_t now_usec)
{
	return now_usec < h->defrag_until_usec;
}
static inline bool hostrules_slow_khugepaged(const struct hostrules *h, uint64_t now_usec)
{
	return now_usec < h->slow_until_usec;
}
/* When a cap or a relaxed value ends: the tick must come by then. VALUE_ABSENT = none. */
uint64_t hostrules_wake_usec(const struct hostrules *h, const struct plan *p, uint64_t now_usec);

#endif
