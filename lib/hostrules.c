/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hostrules.h"

#include <string.h>

#define SEC UINT64_C(1000000)
#define HOLD_MIN_USEC (60 * SEC)
#define HOLD_MAX_USEC (3600 * SEC)
#define RELAX_USEC (60 * SEC)

/* A window says something about success only with this many attempts. */
#define ATTEMPTS_MIN 100
#define SUCCESS_MIN_PERCENT 10
#define FALLBACK_WINDOWS 6
#define CHURN_WINDOWS 3
#define FRAG_PER_SEC 100
#define FRAG_WINDOWS 3
#define COMPACT_PER_SEC 50
#define COMPACT_WINDOWS 3
#define RUNAWAY_SCANS_PER_SEC 10
#define RUNAWAY_WINDOWS 3
/* Swap with less than this left is full: pieces of folios do not fit either. */
#define SWAP_FULL_PERCENT 98

const char *swap_state_to_string(enum swap_state s)
{
	static const char *const word[] = { "unknown", "none", "room", "full", "fragmented" };

	return word[s];
}

void hostrules_init(struct hostrules *h)
{
	*h = (struct hostrules){ .swap = SWAP_UNKNOWN };
	for (unsigned i = 0; i < THP_SIZES_MAX; i++) {
		h->size[i].hold_usec = HOLD_MIN_USEC;
		h->size[i].cap = PLAN_RAISED;
	}
}

void hostrules_rebase(struct hostrules *h)
{
	h->has_prev = false;
	h->d_collapse = h->d_pswpin = h->d_pgmajfault = 0;
	h->frag_windows = h->runaway_windows = 0;
	for (unsigned i = 0; i < THP_SIZES_MAX; i++)
		h->size[i].fallback_windows = h->size[i].churn_windows = h->size[i].frag_windows = 0;
}

static void cap(struct hostrules_size *z, enum plan_level level, enum reason r, uint64_t now_usec)
{
	if (z->reason == r && now_usec < z->until_usec)
		return;
	/* The same complaint again after the cap was lifted: wait longer. */
	if (z->reason == r)
		z->hold_usec = value_min(z->hold_usec * 2, HOLD_MAX_USEC);
	else
		z->hold_usec = HOLD_MIN_USEC;
	z->reason = r;
	z->cap = level;
	z->until_usec = now_usec + z->hold_usec;
}

static void step_size(struct hostrules *h, unsigned i, const struct thp_stats *now, double dt_sec,
	uint64_t now_usec)
{
	struct hostrules_size *z = &h->size[i];
	const struct thp_stats *was = &h->prev_stats[i];
	uint64_t alloc = value_sub(now->anon_fault_alloc, was->anon_fault_alloc);
	uint64_t failed = value_sub(now->anon_fault_fallback, was->anon_fault_fallback);
	uint64_t charge =
		value_sub(now->anon_fault_fallback_charge, was->anon_fault_fallback_charge);
	uint64_t margin =
		value_sub(now->anon_fault_fallback_margin, was->anon_fault_fallback_margin);
	uint64_t torn = value_sub(now->split_deferred, was->split_deferred);
	uint64_t swapped = value_sub(now->swpout_fallback, was->swpout_fallback);

	/* A cap that has run out is lifted before anything is counted: the size has
	 * to fail again for a new one. */
	if (z->cap != PLAN_RAISED && now_usec >= z->until_usec) {
		z->fallback_windows = z->churn_windows = z->frag_windows = 0;
		z->cap = PLAN_RAISED;
	}
	/* A charge that fails, or is not tried for lack of room, says that a group is full,
	 * not that memory is torn. */
	failed = value_sub(value_sub(failed, charge), margin);
	if (alloc + failed >= ATTEMPTS_MIN)
		z->fallback_windows = alloc * 100 < (alloc + failed) * SUCCESS_MIN_PERCENT ?
					      z->fallback_windows + 1 : 0;
	if (alloc >= ATTEMPTS_MIN)
		z->churn_windows = torn * 2 >= alloc ? z->churn_windows + 1 : 0;
	z->frag_windows = (double)swapped >= FRAG_PER_SEC * dt_sec && h->swap == SWAP_FRAGMENTED ?
				  z->frag_windows + 1 : 0;

	if (z->fallback_windows >= FALLBACK_WINDOWS)
		cap(z, PLAN_OFF, REASON_FALLBACK_DOMINATED, now_usec);
	else if (z->frag_windows >= FRAG_WINDOWS)
		cap(z, PLAN_OFF, REASON_SWAP_FRAGMENTED, now_usec);
	else if (z->churn_windows >= CHURN_WINDOWS)
		cap(z, PLAN_ASKED, REASON_SPLIT_CHURN, now_usec);
}

