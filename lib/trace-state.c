/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the loop remembers from tick to tick, so that a trace may begin in the
 * middle of its life and the replay still decides the same. A member that is
 * added to one of these structures belongs into its table here, and
 * TRACE_STATE_VERSION counts on; the test of traces compares both.
 */
#include "trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"

#define M(s, type, member, limit) { #member, type, offsetof(struct s, member), limit, false }

#define C(type, member, limit) M(controller, type, member, limit)
static const struct trace_field controller_fields[] = {
	C(FIELD_UINT, state, CTL_NO_EFFECT),
	C(FIELD_REASON, reason, 0),
	C(FIELD_VALUE, since_usec, 0),
	C(FIELD_UINT, rung, PLAN_RUNGS_MAX - 1),
	C(FIELD_UINT, from_rung, PLAN_RUNGS_MAX - 1),
	C(FIELD_BOOL, raised, 0),
	C(FIELD_BOOL, from_raised, 0),
	C(FIELD_BOOL, dropped, 0),
	C(FIELD_UINT, ptes, CTL_PTES_FULL),
	C(FIELD_UINT, pressed_ticks, UINT32_MAX),
	C(FIELD_UINT, bloat_ticks, UINT32_MAX),
	C(FIELD_UINT, collapse_ticks, UINT32_MAX),
	C(FIELD_UINT, fresh_ticks, UINT32_MAX),
	C(FIELD_UINT, high_full_ticks, UINT32_MAX),
	C(FIELD_VALUE, quiet_since_usec, 0),
	C(FIELD_VALUE, steady_since_usec, 0),
	C(FIELD_REAL, inflow_pages, 0),
	C(FIELD_REAL, fill_pages, 0),
	C(FIELD_REAL, harm_usec, 0),
	C(FIELD_REAL, benefit_usec, 0),
	C(FIELD_REAL, before.user_usec, 0),
	C(FIELD_REAL, before.system_usec, 0),
	C(FIELD_REAL, before.some_usec, 0),
	C(FIELD_REAL, before.dt_usec, 0),
	C(FIELD_REAL, quiet.user_usec, 0),
	C(FIELD_REAL, quiet.system_usec, 0),
	C(FIELD_REAL, quiet.some_usec, 0),
	C(FIELD_REAL, quiet.dt_usec, 0),
	C(FIELD_REAL, after.user_usec, 0),
	C(FIELD_REAL, after.system_usec, 0),
	C(FIELD_REAL, after.some_usec, 0),
	C(FIELD_REAL, after.dt_usec, 0),
	C(FIELD_BOOL, used_large, 0),
	C(FIELD_VALUE, last_up_usec, 0),
	C(FIELD_VALUE, hold_usec, 0),
	C(FIELD_VALUE, hold_until_usec, 0),
	C(FIELD_VALUE, settle_usec, 0),
	C(FIELD_VALUE, exonerate_usec, 0),
	C(FIELD_VALUE, exonerated_until_usec, 0),
	C(FIELD_VALUE, frozen_until_usec, 0),
	C(FIELD_VALUE, limit_bytes, 0),
	C(FIELD_REAL, exonerated_cost, 0),
	C(FIELD_REAL, some, 0),
	C(FIELD_REAL, full, 0),
	C(FIELD_VALUE, margin_bytes, 0),
	C(FIELD_VALUE, margin_cache_bytes, 0),
	C(FIELD_VALUE, threshold_bytes, 0),
	C(FIELD_VALUE, anon_bytes, 0),
	C(FIELD_REAL, refault_per_sec, 0),
	C(FIELD_REAL, majfault_per_sec, 0),
	C(FIELD_REAL, amplification, 0),
	C(FIELD_UINT, gate.state, GATE_OPEN),
	C(FIELD_REASON, gate.reason, 0),
	C(FIELD_VALUE, gate.since_usec, 0),
	C(FIELD_VALUE, gate.hold_usec, 0),
	C(FIELD_VALUE, gate.hold_until_usec, 0),
	C(FIELD_VALUE, gate.scanned_pages, 0),
	C(FIELD_VALUE, gate.young_pages, 0),
	C(FIELD_VALUE, gate.fill_hold_usec, 0),
	C(FIELD_VALUE, gate.fill_until_usec, 0),
	C(FIELD_VALUE, gate.filled_usec, 0),
	C(FIELD_BOOL, gate.filling, 0),
	C(FIELD_VALUE, gate.trial_pages, 0),
	C(FIELD_REAL, gate.density, 0),
	C(FIELD_VALUE, gate.density_usec, 0),
	C(FIELD_VALUE, footprint_bytes, 0),
};

