/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "arbiter.h"

/* Benefit has to outweigh harm by a quarter for the full level, so that equal
 * sums do not flip; from four fifths on the opt-in level is the compromise. */
#define FULL_RATIO 1.25
#define ASKED_RATIO 0.8
/* What a policy's MaxSize weighs against benefit: one hundredth of a CPU. */
#define LIMIT_HARM_USEC 10000.0
/* khugepaged that runs in circles sleeps at least this long between scans. */
#define SLOW_SCAN_FACTOR 6
#define SLOW_SCAN_MIN_MSEC UINT64_C(60000)

void arbiter_init(struct arbiter *a, const struct plan *p, uint64_t now_usec)
{
	*a = (struct arbiter){
		.last_usec = now_usec,
		.defrag = p->defrag_base,
		.shmem_max_kb = VALUE_MAX,
	};
	for (unsigned i = 0; i < p->n_sizes; i++) {
		a->size[i].level = PLAN_BASE;
		a->size[i].reason = REASON_START_VALUES;
		a->size[i].veto_left_usec = ARBITER_VETO_USEC;
		a->size[i].word = p->sizes[i].managed ?
					  thp_mode_to_string(p->sizes[i].baseline) : NULL;
	}
	a->max_ptes_none = p->ptes_base;
	a->khugepaged_defrag = p->khugepaged_defrag;
	a->scan_sleep_millisecs = p->scan_sleep_millisecs;
}

struct tally {
	double harm, benefit;
	const struct arbiter_vote *worst; /* the off-wisher with the largest harm */
	const struct arbiter_vote *best;  /* who asks for the raise, or is on its way up */
	bool veto, protected_veto, shield, raise, limits_only;
	unsigned off;
};

/* Who is named as the cause: stalls alone would name a tiny group whose few
 * tasks wait for the large one, so they count by the share of memory. */
static double blame(const struct arbiter_vote *v)
{
	return v->weight * (1 + v->wish.harm_usec_per_sec) * (0.001 + v->anon_share);
}

static void count(struct tally *t, const struct plan *p, const struct plan_size *s,
	const struct arbiter_vote *v)
{
	uint64_t kb = plan_rung_kb(p, v->wish.rung, v->min_kb, v->max_kb);
	enum plan_level level = plan_size_level(p, s, kb, v->wish.raised);
	double w = v->weight / 100.0;

	if (level == PLAN_OFF) {
		double harm = v->wish.harm_usec_per_sec;

		if (v->limits && harm < LIMIT_HARM_USEC)
			harm = LIMIT_HARM_USEC;
		t->limits_only = (t->off == 0 || t->limits_only) && v->limits;
		t->off++;
		t->harm += w * harm;
		if (!t->worst || blame(v) > blame(t->worst))
			t->worst = v;
		if (v->wish.hurt && v->protect)
			t->protected_veto = true;
		if (v->wish.hurt && (v->protect || v->anon_share >= ARBITER_VETO_SHARE))
			t->veto = true;
		return;
	}
	t->benefit += w * v->wish.benefit_usec_per_sec;
	if (v->protect && !v->wish.hurt)
		t->shield = true;
	if (level == PLAN_RAISED)
		t->raise = true;
	if (level == PLAN_RAISED || (!t->best && v->wish.recovering))
		t->best = v;
}

/* Spends the veto only while it overrides what the sums say; once spent it has
 * to be whole again before it counts, so that it takes half of any ten minutes. */
static bool veto_stands(struct arbiter_size *z, bool overrides, uint64_t dt_usec)
{
	if (overrides && !z->veto_spent) {
		z->veto_left_usec = value_sub(z->veto_left_usec, dt_usec);
		if (!z->veto_left_usec)
			z->veto_spent = true;
		return !z->veto_spent;
	}
	z->veto_left_usec += dt_usec;
	if (z->veto_left_usec >= ARBITER_VETO_USEC) {
		z->veto_left_usec = ARBITER_VETO_USEC;
		z->veto_spent = false;
	}
	return !z->veto_spent;
}

