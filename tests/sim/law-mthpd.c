/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mthpd's loop in the simulated world. Engaging groups, ticks, the audit and
 * applying follow daemon/engine.c, engine-groups.c and engine-act.c; only the
 * files, the clock and the watches are the world's.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "law.h"
#include "loop.h"

#define ENGAGE_USEC (10 * SEC_USEC)
#define SURVEY_FAULTS_PER_SEC 1000

/* What the engine's watches tell of a group, and what it keeps about it. */
struct node {
	struct loop_group *group;
	uint64_t engaged_until_usec, next_look_usec;
	uint64_t events, some_usec, some_before_usec;
};

struct state {
	struct config *config;
	struct thp_tree tree;
	struct loop *loop;
	struct node nodes[WORLD_GROUPS_MAX];
	char stands[LOOP_KNOBS_MAX][CHOICE_LEN];
	uint64_t audit_usec, audit_pgfault;
};

/* ---- start ------------------------------------------------------------- */

static void choice_set(struct choice *c, const char *text)
{
	if (parse_choice(text, c) < 0) {
		fprintf(stderr, "sim: %s?\n", text);
		exit(2);
	}
}

static void make_tree(struct thp_tree *t, enum start_values start)
{
	memset(t, 0, sizeof(*t));
	t->page_kb = 4;
	t->pmd_kb = 2048;
	t->pmd_nr = 512;
	t->per_size = true;
	choice_set(&t->enabled,
		start == START_MADVISE ? "always [madvise] never" : "[always] madvise never");
	choice_set(&t->defrag, "always defer defer+madvise [madvise] never");
	for (unsigned order = PLANT_MIN_ORDER; order <= PLANT_PMD_ORDER; order++) {
		struct thp_size *z = &t->sizes[t->n_sizes++];

		z->size_kb = UINT64_C(4) << order;
		choice_set(&z->enabled, start == START_ALL || order == PLANT_PMD_ORDER
						? "always [inherit] madvise never"
						: "always inherit madvise [never]");
	}
	t->max_ptes_none = 511;
	t->max_ptes_swap = 64;
	t->max_ptes_shared = 256;
	t->pages_to_scan = 4096;
	t->scan_sleep_millisecs = 10000;
	t->alloc_sleep_millisecs = 60000;
	t->khugepaged_defrag = 1;
	t->shrink_underused = 1;
}

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	(void)userdata;
	fprintf(stderr, "sim: %s:%u: %s\n", file, line, message);
}

static void remember_wants(struct state *s)
{
	for (unsigned i = 0; i < s->loop->n_wants; i++)
		snprintf(s->stands[i], sizeof(s->stands[i]), "%s", s->loop->wants[i].value);
}

static void engage(struct state *s, struct world *w, unsigned i)
{
	struct node *n = &s->nodes[i];
	struct memcg_sample sample;

	n->engaged_until_usec = w->now_usec + ENGAGE_USEC;
	n->next_look_usec = 0;
	if (n->group)
		return;
	n->group = loop_group_add(s->loop, w->groups[i].id, w->groups[i].path);
	if (!n->group)
		exit(2);
	n->group->owner = n;
	if (!n->group->controlled) {
		loop_group_remove(s->loop, n->group);
		n->group = NULL;
		return;
	}
	world_sample_group(w, &w->groups[i], &sample);
	s->loop->now_usec = w->now_usec;
	loop_observe(s->loop, n->group, &sample);
}

static void *start_mthpd(struct world *w, enum start_values start, const char *config)
{
	struct state *s = calloc(1, sizeof(*s));
	struct plan plan;

	if (!s || config_load_text("scenario", config, strlen(config), on_fault, NULL, &s->config) <
			  0)
		exit(2);
	law_start_values(w, start);
	make_tree(&s->tree, start);
	plan_build(&s->tree, s->config, false, UINT64_C(16) << 20, &plan);
	s->loop = loop_new(s->config, &plan, WORLD_CPUS, w->now_usec);
	if (!s->loop)
		exit(2);
	remember_wants(s);
	for (unsigned i = 0; i < w->n_groups; i++)
		engage(s, w, i);
	s->audit_usec = w->now_usec + s->config->audit_usec;
	return s;
}

