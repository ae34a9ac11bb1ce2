/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the loop saw, for those who listen: one object per tick in the form of
 * lib/trace.h, complete enough that a replay decides the same. Everything is
 * read off the loop before and after its step, and nothing is done while nobody
 * listens.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine-internal.h"
#include "trace.h"

struct engine_sampler {
	json_t *tick, *groups; /* of the running tick; groups is borrowed from tick */
	uint64_t now_usec;
	/* Files as a replay has them after the last tick. */
	char stands[LOOP_KNOBS_MAX + 1][CHOICE_LEN];
	uint64_t decisions; /* ever made, when the last tick's were applied */
	bool applied;	    /* the last tick's were */
};

static void cleanup_json(json_t **j)
{
	json_decref(*j);
}
#define _cleanup_json_ __attribute__((cleanup(cleanup_json)))

static bool wanted(const struct engine *e)
{
	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->wants_samples &&
			e->observers[i]->wants_samples(e->observers[i]->userdata))
			return true;
	return false;
}

static void put_true(json_t *j, const char *key, bool value)
{
	if (value)
		json_object_set_new(j, key, json_true());
}

static void put_value(json_t *j, const char *key, uint64_t v)
{
	if (value_known(v))
		json_object_set_new(j, key, json_integer((json_int_t)v));
}

/* ---- before the step --------------------------------------------------- */

static json_t *group_entry(const struct loop_group *g)
{
	json_t *j = json_object();

	json_object_set_new(j, "id", json_integer((json_int_t)g->id));
	json_object_set_new(j, "path", trace_bytes_json(g->path));
	if (g->policy)
		json_object_set_new(j, "policy", trace_bytes_json(g->policy->name));
	if (g->own.present)
		json_object_set_new(j, "own", trace_own_json(&g->own));
	return j;
}

/* A controller that has not stepped yet: when it came, and the look that set
 * its start, are not in an earlier tick. */
static void put_beginning(json_t *j, const struct loop_group *g)
{
	put_value(j, "added_usec", g->ctl.since_usec);
	if (g->has_prev)
		json_object_set_new(j, "first", trace_memcg_json(&g->prev));
}

static struct engine_knob *knob_of(struct engine *e, const char *path, char **ret_stands)
{
	struct engine_knob *k = engine_knob(e, path);

	*ret_stands = k ? e->sampler->stands[k - e->knobs] : NULL;
	return k;
}

/* What a replay writes by itself after the last tick: its decisions, and the
 * wants that did not become decisions here, because the file is gone, refuses
 * the value or holds another one. Those are told. */
static void put_unwritten(struct engine *e)
{
	struct engine_sampler *s = e->sampler;
	uint64_t n = e->history.n - s->decisions;
	json_t *list = json_array();
	const struct decision *d;
	char *stands;

	for (uint64_t i = n; s->applied && i-- > 0;) {
		d = history_get(&e->history, i);
		if (d && knob_of(e, d->knob, &stands))
			memcpy(stands, d->new_value, CHOICE_LEN);
	}
	for (unsigned i = 0; s->applied && i < e->loop->n_wants; i++) {
		const struct loop_want *w = &e->loop->wants[i];
		const struct engine_knob *k = knob_of(e, w->path, &stands);

		if (!k || !strcmp(stands, w->value))
			continue;
		json_array_append_new(list, json_string(w->path));
		memcpy(stands, w->value, CHOICE_LEN);
	}
	if (json_array_size(list))
		json_object_set(s->tick, "unwritten", list);
	json_decref(list);
}

static void put_stands(struct engine *e)
{
	struct engine_sampler *s = e->sampler;
	json_t *changed = json_object();

	for (unsigned i = 0; i < e->n_knobs; i++) {
		if (!strcmp(s->stands[i], e->knobs[i].stands))
			continue;
		memcpy(s->stands[i], e->knobs[i].stands, CHOICE_LEN);
		json_object_set_new(changed, e->knobs[i].path, json_string(e->knobs[i].stands));
	}
	if (json_object_size(changed))
		json_object_set(s->tick, "stands", changed);
	json_decref(changed);
}

static void put_plan(struct engine *e)
{
	char *config = trace_config_text(e->config);

	json_object_set_new(e->sampler->tick, "tree", trace_tree_json(&e->tree_base));
	json_object_set_new(e->sampler->tick, "config", json_string(config ? config : ""));
	put_value(e->sampler->tick, "reconfigured_usec", e->loop->arbiter.last_usec);
	free(config);
}

void engine_sample_begin(struct engine *e, uint64_t now_usec)
{
	struct engine_sampler *s = e->sampler;
	const struct loop *l = e->loop;

	if (!wanted(e)) {
		if (s)
			s->applied = false;
		e->replanned = false;
		return;
	}
	if (!s)
		s = e->sampler = calloc(1, sizeof(*s));
	if (!s)
		return;
	s->now_usec = now_usec;
	s->tick = json_pack("{s:s, s:I}", "kind", "tick", "now_usec", (json_int_t)now_usec);
	s->groups = json_array();
	put_true(s->tick, "foreign", l->foreign);
	put_true(s->tick, "rebased", !l->host.has_prev);
	put_unwritten(e);
	put_stands(e);
	if (e->replanned)
		put_plan(e);
	e->replanned = false;
	for (size_t i = 0; i < l->n_groups && i < TRACE_GROUPS_MAX; i++) {
		json_t *j = group_entry(l->groups[i]);

		if (l->groups[i]->delta.dt_usec == 0)
			put_beginning(j, l->groups[i]);
		json_array_append_new(s->groups, j);
	}
	json_object_set_new(s->tick, "groups", s->groups);
}