static void weigh(struct arbiter_size *z, const struct tally *t, uint64_t dt_usec)
{
	bool veto, overrides;

	if (!t->off) {
		veto_stands(z, false, dt_usec);
		z->level = t->raise ? PLAN_RAISED : PLAN_BASE;
		z->reason = z->touched ? REASON_RECOVERED : REASON_START_VALUES;
		if (t->best && (t->raise || z->touched)) {
			z->cause = t->best->group;
			z->reason = t->best->wish.reason;
		} else if (!z->touched) {
			z->cause = NULL;
		}
		return; /* what comes back without a word of its group came back for the last one */
	}
	z->cause = t->worst->group;
	z->reason = t->worst->wish.reason;
	z->level = PLAN_OFF;
	if (t->benefit > FULL_RATIO * t->harm)
		z->level = PLAN_BASE;
	else if (t->benefit > 0 && t->benefit >= ASKED_RATIO * t->harm)
		z->level = PLAN_ASKED;
	if (z->level != PLAN_OFF)
		z->reason = REASON_OUTVOTED;
	overrides = t->veto && z->level != PLAN_OFF;
	veto = veto_stands(z, overrides, dt_usec);
	if (overrides) {
		z->reason = veto ? REASON_VETO : REASON_VETO_SPENT;
		if (veto)
			z->level = PLAN_OFF;
	}
	if (z->level == PLAN_OFF && t->shield && !t->protected_veto) {
		z->level = PLAN_ASKED;
		z->reason = REASON_SHIELDED;
	}
}

static void apply_caps(struct arbiter_size *z, const struct plan *p, const struct plan_size *s,
	const struct hostrules_size *h, uint64_t now_usec)
{
	if (s->size_kb == p->pmd_too_large_kb && z->level > PLAN_ASKED &&
		thp_effective(s->baseline, p->top) > plan_strength(p, s, PLAN_BASE)) {
		z->reason = REASON_PMD_TOO_LARGE;
		z->cause = NULL;
		z->touched = true;
	}
	if (h->reason != REASON_NONE && now_usec < h->until_usec && z->level > h->cap) {
		z->level = h->cap;
		z->reason = h->reason;
		z->cause = NULL;
	}
}

static void decide_size(struct arbiter *a, unsigned i, const struct plan *p,
	const struct arbiter_vote *votes, size_t n_votes, const struct hostrules *host,
	uint64_t now_usec)
{
	const struct plan_size *s = &p->sizes[i];
	struct arbiter_size *z = &a->size[i];
	struct tally t = { 0 };

	if (!s->managed) {
		z->word = NULL;
		z->reason = REASON_NOT_MANAGED;
		return;
	}
	for (size_t v = 0; v < n_votes; v++)
		count(&t, p, s, &votes[v]);
	weigh(z, &t, now_usec - a->last_usec);
	apply_caps(z, p, s, &host->size[i], now_usec);
	/* The start value may be above the ceiling: below it is what is below the file's own word. */
	if (z->level < PLAN_BASE && plan_strength(p, s, z->level) < thp_effective(s->baseline, p->top))
		z->touched = true;
	/* A start value stands as it is until there was a reason to lower it. */
	z->word = z->level == PLAN_BASE && !z->touched ? thp_mode_to_string(s->baseline) :
							 plan_word(p, s, z->level);
}

static void decide_ptes(struct arbiter *a, const struct plan *p, const struct arbiter_vote *votes,
	size_t n_votes)
{
	a->max_ptes_none = p->ptes_base;
	a->ptes_reason = p->ptes_limited ? REASON_POLICY_LIMIT : REASON_START_VALUES;
	a->ptes_cause = NULL;
	if (!value_known(p->ptes_base))
		return;
	for (size_t v = 0; v < n_votes; v++) {
		uint64_t want = votes[v].wish.ptes == CTL_PTES_FULL   ? 0 :
				votes[v].wish.ptes == CTL_PTES_RECENT ? p->ptes_recent :
									p->ptes_base;
		enum reason r = votes[v].wish.ptes == CTL_PTES_FULL ? REASON_NEAR_FULL :
								      REASON_RECENT_PRESSURE;

		if (votes[v].max_ptes_none < want) {
			want = p->ptes_two_values ? 0 : votes[v].max_ptes_none;
			r = REASON_POLICY_LIMIT;
		}
		if (votes[v].wish.reason == REASON_KHUGEPAGED_BLOAT && !want)
			r = REASON_KHUGEPAGED_BLOAT;
		if (want < a->max_ptes_none) {
			a->max_ptes_none = want;
			a->ptes_reason = r;
			a->ptes_cause = votes[v].group;
		}
	}
}

