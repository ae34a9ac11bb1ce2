/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "loop.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC UINT64_C(1000000)

static void build_wants(struct loop *l);

struct loop *loop_new(
	const struct config *config, const struct plan *plan, unsigned cpus, uint64_t now_usec)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->config = config;
	l->plan = *plan;
	l->cpus = cpus ? cpus : 1;
	l->now_usec = now_usec;
	l->host_available_bytes = l->host_total_bytes = VALUE_ABSENT;
	rate_set(&l->rate, config->controller.max_changes_per_hour);
	hostrules_init(&l->host);
	arbiter_init(&l->arbiter, &l->plan, now_usec);
	build_wants(l);
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	while (l->n_groups)
		loop_group_remove(l, l->groups[l->n_groups - 1]);
	free(l->groups);
	rate_done(&l->rate);
	free(l);
}

static const struct config_controller *group_config(const struct loop *l, const struct loop_group *g)
{
	return g->policy ? &g->policy->controller : &l->config->controller;
}

static void group_policy(const struct loop *l, struct loop_group *g)
{
	g->policy = config_policy_for(l->config, g->path, NULL);
	g->controlled = !g->policy || g->policy->controlled;
}

/* The kernel has the files, and the configuration lets them be used. */
static bool own_steerable(const struct loop *l, const struct own *o)
{
	bool any = false;

	for (unsigned f = 0; f < OWN_FILES; f++)
		any |= *o->base.value[f] != '\0';
	return any && l->config->per_group;
}

/* The rung of the new ladder that allows what @rung did. */
static unsigned rung_in(const struct plan *plan, const struct plan *old_plan, unsigned rung)
{
	return rung >= plan_top(old_plan) ? plan_top(plan) : plan_rung_for(plan, old_plan->rung_max_kb[rung]);
}

void loop_reconfigure(struct loop *l, const struct config *config, const struct plan *plan)
{
	struct arbiter old = l->arbiter;
	struct plan old_plan = l->plan;

	rate_set(&l->rate, config->controller.max_changes_per_hour);
	l->config = config;
	l->plan = *plan;
	arbiter_init(&l->arbiter, &l->plan, l->now_usec);
	/* What was touched stays touched, where the size is still there. */
	for (unsigned i = 0; i < plan->n_sizes; i++)
		for (unsigned j = 0; j < old_plan.n_sizes; j++)
			if (plan->sizes[i].size_kb == old_plan.sizes[j].size_kb) {
				l->arbiter.size[i].touched = old.size[j].touched;
				l->arbiter.size[i].veto_left_usec = old.size[j].veto_left_usec;
				l->arbiter.size[i].veto_spent = old.size[j].veto_spent;
			}
	for (size_t i = 0; i < l->n_groups; i++) {
		struct loop_group *g = l->groups[i];
		group_policy(l, g);
		rate_set(&g->rate, group_config(l, g)->max_changes_per_hour);
		g->own.present = own_steerable(l, &g->own);
		g->ctl.rung = rung_in(plan, &old_plan, g->ctl.rung);
		g->ctl.from_rung = rung_in(plan, &old_plan, g->ctl.from_rung);
		g->wish.rung = g->ctl.rung;
	}
}

struct loop_group *loop_group_add(struct loop *l, uint64_t id, const char *path)
{
	struct loop_group *g;

