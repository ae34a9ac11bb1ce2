/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "controller.h"

#include "evidence.h"

/* Sustained means two ticks: one bad second is a spike, not a state. */
#define PRESSED_TICKS 2
/* An OOM kill takes away every folio above this share of the limit. */
#define OOM_SHARE_DIV 16
#define OVERSIZED_DIV 32
#define OOM_FREEZE_USEC (60 * SEC)
#define FOREIGN_FREEZE_USEC (10 * SEC)
/* Ticks in a step up's measurement. */
#define MEASURE_TICKS 3
/* khugepaged adds memory in this many ticks in a row while room shrinks. */
#define COLLAPSE_TICKS 2
#define PTES_MARGIN_DIV 8
/* A quiet group that waits for room is looked at every tick for this long. */
#define PENDING_USEC (60 * SEC)
/* A group that holds less than this part of what it had starts anew. */
#define FRESH_DIV 2
/* A drop so soon after a step up was caused by it. */
#define RELAPSE_HOLDS 2

static const char *const state_word[] = {
	[CTL_RUN] = "run",
	[CTL_PROBE] = "probe",
	[CTL_SETTLE] = "settle",
	[CTL_MEASURE] = "measure",
	[CTL_DROP] = "drop",
	[CTL_FROZEN] = "frozen",
	[CTL_NO_EFFECT] = "no-effect",
};

const char *ctl_state_to_string(enum ctl_state s)
{
	return state_word[s];
}

void controller_init(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, uint64_t now_usec)
{
	*c = (struct controller){
		.state = CTL_RUN,
		.reason = REASON_START_VALUES,
		.since_usec = now_usec,
		.steady_since_usec = now_usec,
		.rung = plan_top(p),
		.from_rung = plan_top(p),
		.hold_usec = cfg->hold_min_usec,
		.exonerate_usec = EXONERATE_MIN_USEC,
		.limit_bytes = VALUE_ABSENT,
		.amplification = -1,
		.some = -1,
		.full = -1,
		.margin_bytes = VALUE_ABSENT,
		.margin_cache_bytes = VALUE_ABSENT,
		.threshold_bytes = VALUE_ABSENT,
		.anon_bytes = VALUE_ABSENT,
	};
	gate_init(&c->gate, cfg);
}

static void enter(struct controller *c, enum ctl_state s, enum reason r, uint64_t now_usec)
{
	c->state = s;
	c->reason = r;
	c->since_usec = now_usec;
}

static void set_rung(struct controller *c, unsigned rung, bool raised, uint64_t now_usec)
{
	c->rung = rung;
	c->raised = raised;
	c->steady_since_usec = now_usec;
}

/* Where the kernel itself keeps large folios out of a nearly full group, pressure is no
 * reason to take them away, unless they get in all the same (a margin of 0 that an
 * administrator set) and little of them is used. */
static enum reason own_drop_reason(const struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	double density = gate_density(&c->gate, in->now_usec);

	/* What came in through a gate that was just shut is not counted. */
	if (gate_open(&c->gate) || in->now_usec - c->gate.since_usec < cfg->settle_min_usec ||
		c->pressed_ticks < PRESSED_TICKS || !evidence_nearly_full(c))
		return REASON_NONE;
	return density >= 0 && density < cfg->density_low && c->amplification >= AMPLIFIED ?
		       REASON_DROP_DENSITY : REASON_NONE;
}

/* Pressure says when, never whether: it takes the limit (or what follows from
 * it) as well before large folios are blamed. NONE = no reason to drop. */
static enum reason drop_reason(const struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	const struct memcg_delta *d = in->d;
	bool pressed = c->pressed_ticks >= PRESSED_TICKS;
	bool refaults = c->refault_per_sec >= REFAULT_PER_SEC;
	bool hits = d->d_max + d->d_high > 0;

	if ((in->dying && !refaults) || (c->state == CTL_NO_EFFECT && !evidence_uses_large(c, in)))
		return REASON_NONE;
	if (in->own)
		return own_drop_reason(c, cfg, in);
	if (pressed && (evidence_nearly_full(c) || (hits && refaults)))
		return REASON_DROP_PRESSURE;
	if (c->bloat_ticks && evidence_nearly_full(c) &&
		(hits || c->margin_cache_bytes < MARGIN_PAGES * in->page_bytes))
		return REASON_DROP_BLOAT;
	if (c->high_full_ticks >= PRESSED_TICKS && value_known(in->s->limit_bytes) &&
		value_known(c->margin_cache_bytes) &&
		c->margin_cache_bytes < in->s->limit_bytes / STRONG_MARGIN_DIV)
		return REASON_DROP_STRONG;
	return REASON_NONE;
}

