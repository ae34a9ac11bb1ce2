/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

struct reading {
	struct plot *p;
	struct trace_why *why;
	json_t *index; /* path of a group to its place */
	struct trace_tick tick;
	bool held;
};

/* Room for one more element of @size bytes: 0, or -ENOMEM. */
static int reserve(void *array, size_t n, size_t *room, size_t size)
{
	void **a = array, *p;
	size_t more = *room ? *room * 2 : 64;

	if (n < *room)
		return 0;
	p = reallocarray(*a, more, size);
	if (!p)
		return -ENOMEM;
	*a = p;
	*room = more;
	return 0;
}

/* ---- header ------------------------------------------------------------ */

static uint64_t size_of_path(const char *path)
{
	static const char before[] = "hugepages-";
	char *end;
	unsigned long kb;

	if (strncmp(path, before, strlen(before)) != 0)
		return 0;
	kb = strtoul(path + strlen(before), &end, 10);
	return !strcmp(end, "kB/enabled") ? kb : 0;
}

static void add_knobs(struct plot *p, const struct trace_header *h)
{
	const char *path;
	json_t *v;

	json_object_foreach(h->stands, path, v)
	{
		struct plot_knob *k = &p->knobs[p->n_knobs++];

		snprintf(k->path, sizeof(k->path), "%s", path);
		snprintf(k->first, sizeof(k->first), "%s", json_string_value(v));
		memcpy(k->now, k->first, sizeof(k->now));
		k->size_kb = strcmp(path, "enabled") ? size_of_path(path) : h->tree.pmd_kb;
	}
}

static int take_header(struct reading *r, const json_t *j)
{
	struct plot *p = r->p;
	struct trace_header h;
	struct config *c;
	int e = trace_header_get(j, &h, r->why);

	if (e < 0)
		return e;
	e = config_load_text("trace", h.config_text, strlen(h.config_text), NULL, NULL, &c);
	if (e == -ENOMEM)
		return e;
	if (e < 0)
		return trace_fault(r->why, "header: config: has faults (mthpctl replay names them)");
	p->pressure_high = c->controller.pressure_high;
	p->interval_usec = c->interval_usec;
	config_free(c);
	snprintf(p->kernel, sizeof(p->kernel), "%s", h.kernel);
	snprintf(p->mthpd, sizeof(p->mthpd), "%s", h.mthpd);
	p->anonymized = h.anonymized;
	p->start_usec = p->end_usec = h.now_usec;
	p->realtime_usec = h.realtime_usec;
	p->top = thp_choice_mode(&h.tree.enabled);
	add_knobs(p, &h);
	return 0;
}

/* ---- ticks ------------------------------------------------------------- */

static int find_group(struct reading *r, const char *path, size_t *ret)
{
	struct plot *p = r->p;
	json_t *at = json_object_get(r->index, path);

	if (at) {
		*ret = (size_t)json_integer_value(at);
		return 0;
	}
	if (p->n_groups == PLOT_GROUPS_MAX)
		return trace_fault(r->why, "more than %d groups: too many to draw", PLOT_GROUPS_MAX);
	if (reserve(&p->groups, p->n_groups, &p->size_groups, sizeof(*p->groups)) < 0)
		return -ENOMEM;
	p->groups[p->n_groups] = (struct plot_group){
		.path = strdup(path),
		.worst_some = -1,
		.least_margin_bytes = VALUE_ABSENT,
	};
	if (!p->groups[p->n_groups].path)
		return -ENOMEM;
	*ret = p->n_groups++;
	return trace_put(r->index, path, json_integer((json_int_t)*ret)) ? 0 : -ENOMEM;
}

static int add_kill(struct plot *p, uint64_t now_usec, size_t group, uint64_t n)
{
	if (reserve(&p->kills, p->n_kills, &p->size_kills, sizeof(*p->kills)) < 0)
		return -ENOMEM;
	p->kills[p->n_kills++] = (struct plot_kill){ now_usec, n, group };
	return 0;
}

static int add_point(struct reading *r, size_t group, const struct memcg_sample *s, bool first)
{
	struct plot *p = r->p;
	struct plot_group *g = &p->groups[group];
	struct plot_point pt = { .now_usec = r->tick.now_usec, .some = -1, .full = -1 };
	struct memcg_delta d;

	if (!first && g->has_prev && memcg_delta(&g->prev, s, &d) == 0) {
		pt.some = (float)d.some;
		pt.full = (float)d.full;
		g->stalled_usec += d.some > 0 ? d.some * (double)d.dt_usec : 0;
		if (d.some > g->worst_some)
			g->worst_some = d.some;
		if (d.d_oom_kill && add_kill(p, pt.now_usec, group, d.d_oom_kill) < 0)
			return -ENOMEM;
	}
	g->prev = *s;
	g->has_prev = true;
	if (first)
		return 0;
	pt.margin_bytes = memcg_margin_with_cache(s);
	g->least_margin_bytes = value_min(g->least_margin_bytes, pt.margin_bytes);
	if (p->n_points == PLOT_POINTS_MAX)
		return trace_fault(r->why, "more than %d samples: too many to draw", PLOT_POINTS_MAX);
	if (reserve(&g->points, g->n_points, &g->size_points, sizeof(*g->points)) < 0)
		return -ENOMEM;
	g->points[g->n_points++] = pt;
	p->n_points++;
	return 0;
}

static int take_groups(struct reading *r)
{
	for (size_t i = 0; i < r->tick.n_groups; i++) {
		const struct trace_group *in = &r->tick.groups[i];
		size_t at = 0;
		int e = in->has_first || in->has_sample ? find_group(r, in->path, &at) : 0;

		if (e == 0 && in->has_first)
			e = add_point(r, at, &in->first, true);
		if (e == 0 && in->has_sample)
			e = add_point(r, at, &in->sample, false);
		if (e < 0)
			return e;
	}
	return 0;
}

