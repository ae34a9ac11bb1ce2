/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who sets the switches in a simulation: mthpd's loop, wired as the engine
 * wires it (law-mthpd.c), fixed settings and a peer's law (law-peers.c). A law
 * is called once per simulated second, after the world moved.
 */
#ifndef MTHPD_SIM_LAW_H
#define MTHPD_SIM_LAW_H

#include "world.h"

/* The values that stand at the start. */
enum start_values {
	START_ALL,     /* all sizes inherit from a top level of always */
	START_PMD,     /* the kernel's own: always, and only the PMD size inherits */
	START_MADVISE, /* the same under a top level of madvise */
	START_VALUES,
};

struct law {
	const char *name;
	/* @config is a text of mthpd.conf. NULL = the law needs no state. */
	void *(*start)(struct world *w, enum start_values start, const char *config);
	/* True when a decision was applied in this second. */
	bool (*second)(void *state, struct world *w, bool trace);
	void (*end)(void *state);
	unsigned max_order; /* of a fixed setting */
};

/* Sets the switches of @w to the start values. */
void law_start_values(struct world *w, enum start_values start);

extern const struct law law_mthpd, law_nothing, law_bang_bang;
/* Fixed: never, up to 16K, 64K, 256K, 1M, everything. */
#define LAW_STATICS 6
extern const struct law law_static[LAW_STATICS];

#endif