/* What the drop is worth beside the benefit to others. Without PSI, and in a tick without
 * stalls, harm was seen all the same: as much as counts as pressure; a kill is worth all. */
static double harm_share(const struct controller *c, const struct config_controller *cfg, enum reason r)
{
	double some = c->some > 0 ? c->some : 0;

	if (r == REASON_OVERSIZED_FOLIO) /* none yet */
		return some;
	return r == REASON_OOM_KILL ? 1 : some > cfg->pressure_high ? some : cfg->pressure_high;
}

static void drop(struct controller *c, const struct config_controller *cfg, unsigned rung,
	enum reason r, const struct ctl_input *in)
{
	/* A relapse soon after a step up means that the step up was wrong. */
	if (c->last_up_usec && in->now_usec - c->last_up_usec < RELAPSE_HOLDS * c->hold_usec)
		c->hold_usec = config_hold_doubled(cfg, c->hold_usec);
	if (c->rung > rung || c->raised || !c->dropped) {
		c->from_rung = c->rung;
		c->from_raised = c->raised;
	}
	c->dropped = true;
	c->used_large = evidence_uses_large(c, in);
	c->harm_usec = harm_share(c, cfg, r) * (double)SEC;
	c->after = (struct ctl_cost){ 0 };
	/* A size that is too large is one thing, memory that runs out another. */
	if (!rung)
		c->ptes = CTL_PTES_FULL;
	c->hold_until_usec = in->now_usec + c->hold_usec;
	set_rung(c, rung, false, in->now_usec);
	enter(c, CTL_DROP, r, in->now_usec);
}

/* The largest rung whose folios are at most @bytes. */
static unsigned rung_for_bytes(const struct plan *p, uint64_t bytes)
{
	return plan_rung_for(p, bytes / 1024);
}

/* What others raised this group has as well, unless it has files of its own. */
static bool sees_raised(const struct controller *c, const struct ctl_input *in)
{
	return c->raised || (in->raised && !in->own);
}

static bool same_sizes(const struct controller *c, const struct plan *p, unsigned rung,
	const struct ctl_input *in)
{
	bool raised = sees_raised(c, in);

	return plan_largest_on_kb(p, rung, raised) == plan_largest_on_kb(p, c->rung, raised);
}

static bool on_oom(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	unsigned safe = 0;

	if (!in->d->d_oom_kill && !in->d->d_oom_victim)
		return false;
	if (value_known(in->s->limit_bytes))
		safe = rung_for_bytes(p, in->s->limit_bytes / OOM_SHARE_DIV);
	if (safe > c->rung)
		safe = c->rung;
	/* No folio is large against the limit: then the larger half goes; all of them
	 * where the group stalls as well, or was just given some back. */
	if (same_sizes(c, p, safe, in)) {
		if (c->pressed_ticks || (c->dropped && c->last_up_usec))
			safe = 0;
		else if (safe > p->raise_rung)
			safe = p->raise_rung;
	}
	if (!same_sizes(c, p, safe, in))
		drop(c, cfg, safe, REASON_OOM_KILL, in);
	c->frozen_until_usec = in->now_usec + (c->hold_usec > OOM_FREEZE_USEC ? c->hold_usec : OOM_FREEZE_USEC);
	enter(c, CTL_FROZEN, REASON_OOM_KILL, in->now_usec);
	return true;
}

/* A folio that is large against the limit and no longer fits into the room. */
static bool on_oversized(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, const struct ctl_input *in)
{
	uint64_t largest = plan_largest_on_kb(p, c->rung, sees_raised(c, in)) * 1024;
	uint64_t safe_bytes;

	/* The kernel that gates by margin does not let such a folio in. */
	if (in->own || !largest || !value_known(in->s->limit_bytes) || !value_known(c->margin_cache_bytes) ||
		largest < in->s->limit_bytes / OVERSIZED_DIV || c->margin_cache_bytes >= largest)
		return false;
	safe_bytes = in->s->limit_bytes / OVERSIZED_DIV;
	if (safe_bytes >= largest)
		safe_bytes = largest - 1;
	drop(c, cfg, rung_for_bytes(p, safe_bytes), REASON_OVERSIZED_FOLIO, in);
	return true;
}

