/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* Sizes are raised above their baseline up to 4 x the smallest only (64K where
 * pages are 4K): measured on 6.12, 16-64K takes 0.81 of the time of `never` in
 * a fresh fill, all sizes 0.76, but churn of small maps takes 1.16 against 3.6. */
#define RAISE_FACTOR 4
/* Each rung's largest size is at most this multiple of the one before. */
#define RUNG_FACTOR 4
/* A PMD above this share of the machine's memory is a risk by itself: 512 MiB
 * folios on a 6 GiB host. 2 MiB crosses it only below 64 MiB of memory. */
#define PMD_SHARE_MAX 32
/* Published fleet default for splitting underused THPs: 409 of 512 none pages. */
#define PTES_RECENT_NUM 409
#define PTES_RECENT_DEN 511

static const char *const word[] = {
	[THP_NEVER] = "never",
	[THP_MADVISE] = "madvise",
	[THP_ALWAYS] = "always",
	[THP_INHERIT] = "inherit",
};

static enum thp_mode weaker(enum thp_mode a, enum thp_mode b)
{
	return a < b ? a : b;
}

static enum thp_mode ceiling_of(enum thp_mode baseline, enum thp_mode top, const struct config *c,
	bool boot_never, bool legacy)
{
	enum thp_mode own = thp_effective(baseline, top);

	if (boot_never)
		return baseline;
	switch (c->max_mode) {
	case MAX_MODE_ALWAYS:
		return THP_ALWAYS;
	case MAX_MODE_MADVISE:
		if (own < top)
			own = top;
		return weaker(own, THP_MADVISE);
	case MAX_MODE_INHERIT:
	default:
		if (legacy || own >= top)
			return baseline;
		return THP_INHERIT;
	}
}

static bool size_named(const struct config *c, uint64_t size_kb, uint64_t pmd_kb, uint64_t smallest_kb)
{
	if (c->all_sizes)
		return true;
	for (unsigned i = 0; i < c->n_sizes; i++)
		if (config_size_kb(&c->sizes[i], pmd_kb, smallest_kb) == size_kb)
			return true;
	return false;
}

static void fill_size(struct plan *p, struct plan_size *s, uint64_t size_kb,
	const struct choice *enabled, const struct config *c, uint64_t smallest_kb)
{
	enum thp_mode baseline = thp_choice_mode(enabled);

	*s = (struct plan_size){ .size_kb = size_kb, .baseline = baseline };
	s->lists_never = choice_lists(enabled, "never");
	s->lists_madvise = choice_lists(enabled, "madvise");
	s->lists_inherit = choice_lists(enabled, "inherit");
	s->lists_always = choice_lists(enabled, "always");
	s->managed = baseline != THP_MODE_NONE && s->lists_never &&
		size_named(c, size_kb, p->pmd_kb, smallest_kb);
	if (!s->managed)
		return;
	s->ceiling = ceiling_of(baseline, p->top, c, p->boot_never, p->legacy);
	if (size_kb == p->pmd_too_large_kb && c->max_mode != MAX_MODE_ALWAYS)
		s->ceiling = weaker(thp_effective(s->ceiling, p->top), THP_MADVISE);
}

static void build_sizes(struct plan *p, const struct thp_tree *t, const struct config *c)
{
	uint64_t smallest_kb = t->n_sizes ? t->sizes[0].size_kb : t->pmd_kb;

	for (unsigned i = 0; i < t->n_sizes; i++)
		if (t->sizes[i].enabled.n) {
			smallest_kb = t->sizes[i].size_kb;
			break;
		}
	if (p->legacy) {
		fill_size(p, &p->sizes[0], t->pmd_kb, &t->enabled, c, t->pmd_kb);
		p->n_sizes = 1;
		return;
	}
	for (unsigned i = 0; i < t->n_sizes; i++)
		if (t->sizes[i].enabled.n || t->sizes[i].enabled_unparseable)
			fill_size(p, &p->sizes[p->n_sizes++], t->sizes[i].size_kb,
				&t->sizes[i].enabled, c, smallest_kb);
}

/* Only what is on can be taken away; nothing is ever raised here. */
static void build_shmem(struct plan *p, const struct thp_tree *t, const struct config *c)
{
	uint64_t smallest_kb = t->n_sizes ? t->sizes[0].size_kb : t->pmd_kb;

	for (unsigned i = 0; c->shmem && i < t->n_sizes; i++) {
		const char *now = choice_value(&t->sizes[i].shmem_enabled);
		struct plan_shmem *m = &p->shmem[p->n_shmem];

		if (!now || !strcmp(now, "never") || !choice_lists(&t->sizes[i].shmem_enabled, "never") ||
			!size_named(c, t->sizes[i].size_kb, p->pmd_kb, smallest_kb))
			continue;
		m->size_kb = t->sizes[i].size_kb;
		snprintf(m->base, sizeof(m->base), "%s", now);
		p->n_shmem++;
	}
}

