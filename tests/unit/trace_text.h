/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces made in memory, for the tests of lib/trace*.c: a header without
 * memory, ticks of one or more groups, decisions. Every helper fails the
 * running test on error.
 */
#ifndef MTHPD_TEST_TRACE_TEXT_H
#define MTHPD_TEST_TRACE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define SEC UINT64_C(1000000)
#define FIXTURE "tests/fixtures/traces/two-drops.ndjson"
#define FIXTURE_DECISIONS 18
#define STAND "hugepages-64kB/enabled"

struct text {
	FILE *f;
	char *buf;
	size_t size;
};

static inline void text_new(struct text *t)
{
	t->f = open_memstream(&t->buf, &t->size);
	assert_non_null(t->f);
}

static inline void text_line(struct text *t, json_t *j)
{
	size_t n;
	char *s;

	assert_non_null(j);
	s = trace_line_text(j, &n);
	assert_non_null(s);
	fwrite(s, 1, n, t->f);
	free(s);
	json_decref(j);
}

/* The text as a stream to read; free t->buf after it was closed. */
static inline FILE *text_open(struct text *t)
{
	FILE *f;

	if (t->f)
		assert_int_equal(fclose(t->f), 0);
	t->f = NULL;
	f = fmemopen(t->buf, t->size ? t->size : 1, "r");
	assert_non_null(f);
	return f;
}

static inline void must_parse(const char *text, struct choice *c)
{
	assert_int_equal(parse_choice(text, c), 0);
}

/* 4K pages, 64K always, 2M inherits from madvise. */
static inline struct thp_tree small_tree(void)
{
	struct thp_tree t;

	memset(&t, 0, sizeof(t));
	t.page_kb = 4;
	t.pmd_kb = 2048;
	t.pmd_nr = 512;
	t.per_size = true;
	t.n_sizes = 2;
	t.sizes[0].size_kb = 64;
	t.sizes[1].size_kb = 2048;
	must_parse("always [madvise] never", &t.enabled);
	must_parse("always defer [madvise] never", &t.defrag);
	must_parse("[always] inherit madvise never", &t.sizes[0].enabled);
	must_parse("always [inherit] madvise never", &t.sizes[1].enabled);
	t.max_ptes_none = 511;
	t.max_ptes_swap = 64;
	t.max_ptes_shared = 256;
	t.pages_to_scan = 4096;
	t.scan_sleep_millisecs = 10000;
	t.alloc_sleep_millisecs = 60000;
	t.khugepaged_defrag = 1;
	t.shrink_underused = VALUE_ABSENT;
	return t;
}

/* At 1 s of CLOCK_MONOTONIC, 2026-01-02 03:04:05 UTC. */
static inline json_t *header_json(const char *config)
{
	struct thp_tree t = small_tree();
	json_t *j = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:i, s:I, s:I, s:i}",
		"kind", "header", "format", TRACE_FORMAT, "version", TRACE_VERSION, "mthpd", "0.1", "kernel",
		"6.12.1", "config", config, "tree", trace_tree_json(&t), "stands", STAND, "always",
		"hugepages-2048kB/enabled", "inherit", "khugepaged/max_ptes_none", "511", "cpus", 2,
		"realtime_usec", (json_int_t)1767323045000000, "now_usec", (json_int_t)SEC, "mem_total_kb",
		8 << 20);

	assert_non_null(j);
	return j;
}

static inline struct memcg_sample sample_of(uint64_t now_usec, uint64_t id, uint64_t some_usec)
{
	struct memcg_sample s;

	memset(&s, 0xff, sizeof(s)); /* everything absent */
	s.now_usec = now_usec;
	s.id = id;
	s.full_depth = true;
	s.psi_off = false;
	s.psi_errno = 0;
	s.psi.some = (struct psi_line){ some_usec, 0 };
	s.psi.full = (struct psi_line){ some_usec / 2, 0 };
	s.current_bytes = 60 << 20;
	s.max_bytes = s.limit_bytes = 64 << 20;
	s.high_bytes = VALUE_MAX;
	s.margin_bytes = 4 << 20;
	return s;
}

static inline json_t *tick_json(uint64_t now_usec, const char *path, uint64_t id, uint64_t some_usec)
{
	struct memcg_sample s = sample_of(now_usec, id, some_usec);
	json_t *j = json_pack("{s:s, s:I, s:[{s:I, s:o, s:o}]}", "kind", "tick", "now_usec",
		(json_int_t)now_usec, "groups", "id", (json_int_t)id, "path", trace_bytes_json(path),
		"sample", trace_memcg_json(&s));

	assert_non_null(j);
	return j;
}

static inline json_t *decision_of(uint64_t now_usec, unsigned number, const char *knob, const char *old_value,
	const char *new_value, const char *group)
{
	const struct trace_decision d = {
		.now_usec = now_usec,
		.realtime_usec = 1767323045000000 + now_usec - SEC,
		.number = number,
		.knob = knob,
		.old_value = old_value,
		.new_value = new_value,
		.reason = "drop-pressure",
		.outcome = "written",
		.group = group,
		.some = 0.71,
		.full = 0.5,
		.margin_bytes = 300 << 10,
		.refault_per_sec = 42,
	};

	return trace_decision_json(&d);
}

#endif