#define W(type, member, limit) M(ctl_wish, type, member, limit)
static const struct trace_field wish_fields[] = {
	W(FIELD_UINT, rung, PLAN_RUNGS_MAX - 1),
	W(FIELD_BOOL, raised, 0),
	W(FIELD_BOOL, recovering, 0),
	W(FIELD_BOOL, hurt, 0),
	W(FIELD_UINT, ptes, CTL_PTES_FULL),
	W(FIELD_BOOL, defrag_low, 0),
	W(FIELD_REAL, harm_usec_per_sec, 0),
	W(FIELD_REAL, benefit_usec_per_sec, 0),
	W(FIELD_REASON, reason, 0),
	W(FIELD_BOOL, gate_open, 0),
	W(FIELD_REASON, gate_reason, 0),
};

#define D(type, member) M(memcg_delta, type, member, 0)
static const struct trace_field delta_fields[] = {
	D(FIELD_VALUE, dt_usec),
	D(FIELD_REAL, some),
	D(FIELD_REAL, full),
	D(FIELD_VALUE, d_high),
	D(FIELD_VALUE, d_max),
	D(FIELD_VALUE, d_oom),
	D(FIELD_VALUE, d_oom_kill),
	D(FIELD_VALUE, d_oom_victim),
	D(FIELD_VALUE, d_pgfault),
	D(FIELD_VALUE, d_pgmajfault),
	D(FIELD_VALUE, d_refault_anon),
	D(FIELD_VALUE, d_refault_file),
	D(FIELD_VALUE, d_pgscan),
	D(FIELD_VALUE, d_pgsteal),
	D(FIELD_VALUE, d_thp_fault_alloc),
	D(FIELD_VALUE, d_thp_collapse_alloc),
	D(FIELD_VALUE, d_swpout_fallback),
	D(FIELD_VALUE, d_swap_fail),
	D(FIELD_VALUE, d_pswpin),
	D(FIELD_VALUE, d_pswpout),
	D(FIELD_VALUE, d_thp_scanned),
	D(FIELD_VALUE, d_thp_young),
	D(FIELD_VALUE, d_split_avoided),
	D(FIELD_VALUE, d_size_limited),
	D(FIELD_VALUE, d_margin_anon),
	D(FIELD_VALUE, d_margin_swpin),
	D(FIELD_VALUE, d_margin_shmem),
	D(FIELD_VALUE, d_margin_collapse),
	D(FIELD_VALUE, d_usage_usec),
	D(FIELD_VALUE, d_user_usec),
	D(FIELD_VALUE, d_system_usec),
	D(FIELD_SIGNED, d_current_bytes),
	D(FIELD_SIGNED, d_anon_bytes),
	D(FIELD_SIGNED, d_anon_thp_bytes),
	D(FIELD_SIGNED, d_swap_bytes),
	M(memcg_delta, FIELD_UINT, anomalies, UINT32_MAX),
};

#define A(type, member, limit) M(arbiter_size, type, member, limit)
static const struct trace_field arbiter_fields[] = {
	A(FIELD_UINT, level, PLAN_RAISED),
	A(FIELD_REASON, reason, 0),
	A(FIELD_BOOL, touched, 0),
	A(FIELD_VALUE, veto_left_usec, 0),
	A(FIELD_BOOL, veto_spent, 0),
};