static void build_ladder(struct plan *p)
{
	uint64_t limit_kb = 0;

	p->n_rungs = 1; /* rung 0: nothing */
	for (unsigned i = 0; i < p->n_sizes; i++) {
		if (!p->sizes[i].managed)
			continue;
		if (!limit_kb || p->sizes[i].size_kb > limit_kb) {
			limit_kb = limit_kb ? p->rung_max_kb[p->n_rungs - 1] * RUNG_FACTOR :
					      p->sizes[i].size_kb;
			if (p->n_rungs < PLAN_RUNGS_MAX)
				p->n_rungs++;
		}
		p->rung_max_kb[p->n_rungs - 1] = p->sizes[i].size_kb;
	}
	p->raise_rung = plan_rung_for(p, p->rung_max_kb[1] * RAISE_FACTOR);
}

static void build_numbers(struct plan *p, const struct thp_tree *t, const struct config *c)
{
	uint64_t full = p->pmd_nr ? p->pmd_nr - 1 : 0;
	bool small_on = false;

	for (unsigned i = 0; i < p->n_sizes; i++)
		if (p->sizes[i].size_kb < p->pmd_kb &&
			thp_effective(p->sizes[i].baseline, p->top) > THP_NEVER)
			small_on = true;
	p->ptes_two_values = t->mthp_collapse && small_on;
	p->ptes_base = t->max_ptes_none;
	p->ptes_limited = value_known(c->max_ptes_none) && value_known(p->ptes_base) &&
			  c->max_ptes_none < p->ptes_base;
	if (p->ptes_limited)
		/* A baseline in between is kept, a value of ours is one of the two. */
		p->ptes_base = p->ptes_two_values ? 0 : c->max_ptes_none;
	p->ptes_recent = p->ptes_base;
	if (value_known(p->ptes_base) && !t->mthp_collapse)
		p->ptes_recent = value_min(p->ptes_base, full * PTES_RECENT_NUM / PTES_RECENT_DEN);
	p->khugepaged_defrag = c->defrag ? t->khugepaged_defrag : VALUE_ABSENT;
	p->scan_sleep_millisecs = t->scan_sleep_millisecs;
	p->shrink_underused = t->shrink_underused;
}

/* Each value and the next one that makes an allocation do less by itself. */
static const char *const defrag_weaker[][3] = {
	{ "always", "madvise", "never" },
	{ "defer+madvise", "defer", "never" },
	{ "madvise", "never", NULL },
	{ "defer", "never", NULL },
};

static void build_defrag(struct plan *p, const struct thp_tree *t, const struct config *c)
{
	const char *now = choice_value(&t->defrag);

	if (!c->defrag || !now)
		return;
	for (size_t i = 0; i < sizeof(defrag_weaker) / sizeof(defrag_weaker[0]); i++) {
		if (strcmp(defrag_weaker[i][0], now) != 0)
			continue;
		for (unsigned j = 1; j < 3 && defrag_weaker[i][j]; j++) {
			if (!choice_lists(&t->defrag, defrag_weaker[i][j]))
				continue;
			snprintf(p->defrag_base, sizeof(p->defrag_base), "%s", now);
			snprintf(p->defrag_low, sizeof(p->defrag_low), "%s", defrag_weaker[i][j]);
			return;
		}
	}
}

void plan_build(const struct thp_tree *tree, const struct config *c, bool boot_never,
	uint64_t mem_total_kb, struct plan *ret)
{
	struct plan p = {
		.legacy = !tree->per_size,
		.boot_never = boot_never,
		.page_kb = tree->page_kb,
		.pmd_kb = tree->pmd_kb,
		.pmd_nr = tree->pmd_nr,
		.top = thp_choice_mode(&tree->enabled),
	};

	if (p.top == THP_MODE_NONE || p.top == THP_INHERIT)
		p.top = THP_NEVER;
	if (value_known(mem_total_kb) && tree->pmd_kb > mem_total_kb / PMD_SHARE_MAX)
		p.pmd_too_large_kb = tree->pmd_kb;
	build_sizes(&p, tree, c);
	build_shmem(&p, tree, c);
	build_ladder(&p);
	build_numbers(&p, tree, c);
	build_defrag(&p, tree, c);
	*ret = p;
}

static bool lists(const struct plan_size *s, enum thp_mode m)
{
	switch (m) {
	case THP_NEVER:
		return s->lists_never;
	case THP_MADVISE:
		return s->lists_madvise;
	case THP_ALWAYS:
		return s->lists_always;
	case THP_INHERIT:
		return s->lists_inherit;
	case THP_MODE_NONE:
	default:
		return false;
	}
}