static void on_regime(struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	/* Another limit is another problem: old failures say nothing about it. */
	if (c->limit_bytes != in->s->limit_bytes && c->limit_bytes != VALUE_ABSENT) {
		c->hold_usec = cfg->hold_min_usec;
		if (c->hold_until_usec > in->now_usec + c->hold_usec)
			c->hold_until_usec = in->now_usec + c->hold_usec;
		c->exonerated_until_usec = 0;
	}
	c->limit_bytes = in->s->limit_bytes;
}

/* How far khugepaged may fill holes. On the way up it follows the rung in the same
 * decision; a khugepaged that takes the group's last room is stopped by itself. */
static void track_ptes(struct controller *c, const struct plan *p, const struct ctl_input *in)
{
	uint64_t limit = in->s->limit_bytes;
	bool low = value_known(limit) && value_known(c->margin_bytes) &&
		   c->margin_bytes < limit / PTES_MARGIN_DIV;

	if (c->collapse_ticks >= COLLAPSE_TICKS && low) {
		if (c->ptes != CTL_PTES_FULL && c->state == CTL_RUN)
			c->reason = REASON_KHUGEPAGED_BLOAT;
		c->ptes = CTL_PTES_FULL;
		c->hold_until_usec = in->now_usec + c->hold_usec;
	} else if (c->dropped) {
		if (c->state == CTL_PROBE)
			c->ptes = c->rung >= plan_top(p) ? CTL_PTES_AMPLE : CTL_PTES_RECENT;
	} else if (c->ptes != CTL_PTES_AMPLE && c->state == CTL_RUN && !low &&
		   c->quiet_since_usec && in->now_usec >= c->hold_until_usec) {
		c->ptes = CTL_PTES_AMPLE;
		if (c->reason == REASON_KHUGEPAGED_BLOAT)
			c->reason = REASON_START_VALUES;
	}
}

/* Room enough for folios of up to @size_kb: twice what counts as nearly full,
 * and two of the folios. */
static bool has_room(const struct controller *c, uint64_t size_kb)
{
	return !value_known(c->margin_cache_bytes) ||
	       (c->margin_cache_bytes > 2 * c->threshold_bytes &&
		       c->margin_cache_bytes > 2 * size_kb * 1024);
}

static uint64_t quiet_usec(const struct controller *c, uint64_t now_usec)
{
	return c->quiet_since_usec ? now_usec - c->quiet_since_usec : 0;
}

static void probe(struct controller *c, unsigned rung, bool raised, enum reason r,
	const struct config_controller *cfg, const struct ctl_input *in)
{
	double turnover = c->fill_pages > 0 && value_known(in->s->anon) ?
		(double)in->s->anon / (double)in->page_bytes / c->fill_pages * (double)SEC : 0;

	/* One turnover of the working set, if it turns over at all: a step up
	 * shows in fresh allocations only, waiting without them proves nothing. */
	c->settle_usec = cfg->settle_min_usec;
	if (turnover > (double)c->settle_usec && c->fill_pages >= RAISE_PAGES_PER_SEC)
		c->settle_usec = turnover < (double)cfg->settle_max_usec ? (uint64_t)turnover :
									   cfg->settle_max_usec;
	c->from_rung = c->rung;
	c->from_raised = c->raised;
	c->after = (struct ctl_cost){ 0 };
	c->last_up_usec = in->now_usec;
	set_rung(c, rung, raised, in->now_usec);
	enter(c, CTL_PROBE, r, in->now_usec);
}

static void step_run(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	unsigned max_rung, const struct ctl_input *in)
{
	bool raised = sees_raised(c, in), may_go_up = in->now_usec >= c->hold_until_usec;
	unsigned up = plan_rung_up(p, c->rung, raised);

	/* Past the sizes that pay most the rest comes back in one step: each step costs
	 * a hold, and one that hurts is undone within seconds. */
	if (up > p->raise_rung)
		up = plan_top(p);
	if (up > max_rung)
		up = max_rung;
	/* Nothing is left to be given back, if what was taken away had been raised by others. */
	if (c->dropped && up == c->rung && may_go_up && quiet_usec(c, in->now_usec) >= cfg->hold_min_usec)
		set_rung(c, max_rung, c->raised, in->now_usec);
	if (c->dropped && c->rung >= max_rung) {
		c->dropped = false;
		c->reason = REASON_RECOVERED;
	}
	if (!in->may_probe || in->clamped || !may_go_up || !has_room(c, plan_largest_on_kb(p, up, raised)))
		return;
	if (up > c->rung) {
		if (quiet_usec(c, in->now_usec) >= cfg->hold_min_usec)
			probe(c, up, c->raised, REASON_RECOVER_PROBE, cfg, in);
	} else if (in->may_raise && !c->raised && !c->dropped && c->fresh_ticks >= RAISE_TICKS && plan_can_raise(p)) {
		probe(c, c->rung, true, REASON_RAISE_PROBE, cfg, in);
	}
}

