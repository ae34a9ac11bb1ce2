/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The largest folio of a group, for status and explain: what it can have, and the wish.
 */
#include "engine-internal.h"

/* @kb where max_size says nothing smaller. */
static uint64_t bounded_kb(const char *max_size, uint64_t kb)
{
	uint64_t bytes;

	return parse_u64(max_size, &bytes) < 0 ? kb : value_min(kb, bytes / 1024);
}

/* The smallest max_size over @n and its ancestors holds, whoever set it. */
static uint64_t bounded_above_kb(struct engine *e, const struct node *n)
{
	uint64_t kb = VALUE_MAX;

	for (const struct node *a = n; a && *a->path && e->group_actuator; a = a->parent) {
		struct own_values now, base;

		if (group_actuator_look(e->group_actuator, a->path, a->id, &now, &base) == 0)
			kb = bounded_kb(now.value[OWN_MAX_SIZE], kb);
	}
	return kb;
}

/* What the switches of all are asked for on the group's account. */
static uint64_t wish_kb(const struct engine *e, const struct node *n)
{
	const struct plan *p = &e->loop->plan;
	struct own_limits l = own_limits_of(config_policy_for(e->config, n->path, NULL), p);

	return plan_rung_kb(p, n->group ? n->group->wish.rung : plan_top(p), l.min_kb, l.max_kb);
}

/* The largest of the sizes that are on for all, up to @max_kb. */
static uint64_t on_for_all_kb(const struct engine *e, uint64_t max_kb)
{
	const struct plan *p = &e->loop->plan;
	uint64_t kb = 0;

	for (unsigned i = 0; i < p->n_sizes; i++)
		if (p->sizes[i].managed && p->sizes[i].size_kb <= max_kb &&
			plan_strength(p, &p->sizes[i], e->loop->arbiter.size[i].level) > THP_NEVER)
			kb = p->sizes[i].size_kb;
	return kb;
}

/* What the sizes that are on for all, and the files of the group and of those above it,
 * leave; and what they are to leave. */
struct engine_largest engine_largest_of(struct engine *e, const struct node *n)
{
	const struct plan *p = &e->loop->plan;
	struct engine_largest l;
	uint64_t above_kb;
	struct own o;

	engine_own_read(e, n, &o);
	if (!o.present) {
		above_kb = bounded_above_kb(e, n);
		l.kb = on_for_all_kb(e, above_kb);
		l.wanted_kb = plan_largest_below_kb(p, plan_top(p), e->loop->raised,
			value_min(wish_kb(e, n), above_kb));
		return l;
	}
	above_kb = bounded_above_kb(e, n->parent);
	l.kb = on_for_all_kb(e, bounded_kb(o.stands.value[OWN_MAX_SIZE], above_kb));
	/* Without a file that says it, the wish. */
	l.wanted_kb = on_for_all_kb(e, *o.want.value[OWN_MAX_SIZE] ?
		bounded_kb(o.want.value[OWN_MAX_SIZE], above_kb) : value_min(wish_kb(e, n), above_kb));
	return l;
}