#define G(member) M(arbiter, FIELD_VALUE, member, 0)
static const struct trace_field global_fields[] = {
	G(last_usec),
	G(shmem_max_kb),
	G(max_ptes_none),
	G(khugepaged_defrag),
	G(scan_sleep_millisecs),
};

#define H(type, member, limit) M(hostrules_size, type, member, limit)
static const struct trace_field cap_fields[] = {
	H(FIELD_UINT, fallback_windows, UINT32_MAX),
	H(FIELD_UINT, churn_windows, UINT32_MAX),
	H(FIELD_UINT, frag_windows, UINT32_MAX),
	H(FIELD_REASON, reason, 0),
	H(FIELD_UINT, cap, PLAN_RAISED),
	H(FIELD_VALUE, until_usec, 0),
	H(FIELD_VALUE, hold_usec, 0),
};

#define R(type, member, limit) M(hostrules, type, member, limit)
static const struct trace_field rules_fields[] = {
	R(FIELD_BOOL, has_prev, 0),
	R(FIELD_VALUE, prev_full_scans, 0),
	R(FIELD_VALUE, prev_collapsed, 0),
	R(FIELD_UINT, swap, SWAP_FRAGMENTED),
	R(FIELD_UINT, frag_windows, UINT32_MAX),
	R(FIELD_UINT, runaway_windows, UINT32_MAX),
	R(FIELD_VALUE, defrag_until_usec, 0),
	R(FIELD_VALUE, slow_until_usec, 0),
	R(FIELD_VALUE, d_collapse, 0),
	R(FIELD_VALUE, d_pswpin, 0),
	R(FIELD_VALUE, d_pgmajfault, 0),
	R(FIELD_REAL, stall_per_sec, 0),
};

/* ---- writing ----------------------------------------------------------- */

static json_t *fields_json(const struct trace_field *f, size_t n, const void *base)
{
	json_t *j = json_object();

	if (trace_fields_put(j, f, n, base))
		return j;
	json_decref(j);
	return NULL;
}

static json_t *group_json(const struct loop_group *g)
{
	json_t *j = json_object();
	bool ok = trace_put(j, "id", json_integer((json_int_t)g->id)) &&
		  trace_put(j, "path", trace_bytes_json(g->path)) &&
		  trace_put(j, "controller",
			  fields_json(controller_fields, ELEMENTSOF(controller_fields), &g->ctl)) &&
		  trace_put(j, "wish", fields_json(wish_fields, ELEMENTSOF(wish_fields), &g->wish));

	if (ok && g->own.present)
		ok = trace_put(j, "own", trace_own_json(&g->own)) &&
		     trace_put(j, "changes_usec", trace_rate_json(&g->rate));
	if (ok && g->policy)
		ok = trace_put(j, "policy", trace_bytes_json(g->policy->name));
	if (ok && g->has_prev)
		ok = trace_put(j, "sample", trace_memcg_json(&g->prev));
	if (ok && g->delta.dt_usec)
		ok = trace_put(j, "delta", fields_json(delta_fields, ELEMENTSOF(delta_fields), &g->delta));
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}

/* Where a group stands in the list of groups; TRACE_GROUPS_MAX = not there. */
static size_t group_index(const struct loop *l, const struct loop_group *g)
{
	size_t i = 0;

	while (i < l->n_groups && i < TRACE_GROUPS_MAX && l->groups[i] != g)
		i++;
	return i < l->n_groups ? i : TRACE_GROUPS_MAX;
}

static json_t *size_json(const struct loop *l, unsigned i)
{
	const struct arbiter_size *z = &l->arbiter.size[i];
	size_t cause = group_index(l, z->cause);
	json_t *j = trace_stats_json(l->plan.sizes[i].size_kb, &l->host.prev_stats[i]);

	if (trace_put(j, "arbiter", fields_json(arbiter_fields, ELEMENTSOF(arbiter_fields), z)) &&
		trace_put(j, "cap",
			fields_json(cap_fields, ELEMENTSOF(cap_fields), &l->host.size[i])) &&
		(cause == TRACE_GROUPS_MAX || trace_put(j, "cause", json_integer((json_int_t)cause))) &&
		(!z->word || trace_put(j, "word", json_string(z->word))))
		return j;
	json_decref(j);
	return NULL;
}