static void decide_defrag(struct arbiter *a, const struct plan *p, const struct arbiter_vote *votes,
	size_t n_votes, const struct hostrules *host, uint64_t now_usec)
{
	bool low = false, any_on = false, shield = false;

	/* With every size off there is nothing to compact for. */
	for (unsigned i = 0; i < p->n_sizes; i++)
		any_on |= p->sizes[i].managed &&
			  plan_strength(p, &p->sizes[i], a->size[i].level) > THP_NEVER;
	a->defrag_reason = REASON_START_VALUES;
	a->defrag_cause = NULL;
	/* As with sizes: a protected group that is not hurt keeps what it has against
	 * others, unless one of those is protected as well. */
	for (size_t v = 0; v < n_votes; v++)
		shield |= votes[v].protect && !votes[v].wish.defrag_low;
	for (size_t v = 0; v < n_votes; v++)
		shield &= !(votes[v].protect && votes[v].wish.defrag_low);
	for (size_t v = 0; v < n_votes && any_on && !low && !shield; v++)
		if (votes[v].wish.defrag_low) {
			low = true;
			a->defrag_reason = REASON_NEAR_FULL;
			a->defrag_cause = votes[v].group;
		}
	a->khugepaged_defrag = low && value_known(p->khugepaged_defrag) ? 0 : p->khugepaged_defrag;
	if (!low && hostrules_defrag_low(host, now_usec)) {
		low = true;
		a->defrag_reason = REASON_FRAGMENTATION;
	}
	a->defrag = low ? p->defrag_low : p->defrag_base;
	a->scan_sleep_millisecs = p->scan_sleep_millisecs;
	a->scan_reason = REASON_START_VALUES;
	if (value_known(p->scan_sleep_millisecs) && hostrules_slow_khugepaged(host, now_usec)) {
		a->scan_sleep_millisecs = p->scan_sleep_millisecs * SLOW_SCAN_FACTOR;
		if (a->scan_sleep_millisecs < SLOW_SCAN_MIN_MSEC)
			a->scan_sleep_millisecs = SLOW_SCAN_MIN_MSEC;
		/* mm/khugepaged.c: the file takes an unsigned int. */
		if (a->scan_sleep_millisecs > UINT32_MAX)
			a->scan_sleep_millisecs = UINT32_MAX;
		a->scan_reason = REASON_KHUGEPAGED_RUNAWAY;
	}
}

/* Shared memory has a ladder of its own, with the rungs of the hurt groups. */
static void decide_shmem(struct arbiter *a, const struct plan *p, const struct arbiter_vote *votes,
	size_t n_votes)
{
	a->shmem_max_kb = VALUE_MAX;
	a->shmem_cause = NULL;
	for (size_t v = 0; v < n_votes; v++)
		if (votes[v].wish.harm_usec_per_sec > 0 && votes[v].wish.rung < plan_top(p) &&
			p->rung_max_kb[votes[v].wish.rung] < a->shmem_max_kb) {
			a->shmem_max_kb = p->rung_max_kb[votes[v].wish.rung];
			a->shmem_cause = votes[v].group;
		}
}

void arbiter_decide(struct arbiter *a, const struct plan *p, const struct arbiter_vote *votes,
	size_t n_votes, const struct hostrules *host, uint64_t now_usec)
{
	for (unsigned i = 0; i < p->n_sizes; i++)
		decide_size(a, i, p, votes, n_votes, host, now_usec);
	decide_shmem(a, p, votes, n_votes);
	decide_ptes(a, p, votes, n_votes);
	decide_defrag(a, p, votes, n_votes, host, now_usec);
	a->last_usec = now_usec;
}

bool arbiter_clamps(const struct arbiter *a, const struct plan *p, const struct ctl_wish *w)
{
	for (unsigned i = 0; i < p->n_sizes; i++) {
		const struct plan_size *s = &p->sizes[i];

		if (s->managed && plan_strength(p, s, a->size[i].level) <
					  plan_strength(p, s, plan_rung_level(p, s, w->rung, w->raised)))
			return true;
	}
	return false;
}
