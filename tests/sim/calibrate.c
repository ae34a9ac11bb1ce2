/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "calibrate.h"

#include <stdio.h>

#include "load.h"

#define SETTINGS 4
#define LIMIT_PAGES (64 * MIB_PAGES)
#define TIE 1.05

static const unsigned setting_max_order[SETTINGS] = { 0, 4, 6, 9 };

/* Seconds measured: never, 16-64K, 16-256K, all. */
static const struct {
	const char *name;
	double measured[SETTINGS];
	struct load_phase phase;
	uint64_t touches;
} cases[] = {
	{ "fill", { 14.0, 11.3, 10.9, 10.7 },
		{ .kind = LOAD_FILL, .mib = 32, .think_usec = 9 }, 400000 },
	{ "churn", { 8.3, 9.6, 17.4, 30.1 }, { .kind = LOAD_CHURN, .think_usec = 9 }, 200000 },
	{ "random", { 6.5, 12.2, 14.0, 15.3 }, { .kind = LOAD_RANDOM, .mib = 96 }, 200000 },
	{ "runs", { 7.8, 6.8, 8.7, 10.5 }, { .kind = LOAD_RUNS, .mib = 96, .run = 16 }, 200000 },
	{ "sequential", { 15.2, 11.0, 12.9, 14.3 }, { .kind = LOAD_SEQ, .mib = 96 }, 150000 },
	{ "sparse", { 0.84, 46, 58, 76 },
		{ .kind = LOAD_SPARSE, .mib = 512, .stride = 16 }, 30000 },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static unsigned orders_up_to(unsigned max_order)
{
	unsigned mask = 0;

	for (unsigned order = PLANT_MIN_ORDER; order <= max_order; order++)
		mask |= 1U << order;
	return mask;
}

/* The set is there before the work starts, as in the measurement. */
static void populate(struct plant *p, const struct load_phase *f)
{
	if (f->kind != LOAD_RANDOM && f->kind != LOAD_RUNS && f->kind != LOAD_SEQ)
		return;
	for (uint32_t i = 0; i < f->mib * MIB_PAGES; i++)
		plant_touch(p, i, 0, f->mib * MIB_PAGES);
}

static double run(unsigned c, unsigned setting)
{
	struct load_phase phases[2] = { cases[c].phase };
	struct plant *p;
	struct load l;
	uint64_t start;

	phases[0].seconds = 1000000;
	p = plant_new(load_pages(phases), LIMIT_PAGES);
	p->orders = orders_up_to(setting_max_order[setting]);
	populate(p, &phases[0]);
	start = p->clock_ns;
	load_init(&l, phases, 1, start);
	while (l.work[0] < cases[c].touches)
		load_run(&l, p, p->clock_ns + 1000000);
	start = p->clock_ns - start;
	plant_free(p);
	return (double)start / 1e9;
}

static bool same_order(const double *a, const double *b)
{
	for (unsigned i = 0; i < SETTINGS; i++)
		for (unsigned j = 0; j < SETTINGS; j++)
			if (a[i] * TIE < a[j] && b[i] > b[j])
				return false;
	return true;
}

bool calibrate(bool print)
{
	bool all_good = true;

	if (print)
		printf("%-11s %-33s %s\n", "pattern", "plant, ratio to never", "measured on 6.12");
	for (unsigned c = 0; c < CASES; c++) {
		double t[SETTINGS];
		bool good;

		for (unsigned s = 0; s < SETTINGS; s++)
			t[s] = run(c, s);
		good = same_order(cases[c].measured, t);
		all_good &= good;
		if (!print)
			continue;
		printf("%-11s", cases[c].name);
		for (unsigned s = 0; s < SETTINGS; s++)
			printf(" %7.2f", t[s] / t[0]);
		printf("  |");
		for (unsigned s = 0; s < SETTINGS; s++)
			printf(" %7.2f", cases[c].measured[s] / cases[c].measured[0]);
		printf("  %s\n", good ? "same order" : "ANOTHER ORDER");
	}
	return all_good;
}
