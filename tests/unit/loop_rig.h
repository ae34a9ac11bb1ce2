/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The whole loop with some groups and a host, ticked second by second as the
 * engine does it; remembers what the files would hold.
 */
#ifndef MTHPD_TEST_LOOP_RIG_H
#define MTHPD_TEST_LOOP_RIG_H

#include <stdlib.h>

#include "loop_world.h"

#define RIG_GROUPS 8

struct loop_rig {
	struct thp_tree tree;
	struct config *config;
	struct loop *loop;
	uint64_t now_usec;
	struct host_sample host;
	struct thp_stats stats[THP_SIZES_MAX];
	struct hostrules_input in;
	struct loop_group *group[RIG_GROUPS];
	struct memcg_sample s[RIG_GROUPS];
	unsigned n;
	/* what was applied */
	struct loop_want stands[LOOP_KNOBS_MAX];
	unsigned n_stands;
	unsigned writes, decisions; /* since the start */
	uint64_t decided_usec[8192];
};

static inline struct plan lrig_plan(const struct loop_rig *r)
{
	struct plan p;

	plan_build(&r->tree, r->config, false, 16 * MIB, &p);
	return p;
}

static inline void lrig_remember(struct loop_rig *r)
{
	memcpy(r->stands, r->loop->wants, sizeof(r->stands));
	r->n_stands = r->loop->n_wants;
}

static inline void lrig_start(struct loop_rig *r, const struct thp_tree *tree, const char *config)
{
	struct plan p;

	memset(r, 0, sizeof(*r));
	r->tree = *tree;
	r->config = config_of(config);
	p = lrig_plan(r);
	r->now_usec = 1000 * SEC;
	r->loop = loop_new(r->config, &p, 2, r->now_usec);
	assert_non_null(r->loop);
	r->host.mem_total_kb = 16 * MIB;
	r->host.mem_available_kb = 8 * MIB;
	r->host.swaps_size_kb = 4 * MIB;
	r->host.swaps_used_kb = MIB;
	r->in = (struct hostrules_input){.host = &r->host, .stats = r->stats};
	lrig_remember(r);
}

static inline void lrig_reload(struct loop_rig *r, const char *config)
{
	struct config *old = r->config;
	struct plan p;

	r->config = config_of(config);
	p = lrig_plan(r);
	loop_reconfigure(r->loop, r->config, &p);
	config_free(old);
}

static inline void lrig_stop(struct loop_rig *r)
{
	loop_free(r->loop);
	config_free(r->config);
}

static inline struct memcg_sample *lrig_add(struct loop_rig *r, const char *path, uint64_t limit)
{
	unsigned i = r->n++;

	r->s[i] = sample_of(limit, value_known(limit) ? limit / 4 : 16 * MIB);
	r->s[i].id = 100 + i;
	r->group[i] = loop_group_add(r->loop, r->s[i].id, path);
	assert_non_null(r->group[i]);
	return &r->s[i];
}

static inline const char *lrig_value(const struct loop_rig *r, const char *path)
{
	for (unsigned i = 0; i < r->n_stands; i++)
		if (!strcmp(r->stands[i].path, path))
			return r->stands[i].value;
	return "";
}

/* Writes that a decision causes now; counts them. */
static inline unsigned lrig_apply(struct loop_rig *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->loop->n_wants; i++)
		n += strcmp(lrig_value(r, r->loop->wants[i].path), r->loop->wants[i].value) != 0;
	lrig_remember(r);
	r->writes += n;
	if (!n)
		return 0;
	loop_applied(r->loop, r->now_usec);
	assert_true(r->decisions < sizeof(r->decided_usec) / sizeof(r->decided_usec[0]));
	r->decided_usec[r->decisions++] = r->now_usec;
	return n;
}

/* One tick; returns the number of files written. */
static inline unsigned lrig_tick(struct loop_rig *r)
{
	bool foreign = r->loop->foreign;

	r->now_usec += SEC;
	r->host.now_usec = r->now_usec;
	loop_begin(r->loop, r->now_usec);
	r->loop->foreign = foreign;
	loop_observe_host(r->loop, &r->in);
	for (unsigned i = 0; i < r->n; i++) {
		r->s[i].now_usec = r->now_usec;
		loop_observe(r->loop, r->group[i], &r->s[i]);
	}
	loop_decide(r->loop, false);
	return lrig_apply(r);
}

static inline void sample_stall(struct memcg_sample *s, double some, double full)
{
	s->psi.some.total_usec += (uint64_t)(some * 1e6 + 0.5);
	s->psi.full.total_usec += (uint64_t)(full * 1e6 + 0.5);
}

/* A second of thrashing at the limit. */
static inline void sample_thrash(struct memcg_sample *s)
{
	uint64_t grown = value_sub(s->limit_bytes, s->current_bytes) / 4096;

	sample_use(s, s->limit_bytes);
	s->events.max += 75;
	s->pgfault += 1100 + grown;
	s->pgmajfault += 1100;
	s->refault_anon += 3800;
	s->usage_usec += 900000;
	s->system_usec += 900000;
	sample_stall(s, 0.7, 0.7);
}

static inline void sample_quiet(struct memcg_sample *s)
{
	sample_use(s, s->limit_bytes / 4);
}

/* A second of filling fresh memory with room to spare. */
static inline void sample_fill(struct memcg_sample *s)
{
	sample_quiet(s);
	s->pgfault += 20000;
	s->usage_usec += 800000;
	s->system_usec += 500000;
	s->user_usec += 300000;
}

static inline struct thp_tree all_on(void)
{
	return tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);
}

static inline struct thp_tree kernel_default(void)
{
	return tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);
}

static inline void size_path(char *buf, uint64_t kb)
{
	thp_size_path(buf, kb, "enabled");
}

static inline const char *size_value(const struct loop_rig *r, uint64_t kb)
{
	char path[THP_PATH_MAX];

	size_path(path, kb);
	return lrig_value(r, path);
}

static inline void expect_sizes(const struct loop_rig *r, const char *word)
{
	for (unsigned i = 0; i < r->loop->plan.n_sizes; i++)
		assert_string_equal(size_value(r, r->loop->plan.sizes[i].size_kb), word);
}

#endif
