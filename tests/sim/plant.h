/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A toy of one memory cgroup under a memory limit, page by page, in virtual
 * time: faults, large folios, charges, reclaim to swap and back, page cache,
 * the counters that the kernel would show, and what it all costs. Used by the
 * simulations only. It knows nothing of mthpd: the controller's samples are
 * made from its counters by world.c.
 *
 * What it keeps of the kernel, because the control loop depends on it:
 * - one second-chance list, one bit per folio; small reclaims of 32 pages;
 * - a small charge reclaims and counts memory.events:max, a large one does
 *   neither and gives way to the next smaller size (unless `defrag` says so);
 * - a folio is swapped out whole, and comes back as a large one only where the
 *   range was swapped out together (below the PMD size, as Linux 6.12 does);
 * - large folios are taken only where the whole aligned range is unused;
 * - underused PMD folios are split by reclaim when max_ptes_none allows;
 * - user and system time are sampled every 4 ms, pressure is exact.
 */
#ifndef MTHPD_SIM_PLANT_H
#define MTHPD_SIM_PLANT_H

#include <stdbool.h>
#include <stdint.h>

#define PLANT_PAGE_BYTES 4096
#define PLANT_PMD_ORDER 9
#define PLANT_ORDERS (PLANT_PMD_ORDER + 1)
#define PLANT_MIN_ORDER 2 /* the smallest large anonymous folio */

/* Virtual CPU time in ns of each act; see README.md for the calibration. */
struct plant_cost {
	uint64_t touch, fault, zero_page, try_large, major_fault, major_fault_128k,
		major_fault_512k, swap_in_page, swap_out_page, scan_folio, map_unmap, file_read_page, file_drop_page;
	unsigned stall_permille; /* of major faults and reclaim */
};
extern const struct plant_cost plant_cost;

struct plant_size_stats {
	uint64_t fault_alloc, fault_fallback, fault_fallback_charge, swpout, split;
};

enum plant_mode { PLANT_USER, PLANT_SYSTEM };

struct plant {
	/* set by the owner */
	uint32_t limit_pages;
	uint32_t swap_limit_pages;  /* what this group may hold in swap */
	double full_share;	    /* of a stall, the part in which no task works */
	unsigned orders;	    /* mask of the sizes that its memory may use */
	bool direct;		    /* a large charge reclaims (defrag) */
	unsigned max_ptes_none;	    /* PMD folios with more untouched pages are split */
	/* state */
	uint32_t n_pages;
	uint8_t *map;		    /* per page */
	uint32_t *next, *prev;	    /* of folio heads; [n_pages] is the list's end */
	uint32_t anon_pages, anon_thp_pages, file_pages, swap_pages;
	unsigned reclaims;
	uint64_t clock_ns, next_tick_ns;
	uint64_t cpu_ns, ticks[2], shown_usec[2];
	/* counters as the kernel shows them */
	double some_ns, full_ns;
	uint64_t pgfault, pgmajfault, refault_anon, pgscan, pgsteal, pswpout, thp_fault_alloc,
		thp_collapse_alloc, events_max, oom_kill;
	struct plant_size_stats size[PLANT_ORDERS];
};

/* A group with @n_pages of address space. Exits when out of memory. */
struct plant *plant_new(uint32_t n_pages, uint32_t limit_pages);
void plant_free(struct plant *p);

/* User time of the program itself. */
void plant_compute(struct plant *p, uint64_t ns);
/* Nothing runs until @clock_ns. */
void plant_idle_until(struct plant *p, uint64_t clock_ns);
/* One access to @page of the mapping [@from, @to). False after an OOM kill:
 * all memory is gone, the program has to start again. */
bool plant_touch(struct plant *p, uint32_t page, uint32_t from, uint32_t to);
/* Gives the memory of [@from, @to) back; folios never cross a mapping's end. */
void plant_unmap(struct plant *p, uint32_t from, uint32_t to);
/* Reads one new page of a file through the page cache. */
void plant_read_file(struct plant *p);
/* khugepaged looks at the PMD range that starts at @page, a mapping's part.
 * True when it made one folio of it. */
bool plant_collapse(struct plant *p, uint32_t page);
/* User and system time as cpu.stat shows them: the exact sum, split by ticks. */
void plant_cpu_usec(struct plant *p, uint64_t *ret_user, uint64_t *ret_system);

#endif
