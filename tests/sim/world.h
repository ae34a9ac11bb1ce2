/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated machine: some groups, each a plant with a load, the switches
 * in /sys/kernel/mm/transparent_hugepage, khugepaged, and the samples that
 * mthpd would read. Steps second by second; a law (law.h) looks and sets.
 */
#ifndef MTHPD_SIM_WORLD_H
#define MTHPD_SIM_WORLD_H

#include "host.h"
#include "load.h"
#include "memcg.h"
#include "thp.h"

#define WORLD_GROUPS_MAX 64
#define WORLD_CPUS 4
#define SEC_USEC UINT64_C(1000000)

struct group_spec {
	const char *path;
	unsigned count;	      /* so many alike; each has its own seed */
	unsigned limit_mib;
	unsigned swap_mib;    /* 0 = as much as it likes */
	unsigned full_percent; /* of a stall, when no task works; 0 = 100 */
	bool asks;	      /* its memory is madvised */
	struct load_phase phases[LOAD_PHASES_MAX];
};

struct sim_group {
	const struct group_spec *spec;
	char path[48];
	uint64_t id;
	struct plant *plant;
	struct load load;
	unsigned own_orders; /* of a law that can set each group apart */
	bool has_own_orders;
	uint32_t collapse_at;
};

struct world {
	uint64_t now_usec;
	struct sim_group groups[WORLD_GROUPS_MAX];
	unsigned n_groups;
	/* the switches: masks of orders */
	unsigned orders_all, orders_asked;
	bool direct_all, direct_asked; /* defrag: large charges reclaim */
	unsigned max_ptes_none;
	uint64_t scan_sleep_usec, next_scan_usec;
	uint64_t full_scans, pages_collapsed;
	unsigned scan_group;
	uint64_t samples; /* of groups, taken so far */
};

void world_init(struct world *w, const struct group_spec *specs, unsigned n_specs, uint64_t seed);
void world_free(struct world *w);
/* Sizes up to @max_order on or off for all memory. */
void world_set_max_order(struct world *w, unsigned max_order);
/* Lets one second pass. */
void world_second(struct world *w);

void world_sample_group(struct world *w, const struct sim_group *g, struct memcg_sample *ret);
void world_sample_host(const struct world *w, struct host_sample *ret);
void world_sample_size(const struct world *w, unsigned order, struct thp_stats *ret);

#endif