static void end_mthpd(void *state)
{
	struct state *s = state;

	loop_free(s->loop);
	config_free(s->config);
	free(s);
}

/* ---- the world announces ----------------------------------------------- */

static void announce(struct state *s, struct world *w)
{
	for (unsigned i = 0; i < w->n_groups; i++) {
		const struct sim_group *g = &w->groups[i];
		struct node *n = &s->nodes[i];
		const struct config_policy *p = config_policy_for(s->config, g->path, NULL);
		double high = p ? p->controller.pressure_high : s->config->controller.pressure_high;
		uint64_t some = (uint64_t)(g->plant->some_ns / 1000);
		uint64_t events = g->plant->events_max + g->plant->oom_kill;

		/* The trigger's window, 2 s, slides. */
		if (events != n->events || (double)(some - n->some_before_usec) >=
						   high * (double)s->config->psi_window_usec)
			engage(s, w, i);
		n->events = events;
		n->some_before_usec = n->some_usec;
		n->some_usec = some;
	}
}

/* ---- looking ----------------------------------------------------------- */

static unsigned order_of_kb(uint64_t kb)
{
	unsigned order = 0;

	while ((UINT64_C(4) << order) < kb)
		order++;
	return order;
}

static void observe_host(struct state *s, struct world *w)
{
	struct thp_stats stats[THP_SIZES_MAX];
	struct host_sample host;
	struct hostrules_input in = {.host = &host,
		.stats = stats,
		.full_scans = w->full_scans,
		.pages_collapsed = w->pages_collapsed,
		.dying_cgroups = 0};

	world_sample_host(w, &host);
	for (unsigned i = 0; i < s->loop->plan.n_sizes; i++)
		world_sample_size(w, order_of_kb(s->loop->plan.sizes[i].size_kb), &stats[i]);
	loop_observe_host(s->loop, &in);
}

static void observe_groups(struct state *s, struct world *w)
{
	/* In the order of the loop's groups, the last one first, as the engine. */
	for (size_t i = s->loop->n_groups; i-- > 0;) {
		struct node *n = s->loop->groups[i]->owner;
		struct memcg_sample sample;

		if (n->next_look_usec > w->now_usec)
			continue;
		world_sample_group(w, &w->groups[n - s->nodes], &sample);
		loop_observe(s->loop, n->group, &sample);
		n->next_look_usec =
			w->now_usec < n->engaged_until_usec || !n->group->ctl.quiet_since_usec
				? 0
				: controller_wake_usec(&n->group->ctl, w->now_usec);
	}
}

static bool any_due(const struct state *s, uint64_t now_usec)
{
	if (hostrules_wake_usec(&s->loop->host, &s->loop->plan, now_usec - 1) <= now_usec)
		return true;
	for (size_t i = 0; i < s->loop->n_groups; i++) {
		const struct node *n = s->loop->groups[i]->owner;

		if (n->next_look_usec <= now_usec)
			return true;
	}
	return false;
}

static void retire(struct state *s, uint64_t now_usec)
{
	for (size_t i = s->loop->n_groups; i-- > 0;) {
		struct loop_group *g = s->loop->groups[i];
		struct node *n = g->owner;

		if (now_usec < n->engaged_until_usec || !loop_group_idle(s->loop, g))
			continue;
		loop_group_remove(s->loop, g);
		n->group = NULL;
	}
}

/* ---- applying ---------------------------------------------------------- */

static void apply_size(struct world *w, const struct loop *l, const struct loop_want *want)
{
	unsigned bit = 1U << order_of_kb(l->plan.sizes[want->size].size_kb);
	enum thp_mode m = thp_effective(thp_mode_from_string(want->value), l->plan.top);

	w->orders_all = m == THP_ALWAYS ? w->orders_all | bit : w->orders_all & ~bit;
	w->orders_asked = m >= THP_MADVISE ? w->orders_asked | bit : w->orders_asked & ~bit;
}

