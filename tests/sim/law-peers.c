/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "law.h"

void law_start_values(struct world *w, enum start_values start)
{
	unsigned pmd = 1U << PLANT_PMD_ORDER;

	world_set_max_order(w, PLANT_PMD_ORDER);
	if (start != START_ALL)
		w->orders_asked = pmd;
	if (start == START_PMD)
		w->orders_all = pmd;
	if (start == START_MADVISE)
		w->orders_all = 0;
}

/* ---- fixed ------------------------------------------------------------- */

static void *start_as_found(struct world *w, enum start_values start, const char *config)
{
	(void)config;
	law_start_values(w, start);
	return NULL;
}

const struct law law_nothing = {.name = "nothing", .start = start_as_found};

const struct law law_static[LAW_STATICS] = {
	{.name = "never", .max_order = 0},
	{.name = "16K", .max_order = 2},
	{.name = "64K", .max_order = 4},
	{.name = "256K", .max_order = 6},
	{.name = "1M", .max_order = 8},
	{.name = "all", .max_order = 9},
};

/* ---- a peer: small pages at once and for as long as there is pressure -- */

#define BANG_FULL_NS 1e8
#define BANG_MIN_PAGES (16 * MIB_PAGES)

struct bang {
	double full_ns[WORLD_GROUPS_MAX];
};

static void *start_bang(struct world *w, enum start_values start, const char *config)
{
	(void)start;
	(void)config;
	world_set_max_order(w, PLANT_PMD_ORDER);
	return calloc(1, sizeof(struct bang));
}

static bool second_bang(void *state, struct world *w, bool trace)
{
	struct bang *b = state;
	bool changed = false;

	(void)trace;
	for (unsigned i = 0; i < w->n_groups; i++) {
		struct sim_group *g = &w->groups[i];
		double full = g->plant->full_ns - b->full_ns[i];
		unsigned orders = full >= BANG_FULL_NS || g->plant->anon_pages < BANG_MIN_PAGES
					  ? 0
					  : w->orders_all;

		b->full_ns[i] = g->plant->full_ns;
		changed |= g->has_own_orders && g->own_orders != orders;
		g->own_orders = orders;
		g->has_own_orders = true;
	}
	return changed;
}

const struct law law_bang_bang = {
	.name = "bang-bang", .start = start_bang, .second = second_bang, .end = free};