static void probe_failed(struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	bool raise = c->raised && !c->from_raised;

	c->hold_usec = config_hold_doubled(cfg, c->hold_usec);
	c->hold_until_usec = in->now_usec + c->hold_usec;
	set_rung(c, c->from_rung, c->from_raised, in->now_usec);
	if (c->ptes == CTL_PTES_AMPLE && c->dropped)
		c->ptes = CTL_PTES_RECENT;
	enter(c, CTL_RUN, raise ? REASON_RAISE_FAILED : REASON_PROBE_FAILED, in->now_usec);
}

/* A step up fails on pressure, on bloat towards the limit, and where user time
 * can measure it on a cost that is higher by more than its own noise. */
static bool probe_hurts(const struct controller *c, const struct ctl_input *in)
{
	double before = evidence_cost(&c->quiet, in->cpus), after = evidence_cost(&c->after, in->cpus);

	if (c->pressed_ticks >= PRESSED_TICKS || (c->bloat_ticks && in->d->d_max + in->d->d_high > 0))
		return true;
	if (before < 0 || after < 0 || c->state != CTL_MEASURE)
		return false;
	return after > before * (1.02 + 2 * evidence_cost_noise(&c->quiet, &c->after)) + 0.003;
}

static void step_probe(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, const struct ctl_input *in)
{
	uint64_t age = in->now_usec - c->since_usec;

	if (probe_hurts(c, in)) {
		probe_failed(c, cfg, in);
		return;
	}
	if (c->state == CTL_PROBE) {
		enter(c, CTL_SETTLE, c->reason, in->now_usec);
	} else if (c->state == CTL_SETTLE && age >= c->settle_usec) {
		enter(c, CTL_MEASURE, c->reason, in->now_usec);
	} else if (c->state == CTL_MEASURE) {
		evidence_cost_add(&c->after, in->d);
		if (age < MEASURE_TICKS * in->d->dt_usec)
			return;
		bool top = c->rung == plan_rung_up(p, c->rung, sees_raised(c, in));

		c->hold_until_usec = c->steady_since_usec + cfg->hold_min_usec;
		if (c->raised && !c->from_raised)
			enter(c, CTL_RUN, REASON_RAISED, in->now_usec);
		else
			enter(c, CTL_RUN, top ? REASON_RECOVERED : REASON_RECOVER_STEP, in->now_usec);
		if (top)
			c->dropped = false;
	}
}

/* Who uses no large folios may have all of them; otherwise what the last drop took is back,
 * and the rest comes step by step. */
static void give_back(struct controller *c, const struct plan *p, enum ctl_state state, enum reason r,
	const struct ctl_input *in)
{
	set_rung(c, state == CTL_NO_EFFECT ? plan_top(p) : c->from_rung, c->from_raised, in->now_usec);
	c->dropped = c->rung < plan_top(p);
	c->harm_usec = 0;
	/* khugepaged leaves a group alone that has opted out. */
	c->ptes = state == CTL_NO_EFFECT ? CTL_PTES_AMPLE : CTL_PTES_RECENT;
	enter(c, state, r, in->now_usec);
}

/* The drop stays unless user time proves that it did not lower the cost: with
 * no such evidence the small sizes are the safe side (at most 1.3 x against 3.3 x). */
static void step_drop(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	uint64_t age = in->now_usec - c->since_usec;
	double before, after;

	if (age >= cfg->settle_min_usec)
		evidence_cost_add(&c->after, in->d);
	if (c->quiet_since_usec && has_room(c, 0)) {
		enter(c, CTL_RUN, REASON_RECOVER_WAIT, in->now_usec);
		return;
	}
	if (!c->used_large && c->reason != REASON_OOM_KILL && !evidence_uses_large(c, in) &&
		age >= cfg->settle_min_usec + MEASURE_TICKS * in->d->dt_usec) {
		give_back(c, p, CTL_NO_EFFECT, REASON_NO_EFFECT, in);
		return;
	}
	before = evidence_cost(&c->before, in->cpus);
	after = evidence_cost(&c->after, in->cpus);
	if (before < 0 || after < 0 || c->reason == REASON_OOM_KILL ||
		after <= before * (1 - cfg->drop_gain) * (1 + 2 * evidence_cost_noise(&c->before, &c->after)))
		return;
	c->exonerated_cost = after;
	c->exonerated_until_usec = in->now_usec + c->exonerate_usec;
	c->exonerate_usec = c->exonerate_usec * 2 > EXONERATE_MAX_USEC ? EXONERATE_MAX_USEC : c->exonerate_usec * 2;
	give_back(c, p, CTL_RUN, REASON_EXONERATED, in);
}

