/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "load.h"

#define SEC_NS UINT64_C(1000000000)
#define CHURN_LIVE 8
#define CHURN_SLOT_PAGES (1U << PLANT_PMD_ORDER)
#define CHURN_USED_PERCENT 12

static uint64_t rnd(struct load *l)
{
	l->rng ^= l->rng >> 12;
	l->rng ^= l->rng << 25;
	l->rng ^= l->rng >> 27;
	return l->rng * UINT64_C(0x2545F4914F6CDD1D);
}

static uint32_t rnd_below(struct load *l, uint32_t limit)
{
	return (uint32_t)((rnd(l) >> 32) * limit >> 32);
}

static uint32_t set_pages(const struct load_phase *f)
{
	return f->kind == LOAD_CHURN ? CHURN_LIVE * CHURN_SLOT_PAGES : f->mib * MIB_PAGES;
}

static unsigned count_phases(const struct load_phase *f)
{
	unsigned n = 0;

	while (n < LOAD_PHASES_MAX && f[n].kind != LOAD_END)
		n++;
	return n;
}

uint32_t load_pages(const struct load_phase *phases)
{
	uint32_t max = 1U << PLANT_PMD_ORDER;

	for (unsigned i = 0; i < count_phases(phases); i++)
		if (set_pages(&phases[i]) > max)
			max = set_pages(&phases[i]);
	return max;
}

const struct load_phase *load_now(const struct load *l)
{
	return &l->phases[l->phase];
}

static void start_phase(struct load *l, uint64_t now_ns)
{
	l->phase_end_ns = now_ns + load_now(l)->seconds * SEC_NS;
	l->pace_start_ns = now_ns;
	l->paced = 0;
	l->at = l->left = l->rounds = 0;
}

void load_init(struct load *l, const struct load_phase *phases, uint64_t seed, uint64_t start_ns)
{
	*l = (struct load){.phases = phases, .n_phases = count_phases(phases)};
	l->rng = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	for (int i = 0; i < 8; i++)
		rnd(l);
	start_phase(l, start_ns);
}

static void next_phase(struct load *l, struct plant *p)
{
	uint64_t end = l->phase_end_ns;

	l->phase = (l->phase + 1) % l->n_phases;
	start_phase(l, end);
	if (!load_now(l)->keep)
		plant_unmap(p, 0, p->n_pages);
}

/* ---- one touch of each pattern ----------------------------------------- */

static bool step_fill(struct load *l, struct plant *p, uint32_t pages)
{
	if (l->at == pages) {
		plant_unmap(p, 0, pages);
		l->at = 0;
	}
	return plant_touch(p, l->at++, 0, pages);
}

static bool step_churn(struct load *l, struct plant *p)
{
	uint32_t from, used;

	while (!l->left) {
		l->ring = (l->ring + 1) % CHURN_LIVE;
		from = l->ring * CHURN_SLOT_PAGES;
		plant_unmap(p, from, from + CHURN_SLOT_PAGES);
		l->ring_size[l->ring] = 16U << rnd_below(l, 6);
		used = l->ring_size[l->ring] * CHURN_USED_PERCENT / 100;
		l->left = used ? used : 1;
		l->at = from;
	}
	l->left--;
	from = l->ring * CHURN_SLOT_PAGES;
	return plant_touch(p, l->at++, from, from + l->ring_size[l->ring]);
}

static bool step_runs(struct load *l, struct plant *p, uint32_t pages, uint32_t run)
{
	if (!l->left) {
		l->at = rnd_below(l, pages / run) * run;
		l->left = run;
	}
	l->left--;
	return plant_touch(p, l->at++, 0, pages);
}

static bool step_sparse(struct load *l, struct plant *p, const struct load_phase *f, uint32_t pages)
{
	if (l->at >= pages) {
		l->at = 0;
		if (f->rounds && ++l->rounds == f->rounds) {
			plant_unmap(p, 0, pages);
			l->rounds = 0;
		}
	}
	l->at += f->stride;
	return plant_touch(p, l->at - f->stride, 0, pages);
}

static bool step(struct load *l, struct plant *p, const struct load_phase *f)
{
	uint32_t pages = set_pages(f);

	switch (f->kind) {
	case LOAD_FILL:
		return step_fill(l, p, pages);
	case LOAD_CHURN:
		return step_churn(l, p);
	case LOAD_RUNS:
		return step_runs(l, p, pages, f->run);
	case LOAD_SEQ:
		l->at = l->at + 1 < pages ? l->at + 1 : 0;
		return plant_touch(p, l->at, 0, pages);
	case LOAD_SPARSE:
		return step_sparse(l, p, f, pages);
	case LOAD_STREAM:
		plant_read_file(p);
		return plant_touch(p, rnd_below(l, pages), 0, pages);
	case LOAD_RANDOM:
		return plant_touch(p, rnd_below(l, pages), 0, pages);
	case LOAD_IDLE:
	case LOAD_END:
	default:
		plant_idle_until(p, l->phase_end_ns);
		return true;
	}
}

/* A service manager starts a killed program again, not at once. */
static void restart(struct load *l, struct plant *p, uint64_t end_ns)
{
	uint64_t again = p->clock_ns + SEC_NS;

	l->at = l->left = l->rounds = 0;
	plant_idle_until(p, again < end_ns ? again : end_ns);
}

/* A service that falls behind loses requests: it never makes up for more than a second. */
static void pace(struct load *l, struct plant *p, unsigned rate, uint64_t end_ns)
{
	uint64_t due = l->pace_start_ns + ++l->paced * SEC_NS / rate;

	if (p->clock_ns > due + SEC_NS) {
		l->pace_start_ns = p->clock_ns;
		l->paced = 0;
	}
	plant_idle_until(p, due < end_ns ? due : end_ns);
}

void load_run(struct load *l, struct plant *p, uint64_t until_ns)
{
	while (p->clock_ns < until_ns) {
		const struct load_phase *f = load_now(l);
		uint64_t end = l->phase_end_ns < until_ns ? l->phase_end_ns : until_ns;

		while (p->clock_ns < end) {
			if (f->kind == LOAD_IDLE) {
				plant_idle_until(p, end);
				break;
			}
			if (!step(l, p, f)) {
				restart(l, p, end);
				continue;
			}
			l->work[l->phase]++;
			if (f->think_usec)
				plant_compute(p, f->think_usec * UINT64_C(1000));
			if (f->rate)
				pace(l, p, f->rate, end);
		}
		if (p->clock_ns >= l->phase_end_ns)
			next_phase(l, p);
	}
}
