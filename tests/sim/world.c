/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "world.h"

#include <stdio.h>
#include <string.h>

#define TOTAL_MIB UINT64_C(16384)
#define SWAP_MIB UINT64_C(8192)
/* khugepaged's pages_to_scan=4096: eight PMD ranges in each scan. */
#define SCAN_RANGES 8

static void add_group(struct world *w, const struct group_spec *s, unsigned i, uint64_t seed)
{
	struct sim_group *g = &w->groups[w->n_groups];
	uint32_t pages = load_pages(s->phases);

	*g = (struct sim_group){.spec = s, .id = 1000 + w->n_groups};
	snprintf(g->path, sizeof(g->path), s->count > 1 ? "%s-%u" : "%s", s->path, i);
	pages = (pages + (1U << PLANT_PMD_ORDER) - 1) & ~((1U << PLANT_PMD_ORDER) - 1);
	g->plant = plant_new(pages, s->limit_mib * MIB_PAGES);
	if (s->swap_mib)
		g->plant->swap_limit_pages = s->swap_mib * MIB_PAGES;
	g->plant->full_share = s->full_percent ? s->full_percent / 100.0 : 1;
	load_init(&g->load, s->phases, seed * 101 + w->n_groups, 0);
	w->n_groups++;
}

void world_init(struct world *w, const struct group_spec *specs, unsigned n_specs, uint64_t seed)
{
	*w = (struct world){
		.max_ptes_none = (1U << PLANT_PMD_ORDER) - 1,
		.scan_sleep_usec = 10 * SEC_USEC,
		.direct_asked = true, /* defrag=madvise */
	};
	for (unsigned s = 0; s < n_specs; s++)
		for (unsigned i = 0; i < (specs[s].count ? specs[s].count : 1); i++)
			if (w->n_groups < WORLD_GROUPS_MAX)
				add_group(w, &specs[s], i, seed);
}

void world_free(struct world *w)
{
	for (unsigned i = 0; i < w->n_groups; i++)
		plant_free(w->groups[i].plant);
}

void world_set_max_order(struct world *w, unsigned max_order)
{
	w->orders_all = 0;
	for (unsigned order = PLANT_MIN_ORDER; order <= max_order; order++)
		w->orders_all |= 1U << order;
	w->orders_asked = w->orders_all;
}

static unsigned orders_of(const struct world *w, const struct sim_group *g)
{
	if (g->has_own_orders)
		return g->own_orders;
	return g->spec->asks ? w->orders_asked : w->orders_all;
}

/* ---- khugepaged -------------------------------------------------------- */

static bool scan_next(struct world *w, struct sim_group *g)
{
	uint32_t at = g->collapse_at, n = 1U << PLANT_PMD_ORDER;

	g->collapse_at = at + n;
	if (at + n > g->plant->n_pages) {
		g->collapse_at = 0;
		return false;
	}
	if (orders_of(w, g) & n && load_now(&g->load)->kind != LOAD_CHURN)
		w->pages_collapsed += plant_collapse(g->plant, at);
	return true;
}

static void khugepaged(struct world *w)
{
	if (!w->n_groups || w->now_usec < w->next_scan_usec)
		return;
	w->next_scan_usec = w->now_usec + w->scan_sleep_usec;
	for (unsigned done = 0; done < SCAN_RANGES; done++) {
		if (scan_next(w, &w->groups[w->scan_group]))
			continue;
		w->scan_group = (w->scan_group + 1) % w->n_groups;
		w->full_scans += w->scan_group == 0;
	}
}

void world_second(struct world *w)
{
	w->now_usec += SEC_USEC;
	for (unsigned i = 0; i < w->n_groups; i++) {
		struct sim_group *g = &w->groups[i];

		g->plant->orders = orders_of(w, g);
		g->plant->direct = g->spec->asks ? w->direct_asked : w->direct_all;
		g->plant->max_ptes_none = w->max_ptes_none;
		load_run(&g->load, g->plant, w->now_usec * 1000);
	}
	khugepaged(w);
}

/* ---- samples ----------------------------------------------------------- */