static json_t *rules_json(const struct hostrules *h)
{
	json_t *j = fields_json(rules_fields, ELEMENTSOF(rules_fields), h);

	if (h->has_prev && !trace_put(j, "host", trace_host_json(&h->prev))) {
		json_decref(j);
		return NULL;
	}
	return j;
}

static json_t *wants_json(const struct loop *l)
{
	json_t *j = json_object();

	for (unsigned i = 0; j && i < l->n_wants; i++)
		if (!trace_put(j, l->wants[i].path, json_string(l->wants[i].value))) {
			json_decref(j);
			return NULL;
		}
	return j;
}

json_t *trace_state_json(const struct loop *l, uint64_t decisions)
{
	json_t *j = json_object(), *groups = json_array(), *sizes = json_array();
	bool ok = true;

	for (size_t i = 0; ok && i < l->n_groups && i < TRACE_GROUPS_MAX; i++)
		ok = json_array_append_new(groups, group_json(l->groups[i])) == 0;
	for (unsigned i = 0; ok && i < l->plan.n_sizes; i++)
		ok = json_array_append_new(sizes, size_json(l, i)) == 0;
	ok &= trace_put(j, "groups", groups);
	ok &= trace_put(j, "sizes", sizes);
	ok &= trace_put(j, "changes_usec", trace_rate_json(&l->rate));
	ok = ok && trace_put(j, "version", json_integer(TRACE_STATE_VERSION)) &&
	     trace_put(j, "now_usec", json_integer((json_int_t)l->now_usec)) &&
	     trace_put(j, "arbiter",
		     fields_json(global_fields, ELEMENTSOF(global_fields), &l->arbiter)) &&
	     trace_put(j, "defrag", json_string(l->arbiter.defrag ? l->arbiter.defrag : "")) &&
	     trace_put(j, "decisions", json_integer((json_int_t)decisions)) &&
	     trace_put(j, "rules", rules_json(&l->host)) && trace_put(j, "wants", wants_json(l));
	if (ok)
		return j;
	json_decref(j);
	return NULL;
}

/* ---- reading ----------------------------------------------------------- */

struct source {
	struct loop *l;
	trace_group_fn group_new;
	void *userdata;
	struct trace_why *why;
};

/* A rung that the ladder of this plan does not have would be out of bounds. */
static int check_rungs(const struct loop_group *g, const struct plan *p, struct trace_why *why)
{
	if (g->ctl.rung > plan_top(p) || g->ctl.from_rung > plan_top(p) || g->wish.rung > plan_top(p))
		return trace_fault(why, "state: a rung is above the ladder of these sizes");
	return 0;
}

static int get_group(const json_t *j, const struct source *s)
{
	static const char what[] = "state: group";
	const char *path, *policy;
	json_t *ctl, *wish, *sample, *delta, *own;
	struct loop_group *g;
	uint64_t id;

	if (!json_is_object(j))
		return trace_fault(s->why, "%s: not an object", what);
	if (trace_get_value(j, what, "id", true, &id, s->why) < 0 ||
		trace_get_string(j, what, "path", true, &path, s->why) < 0 ||
		trace_get_string(j, what, "policy", false, &policy, s->why) < 0 ||
		trace_get_container(j, what, "controller", JSON_OBJECT, true, &ctl, s->why) < 0 ||
		trace_get_container(j, what, "wish", JSON_OBJECT, true, &wish, s->why) < 0 ||
		trace_get_container(j, what, "sample", JSON_OBJECT, false, &sample, s->why) < 0 ||
		trace_get_container(j, what, "own", JSON_OBJECT, false, &own, s->why) < 0 ||
		trace_get_container(j, what, "delta", JSON_OBJECT, false, &delta, s->why) < 0)
		return -EBADMSG;
	g = s->group_new(s->l, id, path, policy, s->userdata);
	if (!g)
		return -ENOMEM;
	if (trace_fields_get(ctl, what, controller_fields, ELEMENTSOF(controller_fields), &g->ctl,
		    s->why) < 0 ||
		trace_fields_get(wish, what, wish_fields, ELEMENTSOF(wish_fields), &g->wish, s->why) < 0)
		return -EBADMSG;
	if (delta && trace_fields_get(delta, what, delta_fields, ELEMENTSOF(delta_fields), &g->delta,
			     s->why) < 0)
		return -EBADMSG;
	if (own && (trace_own_get(own, &g->own, s->why) < 0 ||
			   trace_rate_get(j, what, false, &g->rate, s->why) < 0))
		return -EBADMSG;
	g->own.present = own && s->l->config->per_group;
	g->has_prev = sample != NULL;
	if (sample && trace_memcg_get(sample, &g->prev, s->why) < 0)
		return -EBADMSG;
	return check_rungs(g, &s->l->plan, s->why);
}

