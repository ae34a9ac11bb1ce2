/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "gate.h"

#include <float.h>

#define SEC UINT64_C(1000000)
/* Refused swap-ins in a tick, and per page that is swapped in, from which on the gate
 * makes a difference. Measured, 96 MiB in 64 MiB with the gate shut: 0.13 % of the
 * pages at random touches, 6 % at sequential ones, 9 % at runs of 16. */
#define REFUSED_MIN 3
#define REFUSED_SHARE_DIV 50
/* Large folios refused at faults, per second and as a part of the limit, that show a fill
 * which overflows (measured: 1.3 % to 7 % of the limit's pages, against 0.2 % while
 * it goes on as before), and how long there was none before one begins. */
#define FILL_DIV 256
#define FILL_PER_SEC_MIN 8
/* So much of the limit more goes out in a second than comes back; without a fill the two
 * are the same within 2 %. */
#define GROWTH_DIV 32
#define FILL_PAUSE_USEC (SEC * 3 / 2)
/* Pages per second that come back from swap: a part of the limit, at most so many. A
 * reading of fresh memory is high whatever will be used of it (a fault maps all of a
 * folio as used): high ones count only while so many come back. */
#define RETURNS_DIV 160
#define RETURNS_PER_SEC_MIN 10
#define RETURNS_PER_SEC_MAX 100
/* A trial takes so many ticks at least. Without a reading it ends after Settle='s longer
 * time if the group has turned over by then (reclaim looks at a list once per turnover),
 * else when it has, and after Hold='s longer time in any case. */
#define TRIAL_TICKS_MIN 2
#define TURNOVER 1.2

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
		.fill_hold_usec = cfg->hold_min_usec,
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
	if (g->state != GATE_KERNEL)
		enter(g, GATE_KERNEL, REASON_FRESH_START, now_usec);
	g->scanned_pages = g->young_pages = 0;
	g->hold_usec = cfg->hold_min_usec;
	g->hold_until_usec = 0;
	g->density = -1;
}

double gate_density(const struct gate *g, uint64_t now_usec)
{
	return g->density >= 0 && now_usec - g->density_usec <= GATE_READING_USEC ? g->density : -1;
}

/* That a low reading speaks against a trial, for Hold='s shorter time: what a group does
 * changes, and the kernel's gate refuses little as long as touches are scattered. */
static bool known_low(const struct gate *g, const struct config_controller *cfg, uint64_t now_usec)
{
	return g->density >= 0 && g->density < cfg->density_low &&
	       now_usec - g->density_usec < cfg->hold_min_usec;
}

bool gate_undecided(const struct gate *g, uint64_t now_usec)
{
	return g->state == GATE_KERNEL && now_usec >= g->fill_until_usec &&
	       now_usec - g->filled_usec >= FILL_PAUSE_USEC;
}

static double bounded(uint64_t limit_pages, unsigned div, double min, double max)
{
	double part = value_known(limit_pages) ? (double)limit_pages / div : max;

	return part < min ? min : part > max ? max : part;
}

/* Pages per second that return from swap from which on a group of that limit counts as
 * over-committed. */
static double returns_per_sec(uint64_t limit_pages)
{
	return bounded(limit_pages, RETURNS_DIV, RETURNS_PER_SEC_MIN, RETURNS_PER_SEC_MAX);
}

/* True when a reading has just become complete. */
static bool read_density(struct gate *g, const struct gate_input *in)
{
	g->scanned_pages += in->d->d_thp_scanned;
	g->young_pages += in->d->d_thp_young;
	if ((double)g->scanned_pages <
		bounded(in->limit_pages, GATE_READING_DIV, GATE_READING_PAGES_MIN, GATE_READING_PAGES_MAX))
		return false;
	g->density = (double)g->young_pages / (double)g->scanned_pages;
	if (g->density > 1)
		g->density = 1;
	g->density_usec = in->now_usec;
	g->scanned_pages = g->young_pages = 0;
	return true;
}

/* Fresh memory that cannot have its large folios, for lack of room or because of
 * memory.thp.max_size, while more pages go out than come back. Swap-ins that were
 * refused for the size are not fresh. */