void world_sample_group(struct world *w, const struct sim_group *g, struct memcg_sample *ret)
{
	struct plant *p = g->plant;
	uint64_t used = (uint64_t)(p->anon_pages + p->file_pages) * PLANT_PAGE_BYTES;
	uint64_t limit = (uint64_t)p->limit_pages * PLANT_PAGE_BYTES;
	struct memcg_sample s;

	w->samples++;
	memset(&s, 0xff, sizeof(s)); /* VALUE_ABSENT throughout */
	s.now_usec = w->now_usec;
	s.id = g->id;
	s.full_depth = true;
	s.psi_off = false;
	s.psi_errno = 0;
	s.psi.some = (struct psi_line){.total_usec = (uint64_t)(p->some_ns / 1000)};
	s.psi.full = (struct psi_line){.total_usec = (uint64_t)(p->full_ns / 1000)};
	s.events = (struct memcg_events){
		.max = p->events_max, .oom = p->oom_kill, .oom_kill = p->oom_kill};
	s.events_local = s.events;
	s.current_bytes = used;
	s.max_bytes = s.limit_bytes = limit;
	s.high_bytes = VALUE_MAX;
	s.low_bytes = s.min_bytes = 0;
	s.margin_bytes = value_sub(limit, used);
	s.swap_current_bytes = (uint64_t)p->swap_pages * PLANT_PAGE_BYTES;
	s.swap_max_bytes = VALUE_MAX;
	s.swap_events_max = s.swap_events_fail = 0;
	s.anon = s.inactive_anon = (uint64_t)p->anon_pages * PLANT_PAGE_BYTES;
	s.file = s.inactive_file = (uint64_t)p->file_pages * PLANT_PAGE_BYTES;
	s.kernel = s.shmem = s.shmem_thp = s.file_dirty = s.file_writeback = s.swapcached = 0;
	s.anon_thp = (uint64_t)p->anon_thp_pages * PLANT_PAGE_BYTES;
	s.pgfault = p->pgfault;
	s.pgmajfault = p->pgmajfault;
	s.refault_anon = p->refault_anon;
	s.refault_file = s.activate_anon = s.thp_swpout_fallback = 0;
	s.pgscan = p->pgscan;
	s.pgsteal = p->pgsteal;
	s.thp_fault_alloc = p->thp_fault_alloc;
	s.thp_collapse_alloc = p->thp_collapse_alloc;
	s.usage_usec = p->cpu_ns / 1000;
	plant_cpu_usec(p, &s.user_usec, &s.system_usec);
	*ret = s;
}

void world_sample_host(const struct world *w, struct host_sample *ret)
{
	struct host_sample s = {
		.now_usec = w->now_usec,
		.mem_total_kb = TOTAL_MIB * 1024,
		.mem_available_kb = TOTAL_MIB * 1024,
		.swap_total_kb = SWAP_MIB * 1024,
		.swaps_size_kb = SWAP_MIB * 1024,
		.min_free_kbytes = VALUE_ABSENT,
	};

	for (unsigned i = 0; i < w->n_groups; i++) {
		const struct plant *p = w->groups[i].plant;

		s.mem_available_kb -= (uint64_t)(p->anon_pages + p->file_pages) * 4;
		s.swaps_used_kb += (uint64_t)p->swap_pages * 4;
		s.pgfault += p->pgfault;
		s.pgmajfault += p->pgmajfault;
		s.pswpin += p->refault_anon;
		s.pswpout += p->pswpout;
		s.refault_anon += p->refault_anon;
		s.thp_fault_alloc += p->thp_fault_alloc;
		s.thp_fault_fallback += p->size[PLANT_PMD_ORDER].fault_fallback;
		s.thp_collapse_alloc += p->thp_collapse_alloc;
		s.psi.some.total_usec += (uint64_t)(p->some_ns / 1000);
		s.psi.full.total_usec += (uint64_t)(p->full_ns / 1000);
	}
	s.swap_free_kb = value_sub(s.swap_total_kb, s.swaps_used_kb);
	*ret = s;
}

void world_sample_size(const struct world *w, unsigned order, struct thp_stats *ret)
{
	struct thp_stats s = {.swpin = VALUE_ABSENT,
		.swpin_fallback = VALUE_ABSENT,
		.collapse_alloc = VALUE_ABSENT,
		.nr_anon = VALUE_ABSENT,
		.nr_anon_partially_mapped = VALUE_ABSENT};

	for (unsigned i = 0; i < w->n_groups; i++) {
		const struct plant_size_stats *z = &w->groups[i].plant->size[order];

		s.anon_fault_alloc += z->fault_alloc;
		s.anon_fault_fallback += z->fault_fallback;
		s.anon_fault_fallback_charge += z->fault_fallback_charge;
		s.swpout += z->swpout;
		s.split += z->split;
	}
	*ret = s;
}