static void apply_one(struct world *w, const struct loop *l, const struct loop_want *want)
{
	uint64_t number = strtoull(want->value, NULL, 10);

	if (want->is_size) {
		apply_size(w, l, want);
	} else if (!strcmp(want->path, "defrag")) {
		w->direct_all = !strcmp(want->value, "always");
		w->direct_asked = w->direct_all || !strcmp(want->value, "madvise") ||
				  !strcmp(want->value, "defer+madvise");
	} else if (!strcmp(want->path, "khugepaged/max_ptes_none")) {
		w->max_ptes_none = (unsigned)number;
	} else if (!strcmp(want->path, "khugepaged/scan_sleep_millisecs")) {
		w->scan_sleep_usec = number * 1000;
	}
}

static bool apply(struct state *s, struct world *w, bool trace)
{
	bool any = false;

	for (unsigned i = 0; i < s->loop->n_wants; i++) {
		const struct loop_want *want = &s->loop->wants[i];

		if (!strcmp(s->stands[i], want->value))
			continue;
		if (trace)
			printf("%6.0f s  %-32s %s -> %s  %s  %s\n", (double)w->now_usec / 1e6,
				want->path, s->stands[i], want->value, reason_word(want->reason),
				want->cause ? want->cause->path : "-");
		snprintf(s->stands[i], sizeof(s->stands[i]), "%s", want->value);
		apply_one(w, s->loop, want);
		any = true;
	}
	if (any)
		loop_applied(s->loop, w->now_usec);
	return any;
}

/* ---- one second -------------------------------------------------------- */

static void trace_groups(const struct state *s, const struct world *w)
{
	for (size_t i = 0; i < s->loop->n_groups; i++) {
		const struct loop_group *g = s->loop->groups[i];
		const struct node *n = g->owner;
		uint64_t work = 0;

		for (unsigned k = 0; k < LOAD_PHASES_MAX; k++)
			work += w->groups[n - s->nodes].load.work[k];
		printf("%6.0f s  %-10s phase %u %-7s rung %u%s some %.3f margin %6.1f MiB "
		       "refaults %.0f/s majors %.0f/s work %" PRIu64 " %s\n",
			(double)w->now_usec / 1e6, g->path, w->groups[n - s->nodes].load.phase,
			ctl_state_to_string(g->ctl.state), g->ctl.rung, g->ctl.raised ? "+" : " ",
			g->ctl.some, (double)value_or(g->ctl.margin_bytes, 0) / 1048576,
			g->ctl.refault_per_sec, g->ctl.majfault_per_sec, work,
			reason_word(g->ctl.reason));
	}
}

static void audit(struct state *s, struct world *w)
{
	struct host_sample host;
	uint64_t faults;

	s->audit_usec += s->config->audit_usec;
	world_sample_host(w, &host);
	faults = host.pgfault - s->audit_pgfault;
	s->audit_pgfault = host.pgfault;
	for (size_t i = 0; i < s->loop->n_groups; i++) {
		struct node *n = s->loop->groups[i]->owner;

		if (n->next_look_usec == VALUE_ABSENT)
			n->next_look_usec = 0;
	}
	if (faults * SEC_USEC / s->config->audit_usec >= SURVEY_FAULTS_PER_SEC &&
		plan_can_raise(&s->loop->plan))
		for (unsigned i = 0; i < w->n_groups; i++)
			if (!s->nodes[i].group)
				engage(s, w, i);
	loop_begin(s->loop, w->now_usec);
	loop_decide(s->loop, false);
}

static bool second_mthpd(void *state, struct world *w, bool trace)
{
	struct state *s = state;

	announce(s, w);
	if (w->now_usec >= s->audit_usec)
		audit(s, w);
	if (any_due(s, w->now_usec)) {
		loop_begin(s->loop, w->now_usec);
		observe_host(s, w);
		observe_groups(s, w);
		loop_decide(s->loop, false);
		if (trace)
			trace_groups(s, w);
		retire(s, w->now_usec);
	} else {
		hostrules_rebase(&s->loop->host);
	}
	return apply(s, w, trace);
}

const struct law law_mthpd = {
	.name = "mthpd", .start = start_mthpd, .second = second_mthpd, .end = end_mthpd};
