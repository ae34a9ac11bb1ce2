/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Trees, configurations and samples made in memory, for the tests of the plan,
 * the controller, the host rules, the arbiter and the loop. The base is a
 * 4K-page x86 tree as in the field cases: sizes 16K..2M, only the PMD size
 * inherits, max_ptes_none 511. Every helper fails the running test on error.
 */
#ifndef MTHPD_TEST_LOOP_WORLD_H
#define MTHPD_TEST_LOOP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "loop.h"

#define SEC UINT64_C(1000000)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define SIZE_NEVER "always inherit madvise [never]"
#define SIZE_MADVISE "always inherit [madvise] never"
#define SIZE_INHERIT "always [inherit] madvise never"
#define SIZE_ALWAYS "[always] inherit madvise never"
#define TOP_NEVER "always madvise [never]"
#define TOP_MADVISE "always [madvise] never"
#define TOP_ALWAYS "[always] madvise never"

static inline void set_choice(struct choice *c, const char *text)
{
	if (parse_choice(text, c) < 0)
		fail_msg("%s is no choice", text);
}

/* An empty tree with khugepaged's defaults; sizes follow with tree_size(). */
static inline struct thp_tree tree_empty(unsigned page_kb, uint64_t pmd_kb, const char *top)
{
	struct thp_tree t;

	memset(&t, 0, sizeof(t));
	t.page_kb = page_kb;
	t.pmd_kb = pmd_kb;
	t.pmd_nr = pmd_kb / page_kb;
	set_choice(&t.enabled, top);
	set_choice(&t.defrag, "always defer defer+madvise [madvise] never");
	t.max_ptes_none = t.pmd_nr - 1;
	t.max_ptes_swap = t.pmd_nr / 8;
	t.max_ptes_shared = t.pmd_nr / 2;
	t.pages_to_scan = 4096;
	t.scan_sleep_millisecs = 10000;
	t.alloc_sleep_millisecs = 60000;
	t.khugepaged_defrag = 1;
	t.shrink_underused = 1;
	return t;
}

static inline struct choice *tree_size(struct thp_tree *t, uint64_t size_kb, const char *enabled)
{
	unsigned i = 0;

	t->per_size = true;
	while (i < t->n_sizes && t->sizes[i].size_kb != size_kb)
		i++;
	assert_true(i < THP_SIZES_MAX);
	if (i == t->n_sizes)
		t->n_sizes++;
	t->sizes[i].size_kb = size_kb;
	set_choice(&t->sizes[i].enabled, enabled);
	return &t->sizes[i].enabled;
}

/* Sizes from 4 x the page size up, all but the PMD size at @enabled, which inherits. */
static inline struct thp_tree tree_full(
	unsigned page_kb, uint64_t pmd_kb, const char *top, const char *enabled)
{
	struct thp_tree t = tree_empty(page_kb, pmd_kb, top);

	for (uint64_t kb = 4 * (uint64_t)page_kb; kb <= pmd_kb; kb *= 2)
		tree_size(&t, kb, kb == pmd_kb ? SIZE_INHERIT : enabled);
	return t;
}

static inline void config_fault(
	const char *file, unsigned line, const char *message, void *userdata)
{
	(void)userdata;
	print_error("%s:%u: %s\n", file, line, message);
}

static inline struct config *config_of(const char *text)
{
	struct config *c = NULL;

	if (config_load_text("test", text, strlen(text), config_fault, NULL, &c) < 0)
		fail_msg("the test's configuration is faulty");
	return c;
}

static inline struct plan plan_of(const struct thp_tree *t, const char *config_text)
{
	struct config *c = config_of(config_text);
	struct plan p;

	plan_build(t, c, false, 16 * MIB, &p);
	config_free(c);
	return p;
}

static inline const struct plan_size *plan_find(const struct plan *p, uint64_t size_kb)
{
	for (unsigned i = 0; i < p->n_sizes; i++)
		if (p->sizes[i].size_kb == size_kb)
			return &p->sizes[i];
	fail_msg("no size %lu", (unsigned long)size_kb);
	return NULL;
}

/* A group's sample with every counter at 0 and a limit of @max_bytes; its kernel
 * has no memory.events.local. */
static inline struct memcg_sample sample_of(uint64_t max_bytes, uint64_t current_bytes)
{
	struct memcg_sample s;

	memset(&s, 0, sizeof(s));
	memset(&s.events_local, 0xff, sizeof(s.events_local));
	s.now_usec = SEC;
	s.id = 42;
	s.full_depth = true;
	s.max_bytes = s.limit_bytes = max_bytes;
	s.high_bytes = VALUE_MAX;
	s.swap_max_bytes = VALUE_MAX;
	s.current_bytes = s.anon = current_bytes;
	s.margin_bytes = value_known(max_bytes) ? value_sub(max_bytes, current_bytes) : VALUE_MAX;
	return s;
}

static inline void sample_use(struct memcg_sample *s, uint64_t current_bytes)
{
	s->current_bytes = s->anon = current_bytes;
	s->margin_bytes =
		value_known(s->limit_bytes) ? value_sub(s->limit_bytes, current_bytes) : VALUE_MAX;
}

#endif
