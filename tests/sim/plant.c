/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kernel asks for 32; measured, 51-53 came back for each memory.events:max. */
#define RECLAIM_PAGES 44
#define RECLAIM_RETRIES 16
#define TICK_NS UINT64_C(4000000)
/* While there is page cache, one reclaim in so many turns to anonymous memory. */
#define ANON_TURN 64
#define FILE_MIN_PAGES 64
#define COLLAPSE_MAX_SWAP 64

/* A page's byte: unused, resident or swapped out, with the order of the folio
 * that it is or was a part of. */
#define MAP_NONE 0xff
#define MAP_SWAPPED 0x80
#define MAP_TOUCHED 0x40
#define MAP_REF 0x20 /* at the folio's head */
#define MAP_ORDER 0x0f

const struct plant_cost plant_cost = {
	.touch = 1000,
	.fault = 9000,
	.zero_page = 25000,
	.try_large = 9000,
	.major_fault = 80000,
	.major_fault_128k = 65000,
	.major_fault_512k = 35000,
	.swap_in_page = 85000,
	.swap_out_page = 150000,
	.scan_folio = 300,
	.map_unmap = 180000,
	.file_read_page = 15000,
	.file_drop_page = 500,
	.stall_permille = 700,
};

static void *allocate(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fputs("sim: out of memory\n", stderr);
		exit(2);
	}
	return p;
}

struct plant *plant_new(uint32_t n_pages, uint32_t limit_pages)
{
	struct plant *p = allocate(1, sizeof(*p));

	p->n_pages = n_pages;
	p->limit_pages = limit_pages;
	p->swap_limit_pages = UINT32_MAX;
	p->full_share = 1;
	p->max_ptes_none = (1U << PLANT_PMD_ORDER) - 1;
	p->map = allocate(n_pages + 1, 1);
	memset(p->map, MAP_NONE, n_pages);
	p->next = allocate(n_pages + 1, sizeof(*p->next));
	p->prev = allocate(n_pages + 1, sizeof(*p->prev));
	p->next[n_pages] = p->prev[n_pages] = n_pages;
	p->next_tick_ns = TICK_NS;
	return p;
}

void plant_free(struct plant *p)
{
	if (!p)
		return;
	free(p->map);
	free(p->next);
	free(p->prev);
	free(p);
}

/* ---- time -------------------------------------------------------------- */

static void spend(struct plant *p, uint64_t ns, enum plant_mode mode)
{
	p->clock_ns += ns;
	p->cpu_ns += ns;
	while (p->clock_ns >= p->next_tick_ns) {
		p->ticks[mode]++;
		p->next_tick_ns += TICK_NS;
	}
}

static void stall(struct plant *p, uint64_t ns)
{
	double part = (double)ns * plant_cost.stall_permille / 1000;

	spend(p, ns, PLANT_SYSTEM);
	p->some_ns += part;
	p->full_ns += part * p->full_share;
}

void plant_compute(struct plant *p, uint64_t ns)
{
	spend(p, ns, PLANT_USER);
}

void plant_idle_until(struct plant *p, uint64_t clock_ns)
{
	if (clock_ns <= p->clock_ns)
		return;
	p->clock_ns = clock_ns;
	p->next_tick_ns = clock_ns / TICK_NS * TICK_NS + TICK_NS;
}

void plant_cpu_usec(struct plant *p, uint64_t *ret_user, uint64_t *ret_system)
{
	/* As cputime_adjust() does: the exact sum divided by the ticks, and
	 * neither part ever goes back. */
	uint64_t total = p->cpu_ns / 1000, n = p->ticks[PLANT_USER] + p->ticks[PLANT_SYSTEM];
	uint64_t system =
		n ? (uint64_t)((double)total * (double)p->ticks[PLANT_SYSTEM] / (double)n) : 0;

	if (system < p->shown_usec[PLANT_SYSTEM])
		system = p->shown_usec[PLANT_SYSTEM];
	if (total - system < p->shown_usec[PLANT_USER])
		system = total - p->shown_usec[PLANT_USER];
	p->shown_usec[PLANT_SYSTEM] = system;
	p->shown_usec[PLANT_USER] = total - system;
	*ret_user = total - system;
	*ret_system = system;
}

