/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-replay-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"

/* ---- groups ------------------------------------------------------------ */

static const struct config_policy *policy_by_name(const struct config *c, const char *name)
{
	for (unsigned i = 0; name && i < c->n_policies; i++)
		if (!strcmp(c->policies[i].name, name))
			return &c->policies[i];
	return NULL;
}

/* The recorded configuration applies as it was applied: by the policy's name.
 * Its patterns may have been written in bytes that no trace can hold, or have
 * been made unreadable on purpose. */
static void set_policy(const struct replay *r, struct loop_group *g, const char *name)
{
	if (r->override)
		return;
	g->policy = policy_by_name(r->recorded, name);
	g->controlled = !g->policy || g->policy->controlled;
}

struct loop_group *replay_group_new(
	struct loop *l, uint64_t id, const char *path, const char *policy, void *userdata)
{
	struct replay *r = userdata;
	char *copy = strdup(path);
	struct loop_group *g = copy ? loop_group_add(l, id, copy) : NULL;

	if (!g) {
		free(copy);
		return NULL;
	}
	g->owner = copy;
	set_policy(r, g, policy);
	controller_init(&g->ctl, &l->plan,
		g->policy ? &g->policy->controller : &l->config->controller, l->now_usec);
	return g;
}

void replay_group_free(struct loop *l, struct loop_group *g)
{
	char *path = g->owner;

	loop_group_remove(l, g);
	free(path);
}

/* An id alone is unique on a real cgroup2 only. */
static bool is_group(const struct loop_group *g, const struct trace_group *in)
{
	return g->id == in->id && !strcmp(g->path, in->path);
}

static struct loop_group *find_group(const struct replay *r, size_t i)
{
	const struct trace_group *in = &r->tick.groups[i];
	const struct loop *l = r->loop;

	/* The order of the trace is that of the loop, but for a few. */
	if (i < l->n_groups && is_group(l->groups[i], in))
		return l->groups[i];
	for (i = 0; i < l->n_groups; i++)
		if (is_group(l->groups[i], in))
			return l->groups[i];
	return NULL;
}

struct named {
	uint64_t id;
	const char *path;
};

static int compare_names(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1) : strcmp(x->path, y->path);
}

int replay_drop_others(struct replay *r)
{
	const struct trace_tick *t = &r->tick;
	_cleanup_free_ struct named *sorted = calloc(t->n_groups + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_groups; i++)
		sorted[i] = (struct named){ t->groups[i].id, t->groups[i].path };
	qsort(sorted, t->n_groups, sizeof(*sorted), compare_names);
	for (size_t i = r->loop->n_groups; i-- > 0;) {
		struct loop_group *g = r->loop->groups[i];
		const struct named key = { g->id, g->path };

		if (!bsearch(&key, sorted, t->n_groups, sizeof(*sorted), compare_names))
			replay_group_free(r->loop, g);
	}
	return 0;
}

void replay_drop_gone(struct replay *r)
{
	const struct trace_tick *t = &r->tick;

	for (size_t i = 0; i < t->n_groups; i++) {
		struct loop_group *g = t->groups[i].gone ? find_group(r, i) : NULL;

		if (g)
			replay_group_free(r->loop, g);
	}
}

/* Under the recorded configuration what stands is what stood; under another one only
 * the values of the start are the same. */
static void set_own(const struct replay *r, struct loop_group *g, const struct trace_group *in)
{
	if (!in->has_own)
		return;
	if (!*g->own.base.value[OWN_MAX_SIZE])
		loop_group_own(r->loop, g, &in->own.base, &in->own.stands);
	g->own.base = in->own.base;
	if (!r->override)
		g->own.stands = in->own.stands;
}

int replay_add_groups(struct replay *r, bool late)
{
	const struct trace_tick *t = &r->tick;

	for (size_t i = 0; i < t->n_groups; i++) {
		const struct trace_group *in = &t->groups[i];
		struct loop_group *g = find_group(r, i);

		if (in->late != late || (late && in->gone))
			continue;
		/* Let go and taken up again since the last tick: it has forgotten all. */
		if (g && value_known(in->added_usec) &&
			(g->delta.dt_usec || g->ctl.since_usec != in->added_usec)) {
			replay_group_free(r->loop, g);
			g = NULL;
		}
		if (!g) {
			if (value_known(in->added_usec))
				r->loop->now_usec = in->added_usec;
			g = replay_group_new(r->loop, in->id, in->path, in->policy, r);
			r->loop->now_usec = t->now_usec;
		}
		if (!g)
			return -ENOMEM;
		set_policy(r, g, in->policy);
		set_own(r, g, in);
		if (in->has_first)
			loop_observe(r->loop, g, &in->first);
	}
	return 0;
}

void replay_set_policies(struct replay *r)
{
	for (size_t i = 0; i < r->tick.n_groups; i++) {
		struct loop_group *g = find_group(r, i);

		if (g)
			set_policy(r, g, r->tick.groups[i].policy);
	}
}

/* ---- what is seen ------------------------------------------------------ */

static void note_pressure(struct replay *r, const struct loop_group *g, bool *pressed)
{
	const struct config *c = replay_config(r);
	double high = g->policy ? g->policy->controller.pressure_high : c->controller.pressure_high;

	if (!g->observed)
		return;
	if (g->delta.some > r->sum.worst_some) {
		r->sum.worst_some = g->delta.some;
		snprintf(r->sum.worst_group, sizeof(r->sum.worst_group), "%s", g->path);
	}
	if (g->delta.full > r->sum.worst_full)
		r->sum.worst_full = g->delta.full;
	*pressed |= g->delta.some > high;
}

static void observe_host(struct replay *r)
{
	const struct trace_tick *t = &r->tick;
	const struct plan *p = &r->loop->plan;
	struct thp_stats stats[THP_SIZES_MAX];
	const struct hostrules_input in = {
		.host = &t->host,
		.stats = stats,
		.full_scans = t->full_scans,
		.pages_collapsed = t->pages_collapsed,
		.dying_cgroups = t->dying_cgroups,
	};

	memset(stats, 0xff, sizeof(stats)); /* everything VALUE_ABSENT */
	for (unsigned i = 0; i < p->n_sizes; i++)
		for (unsigned k = 0; k < t->n_stats; k++)
			if (t->stats_kb[k] == p->sizes[i].size_kb)
				stats[i] = t->stats[k];
	loop_observe_host(r->loop, &in);
}

void replay_observe(struct replay *r)
{
	const struct trace_tick *t = &r->tick;
	bool pressed = false;

	if (t->has_host)
		observe_host(r);
	for (size_t i = t->n_groups; i-- > 0;) {
		struct loop_group *g = find_group(r, i);

		if (!g || !t->groups[i].has_sample)
			continue;
		loop_observe(r->loop, g, &t->groups[i].sample);
		note_pressure(r, g, &pressed);
	}
	if (pressed && r->sum.ticks > 0)
		r->sum.pressed_usec += t->now_usec - r->last_usec;
}