static struct plot_knob *find_knob(struct plot *p, const char *path)
{
	for (unsigned i = 0; i < p->n_knobs; i++)
		if (!strcmp(p->knobs[i].path, path))
			return &p->knobs[i];
	return NULL;
}

static int add_change(struct reading *r, struct plot_knob *k, struct plot_change *c)
{
	struct plot *p = r->p;

	if (p->n_changes == PLOT_CHANGES_MAX)
		return trace_fault(r->why, "more than %d changes: too many to draw", PLOT_CHANGES_MAX);
	if (reserve(&p->changes, p->n_changes, &p->size_changes, sizeof(*p->changes)) < 0)
		return -ENOMEM;
	c->knob = (unsigned)(k - p->knobs);
	memcpy(c->old_value, k->now, sizeof(c->old_value));
	memcpy(k->now, c->new_value, sizeof(k->now));
	k->changed = true;
	p->changes[p->n_changes++] = *c;
	return 0;
}

/* Values that changed by other hands. The file as it stands after a decision
 * of mthpd is told again now and then: no change. */
static int take_stands(struct reading *r)
{
	const char *path;
	json_t *v;
	int e;

	json_object_foreach(r->tick.stands, path, v)
	{
		struct plot_knob *k = find_knob(r->p, path);
		struct plot_change c = { .now_usec = r->tick.now_usec, .foreign = true, .some = -1, .full = -1,
			.margin_bytes = VALUE_ABSENT };

		if (!k || !strcmp(k->now, json_string_value(v)))
			continue;
		c.realtime_usec = r->p->realtime_usec + (c.now_usec - r->p->start_usec);
		snprintf(c.new_value, sizeof(c.new_value), "%s", json_string_value(v));
		e = add_change(r, k, &c);
		if (e < 0)
			return e;
	}
	return 0;
}

static int take_held(struct reading *r)
{
	struct plot *p = r->p;

	if (r->tick.held && !r->held) {
		if (reserve(&p->held, p->n_held, &p->size_held, sizeof(*p->held)) < 0)
			return -ENOMEM;
		p->held[p->n_held++] = (struct plot_span){ r->tick.now_usec, r->tick.now_usec };
	}
	if (r->held)
		p->held[p->n_held - 1].to_usec = r->tick.now_usec;
	r->held = r->tick.held;
	return 0;
}

static int take_tick(struct reading *r, const json_t *j)
{
	struct plot *p = r->p;
	int e = trace_tick_get(j, &r->tick, r->why);

	if (e < 0)
		return e;
	if (r->tick.now_usec < p->end_usec)
		e = trace_fault(r->why, "tick: now_usec goes backwards");
	p->end_usec = r->tick.now_usec;
	p->ticks++;
	if (e == 0)
		e = take_groups(r);
	if (e == 0)
		e = take_stands(r);
	if (e == 0)
		e = take_held(r);
	trace_tick_done(&r->tick);
	return e;
}

static int take_decision(struct reading *r, const json_t *j)
{
	struct trace_decision d;
	struct plot_knob *k;
	struct plot_change c = { 0 };
	int e = trace_decision_get(j, &d, r->why);

	if (e < 0)
		return e;
	k = find_knob(r->p, d.knob);
	if (!k)
		return 0;
	if (d.now_usec < r->p->start_usec || strlen(d.new_value) >= CHOICE_LEN)
		return trace_fault(r->why, "decision: now_usec or new is out of range");
	c.now_usec = d.now_usec;
	c.realtime_usec = r->p->realtime_usec + (c.now_usec - r->p->start_usec);
	snprintf(c.new_value, sizeof(c.new_value), "%s", d.new_value);
	snprintf(c.reason, sizeof(c.reason), "%s", d.reason);
	snprintf(c.group, sizeof(c.group), "%s", d.group ? d.group : "");
	snprintf(c.outcome, sizeof(c.outcome), "%s", d.outcome ? d.outcome : "");
	c.some = d.some;
	c.full = d.full;
	c.margin_bytes = d.margin_bytes;
	if (c.now_usec > r->p->end_usec)
		r->p->end_usec = c.now_usec;
	return add_change(r, k, &c);
}

/* ---- the file ---------------------------------------------------------- */

static int read_lines(struct reading *r, struct trace_reader *reader)
{
	enum trace_kind kind;
	json_t *j;
	int e;

	while ((e = trace_read(reader, &j, &kind, r->why)) > 0) {
		e = kind == TRACE_HEADER   ? take_header(r, j) :
		    kind == TRACE_TICK	   ? take_tick(r, j) :
		    kind == TRACE_DECISION ? take_decision(r, j) :
					     0;
		json_decref(j);
		if (e < 0)
			return e;
	}
	r->p->torn = trace_torn(reader);
	return e;
}

int plot_read(FILE *f, struct plot **ret, struct trace_why *why)
{
	struct reading r = { .p = calloc(1, sizeof(*r.p)), .why = why, .index = json_object() };
	struct trace_reader *reader = trace_reader_new(f);
	int e = -ENOMEM;

	*why = (struct trace_why){ 0 };
	if (r.p && r.index && reader)
		e = read_lines(&r, reader);
	trace_reader_free(reader);
	json_decref(r.index);
	if (e < 0)
		plot_free(r.p);
	else
		*ret = r.p;
	return e;
}

void plot_free(struct plot *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_groups; i++) {
		free(p->groups[i].path);
		free(p->groups[i].points);
	}
	free(p->groups);
	free(p->changes);
	free(p->kills);
	free(p->held);
	free(p);
}
