/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much of its large folios a group uses, and what follows for its margin
 * gate (memory.thp.margin, see kernel-patches/): the kernel by itself lets no
 * large folio into a nearly full group, which is right for scattered touches
 * and wrong for neighbouring ones. Only what happens with an open gate tells the
 * one from the other, so the gate is opened on trial, for a few ticks, and stays
 * open where large folios are used nearly whole. Called by controller.c once
 * per tick for groups with files of their own; decides about nothing else.
 *
 * Density = pages in use / pages looked at by reclaim, over large folios
 * (thp_reclaim_young / thp_reclaim_scanned of memory.stat), 0..1.
 */
#ifndef MTHPD_GATE_H
#define MTHPD_GATE_H

#include "config.h"
#include "memcg.h"
#include "reason.h"

/* A reading takes a sixteenth of the group's limit, and so many pages at least and at
 * most: fewer say nothing, more only take longer. */
#define GATE_READING_DIV 16
#define GATE_READING_PAGES_MIN 128
#define GATE_READING_PAGES_MAX 1000
/* A reading is believed for so long. */
#define GATE_READING_USEC UINT64_C(30000000)

enum gate_state {
	GATE_KERNEL, /* as the kernel does it by itself */
	GATE_TRIAL,  /* open, to see */
	GATE_OPEN,
};
const char *gate_state_to_string(enum gate_state s);

struct gate {
	enum gate_state state;
	enum reason reason;
	uint64_t since_usec;
	/* no trial before these; the waits double with each that failed. A fill that
	 * begins has a wait of its own: the old one was for memory that is gone. */
	uint64_t hold_usec, hold_until_usec;
	uint64_t fill_hold_usec, fill_until_usec;
	uint64_t filled_usec; /* last tick in which a fill overflowed */
	bool filling;	      /* this trial is of a fill */
	uint64_t trial_pages; /* swapped in since it began */
	/* the running reading, pages */
	uint64_t scanned_pages, young_pages;
	double density;	       /* of the last full reading; -1 = none yet */
	uint64_t density_usec; /* when that was complete */
};

struct gate_input {
	uint64_t now_usec;
	const struct memcg_delta *d;
	uint64_t limit_pages; /* VALUE_MAX or VALUE_ABSENT = none */
	bool nearly_full;
	bool quiet;
	bool may_probe;
};

void gate_init(struct gate *g, const struct config_controller *cfg);
/* True when a fill of fresh memory has just begun to overflow: what was known of the
 * group's memory is known no more. */
bool gate_step(struct gate *g, const struct config_controller *cfg, const struct gate_input *in);
/* The memory that all this was about is gone. */
void gate_forget(struct gate *g, const struct config_controller *cfg, uint64_t now_usec);
/* The last reading, if it is recent; -1 = unknown. */
double gate_density(const struct gate *g, uint64_t now_usec);
/* Shut, and a fill that begins now would be let through. */
bool gate_undecided(const struct gate *g, uint64_t now_usec);
static inline bool gate_open(const struct gate *g)
{
	return g->state != GATE_KERNEL;
}

#endif