	if (l->n_groups == l->size_groups) {
		size_t n = l->size_groups ? l->size_groups * 2 : 16;
		struct loop_group **p = realloc(l->groups, n * sizeof(*p));

		if (!p)
			return NULL;
		l->groups = p;
		l->size_groups = n;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->id = id;
	g->path = path;
	group_policy(l, g);
	rate_set(&g->rate, group_config(l, g)->max_changes_per_hour);
	controller_init(&g->ctl, &l->plan, group_config(l, g), l->now_usec);
	g->wish = (struct ctl_wish){ .rung = plan_top(&l->plan), .reason = REASON_START_VALUES };
	l->groups[l->n_groups++] = g;
	return g;
}

void loop_group_remove(struct loop *l, struct loop_group *g)
{
	for (size_t i = 0; i < l->n_groups; i++) {
		if (l->groups[i] != g)
			continue;
		memmove(&l->groups[i], &l->groups[i + 1],
			(l->n_groups - i - 1) * sizeof(l->groups[0]));
		l->n_groups--;
		break;
	}
	for (unsigned i = 0; i < l->n_wants; i++)
		if (l->wants[i].cause == g)
			l->wants[i].cause = NULL;
	for (unsigned i = 0; i < l->plan.n_sizes; i++)
		if (l->arbiter.size[i].cause == g)
			l->arbiter.size[i].cause = NULL;
	if (l->arbiter.shmem_cause == g)
		l->arbiter.shmem_cause = NULL;
	if (l->arbiter.ptes_cause == g)
		l->arbiter.ptes_cause = NULL;
	if (l->arbiter.defrag_cause == g)
		l->arbiter.defrag_cause = NULL;
	rate_done(&g->rate);
	free(g);
}

void loop_group_own(struct loop *l, struct loop_group *g, const struct own_values *base,
	const struct own_values *stands)
{
	own_set(&g->own, base, stands);
	g->own.present = own_steerable(l, &g->own);
}

/* ---- rate of change ---------------------------------------------------- */

void loop_applied(struct loop *l, uint64_t now_usec)
{
	rate_note(&l->rate, now_usec);
	l->decisions++;
}

void loop_group_applied(struct loop *l, struct loop_group *g, uint64_t now_usec)
{
	rate_note(&g->rate, now_usec);
	l->decisions++;
}

/* ---- one tick ---------------------------------------------------------- */

static bool measuring(const struct loop_group *g)
{
	bool step = g->ctl.state == CTL_PROBE || g->ctl.state == CTL_SETTLE || g->ctl.state == CTL_MEASURE;

	/* A step in a group's own files concerns nobody else; raising is for all. */
	return step && g->controlled && !g->gone && (!g->own.present || (g->ctl.raised && !g->ctl.from_raised));
}

void loop_begin(struct loop *l, uint64_t now_usec)
{
	bool probing = false;

	l->now_usec = now_usec;
	l->anon_total_bytes = 0;
	l->raised = false;
	for (size_t i = 0; i < l->n_groups; i++) {
		l->groups[i]->observed = false;
		probing |= measuring(l->groups[i]);
		l->raised |= l->groups[i]->ctl.raised && l->groups[i]->controlled && !l->groups[i]->gone;
		if (l->groups[i]->has_prev)
			l->anon_total_bytes += value_or(l->groups[i]->prev.anon, 0);
	}
	/* One step up at a time, so that its effect can be told: groups that are
	 * ready in the same tick take it together. */
	l->rate_limited = !rate_may_step_up(&l->rate, now_usec);
	l->may_probe = !probing && !l->rate_limited;
}

/* Some group that is looked at fails to swap at its own memory.swap.max. */
static bool swap_limited(const struct loop *l)
{
	for (size_t i = 0; i < l->n_groups; i++) {
		const struct loop_group *g = l->groups[i];

		/* Our kernel says so itself, for the ancestors' limits too. */
		if (g->has_prev && g->delta.d_split_avoided)
			return true;
		/* Full but for a fiftieth: a large folio fails where a small one would fit. */
		if (g->has_prev && g->delta.d_swap_fail && value_known(g->prev.swap_max_bytes) &&
			value_or(g->prev.swap_current_bytes, 0) >= g->prev.swap_max_bytes / 50 * 49)
			return true;
	}
	return false;
}

void loop_observe_host(struct loop *l, const struct hostrules_input *host_in)
{
	struct hostrules_input limited = *host_in;
	const struct hostrules_input *in = &limited;

	limited.swap_limited = swap_limited(l);
	hostrules_step(&l->host, &l->plan, in);
	l->host_available_bytes = VALUE_ABSENT;
	if (value_known(in->host->mem_available_kb))
		l->host_available_bytes = in->host->mem_available_kb * 1024;
	if (value_known(in->host->mem_total_kb))
		l->host_total_bytes = in->host->mem_total_kb * 1024;
	l->dying = value_or(in->dying_cgroups, 0) > 10000;
}

/* A policy's own MaxChangesPerHour spaces the steps up of its groups evenly. */
static bool within_own_rate(const struct loop *l, const struct loop_group *g)
{
	unsigned own = group_config(l, g)->max_changes_per_hour;

	return own == l->config->controller.max_changes_per_hour || !g->ctl.last_up_usec ||
	       l->now_usec - g->ctl.last_up_usec >= 3600 * SEC / own;
}

void loop_observe(struct loop *l, struct loop_group *g, const struct memcg_sample *s)
{
	struct ctl_input in = {
		.now_usec = l->now_usec,
		.s = s,
		.d = &g->delta,
		.cpus = l->cpus,
		.page_bytes = (uint64_t)l->plan.page_kb * 1024,
		.pmd_nr = l->plan.pmd_nr,
		.host_available_bytes = l->host_available_bytes,
		.host_total_bytes = l->host_total_bytes,
		.d_collapse = l->host.d_collapse,
		.may_probe = g->own.present ? rate_may_step_up(&g->rate, l->now_usec) : l->may_probe,
		.may_raise = l->may_probe,
		.raised = l->raised,
		.own = g->own.present,
		.foreign = l->foreign,
		.dying = l->dying,
	};

	if (!g->has_prev || memcg_delta(&g->prev, s, &g->delta) < 0) {
		g->prev = *s;
		g->has_prev = true;
		return;
	}
	in.may_probe &= g->own.present || within_own_rate(l, g);
	in.may_raise &= within_own_rate(l, g);
	in.clamped = arbiter_clamps(&l->arbiter, &l->plan, &g->wish);
	if (g->controlled)
		controller_step(&g->ctl, &l->plan, group_config(l, g), g->policy, &in, &g->wish);
	g->prev = *s;
	g->observed = true;
}

static struct arbiter_vote vote_of(const struct loop *l, struct loop_group *g)
{
	const struct config_policy *p = g->policy;
	struct own_limits limits = own_limits_of(p, &l->plan);
	struct arbiter_vote vote = {
		.wish = g->wish,
		.weight = p ? p->weight : 100,
		.protect = p && p->protect,
		.limits = g->wish.reason == REASON_POLICY_LIMIT,
		.anon_share = l->anon_total_bytes && g->has_prev ?
				      (double)value_or(g->prev.anon, 0) / (double)l->anon_total_bytes : 0,
		.min_kb = limits.min_kb,
		.max_kb = limits.max_kb,
		.max_ptes_none = limits.ptes_max,
		.group = g,
	};