/* ---- during the step --------------------------------------------------- */

void engine_sample_first(struct engine *e, const struct loop_group *g)
{
	json_t *j;

	if (!e->sampler || !e->sampler->tick || json_array_size(e->sampler->groups) >= TRACE_GROUPS_MAX)
		return;
	j = group_entry(g);
	put_true(j, "late", true);
	put_beginning(j, g);
	json_array_append_new(e->sampler->groups, j);
}

/* ---- after the step ---------------------------------------------------- */

static void put_host(struct engine *e)
{
	const struct hostrules *h = &e->loop->host;
	json_t *tick = e->sampler->tick, *khugepaged = json_object(), *sizes = json_array();

	put_value(khugepaged, "full_scans", h->prev_full_scans);
	put_value(khugepaged, "pages_collapsed", h->prev_collapsed);
	for (unsigned i = 0; i < e->loop->plan.n_sizes; i++)
		json_array_append_new(sizes,
			trace_stats_json(e->loop->plan.sizes[i].size_kb, &h->prev_stats[i]));
	json_object_set_new(tick, "host", trace_host_json(&h->prev));
	json_object_set_new(tick, "khugepaged", khugepaged);
	json_object_set_new(tick, "sizes", sizes);
	put_value(tick, "dying_cgroups", e->dying_cgroups);
}

static const struct loop_group *group_of(const struct loop *l, const json_t *j, size_t *at)
{
	uint64_t id = (uint64_t)json_integer_value(json_object_get(j, "id"));
	const char *path = json_string_value(json_object_get(j, "path"));

	/* Both lists have the same order, but for those that went meanwhile. */
	for (size_t i = *at; i < l->n_groups; i++) {
		_cleanup_json_ json_t *name = NULL;

		if (l->groups[i]->id != id)
			continue;
		name = trace_bytes_json(l->groups[i]->path);
		if (!name || !path || strcmp(json_string_value(name), path) != 0)
			continue;
		*at = i + 1;
		return l->groups[i];
	}
	return NULL;
}

static void put_samples(struct engine *e)
{
	const struct engine_sampler *s = e->sampler;
	size_t i, at = 0, found = 0;
	json_t *j;

	json_array_foreach(s->groups, i, j)
	{
		const struct loop_group *g = group_of(e->loop, j, &at);

		found += g != NULL;
		if (!g)
			put_true(j, "gone", true);
		else if (g->observed || (!json_object_get(j, "late") && g->has_prev &&
						g->prev.now_usec >= s->now_usec))
			json_object_set_new(j, "sample", trace_memcg_json(&g->prev));
	}
	if (found < e->loop->n_groups)
		put_value(s->tick, "left_out", e->loop->n_groups - found);
}

void engine_sample_end(struct engine *e, bool held, bool always, bool applies)
{
	struct engine_sampler *s = e->sampler;

	if (!s || !s->tick)
		return;
	put_true(s->tick, "held", held);
	put_true(s->tick, "apply", always);
	if (e->loop->now_usec != s->now_usec)
		put_value(s->tick, "decided_usec", e->loop->now_usec);
	if (e->loop->host.has_prev && e->loop->host.prev.now_usec == s->now_usec)
		put_host(e);
	put_samples(e);
	s->applied = applies;
	s->decisions = e->history.n;
	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->sample)
			e->observers[i]->sample(s->tick, e->observers[i]->userdata);
	json_decref(s->tick);
	s->tick = s->groups = NULL;
}

void engine_sample_free(struct engine *e)
{
	if (e->sampler)
		json_decref(e->sampler->tick);
	free(e->sampler);
	e->sampler = NULL;
}

/* ---- header and decisions ---------------------------------------------- */

static uint64_t realtime_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

json_t *engine_trace_header(struct engine *e)
{
	char *config = trace_config_text(e->config);
	json_t *stands = json_object(), *j;

	for (unsigned i = 0; i < e->n_knobs; i++)
		if (*e->knobs[i].stands)
			json_object_set_new(stands, e->knobs[i].path, json_string(e->knobs[i].stands));
	j = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:s, s:o, s:o, s:I, s:b, s:I, s:I, s:o}", "kind",
		"header", "format", TRACE_FORMAT, "version", TRACE_VERSION, "mthpd", MTHPD_VERSION, "kernel",
		trace_bytes_json(e->caps.release), "features", engine_features(e), "config",
		config ? config : "", "tree", trace_tree_json(&e->tree_base), "stands", stands, "cpus",
		(json_int_t)e->loop->cpus, "boot_never", e->caps.boot_never, "realtime_usec",
		(json_int_t)realtime_usec(), "now_usec", (json_int_t)engine_now_usec(), "state",
		trace_state_json(e->loop, e->history.n));
	put_value(j, "mem_total_kb", e->host_now.mem_total_kb);
	free(config);
	return j;
}

json_t *engine_decision_json(struct engine *e, const struct decision *d)
{
	json_t *j = decision_to_json(d);

	put_value(j, "now_usec", e->loop->now_usec);
	return j;
}