static bool exonerated(struct controller *c, const struct ctl_input *in)
{
	double cost;

	if (in->now_usec >= c->exonerated_until_usec)
		return false;
	cost = evidence_cost(&c->before, in->cpus);
	if (cost > c->exonerated_cost * COST_REGIME || (cost >= 0 && cost * COST_REGIME < c->exonerated_cost))
		c->exonerated_until_usec = 0; /* another regime: the acquittal was for the old one */
	return in->now_usec < c->exonerated_until_usec;
}

static void step_state(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, unsigned max_rung, const struct ctl_input *in)
{
	switch (c->state) {
	case CTL_RUN:
		step_run(c, p, cfg, max_rung, in);
		break;
	case CTL_PROBE:
	case CTL_SETTLE:
	case CTL_MEASURE:
		step_probe(c, p, cfg, in);
		break;
	case CTL_DROP:
		step_drop(c, p, cfg, in);
		break;
	case CTL_NO_EFFECT:
		if (evidence_uses_large(c, in) || c->quiet_since_usec)
			enter(c, CTL_RUN, REASON_START_VALUES, in->now_usec);
		break;
	case CTL_FROZEN:
		if (in->now_usec >= c->frozen_until_usec)
			enter(c, c->dropped ? CTL_DROP : CTL_RUN,
				c->dropped ? c->reason : REASON_START_VALUES, in->now_usec);
		break;
	}
}

static void wish_from(const struct controller *c, unsigned min_rung, unsigned max_rung,
	struct ctl_wish *ret)
{
	*ret = (struct ctl_wish){
		.rung = c->rung,
		.raised = c->raised,
		.recovering = c->dropped || c->reason == REASON_RECOVERED,
		.hurt = c->dropped && (c->state == CTL_DROP || c->state == CTL_FROZEN),
		.ptes = c->ptes,
		.defrag_low = c->state == CTL_DROP && c->reason != REASON_OVERSIZED_FOLIO,
		.harm_usec_per_sec = c->dropped ? c->harm_usec : 0,
		.benefit_usec_per_sec = c->dropped ? 0 : c->benefit_usec,
		.reason = c->reason,
		.gate_open = gate_open(&c->gate),
		.gate_reason = c->gate.reason,
	};
	if (ret->rung > max_rung) {
		ret->rung = max_rung;
		ret->reason = REASON_POLICY_LIMIT;
	}
	if (ret->rung < min_rung) {
		ret->rung = min_rung;
		ret->reason = REASON_POLICY_LIMIT;
	}
}

/* The memory that a drop was about is gone: with the files of this group alone at stake
 * there is no need to wait for a hold, and nothing to probe. */
static void fresh_start(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	if (!c->dropped || c->state == CTL_FROZEN)
		return;
	c->dropped = false;
	c->ptes = CTL_PTES_AMPLE;
	c->hold_usec = cfg->hold_min_usec;
	c->hold_until_usec = 0;
	set_rung(c, plan_top(p), c->raised, in->now_usec);
	enter(c, CTL_RUN, REASON_FRESH_START, in->now_usec);
}

/* Most of what the group had is given back. */
static bool has_shrunk(struct controller *c, const struct ctl_input *in)
{
	uint64_t footprint = value_or(in->s->anon, 0) + value_or(in->s->swap_current_bytes, 0);

	if (footprint > c->footprint_bytes)
		c->footprint_bytes = footprint;
	if (footprint >= c->footprint_bytes / FRESH_DIV || evidence_nearly_full(c))
		return false;
	c->footprint_bytes = footprint;
	return true;
}

