/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gate.h"

#define SEC UINT64_C(1000000)
/* Refused swap-ins in a tick, and per page that is swapped in, from which on the gate
 * makes a difference. Measured, 96 MiB in 64 MiB with the gate shut: 0.13 % of the
 * pages at random touches, 6 % at sequential ones, 9 % at runs of 16. */
#define REFUSED_MIN 5
#define REFUSED_SHARE_DIV 50
/* Large folios refused at faults in a tick while pages go out: a fill that overflows. */
#define REFUSED_FILL_MIN 16
/* A reading of fresh memory is high whatever will be used of it (a fault maps all
 * of a folio as used): high ones count only while memory comes back from swap. */
#define SWPIN_PER_SEC 100
/* So many ticks of a trial at least; the most is Settle='s longer time. */
#define TRIAL_TICKS_MIN 2

const char *gate_state_to_string(enum gate_state s)
{
	static const char *const word[] = { "kernel", "trial", "open" };

	return word[s];
}

void gate_init(struct gate *g, const struct config_controller *cfg)
{
	*g = (struct gate){
		.state = GATE_KERNEL,
		.reason = REASON_START_VALUES,
		.hold_usec = cfg->hold_min_usec,
		.density = -1,
	};
}

static void enter(struct gate *g, enum gate_state s, enum reason r, uint64_t now_usec)
{
	g->state = s;
	g->reason = r;
	g->since_usec = now_usec;
	g->scanned_pages = g->young_pages = 0;
}

void gate_forget(struct gate *g, const struct config_controller *cfg, uint64_t now_usec)
{
	enter(g, GATE_KERNEL, REASON_FRESH_START, now_usec);
	g->hold_usec = cfg->hold_min_usec;
	g->hold_until_usec = 0;
	g->density = -1;
}

double gate_density(const struct gate *g, uint64_t now_usec)
{
	return g->density >= 0 && now_usec - g->density_usec <= GATE_READING_USEC ? g->density : -1;
}

static bool known_low(const struct gate *g, const struct config_controller *cfg, uint64_t now_usec)
{
	double density = gate_density(g, now_usec);

	return density >= 0 && density < cfg->density_low;
}

bool gate_undecided(const struct gate *g, const struct config_controller *cfg, uint64_t now_usec)
{
	return g->state == GATE_KERNEL && !g->scattered && now_usec >= g->hold_until_usec &&
	       !known_low(g, cfg, now_usec);
}

/* True when a reading has just become complete. */
static bool read_density(struct gate *g, const struct gate_input *in)
{
	g->refused_per_sec = (double)in->d->d_margin_swpin * (double)SEC / (double)in->d->dt_usec;
	g->scanned_pages += in->d->d_thp_scanned;
	g->young_pages += in->d->d_thp_young;
	if (g->scanned_pages < GATE_READING_PAGES)
		return false;
	g->density = (double)g->young_pages / (double)g->scanned_pages;
	if (g->density > 1)
		g->density = 1;
	g->density_usec = in->now_usec;
	g->scanned_pages = g->young_pages = 0;
	return true;
}

static void shut(struct gate *g, const struct config_controller *cfg, bool failed, uint64_t now_usec)
{
	if (failed) {
		g->hold_until_usec = now_usec + g->hold_usec;
		g->hold_usec = g->hold_usec * 2 > cfg->hold_max_usec ? cfg->hold_max_usec : g->hold_usec * 2;
	}
	g->scattered = true;
	enter(g, GATE_KERNEL, REASON_GATE_SHUT, now_usec);
}

/* The gate matters where it refuses. A low reading with it shut is good evidence, a high
 * one is not: what is left large then is what is used. A fill that overflows is let
 * through once, because what it leaves in small pieces stays small; not again in a group
 * that was seen to touch its memory here and there. */
static void step_kernel(struct gate *g, const struct config_controller *cfg, const struct gate_input *in)
{
	const struct memcg_delta *d = in->d;
	bool swpin = in->pressed && d->d_margin_swpin >= REFUSED_MIN &&
		     d->d_margin_swpin >= d->d_pswpin / REFUSED_SHARE_DIV;
	bool fill = in->nearly_full && !g->scattered && d->d_margin_anon >= REFUSED_FILL_MIN && d->d_pswpout;

	if ((swpin || fill) && in->may_probe && in->now_usec >= g->hold_until_usec &&
		!known_low(g, cfg, in->now_usec))
		enter(g, GATE_TRIAL, REASON_GATE_PROBE, in->now_usec);
}

static void step_trial(struct gate *g, const struct config_controller *cfg, bool complete,
	const struct gate_input *in)
{
	uint64_t age = in->now_usec - g->since_usec, tick = in->d->dt_usec;
	bool returns = in->d->d_pswpin * SEC >= SWPIN_PER_SEC * tick;

	if (complete && g->density < cfg->density_low) {
		shut(g, cfg, true, in->now_usec);
	} else if (complete && returns && age >= TRIAL_TICKS_MIN * tick) {
		g->scattered = false;
		if (g->density >= (cfg->density_low + cfg->density_high) / 2)
			enter(g, GATE_OPEN, REASON_GATE_OPEN, in->now_usec);
		else
			shut(g, cfg, true, in->now_usec);
	} else if (age >= cfg->settle_max_usec) {
		shut(g, cfg, true, in->now_usec);
	}
}

void gate_step(struct gate *g, const struct config_controller *cfg, const struct gate_input *in)
{
	bool complete = read_density(g, in);

	switch (g->state) {
	case GATE_KERNEL:
		step_kernel(g, cfg, in);
		break;
	case GATE_TRIAL:
		step_trial(g, cfg, complete, in);
		break;
	case GATE_OPEN:
		/* One is enough: readings of one kind of access lie close together. */
		if (complete && g->density < cfg->density_low)
			shut(g, cfg, false, in->now_usec);
		else if (in->quiet && in->now_usec - g->since_usec >= cfg->hold_min_usec)
			enter(g, GATE_KERNEL, REASON_START_VALUES, in->now_usec);
		break;
	}
}