/* Words live as long as the program: those of the table, not the file's. */
static const char *static_word(const char *word)
{
	enum thp_mode m = word ? thp_mode_from_string(word) : THP_MODE_NONE;

	return m == THP_MODE_NONE ? NULL : thp_mode_to_string(m);
}

static const char sizes_what[] = "state: sizes";

/* Which of the plan's sizes an entry speaks of: its index. */
static int size_index(const json_t *j, const struct source *s, struct thp_stats *ret_stats)
{
	const struct plan *p = &s->l->plan;
	uint64_t kb;
	unsigned i = 0;

	if (trace_stats_get(j, &kb, ret_stats, s->why) < 0)
		return -EBADMSG;
	while (i < p->n_sizes && p->sizes[i].size_kb != kb)
		i++;
	if (i == p->n_sizes)
		return trace_fault(s->why, "%s: a size that the tree does not have", sizes_what);
	return (int)i;
}

static int get_size(const json_t *j, const struct source *s)
{
	static const char *const what = sizes_what;
	const struct plan *p = &s->l->plan;
	struct arbiter_size *z;
	struct thp_stats stats;
	json_t *arbiter, *cap;
	const char *word;
	int i = size_index(j, s, &stats);

	if (i < 0)
		return i;
	z = &s->l->arbiter.size[i];
	if (trace_get_container(j, what, "arbiter", JSON_OBJECT, true, &arbiter, s->why) < 0 ||
		trace_get_container(j, what, "cap", JSON_OBJECT, true, &cap, s->why) < 0 ||
		trace_get_string(j, what, "word", false, &word, s->why) < 0 ||
		trace_fields_get(arbiter, what, arbiter_fields, ELEMENTSOF(arbiter_fields), z, s->why) < 0 ||
		trace_fields_get(cap, what, cap_fields, ELEMENTSOF(cap_fields), &s->l->host.size[i],
			s->why) < 0)
		return -EBADMSG;
	s->l->host.prev_stats[i] = stats;
	if (p->sizes[i].managed && static_word(word))
		z->word = static_word(word);
	return 0;
}

/* The group on whose account a size is as it is; after the groups were read. */
static int get_cause(const json_t *j, const struct source *s)
{
	struct thp_stats stats;
	uint64_t cause;
	int i = size_index(j, s, &stats);

	if (i < 0)
		return i;
	if (trace_get_value(j, sizes_what, "cause", false, &cause, s->why) < 0)
		return -EBADMSG;
	if (!value_known(cause))
		return 0;
	if (cause >= s->l->n_groups)
		return trace_fault(s->why, "%s: cause %" PRIu64 " is no group of the state", sizes_what, cause);
	s->l->arbiter.size[i].cause = s->l->groups[cause];
	return 0;
}

static int get_rules(const json_t *j, const struct source *s)
{
	struct hostrules *h = &s->l->host;
	json_t *rules, *host;

	if (trace_get_container(j, "state", "rules", JSON_OBJECT, true, &rules, s->why) < 0 ||
		trace_fields_get(rules, "state: rules", rules_fields, ELEMENTSOF(rules_fields), h,
			s->why) < 0 ||
		trace_get_container(rules, "state: rules", "host", JSON_OBJECT, h->has_prev, &host,
			s->why) < 0)
		return -EBADMSG;
	return h->has_prev ? trace_host_get(host, &h->prev, s->why) : 0;
}

