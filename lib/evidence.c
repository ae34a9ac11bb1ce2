/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "evidence.h"

#include <math.h>

static bool psi_known(const struct controller *c)
{
	return c->some >= 0;
}

bool evidence_nearly_full(const struct controller *c)
{
	return value_known(c->margin_cache_bytes) && c->margin_cache_bytes < c->threshold_bytes;
}

static bool stalls(const struct controller *c, const struct config_controller *cfg,
	const struct memcg_delta *d)
{
	if (psi_known(c))
		return c->some >= cfg->pressure_high;
	/* Without PSI: the limit is hit again and again, and clean page cache is
	 * not what gives way. */
	return d->d_max + d->d_high > 0 && (c->refault_per_sec >= REFAULT_PER_SEC || evidence_nearly_full(c));
}

static bool is_quiet(const struct controller *c, const struct config_controller *cfg,
	const struct memcg_delta *d)
{
	if (psi_known(c))
		return c->some < cfg->pressure_low;
	return d->d_max + d->d_high == 0 && c->refault_per_sec < REFAULT_PER_SEC;
}

static void observe_rates(struct controller *c, const struct ctl_input *in)
{
	const struct memcg_delta *d = in->d;
	/* Anonymous growth only: page cache makes room for itself. */
	double growth = d->d_anon_bytes + d->d_swap_bytes > 0 ?
				(double)(d->d_anon_bytes + d->d_swap_bytes) : 0;
	double refault = memcg_per_sec(d->d_refault_anon, d), major = memcg_per_sec(d->d_pgmajfault, d);

	growth = growth / (double)in->page_bytes * (double)SEC / (double)d->dt_usec;
	c->inflow_pages = 0.5 * c->inflow_pages + 0.5 * growth;
	c->fill_pages = 0.5 * c->fill_pages + 0.5 * memcg_per_sec(d->d_pgfault, d);
	c->refault_per_sec = refault;
	c->majfault_per_sec = major;
	c->amplification = d->d_pgmajfault >= 10 ? refault / major : -1;
	c->some = d->some;
	c->full = d->full;
	c->anon_bytes = in->s->anon;
}

static void observe_room(struct controller *c, const struct ctl_input *in)
{
	const struct memcg_sample *s = in->s;
	double need = INFLOW_SEC * c->inflow_pages + STOCK_PAGES * (double)in->cpus;

	if (need < MARGIN_PAGES)
		need = MARGIN_PAGES;
	c->margin_bytes = s->margin_bytes;
	c->margin_cache_bytes = memcg_margin_with_cache(s);
	c->threshold_bytes = (uint64_t)(need * (double)in->page_bytes);
	/* A group without a limit shares the machine's. */
	if (!value_known(s->limit_bytes) && value_known(in->host_available_bytes)) {
		uint64_t share = value_or(in->host_total_bytes, 0) / 50;

		c->margin_cache_bytes = in->host_available_bytes;
		if (c->threshold_bytes < share)
			c->threshold_bytes = share;
	}
}