/* ---- folios ------------------------------------------------------------ */

static uint32_t folio_head(const struct plant *p, uint32_t page)
{
	return page & ~((1U << (p->map[page] & MAP_ORDER)) - 1);
}

static bool is_resident(uint8_t m)
{
	return !(m & MAP_SWAPPED);
}

static bool is_swapped(uint8_t m)
{
	return m != MAP_NONE && (m & MAP_SWAPPED);
}

static void link_head(struct plant *p, uint32_t head)
{
	uint32_t end = p->n_pages, first = p->next[end];

	p->next[head] = first;
	p->prev[head] = end;
	p->prev[first] = head;
	p->next[end] = head;
}

static void unlink_folio(struct plant *p, uint32_t head)
{
	p->next[p->prev[head]] = p->next[head];
	p->prev[p->next[head]] = p->prev[head];
}

static void add_folio(struct plant *p, uint32_t head, unsigned order)
{
	memset(p->map + head, (int)order, 1U << order);
	p->anon_pages += 1U << order;
	if (order == PLANT_PMD_ORDER)
		p->anon_thp_pages += 1U << order;
	link_head(p, head);
}

static void remove_folio(struct plant *p, uint32_t head, unsigned order)
{
	unlink_folio(p, head);
	p->anon_pages -= 1U << order;
	if (order == PLANT_PMD_ORDER)
		p->anon_thp_pages -= 1U << order;
}

/* ---- reclaim ----------------------------------------------------------- */

static uint32_t usage(const struct plant *p)
{
	return p->anon_pages + p->file_pages;
}

/* Splits a PMD folio and frees what was never touched. Returns pages freed. */
static unsigned split_underused(struct plant *p, uint32_t head)
{
	unsigned n = 1U << PLANT_PMD_ORDER, freed = 0;

	remove_folio(p, head, PLANT_PMD_ORDER);
	p->size[PLANT_PMD_ORDER].split++;
	for (uint32_t i = head; i < head + n; i++) {
		if (!(p->map[i] & MAP_TOUCHED)) {
			p->map[i] = MAP_NONE;
			freed++;
			continue;
		}
		add_folio(p, i, 0);
		p->map[i] |= MAP_TOUCHED;
	}
	return freed;
}

static bool is_underused(const struct plant *p, uint32_t head)
{
	unsigned untouched = 0;

	for (uint32_t i = head; i < head + (1U << PLANT_PMD_ORDER); i++)
		untouched += !(p->map[i] & MAP_TOUCHED);
	return untouched > p->max_ptes_none;
}

static unsigned swap_out(struct plant *p, uint32_t head, unsigned order)
{
	unsigned n = 1U << order;

	if (n > p->swap_limit_pages || p->swap_pages > p->swap_limit_pages - n)
		return 0;
	remove_folio(p, head, order);
	memset(p->map + head, (int)(MAP_SWAPPED | order), n);
	p->swap_pages += n;
	p->pswpout += n;
	p->size[order].swpout++;
	stall(p, n * plant_cost.swap_out_page);
	return n;
}

/* One folio from the old end: given a second chance, or swapped out. */
static unsigned reclaim_one(struct plant *p)
{
	uint32_t head = p->prev[p->n_pages];
	unsigned order = p->map[head] & MAP_ORDER, freed;

	p->pgscan += 1U << order;
	stall(p, plant_cost.scan_folio);
	if (order == PLANT_PMD_ORDER && p->max_ptes_none < (1U << PLANT_PMD_ORDER) - 1 &&
		is_underused(p, head))
		return split_underused(p, head);
	if (p->map[head] & MAP_REF) {
		p->map[head] &= (uint8_t)~MAP_REF;
		unlink_folio(p, head);
		link_head(p, head);
		return 0;
	}
	freed = swap_out(p, head, order);
	if (!freed) {
		unlink_folio(p, head);
		link_head(p, head);
	}
	return freed;
}