static int get_arbiter(const json_t *j, const struct source *s)
{
	struct arbiter *a = &s->l->arbiter;
	const struct plan *p = &s->l->plan;
	const char *defrag;
	json_t *global;

	if (trace_get_container(j, "state", "arbiter", JSON_OBJECT, true, &global, s->why) < 0 ||
		trace_fields_get(global, "state: arbiter", global_fields, ELEMENTSOF(global_fields), a,
			s->why) < 0 ||
		trace_get_string(j, "state", "defrag", true, &defrag, s->why) < 0)
		return -EBADMSG;
	a->defrag = strcmp(defrag, p->defrag_low) ? p->defrag_base : p->defrag_low;
	return 0;
}

/* Only the values count: what the next decisions are compared with. */
static int get_wants(const json_t *j, const struct source *s)
{
	const char *path;
	json_t *wants, *v;

	if (trace_get_container(j, "state", "wants", JSON_OBJECT, true, &wants, s->why) < 0)
		return -EBADMSG;
	if (json_object_size(wants) > LOOP_KNOBS_MAX)
		return trace_fault(s->why, "state: more than %d wants", (int)LOOP_KNOBS_MAX);
	s->l->n_wants = 0;
	json_object_foreach(wants, path, v)
	{
		struct loop_want *w = &s->l->wants[s->l->n_wants];

		if (!json_is_string(v) || json_string_length(v) >= sizeof(w->value) ||
			strlen(path) >= sizeof(w->path))
			return trace_fault(s->why, "state: wants: %.60s is not a short string", path);
		*w = (struct loop_want){ .reason = REASON_START_VALUES };
		snprintf(w->path, sizeof(w->path), "%s", path);
		snprintf(w->value, sizeof(w->value), "%s", json_string_value(v));
		s->l->n_wants++;
	}
	return 0;
}

static int check_version(const json_t *j, struct trace_why *why)
{
	uint64_t version;

	if (trace_get_value(j, "state", "version", true, &version, why) < 0)
		return -EBADMSG;
	if (version != TRACE_STATE_VERSION)
		return trace_fault(why,
			"state: version %" PRIu64 " of what the loop remembers, this program reads %d; "
			"the mthpd that recorded it can replay it",
			version, TRACE_STATE_VERSION);
	return 0;
}

int trace_state_get(const json_t *j, struct loop *l, trace_group_fn group_new, void *userdata,
	uint64_t *ret_decisions, struct trace_why *why)
{
	const struct source s = { l, group_new, userdata, why };
	json_t *groups, *sizes, *one;
	size_t i;
	int r;

	if (check_version(j, why) < 0 ||
		trace_get_value(j, "state", "now_usec", true, &l->now_usec, why) < 0 ||
		trace_get_value(j, "state", "decisions", true, ret_decisions, why) < 0 ||
		trace_get_container(j, "state", "groups", JSON_ARRAY, true, &groups, why) < 0 ||
		trace_get_container(j, "state", "sizes", JSON_ARRAY, true, &sizes, why) < 0 ||
		get_rules(j, &s) < 0 || get_arbiter(j, &s) < 0 || get_wants(j, &s) < 0 ||
		trace_rate_get(j, "state", true, &l->rate, why) < 0)
		return -EBADMSG;
	if (json_array_size(groups) > TRACE_GROUPS_MAX)
		return trace_fault(why, "state: more than %d groups", TRACE_GROUPS_MAX);
	json_array_foreach(sizes, i, one)
	{
		r = get_size(one, &s);
		if (r < 0)
			return r;
	}
	json_array_foreach(groups, i, one)
	{
		r = get_group(one, &s);
		if (r < 0)
			return r;
	}
	json_array_foreach(sizes, i, one)
	{
		r = get_cause(one, &s);
		if (r < 0)
			return r;
	}
	return 0;
}
