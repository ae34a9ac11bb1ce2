/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The largest folio of a group, for status and explain: what it can have, and the wish.
 */
#include "engine-internal.h"

/* @kb where max_size says nothing smaller; 0 = single pages. */
static uint64_t bounded_kb(const struct engine *e, const char *max_size, uint64_t kb)
{
	uint64_t bytes;

	if (parse_u64(max_size, &bytes) < 0 || bytes / 1024 >= kb)
		return kb;
	return bytes / 1024 > e->loop->plan.page_kb ? bytes / 1024 : 0;
}

/* The smallest max_size over @n and its ancestors holds, whoever set it. */
static uint64_t bounded_above_kb(struct engine *e, const struct node *n, uint64_t kb)
{
	for (const struct node *a = n; a && *a->path && e->group_actuator; a = a->parent) {
		struct own_values now, base;

		if (group_actuator_look(e->group_actuator, a->path, a->id, &now, &base) == 0)
			kb = bounded_kb(e, now.value[OWN_MAX_SIZE], kb);
	}
	return kb;
}

/* With a file of its own it has what that holds, of the sizes that are on for all;
 * elsewhere the wish is all that there is to tell. */
struct engine_largest engine_largest_of(struct engine *e, const struct node *n)
{
	const struct plan *p = &e->loop->plan;
	bool raised = n->group && n->group->wish.raised;
	uint64_t wish = plan_largest_on_kb(p, n->group ? n->group->wish.rung : plan_top(p), raised);
	struct engine_largest l;
	struct own o;

	engine_own_read(e, n, &o);
	if (!o.present) {
		l.kb = l.wanted_kb = bounded_above_kb(e, n, wish);
		return l;
	}
	l.kb = bounded_above_kb(e, n->parent, plan_largest_on_kb(p, plan_top(p), raised));
	l.wanted_kb = *o.want.value[OWN_MAX_SIZE] ? bounded_kb(e, o.want.value[OWN_MAX_SIZE], l.kb) :
						    value_min(wish, l.kb);
	l.kb = bounded_kb(e, o.stands.value[OWN_MAX_SIZE], l.kb);
	return l;
}