static void observe_counts(struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	const struct memcg_delta *d = in->d;
	uint64_t grown = d->d_anon_bytes + d->d_swap_bytes > 0 ?
				 (uint64_t)(d->d_anon_bytes + d->d_swap_bytes) / in->page_bytes : 0;
	bool bloats = grown >= BLOAT_PAGES_MIN &&
		      (double)grown > BLOAT_PAGES_PER_FAULT * (double)d->d_pgfault;
	/* Fresh memory, in pages: a PMD folio is one fault. */
	uint64_t pmd_pages = in->d->d_thp_fault_alloc * in->pmd_nr;
	uint64_t fresh = value_sub(d->d_pgfault, d->d_pgmajfault) + pmd_pages;

	c->pressed_ticks = stalls(c, cfg, d) ? c->pressed_ticks + 1 : 0;
	c->bloat_ticks = bloats ? c->bloat_ticks + 1 : 0;
	c->high_full_ticks = c->full >= STRONG_FULL * cfg->pressure_high ? c->high_full_ticks + 1 : 0;
	if (!is_quiet(c, cfg, d))
		c->quiet_since_usec = 0;
	else if (!c->quiet_since_usec)
		c->quiet_since_usec = in->now_usec - d->dt_usec + 1;
	c->fresh_ticks = c->quiet_since_usec && memcg_per_sec(fresh, d) >= RAISE_PAGES_PER_SEC ?
				 c->fresh_ticks + 1 : 0;
	c->collapse_ticks = (in->d_collapse || d->d_thp_collapse_alloc) && d->d_anon_thp_bytes > 0 &&
					    d->d_current_bytes > 0 && !d->d_thp_fault_alloc ?
				    c->collapse_ticks + 1 : 0;
	double saved = c->quiet_since_usec && memcg_per_sec(d->d_pgfault, d) >= BENEFIT_FAULTS_PER_SEC ?
			       memcg_per_sec(d->d_system_usec, d) * (c->rung ? 1.0 : 0.5) : 0;
	c->benefit_usec = 0.7 * c->benefit_usec + 0.3 * saved;
}

void evidence_cost_add(struct ctl_cost *a, const struct memcg_delta *d)
{
	a->user_usec += (double)d->d_user_usec;
	a->system_usec += (double)d->d_system_usec;
	a->some_usec += d->some > 0 ? d->some * (double)d->dt_usec : 0;
	a->dt_usec += (double)d->dt_usec;
}

double evidence_cost(const struct ctl_cost *a, unsigned cpus)
{
	double usage = a->user_usec + a->system_usec;
	double w = a->dt_usec > 0 ? usage / a->dt_usec : 0;

	if (a->user_usec < COST_USER_MIN_USEC || a->user_usec < COST_USER_SHARE * usage)
		return -1;
	if (w < 1)
		w = 1;
	if (w > cpus)
		w = cpus;
	return (a->system_usec + 0.5 * w * a->some_usec) / a->user_usec;
}

double evidence_cost_noise(const struct ctl_cost *a, const struct ctl_cost *b)
{
	return sqrt(4000.0 / a->user_usec + 4000.0 / b->user_usec);
}

/* Memory grows by one page for each page fault: what is filled in are single pages. */
static bool fills_single_pages(const struct ctl_input *in)
{
	const struct memcg_delta *d = in->d;
	double grown = (double)(d->d_anon_bytes + d->d_swap_bytes) / (double)in->page_bytes;

	return grown >= BLOAT_PAGES_MIN && grown >= 0.9 * (double)d->d_pgfault &&
	       grown <= AMPLIFIED * (double)d->d_pgfault;
}

bool evidence_uses_large(const struct controller *c, const struct ctl_input *in)
{
	bool reads_large = c->amplification < 0 ? !fills_single_pages(in) : c->amplification >= AMPLIFIED;

	return reads_large || c->bloat_ticks ||
	       value_or(in->s->anon_thp, 0) > 0 || in->d->d_thp_fault_alloc || in->d->d_swpout_fallback;
}

/* The cost of a spell of pressure (from its first tick), against which a drop is
 * judged, and of the quiet time, against which a step up is; the latter is
 * halved now and then so that it stays recent. */
static void track_cost(struct controller *c, const struct ctl_input *in)
{
	if (c->state != CTL_RUN)
		return;
	if (c->pressed_ticks == 1)
		c->before = (struct ctl_cost){ 0 };
	if (c->pressed_ticks)
		evidence_cost_add(&c->before, in->d);
	if (!c->quiet_since_usec)
		return;
	if (c->quiet.dt_usec > 20.0 * (double)SEC) {
		c->quiet.user_usec /= 2;
		c->quiet.system_usec /= 2;
		c->quiet.some_usec /= 2;
		c->quiet.dt_usec /= 2;
	}
	evidence_cost_add(&c->quiet, in->d);
}

void evidence_observe(struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in)
{
	observe_rates(c, in);
	observe_room(c, in);
	observe_counts(c, cfg, in);
	track_cost(c, in);
}