static void step_own(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	uint64_t limit = in->s->limit_bytes;
	const struct gate_input gate = {
		.now_usec = in->now_usec,
		.d = in->d,
		.limit_pages = value_known(limit) ? limit / in->page_bytes : VALUE_MAX,
		.nearly_full = evidence_nearly_full(c),
		/* A tick without CPU time is one without stalls. */
		.quiet = quiet_usec(c, in->now_usec) >= cfg->hold_min_usec && c->refault_per_sec < REFAULT_PER_SEC,
		.may_probe = in->may_probe,
	};
	bool fresh = has_shrunk(c, in);

	if (fresh)
		gate_forget(&c->gate, cfg, in->now_usec);
	if (gate_step(&c->gate, cfg, &gate) || fresh)
		fresh_start(c, p, cfg, in);
}

static unsigned policy_rung(const struct plan *p, const struct config_size *size)
{
	uint64_t smallest = p->n_rungs > 1 ? p->rung_max_kb[1] : p->pmd_kb;

	return plan_rung_for(p, config_size_kb(size, p->pmd_kb, smallest));
}

static void decide(struct controller *c, const struct plan *p, const struct config_controller *cfg,
	enum reason r, unsigned min_rung, unsigned max_rung, const struct ctl_input *in)
{
	if (r != REASON_NONE) {
		drop(c, cfg, min_rung, r, in);
	} else if (in->foreign && c->state != CTL_FROZEN && c->state != CTL_DROP) {
		c->frozen_until_usec = in->now_usec + FOREIGN_FREEZE_USEC;
		enter(c, CTL_FROZEN, REASON_FROZEN_FOREIGN, in->now_usec);
	} else {
		step_state(c, p, cfg, max_rung, in);
	}
}

void controller_step(struct controller *c, const struct plan *p,
	const struct config_controller *cfg, const struct config_policy *policy,
	const struct ctl_input *in, struct ctl_wish *ret)
{
	unsigned min_rung = policy && policy->has_min_size ? policy_rung(p, &policy->min_size) : 0;
	unsigned max_rung = policy && policy->has_max_size ? policy_rung(p, &policy->max_size) : plan_top(p);
	bool on, left, rest, small; /* large folios are on, can be taken away */
	uint64_t largest_kb;
	enum reason r;

	evidence_observe(c, cfg, in);
	on_regime(c, cfg, in);
	small = in->own && value_known(in->s->anon) && in->s->anon < cfg->small_group_bytes;
	if (small)
		max_rung = min_rung;
	if (in->own)
		step_own(c, p, cfg, in);
	/* After a drop of single sizes the rest of it (max_ptes_none) is still to be had. */
	rest = c->dropped && c->rung > min_rung;
	largest_kb = plan_largest_on_kb(p, c->rung, sees_raised(c, in));
	on = largest_kb > 0 || rest;
	/* Whoever waits for the way back, and is hurt again, does not wait any more. */
	left = rest || (c->dropped && c->state == CTL_RUN) ||
	       largest_kb > plan_largest_on_kb(p, min_rung, sees_raised(c, in) && !c->raised);
	r = left && !exonerated(c, in) ? drop_reason(c, cfg, in) : REASON_NONE;
	if (!(on && on_oom(c, p, cfg, in)) && !(c->state == CTL_RUN && r == REASON_NONE &&
						   !in->foreign && on_oversized(c, p, cfg, in)))
		decide(c, p, cfg, r, min_rung, max_rung, in);
	track_ptes(c, p, in);
	wish_from(c, min_rung, max_rung, ret);
	/* Nothing else keeps it there. */
	if (max_rung < plan_top(p) && ret->rung == max_rung && !c->dropped && c->state == CTL_RUN)
		ret->reason = REASON_POLICY_LIMIT;
	if (small && ret->reason == REASON_POLICY_LIMIT)
		ret->reason = REASON_SMALL_GROUP;
}

uint64_t controller_wake_usec(const struct controller *c, uint64_t now_usec)
{
	bool pending = c->dropped || c->ptes != CTL_PTES_AMPLE || c->state != CTL_RUN ||
		       gate_open(&c->gate);

	if (!pending)
		return VALUE_ABSENT;
	if (!c->quiet_since_usec)
		return 0;
	if (c->state == CTL_FROZEN)
		return c->frozen_until_usec;
	/* Only a hold stands between here and the next step: sleep until then. */
	if (c->state == CTL_RUN && c->hold_until_usec > now_usec)
		return c->hold_until_usec;
	/* Quiet, but without the room for a step: nothing announces that room
	 * came back, so the audit looks. */
	if (now_usec - c->quiet_since_usec > PENDING_USEC &&
		(c->state == CTL_RUN || c->state == CTL_DROP))
		return VALUE_ABSENT;
	return 0;
}