/* Clean page cache goes first; now and then one anonymous folio is looked at. */
static unsigned drop_files(struct plant *p, unsigned want)
{
	unsigned room = p->file_pages > FILE_MIN_PAGES ? p->file_pages - FILE_MIN_PAGES : 0;
	unsigned freed = 0;

	if (!room)
		return 0;
	if (p->reclaims % ANON_TURN == 0 && p->anon_pages)
		freed = reclaim_one(p);
	if (freed >= want)
		return freed;
	if (room > want - freed)
		room = want - freed;
	p->file_pages -= room;
	p->pgscan += room;
	stall(p, room * plant_cost.file_drop_page);
	return freed + room;
}

static unsigned reclaim(struct plant *p, unsigned want)
{
	uint32_t looks = 2 * p->anon_pages + 1;
	unsigned freed;

	p->reclaims++;
	freed = drop_files(p, want);
	while (freed < want && p->anon_pages && looks--)
		freed += reclaim_one(p);
	p->pgsteal += freed;
	return freed;
}

/* ---- charges ----------------------------------------------------------- */

static void oom_kill(struct plant *p)
{
	p->oom_kill++;
	plant_unmap(p, 0, p->n_pages);
}

static bool charge_small(struct plant *p)
{
	for (unsigned i = 0; usage(p) + 1 > p->limit_pages; i++) {
		p->events_max++;
		if (i == RECLAIM_RETRIES) {
			oom_kill(p);
			return false;
		}
		reclaim(p, RECLAIM_PAGES);
	}
	return true;
}

static bool charge_large(struct plant *p, unsigned order)
{
	uint32_t n = 1U << order;

	if (usage(p) + n <= p->limit_pages)
		return true;
	if (p->direct && n < p->limit_pages) {
		p->events_max++;
		reclaim(p, n > RECLAIM_PAGES ? n : RECLAIM_PAGES);
		if (usage(p) + n <= p->limit_pages)
			return true;
	}
	spend(p, plant_cost.try_large, PLANT_SYSTEM);
	return false;
}

/* ---- faults ------------------------------------------------------------ */

static bool range_unused(const struct plant *p, uint32_t base, unsigned order)
{
	for (uint32_t i = base; i < base + (1U << order); i++)
		if (p->map[i] != MAP_NONE)
			return false;
	return true;
}

static bool range_swapped_together(const struct plant *p, uint32_t base, unsigned order)
{
	for (uint32_t i = base; i < base + (1U << order); i++)
		if (!is_swapped(p->map[i]) || (p->map[i] & MAP_ORDER) < order)
			return false;
	return true;
}

/* The largest order that fits, is enabled and can be charged; 0 otherwise. */
static unsigned choose_order(
	struct plant *p, uint32_t page, uint32_t from, uint32_t to, bool swapped)
{
	unsigned max = swapped ? p->map[page] & MAP_ORDER : PLANT_PMD_ORDER;

	if (swapped && max >= PLANT_PMD_ORDER)
		max = PLANT_PMD_ORDER - 1;
	for (unsigned order = max; order >= PLANT_MIN_ORDER; order--) {
		uint32_t base = page & ~((1U << order) - 1);

		if (!(p->orders & (1U << order)) || base < from || base + (1U << order) > to)
			continue;
		if (swapped ? !range_swapped_together(p, base, order)
			    : !range_unused(p, base, order))
			continue;
		if (charge_large(p, order)) {
			p->size[order].fault_alloc += !swapped;
			return order;
		}
		p->size[order].fault_fallback += !swapped;
		p->size[order].fault_fallback_charge += !swapped;
		/* Direct reclaim may have changed the range. */
	}
	return 0;
}