static bool fill_begins(struct gate *g, const struct gate_input *in)
{
	const struct memcg_delta *d = in->d;
	uint64_t refused = d->d_margin_anon + value_sub(d->d_size_limited, d->d_pgmajfault);
	uint64_t pause_usec = d->dt_usec > SEC ? d->dt_usec * 3 / 2 : FILL_PAUSE_USEC;
	bool refuses = memcg_per_sec(refused, d) >= bounded(in->limit_pages, FILL_DIV, FILL_PER_SEC_MIN, DBL_MAX);
	/* With the gate open nothing is refused; the fill goes on all the same. */
	bool grows = memcg_per_sec(value_sub(d->d_pswpout, d->d_pswpin), d) >=
		     bounded(in->limit_pages, GROWTH_DIV, FILL_PER_SEC_MIN, DBL_MAX);
	bool fills = in->nearly_full && grows && (refuses || gate_open(g));
	bool begins = fills && !gate_open(g) && in->now_usec - g->filled_usec >= pause_usec;

	if (fills)
		g->filled_usec = in->now_usec;
	return begins;
}

static void shut(struct gate *g, const struct config_controller *cfg, bool failed, uint64_t now_usec)
{
	/* What went out in large pieces while it was open is refused on its way back for some
	 * seconds, and what is still large then reads as used. */
	g->hold_until_usec = now_usec + (failed ? g->hold_usec : cfg->hold_min_usec);
	if (failed)
		g->hold_usec = config_hold_doubled(cfg, g->hold_usec);
	if (failed && g->filling) {
		g->fill_until_usec = now_usec + g->fill_hold_usec;
		g->fill_hold_usec = config_hold_doubled(cfg, g->fill_hold_usec);
	}
	enter(g, GATE_KERNEL, REASON_GATE_SHUT, now_usec);
}

/* The gate matters where it refuses. A low reading with it shut is good evidence, a high
 * one is not: what is left large then is what is used. A fill is let through from its
 * beginning, because what it leaves in small pieces stays small. */
static void step_kernel(struct gate *g, const struct config_controller *cfg, bool begins,
	const struct gate_input *in)
{
	const struct memcg_delta *d = in->d;
	bool fill = begins && in->now_usec >= g->fill_until_usec;
	bool swpin = in->nearly_full && memcg_per_sec(d->d_refault_anon, d) >= returns_per_sec(in->limit_pages) &&
		     d->d_margin_swpin >= REFUSED_MIN &&
		     d->d_margin_swpin >= d->d_pswpin / REFUSED_SHARE_DIV &&
		     in->now_usec >= g->hold_until_usec && !known_low(g, cfg, in->now_usec);

	if (!in->may_probe || (!fill && !swpin))
		return;
	g->filling = fill;
	g->trial_pages = 0;
	enter(g, GATE_TRIAL, REASON_GATE_PROBE, in->now_usec);
}

static bool turned_over(const struct gate *g, const struct gate_input *in)
{
	return !value_known(in->limit_pages) || !in->d->d_pswpin ||
	       (double)g->trial_pages >= TURNOVER * (double)in->limit_pages;
}

static void step_trial(struct gate *g, const struct config_controller *cfg, bool complete,
	const struct gate_input *in)
{
	uint64_t age = in->now_usec - g->since_usec;
	bool returns = memcg_per_sec(in->d->d_pswpin, in->d) >= returns_per_sec(in->limit_pages);

	bool dense = g->density >= (cfg->density_low + cfg->density_high) / 2;
	bool expired;

	g->trial_pages += in->d->d_pswpin;
	expired = (age >= cfg->settle_max_usec && turned_over(g, in)) || age >= cfg->hold_max_usec;
	/* A low reading is believed at once, a high one when it must be true. */
	if (complete && g->density >= cfg->density_low && !(returns && age >= TRIAL_TICKS_MIN * in->d->dt_usec))
		complete = false;
	if (complete && dense) {
		g->hold_usec = g->fill_hold_usec = cfg->hold_min_usec;
		enter(g, GATE_OPEN, REASON_GATE_OPEN, in->now_usec);
	} else if (complete || expired) {
		shut(g, cfg, true, in->now_usec);
	}
}

bool gate_step(struct gate *g, const struct config_controller *cfg, const struct gate_input *in)
{
	bool begins = fill_begins(g, in), complete;

	if (begins && g->state == GATE_KERNEL)
		gate_forget(g, cfg, in->now_usec);
	complete = read_density(g, in);
	switch (g->state) {
	case GATE_KERNEL:
		step_kernel(g, cfg, begins, in);
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
	return begins;
}