static enum swap_state classify_swap(
	const struct hostrules *h, const struct plan *p, const struct hostrules_input *in)
{
	uint64_t size = in->host->swaps_size_kb, used = in->host->swaps_used_kb;
	uint64_t failed = value_sub(in->host->thp_swpout_fallback, h->prev.thp_swpout_fallback);

	if (!value_known(size)) {
		size = in->host->swap_total_kb;
		used = value_sub(size, in->host->swap_free_kb);
	}
	if (!value_known(size))
		return SWAP_UNKNOWN;
	if (!size)
		return SWAP_NONE;
	if (value_known(used) && used >= size / 100 * SWAP_FULL_PERCENT)
		return SWAP_FULL;
	if (!h->has_prev)
		return SWAP_ROOM;
	for (unsigned i = 0; i < p->n_sizes; i++)
		failed += value_sub(in->stats[i].swpout_fallback, h->prev_stats[i].swpout_fallback);
	double dt_sec = (double)(in->host->now_usec - h->prev.now_usec) / (double)SEC;

	/* A group that may not swap fails as often; that is its own limit. */
	return (double)failed >= FRAG_PER_SEC * dt_sec && !in->swap_limited ? SWAP_FRAGMENTED : SWAP_ROOM;
}

static void step_compaction(struct hostrules *h, const struct host_sample *s, double dt_sec)
{
	double stall = (double)value_sub(s->compact_stall, h->prev.compact_stall) / dt_sec;
	double fail = (double)value_sub(s->compact_fail, h->prev.compact_fail) / dt_sec;
	double fallback = (double)value_sub(s->thp_fault_fallback, h->prev.thp_fault_fallback) / dt_sec;
	bool ample = !value_known(s->mem_available_kb) ||
		     s->mem_available_kb > value_or(s->mem_total_kb, 0) / 10;

	h->stall_per_sec = stall;
	h->frag_windows = stall >= COMPACT_PER_SEC && fail >= stall / 2 &&
					  fallback >= COMPACT_PER_SEC && ample ?
				  h->frag_windows + 1 : 0;
	if (h->frag_windows >= COMPACT_WINDOWS)
		h->defrag_until_usec = s->now_usec + RELAX_USEC;
}

static void step_khugepaged(struct hostrules *h, const struct hostrules_input *in, double dt_sec)
{
	uint64_t scans = value_sub(in->full_scans, h->prev_full_scans);
	uint64_t collapsed = value_sub(in->pages_collapsed, h->prev_collapsed);

	h->runaway_windows = (double)scans >= RUNAWAY_SCANS_PER_SEC * dt_sec && !collapsed ?
				     h->runaway_windows + 1 : 0;
	if (h->runaway_windows >= RUNAWAY_WINDOWS)
		h->slow_until_usec = in->host->now_usec + RELAX_USEC;
}

void hostrules_step(struct hostrules *h, const struct plan *p, const struct hostrules_input *in)
{
	const struct host_sample *s = in->host;

	h->swap = classify_swap(h, p, in);
	if (h->has_prev && s->now_usec > h->prev.now_usec) {
		double dt_sec = (double)(s->now_usec - h->prev.now_usec) / (double)SEC;

		h->d_collapse = value_sub(s->thp_collapse_alloc, h->prev.thp_collapse_alloc);
		h->d_pswpin = value_sub(s->pswpin, h->prev.pswpin);
		h->d_pgmajfault = value_sub(s->pgmajfault, h->prev.pgmajfault);
		step_compaction(h, s, dt_sec);
		step_khugepaged(h, in, dt_sec);
		for (unsigned i = 0; i < p->n_sizes; i++)
			step_size(h, i, &in->stats[i], dt_sec, s->now_usec);
	}
	h->prev = *s;
	memcpy(h->prev_stats, in->stats, p->n_sizes * sizeof(h->prev_stats[0]));
	h->prev_full_scans = in->full_scans;
	h->prev_collapsed = in->pages_collapsed;
	h->has_prev = true;
}

uint64_t hostrules_wake_usec(const struct hostrules *h, const struct plan *p, uint64_t now_usec)
{
	uint64_t wake = VALUE_ABSENT;

	if (h->defrag_until_usec > now_usec)
		wake = value_min(wake, h->defrag_until_usec);
	if (h->slow_until_usec > now_usec)
		wake = value_min(wake, h->slow_until_usec);
	for (unsigned i = 0; i < p->n_sizes; i++)
		if (h->size[i].until_usec > now_usec)
			wake = value_min(wake, h->size[i].until_usec);
	return wake;
}
