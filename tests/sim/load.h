/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The programs that run in the simulated groups: access patterns as in
 * tests/vm/workload.c, in phases. Drives a plant; knows nothing of who sets
 * the sizes. Deterministic: the same phases and seed do the same touches.
 */
#ifndef MTHPD_SIM_LOAD_H
#define MTHPD_SIM_LOAD_H

#include "plant.h"

#define MIB_PAGES 256U
#define LOAD_PHASES_MAX 6

enum load_kind {
	LOAD_END, /* closes a list of phases, which starts anew then */
	LOAD_FILL,   /* map, touch every page in order, unmap, again */
	LOAD_CHURN,  /* live=8 maps of 64K..2M, each touched in its first 12 % only */
	LOAD_RANDOM, /* single pages, uniformly */
	LOAD_RUNS,   /* @run neighbours from a random aligned place */
	LOAD_SEQ,    /* page after page, round and round */
	LOAD_SPARSE, /* as SEQ, one page in @stride; unmapped after @rounds (0 = never) */
	LOAD_STREAM, /* one new page of a file for each touch of a random page */
	LOAD_IDLE,
};

struct load_phase {
	enum load_kind kind;
	unsigned seconds;
	unsigned mib;	   /* the set, MiB of address space */
	unsigned run, stride, rounds;
	unsigned think_usec; /* user time per touch */
	unsigned rate;	   /* touches per second at most, 0 = flat out */
	bool keep;	   /* starts with the memory of the phase before */
};

struct load {
	const struct load_phase *phases; /* up to LOAD_PHASES_MAX, then LOAD_END or the end */
	unsigned n_phases, phase;
	uint64_t phase_end_ns, paced, pace_start_ns;
	uint64_t rng;
	uint32_t at, left, rounds;   /* place in the pattern */
	uint32_t ring_size[8];	     /* CHURN: pages of each live map */
	unsigned ring;
	uint64_t work[LOAD_PHASES_MAX]; /* touches done, by phase */
};

void load_init(struct load *l, const struct load_phase *phases, uint64_t seed, uint64_t start_ns);
/* Address space that the phases need, in pages. */
uint32_t load_pages(const struct load_phase *phases);
/* Runs until the plant's clock reaches @until_ns. */
void load_run(struct load *l, struct plant *p, uint64_t until_ns);
const struct load_phase *load_now(const struct load *l);

#endif
