/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One controller with one group's counters, stepped second by second. What a
 * test does not change stays as it is; counters only grow by what it adds.
 */
#ifndef MTHPD_TEST_CONTROLLER_RIG_H
#define MTHPD_TEST_CONTROLLER_RIG_H

#include "loop_world.h"

struct rig {
	struct thp_tree tree;
	struct plan plan;
	struct config *config;
	const struct config_policy *policy;
	struct controller c;
	struct ctl_wish wish;
	struct memcg_sample prev, s;
	struct memcg_delta d;
	struct ctl_input in;
	uint64_t start_usec;
};

static inline const struct config_controller *rig_cfg(const struct rig *r)
{
	return r->policy ? &r->policy->controller : &r->config->controller;
}

/* The policy of @path in @config, if any; @limit_bytes VALUE_MAX = none. */
static inline void rig_start(struct rig *r, const struct thp_tree *tree, const char *config,
	const char *path, uint64_t limit_bytes)
{
	memset(r, 0, sizeof(*r));
	r->tree = *tree;
	r->config = config_of(config);
	r->policy = config_policy_for(r->config, path, NULL);
	plan_build(&r->tree, r->config, false, 16 * MIB, &r->plan);
	r->s = sample_of(limit_bytes, 0);
	r->s.now_usec = r->start_usec = 1000 * SEC;
	controller_init(&r->c, &r->plan, rig_cfg(r), r->s.now_usec);
	r->in = (struct ctl_input){.s = &r->s,
		.d = &r->d,
		.cpus = 2,
		.page_bytes = r->plan.page_kb * 1024,
		.pmd_nr = r->plan.pmd_nr,
		.host_available_bytes = 8 * GIB,
		.host_total_bytes = 16 * GIB,
		.may_probe = true,
		.may_raise = true};
	r->prev = r->s;
}

static inline void rig_stop(struct rig *r)
{
	config_free(r->config);
}

/* One second in which @some of the time a task and @full of it all stall. */
static inline void rig_second(struct rig *r, double some, double full)
{
	if (some >= 0) {
		r->s.psi.some.total_usec += (uint64_t)(some * 1e6 + 0.5);
		r->s.psi.full.total_usec += (uint64_t)(full * 1e6 + 0.5);
	} else {
		r->s.psi.some.total_usec = r->s.psi.full.total_usec = VALUE_ABSENT;
	}
	r->s.now_usec += SEC;
	assert_int_equal(memcg_delta(&r->prev, &r->s, &r->d), 0);
	r->in.now_usec = r->s.now_usec;
	controller_step(&r->c, &r->plan, rig_cfg(r), r->policy, &r->in, &r->wish);
	r->prev = r->s;
	r->in.foreign = false;
	/* What holds at all times. */
	assert_true(r->wish.rung < r->plan.n_rungs);
	assert_true(r->c.rung < r->plan.n_rungs);
	assert_true(r->c.hold_usec <= rig_cfg(r)->hold_max_usec);
	if (r->wish.hurt)
		assert_true(r->c.dropped);
}

/* Uses so much; what is new was touched page by page. */
static inline void rig_use(struct rig *r, uint64_t bytes)
{
	r->s.pgfault += value_sub(bytes, r->s.current_bytes) / r->in.page_bytes;
	sample_use(&r->s, bytes);
}

static inline void rig_full(struct rig *r)
{
	rig_use(r, r->s.limit_bytes);
}

static inline void rig_room(struct rig *r)
{
	rig_use(r, r->s.limit_bytes / 4);
}

/* A second of thrashing at the limit: large folios come back from swap whole. */
static inline void rig_thrash(struct rig *r, double some)
{
	rig_full(r);
	r->s.events.max += 75;
	r->s.pgfault += 1100;
	r->s.pgmajfault += 1100;
	r->s.refault_anon += 3800;
	r->s.system_usec += 900000;
	r->s.usage_usec += 900000;
	rig_second(r, some, some);
}

/* Quiet, with three quarters of the limit free. */
static inline void rig_quiet(struct rig *r, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		rig_room(r);
		rig_second(r, 0.001, 0);
	}
}

/* The same while much fresh memory is faulted in. */
static inline void rig_fill(struct rig *r, unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		rig_room(r);
		r->s.pgfault += 20000;
		r->s.system_usec += 500000;
		r->s.usage_usec += 500000;
		rig_second(r, 0.001, 0);
	}
}

static inline double rig_age(const struct rig *r)
{
	return (double)(r->s.now_usec - r->start_usec) / (double)SEC;
}

#define TOP(r) plan_top(&(r)->plan)

static inline void start_all_on(struct rig *r, const char *config)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_INHERIT);

	/* 2 MiB is no large part of this limit. */
	rig_start(r, &t, config, "g", 256 * MIB);
	rig_quiet(r, 2);
	assert_int_equal(r->wish.rung, TOP(r));
	assert_int_equal(r->wish.reason, REASON_START_VALUES);
}

static inline void drop_it(struct rig *r)
{
	for (int i = 0; i < 5 && r->c.state != CTL_DROP; i++)
		rig_thrash(r, 0.7);
	assert_int_equal(r->c.state, CTL_DROP);
}

static inline void start_kernel_default(struct rig *r, const char *config)
{
	struct thp_tree t = tree_full(4, 2048, TOP_ALWAYS, SIZE_NEVER);

	rig_start(r, &t, config, "g", 64 * MIB);
	rig_quiet(r, 3);
}

#endif