/* The mode that stands at a level, before asking whether the file lists it. */
static enum thp_mode mode_at(const struct plan *p, const struct plan_size *s, enum plan_level level)
{
	enum thp_mode base = s->baseline;

	/* A lower ceiling (MaxMode=madvise) also bounds what a step up puts back. */
	if (thp_effective(base, p->top) > thp_effective(s->ceiling, p->top))
		base = s->ceiling;
	switch (level) {
	case PLAN_RAISED:
		return s->ceiling;
	case PLAN_BASE:
		return base;
	case PLAN_ASKED:
		return thp_effective(base, p->top) > THP_MADVISE ? THP_MADVISE : base;
	case PLAN_OFF:
	default:
		return THP_NEVER;
	}
}

/* The mode that is written: a word that the file does not list gives way to
 * the next weaker one. */
static enum thp_mode written_mode(
	const struct plan *p, const struct plan_size *s, enum plan_level level)
{
	enum thp_mode m = mode_at(p, s, level);

	if (lists(s, m))
		return m;
	m = thp_effective(m, p->top);
	while (m > THP_NEVER && !lists(s, m))
		m = m == THP_ALWAYS ? THP_MADVISE : THP_NEVER;
	return m;
}

const char *plan_word(const struct plan *p, const struct plan_size *s, enum plan_level level)
{
	return word[written_mode(p, s, level)];
}

enum thp_mode plan_strength(const struct plan *p, const struct plan_size *s, enum plan_level level)
{
	return thp_effective(written_mode(p, s, level), p->top);
}

enum plan_level plan_size_level(
	const struct plan *p, const struct plan_size *s, uint64_t max_kb, bool raised)
{
	if (s->size_kb > max_kb)
		return PLAN_OFF;
	if (raised && s->size_kb <= p->rung_max_kb[p->raise_rung])
		return PLAN_RAISED;
	return PLAN_BASE;
}

enum plan_level plan_rung_level(
	const struct plan *p, const struct plan_size *s, unsigned rung, bool raised)
{
	return plan_size_level(p, s, p->rung_max_kb[rung], raised);
}

static bool same_effect(const struct plan *p, unsigned a, unsigned b, bool raised)
{
	for (unsigned i = 0; i < p->n_sizes; i++) {
		const struct plan_size *s = &p->sizes[i];

		if (s->managed && plan_strength(p, s, plan_rung_level(p, s, a, raised)) !=
					  plan_strength(p, s, plan_rung_level(p, s, b, raised)))
			return false;
	}
	return true;
}

unsigned plan_rung_up(const struct plan *p, unsigned rung, bool raised)
{
	unsigned r = rung;

	while (r < plan_top(p) && same_effect(p, rung, r, raised))
		r++;
	if (same_effect(p, rung, r, raised))
		return rung;
	while (r < plan_top(p) && same_effect(p, r, r + 1, raised))
		r++;
	return r;
}

unsigned plan_rung_down(const struct plan *p, unsigned rung, bool raised)
{
	unsigned r = rung;

	while (r > 0 && same_effect(p, rung, r, raised))
		r--;
	return same_effect(p, rung, r, raised) ? rung : r;
}

unsigned plan_rung_for(const struct plan *p, uint64_t size_kb)
{
	unsigned r = 0;

	while (r < plan_top(p) && p->rung_max_kb[r + 1] <= size_kb)
		r++;
	return r;
}

uint64_t plan_rung_kb(const struct plan *p, unsigned rung, uint64_t min_kb, uint64_t max_kb)
{
	uint64_t kb = rung == plan_top(p) ? VALUE_MAX : p->rung_max_kb[rung];

	if (max_kb < p->rung_max_kb[plan_top(p)] && rung >= plan_rung_for(p, max_kb))
		kb = max_kb;
	return value_known(min_kb) && kb < min_kb ? min_kb : kb;
}

bool plan_can_raise(const struct plan *p)
{
	for (unsigned i = 0; i < p->n_sizes; i++) {
		const struct plan_size *s = &p->sizes[i];

		if (s->managed && s->size_kb <= p->rung_max_kb[p->raise_rung] &&
			plan_strength(p, s, PLAN_RAISED) > plan_strength(p, s, PLAN_BASE))
			return true;
	}
	return false;
}

uint64_t plan_largest_on_kb(const struct plan *p, unsigned rung, bool raised)
{
	return plan_largest_below_kb(p, rung, raised, VALUE_MAX);
}

uint64_t plan_largest_below_kb(const struct plan *p, unsigned rung, bool raised, uint64_t max_kb)
{
	uint64_t kb = 0;

	for (unsigned i = 0; i < p->n_sizes; i++) {
		const struct plan_size *s = &p->sizes[i];

		if (s->managed && s->size_kb <= max_kb && plan_strength(p, s, plan_rung_level(p, s, rung, raised)) > THP_NEVER)
			kb = s->size_kb;
	}
	return kb;
}
