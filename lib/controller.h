/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One group's control loop. In: what happened to the group since the last tick
 * (memcg.h) and what the loop allows. Out: a wish, i.e. the rung of the ladder
 * that is best for this group, with the reason. Called by loop.c once per tick
 * for each hot group, and by the simulations. It never looks at other groups,
 * never reads a clock and never writes: the same inputs give the same wishes.
 *
 * States: RUN (quiet, or waiting for a hold to pass) -> PROBE (a step up is
 * being applied) -> SETTLE -> MEASURE -> RUN; DROP (large folios are off
 * because they hurt); FROZEN (an OOM kill, a foreign write, no statistics);
 * NO_EFFECT (a drop showed that the group uses no large folios at all).
 * Why it is built so, with the measurements: controller.c and README.md.
 */
#ifndef MTHPD_CONTROLLER_H
#define MTHPD_CONTROLLER_H

#include "config.h"
#include "gate.h"
#include "memcg.h"
#include "plan.h"
#include "reason.h"

enum ctl_state {
	CTL_RUN,
	CTL_PROBE,
	CTL_SETTLE,
	CTL_MEASURE,
	CTL_DROP,
	CTL_FROZEN,
	CTL_NO_EFFECT,
};
const char *ctl_state_to_string(enum ctl_state s);

/* How far khugepaged may fill holes for this group's sake. */
enum ctl_ptes { CTL_PTES_AMPLE, CTL_PTES_RECENT, CTL_PTES_FULL };

struct ctl_input {
	uint64_t now_usec;
	const struct memcg_sample *s; /* MEMCG_FULL */
	const struct memcg_delta *d;
	unsigned cpus;
	uint64_t page_bytes, pmd_nr;
	uint64_t host_available_bytes, host_total_bytes; /* VALUE_ABSENT if unknown */
	uint64_t d_collapse; /* THPs collapsed on the whole host in this tick */
	bool raised;         /* some group has sizes raised for all */
	bool clamped;        /* the arbiter gives this group less than its rung */
	bool own;            /* the group has files of its own: its steps concern nobody else */
	bool may_probe;      /* no other step up is being measured, and the change rate allows one */
	bool may_raise;      /* the same for sizes that are raised for all */
	bool foreign;        /* somebody else changed a switch in this tick */
	bool dying;          /* very many dying cgroups on the host */
};

/* CPU and stall time in one regime, for the cost J = (system + stall) / user. */
struct ctl_cost {
	double user_usec, system_usec, some_usec, dt_usec;
};

struct controller {
	enum ctl_state state;
	enum reason reason;
	uint64_t since_usec; /* when the state was entered */
	unsigned rung, from_rung;
	bool raised, from_raised; /* on this group's account */
	bool dropped;        /* below the top because of harm, not of policy */
	enum ctl_ptes ptes;
	/* evidence */
	unsigned pressed_ticks, bloat_ticks, collapse_ticks, fresh_ticks, high_full_ticks;
	uint64_t quiet_since_usec; /* 0 = not quiet now */
	uint64_t steady_since_usec; /* last change of the rung */
	double inflow_pages;       /* EWMA of growth, pages per second */
	double fill_pages;         /* EWMA of page faults per second */
	double harm_usec;          /* stall per second just before the drop */
	double benefit_usec;       /* EWMA: system time per second that large folios save or would save */
	/* of a spell of pressure before a drop; of quiet RUN; since the last step */
	struct ctl_cost before, quiet, after;
	bool used_large; /* at the last drop: some sign that large folios were in use */
	uint64_t last_up_usec; /* last step up, 0 = none since the start */
	/* holds: half-open circuit breaker for steps up */
	uint64_t hold_usec, hold_until_usec, settle_usec, exonerate_usec, exonerated_until_usec, frozen_until_usec;
	uint64_t limit_bytes; /* as last seen: another limit is another regime */
	double exonerated_cost;
	/* of the last tick, for status and explain */
	double some, full;
	uint64_t margin_bytes, margin_cache_bytes, threshold_bytes, anon_bytes;
	double refault_per_sec, majfault_per_sec, amplification; /* pages per major fault; -1 unknown */
	/* with files of its own only */
	struct gate gate;
	uint64_t footprint_bytes; /* anonymous memory and swap, the most since the last drop */
};

struct ctl_wish {
	unsigned rung;
	bool raised;
	bool recovering;   /* on its way up after a drop */
	bool hurt;         /* in DROP: may veto where the policy or its share allows */
	enum ctl_ptes ptes;
	bool defrag_low;   /* near full: direct compaction and khugepaged's defrag do harm */
	double harm_usec_per_sec, benefit_usec_per_sec; /* CPU time per second, before weighting */
	enum reason reason;
	bool gate_open; /* large folios are let in although the group is nearly full */
	enum reason gate_reason;
};

void controller_init(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, uint64_t now_usec);

/* Advances by one tick. *ret_changed (may be NULL): the wish differs from the last one. */
void controller_step(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, const struct config_policy *policy,
	const struct ctl_input *in, struct ctl_wish *ret);

/* When the group must be looked at again even if nothing wakes it: 0 = at every
 * tick (hot), VALUE_ABSENT = only when something happens or at the audit. */
uint64_t controller_wake_usec(const struct controller *c, uint64_t now_usec);

#endif