static bool fault_fresh(struct plant *p, uint32_t page, uint32_t from, uint32_t to)
{
	unsigned order = choose_order(p, page, from, to, false);

	if (!order && !charge_small(p))
		return false;
	spend(p, plant_cost.fault + (plant_cost.zero_page << order), PLANT_SYSTEM);
	if (order == PLANT_PMD_ORDER)
		p->thp_fault_alloc++;
	add_folio(p, page & ~((1U << order) - 1), order);
	return true;
}

/* What sizes above 64K add to every major fault while they are enabled. */
static uint64_t sizes_cost(const struct plant *p)
{
	return (uint64_t)__builtin_popcount(p->orders >> 5 & 3) * plant_cost.major_fault_128k +
	       (uint64_t)__builtin_popcount(p->orders >> 7 & 3) * plant_cost.major_fault_512k;
}

static bool fault_swapped(struct plant *p, uint32_t page, uint32_t from, uint32_t to)
{
	unsigned order = choose_order(p, page, from, to, true), n = 1U << order;

	if (!order && !charge_small(p))
		return false;
	p->pgmajfault++;
	p->refault_anon += n;
	p->swap_pages -= n;
	stall(p, plant_cost.major_fault + n * plant_cost.swap_in_page + sizes_cost(p));
	add_folio(p, page & ~(n - 1), order);
	/* What was swapped out had been touched once, as far as anybody knows. */
	for (uint32_t i = page & ~(n - 1); i < (page & ~(n - 1)) + n; i++)
		p->map[i] |= MAP_TOUCHED;
	return true;
}

bool plant_touch(struct plant *p, uint32_t page, uint32_t from, uint32_t to)
{
	uint8_t m = p->map[page];

	if (!is_resident(m)) {
		p->pgfault++;
		if (m == MAP_NONE ? !fault_fresh(p, page, from, to)
				  : !fault_swapped(p, page, from, to))
			return false;
	} else {
		p->map[folio_head(p, page)] |= MAP_REF;
	}
	p->map[page] |= MAP_TOUCHED;
	spend(p, plant_cost.touch, PLANT_USER);
	return true;
}

void plant_unmap(struct plant *p, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to;) {
		uint8_t m = p->map[i];

		if (m == MAP_NONE) {
			i++;
		} else if (is_swapped(m)) {
			p->swap_pages--;
			p->map[i++] = MAP_NONE;
		} else {
			unsigned order = m & MAP_ORDER;

			remove_folio(p, i, order);
			memset(p->map + i, MAP_NONE, 1U << order);
			i += 1U << order;
		}
	}
	spend(p, plant_cost.map_unmap, PLANT_SYSTEM);
}

void plant_read_file(struct plant *p)
{
	if (charge_small(p))
		p->file_pages++;
	spend(p, plant_cost.file_read_page, PLANT_SYSTEM);
}

bool plant_collapse(struct plant *p, uint32_t page)
{
	unsigned n = 1U << PLANT_PMD_ORDER, none = 0, swapped = 0, resident = 0;

	if ((p->map[page] & ~(MAP_TOUCHED | MAP_REF)) == PLANT_PMD_ORDER)
		return false;
	for (uint32_t i = page; i < page + n; i++) {
		none += p->map[i] == MAP_NONE;
		swapped += is_swapped(p->map[i]);
		resident += is_resident(p->map[i]);
	}
	if (!resident || swapped > COLLAPSE_MAX_SWAP || none > p->max_ptes_none ||
		usage(p) + n > p->limit_pages)
		return false;
	for (uint32_t i = page; i < page + n; i++) {
		uint8_t m = p->map[i];

		if (is_swapped(m))
			p->swap_pages--;
		else if (m != MAP_NONE && folio_head(p, i) == i)
			remove_folio(p, i, m & MAP_ORDER);
	}
	for (uint32_t i = page; i < page + n; i++)
		p->map[i] = p->map[i] == MAP_NONE ? PLANT_PMD_ORDER : PLANT_PMD_ORDER | MAP_TOUCHED;
	p->anon_pages += n;
	p->anon_thp_pages += n;
	link_head(p, page);
	p->thp_collapse_alloc++;
	return true;
}