	if (!g->own.present)
		return vote;
	/* What its own files say is not asked of the switches of all: those are to hold
	 * whatever any group may use. Raising and defrag are left. */
	vote.wish.rung = plan_top(&l->plan);
	vote.wish.recovering = vote.wish.hurt = vote.limits = false;
	vote.wish.harm_usec_per_sec = 0;
	vote.wish.ptes = CTL_PTES_AMPLE;
	vote.min_kb = vote.max_kb = vote.max_ptes_none = VALUE_ABSENT;
	return vote;
}

static struct loop_want *want_add(struct loop *l, const char *path, enum reason r, const void *cause)
{
	struct loop_want *w = &l->wants[l->n_wants++];

	*w = (struct loop_want){ .reason = r, .cause = cause };
	snprintf(w->path, sizeof(w->path), "%s", path);
	return w;
}

static void want_number(
	struct loop *l, const char *path, uint64_t v, enum reason r, const void *cause)
{
	if (!value_known(v))
		return;
	snprintf(want_add(l, path, r, cause)->value, CHOICE_LEN, "%" PRIu64, v);
}

static void build_wants(struct loop *l)
{
	const struct arbiter *a = &l->arbiter;
	char path[THP_PATH_MAX];

	l->n_wants = 0;
	for (unsigned i = 0; i < l->plan.n_sizes; i++) {
		const struct arbiter_size *z = &a->size[i];
		struct loop_want *w;

		if (!z->word)
			continue;
		thp_size_path(path, l->plan.sizes[i].size_kb, "enabled");
		w = want_add(l, l->plan.legacy ? "enabled" : path, z->reason, z->cause);
		snprintf(w->value, sizeof(w->value), "%s", z->word);
		w->is_size = true;
		w->size = i;
	}
	for (unsigned i = 0; i < l->plan.n_shmem; i++) {
		const struct plan_shmem *m = &l->plan.shmem[i];
		bool off = m->size_kb > a->shmem_max_kb;

		snprintf(want_add(l, thp_size_path(path, m->size_kb, "shmem_enabled"),
				 off ? REASON_DROP_PRESSURE : REASON_START_VALUES,
				 off ? a->shmem_cause : NULL)->value,
			CHOICE_LEN, "%s", off ? "never" : m->base);
	}
	want_number(l, "khugepaged/max_ptes_none", a->max_ptes_none, a->ptes_reason, a->ptes_cause);
	want_number(l, "khugepaged/defrag", a->khugepaged_defrag, a->defrag_reason, a->defrag_cause);
	want_number(l, "khugepaged/scan_sleep_millisecs", a->scan_sleep_millisecs, a->scan_reason, NULL);
	/* Splitting underused folios is what a lowered max_ptes_none is for. */
	if (value_known(l->plan.shrink_underused))
		want_number(l, "shrink_underused",
			a->max_ptes_none != l->plan.ptes_base ? 1 : l->plan.shrink_underused,
			a->ptes_reason, a->ptes_cause);
	if (a->defrag && *a->defrag)
		snprintf(want_add(l, "defrag", a->defrag_reason, a->defrag_cause)->value, CHOICE_LEN,
			"%s", a->defrag);
}

/* MaxChangesPerHour bounds steps up only: a size that would go up keeps its
 * word, and the numbers beside it theirs; the way down is open. */
static void hold_back_ups(struct loop *l, const struct arbiter *was)
{
	struct arbiter *a = &l->arbiter;
	bool down = false;

	for (unsigned i = 0; i < l->plan.n_sizes; i++) {
		struct arbiter_size *z = &a->size[i];
		const struct plan_size *s = &l->plan.sizes[i];
		enum thp_mode is = plan_strength(&l->plan, s, z->level);
		enum thp_mode before = plan_strength(&l->plan, s, was->size[i].level);

		down |= s->managed && is < before;
		if (!s->managed || is <= before)
			continue;
		z->level = was->size[i].level;
		z->word = was->size[i].word;
		z->reason = REASON_RATE_LIMITED;
	}
	if (down || a->max_ptes_none < was->max_ptes_none)
		return;
	a->max_ptes_none = was->max_ptes_none;
	a->khugepaged_defrag = was->khugepaged_defrag;
	a->scan_sleep_millisecs = was->scan_sleep_millisecs;
	a->shmem_max_kb = was->shmem_max_kb;
	a->defrag = was->defrag;
}

static bool decide_switches(struct loop *l)
{
	struct loop_want was[LOOP_KNOBS_MAX];
	unsigned n_was = l->n_wants;
	struct arbiter old = l->arbiter;
	struct arbiter_vote *votes = calloc(l->n_groups + 1, sizeof(*votes));
	size_t n = 0;

	if (!votes)
		return false; /* out of memory: what stands, stands */
	memcpy(was, l->wants, sizeof(was));
	for (size_t i = 0; i < l->n_groups; i++)
		if (l->groups[i]->controlled && !l->groups[i]->gone)
			votes[n++] = vote_of(l, l->groups[i]);
	arbiter_decide(&l->arbiter, &l->plan, votes, n, &l->host, l->now_usec);
	free(votes);
	if (!rate_may_step_up(&l->rate, l->now_usec))
		hold_back_ups(l, &old);
	build_wants(l);
	if (n_was != l->n_wants)
		return true;
	for (unsigned i = 0; i < l->n_wants; i++)
		if (strcmp(was[i].value, l->wants[i].value) != 0)
			return true;
	return false;
}

void loop_own_wish(const struct loop *l, const struct loop_group *g, struct own *ret)
{
	struct own_limits limits = own_limits_of(g->policy, &l->plan);

	*ret = g->own;
	if (g->own.present && g->controlled)
		own_decide(ret, &l->plan, &g->wish, &limits);
}

/* One group's own files; true when some value has to be written. */
static bool decide_own(const struct loop *l, struct loop_group *g)
{
	if (!g->own.present || !g->controlled || g->gone || !rate_may_change(&g->rate, l->now_usec))
		return false;
	loop_own_wish(l, g, &g->own);
	if (!rate_may_step_up(&g->rate, l->now_usec))
		own_hold_back(&g->own);
	return own_differs(&g->own);
}

bool loop_decide(struct loop *l, bool held)
{
	bool changed = false;

	l->foreign = false;
	if (held)
		return false;
	for (size_t i = 0; i < l->n_groups; i++)
		changed |= decide_own(l, l->groups[i]);
	if (rate_may_change(&l->rate, l->now_usec))
		changed |= decide_switches(l);
	return changed;
}

/* A size still waits for MaxChangesPerHour to go up on this group's account: whoever reads
 * of it then wants to know why. */
static bool is_waited_for(const struct loop *l, const struct loop_group *g)
{
	for (unsigned i = 0; i < l->plan.n_sizes; i++)
		if (l->arbiter.size[i].cause == g && l->arbiter.size[i].reason == REASON_RATE_LIMITED)
			return true;
	return false;
}

bool loop_group_rests(const struct loop *l, const struct loop_group *g)
{
	const struct controller *c = &g->ctl;
	bool fresh = !c->dropped && !c->raised && c->ptes == CTL_PTES_AMPLE && c->state == CTL_RUN &&
		     !gate_open(&c->gate);

	/* Nothing tells that a quiet group outgrows SmallGroup=. */
	return fresh && c->quiet_since_usec && !is_waited_for(l, g) && !own_differs(&g->own) &&
	       !(g->own.present && group_config(l, g)->small_group_bytes);
}

/* A policy has a say in the switches, or in this group's own files, even while it is quiet. */
static bool is_bound(const struct loop_group *g)
{
	const struct config_policy *p = g->policy;

	return p && (p->protect || p->has_max_size || (g->own.present && value_known(p->max_ptes_none)));
}

bool loop_group_idle(const struct loop *l, const struct loop_group *g)
{
	return loop_group_rests(l, g) && !is_bound(g);
}

uint64_t loop_wake_usec(const struct loop *l)
{
	uint64_t wake = hostrules_wake_usec(&l->host, &l->plan, l->now_usec);

	for (size_t i = 0; i < l->n_groups; i++)
		wake = value_min(wake, controller_wake_usec(&l->groups[i]->ctl, l->now_usec));
	return wake;
}

const struct loop_want *loop_want_for(const struct loop *l, const char *path)
{
	for (unsigned i = 0; i < l->n_wants; i++)
		if (!strcmp(l->wants[i].path, path))
			return &l->wants[i];
	return NULL;
}
