/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * "mthpctl explain": what mthpd does and why, as sentences. Reads the engine,
 * never changes it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine-internal.h"

static bool as_at_start(struct engine *e, const struct loop_want *w)
{
	return !w->is_size || !strcmp(w->value, engine_baseline_or(e, w->path, w->value));
}

static bool same_story(struct engine *e, const struct loop_want *a, const struct loop_want *b)
{
	return !as_at_start(e, b) && !strcmp(a->value, b->value) && a->reason == b->reason &&
	       a->cause == b->cause && !strcmp(engine_baseline_or(e, a->path, "?"), engine_baseline_or(e, b->path, "?"));
}

static void put_size(uint64_t kb, const char *before, FILE *f)
{
	bool mib = kb % 1024 == 0;

	fprintf(f, "%s%" PRIu64 "%s", before, mib ? kb / 1024 : kb, mib ? "M" : "K");
}

/* One sentence for the sizes that share a fate: "16K, 32K: never is wanted, ..." */
static void explain_sizes(struct engine *e, FILE *f)
{
	const struct loop_want *w = e->loop->wants;

	for (unsigned i = 0; i < e->loop->n_wants; i++) {
		bool told = as_at_start(e, &w[i]);

		for (unsigned j = 0; j < i && !told; j++)
			told = same_story(e, &w[i], &w[j]);
		for (unsigned j = i; j < e->loop->n_wants && !told; j++)
			if (same_story(e, &w[i], &w[j]))
				put_size(e->loop->plan.sizes[w[j].size].size_kb, j == i ? "" : ", ", f);
		if (!told)
			fprintf(f, ": %s is wanted instead of %s: %s%s%s.\n", w[i].value,
				engine_baseline_or(e, w[i].path, "?"), reason_text(w[i].reason),
				w[i].cause ? ". Cause: " : "",
				!w[i].cause ? "" : *w[i].cause->path ? w[i].cause->path : "this machine");
	}
}

static void explain_numbers(const struct controller *c, FILE *f)
{
	if (c->some >= 0)
		fprintf(f, "In the last tick some task stalled for %.1f%% of the time, all of them for "
			   "%.1f%%.\n", c->some * 100, c->full * 100);
	if (value_known(c->margin_bytes))
		fprintf(f, "%.1f MiB are left before the limit, %.1f MiB with clean page cache; below "
			   "%.1f MiB the group counts as nearly full.\n", (double)c->margin_bytes / 1048576,
			(double)value_or(c->margin_cache_bytes, 0) / 1048576,
			(double)value_or(c->threshold_bytes, 0) / 1048576);
	fprintf(f, "%.0f anonymous pages a second return from swap in %.0f major faults", c->refault_per_sec,
		c->majfault_per_sec);
	if (c->amplification >= 0)
		fprintf(f, " (%.1f pages each)", c->amplification);
	fprintf(f, ".\n");
}

static void explain_density(const struct engine *e, const struct loop_group *g, FILE *f)
{
	const struct config_controller *cfg = g->policy ? &g->policy->controller : &e->config->controller;
	double density = gate_density(&g->ctl.gate, e->loop->now_usec);

	if (density < 0)
		fprintf(f, "How much of its large folios is in use is not known now");
	else
		fprintf(f, "%.0f %% of the large folios that reclaim looked at is in use", density * 100);
	fprintf(f, " (below %.0f %% they are taken away, above %.0f %% they are let through).\n",
		cfg->density_low * 100, cfg->density_high * 100);
}

static void explain_own_file(struct engine *e, const struct loop_group *g, const struct own *o,
	enum own_file k, FILE *f)
{
	const char *now = o->stands.value[k], *base = o->base.value[k], *wanted = o->want.value[k];
	char why[ENGINE_WHY_NOT_LEN];

	if (!*now) {
		fprintf(f, "Its %s is missing, or not understood: it is left alone.\n", own_file_name[k]);
	} else if (*wanted && strcmp(now, wanted) != 0) {
		engine_own_why_not(e, g->id, k, wanted, why);
		if (o->reason[k] == REASON_HELD)
			*why = '\0';
		fprintf(f, "Its %s is %s, where %s is wanted: %s%s%s%s.\n", own_file_name[k], now, wanted,
			reason_text(o->reason[k]), *why ? " (" : "", why, *why ? ")" : "");
	} else if (strcmp(now, base) != 0) {
		fprintf(f, "Its %s is %s instead of %s: %s.\n", own_file_name[k], now, base,
			reason_text(o->reason[k]));
	}
}

/* What keeps the gate from being as the loop would have it. */
static void explain_gate(const struct loop_group *g, const struct own *o, FILE *f)
{
	const char *now = engine_gate_word(o->stands.value[OWN_MARGIN], g->ctl.gate.state);
	const char *wish = engine_gate_wish(o, g->ctl.gate.state), *base = o->base.value[OWN_MARGIN];

	if (!now || !wish)
		fprintf(f, "Without its file the gate is as the kernel has it for all groups.\n");
	else if (strcmp(now, wish) != 0 && strcmp(base, "inherit") != 0)
		fprintf(f, "Its gate is %s, where %s is wished for: the margin that an administrator chose, %s, "
			   "is left alone.\n", now, wish, base);
	else if (strcmp(now, wish) != 0)
		fprintf(f, "Its gate is %s, where %s is wished for.\n", now, wish);
}

/* What this group's own files hold and why, where the kernel has them. */
static void explain_own(struct engine *e, const struct node *n, const struct own *o, FILE *f)
{
	const struct loop_group *g = n->group;
	const struct memcg_delta *d = &g->delta;

	if (g->own.present && !o->present)
		fprintf(f, "Its own files cannot be read.\n");
	if (!o->present)
		return;
	for (unsigned i = 0; i < OWN_FILES; i++)
		explain_own_file(e, g, o, i, f);
	explain_gate(g, o, f);
	explain_density(e, g, f);
	if (d->dt_usec && d->d_margin_anon + d->d_margin_swpin + d->d_margin_collapse)
		fprintf(f, "For lack of room the kernel refused it large folios in the last tick: %" PRIu64
			   " at faults, %" PRIu64 " at swap-in, %" PRIu64 " at collapse.\n",
			d->d_margin_anon, d->d_margin_swpin, d->d_margin_collapse);
	if (d->d_split_avoided)
		fprintf(f, "Swap could not take the pieces of %" PRIu64 " large folios, which were kept whole.\n",
			d->d_split_avoided);
}

static void put_largest(uint64_t kb, FILE *f)
{
	if (kb)
		put_size(kb, "folios up to ", f);
	else
		fprintf(f, "no large folios");
}

/* As in the status: what the group can have, and the wish beside it where that is another. */
static void explain_size(struct engine *e, const struct node *n, FILE *f)
{
	struct engine_largest l = engine_largest_of(e, n);

	fprintf(f, "It is at rung %u of %u: ", n->group->wish.rung, plan_top(&e->loop->plan));
	put_largest(l.kb, f);
	if (l.kb != l.wanted_kb) {
		fprintf(f, ", where ");
		put_largest(l.wanted_kb, f);
		fprintf(f, " are wished for");
	}
	fprintf(f, ".\n");
}

static void explain_group(struct engine *e, const struct node *n, FILE *f)
{
	const char *pattern = NULL;
	const struct config_policy *p = config_policy_for(e->config, n->path, &pattern);
	const struct controller *c = n->group ? &n->group->ctl : NULL;
	uint64_t now = engine_now_usec();
	struct own o = { 0 };

	if (c)
		engine_own_read(e, n, &o);
	fprintf(f, "%s is in state %s: %s.\n", *n->path ? n->path : "This machine", engine_group_state(e, n),
		reason_text(engine_group_reason(n, p, &o)));
	if (p)
		fprintf(f, "Policy \"%s\" applies (%s matches).\n", p->name, pattern);
	if (!c)
		return;
	explain_size(e, n, f);
	explain_numbers(c, f);
	explain_own(e, n, &o, f);
	if (c->hold_until_usec > now)
		fprintf(f, "The next step up waits %.0f s more (hold %.0f s).\n",
			(double)(c->hold_until_usec - now) / 1e6, (double)c->hold_usec / 1e6);
	if (arbiter_clamps(&e->loop->arbiter, &e->loop->plan, &n->group->wish))
		fprintf(f, "It gets less than that: %s.\n", reason_text(REASON_CLAMPED));
}

static void explain_whole(struct engine *e, FILE *f)
{
	const struct decision *d = history_get(&e->history, 0);
	char text[512];

	fprintf(f, "mthpd is %s on Linux %s, with %" PRIu64 " decision%s so far.\n", engine_state_word(e),
		e->caps.release, e->loop->decisions, e->loop->decisions == 1 ? "" : "s");
	for (unsigned i = 0; i < e->n_degraded; i++)
		fprintf(f, "Degraded: %s.\n", e->degraded[i].text);
	if (engine_held(e))
		fprintf(f, "A hold freezes all switches: %s.\n", engine_held(e));
	if (e->loop->host.swap != SWAP_UNKNOWN)
		fprintf(f, "Swap: %s.\n", swap_state_to_string(e->loop->host.swap));
	if (e->loop->dying)
		fprintf(f, "Note: %s.\n", reason_text(REASON_DYING_CGROUPS));
	if (!d) {
		fprintf(f, "No decision yet: %s.\n", reason_text(REASON_START_VALUES));
		return;
	}
	decision_to_text(d, text, sizeof(text));
	fprintf(f, "Last decision: %s.\n", text);
}

/* A group whose name is not UTF-8 is asked for as it is shown, with \xNN. */
static struct node *node_shown_as(struct engine *e, const char *name)
{
	struct node *n = strstr(name, "\\x") ? tree_root(e->tree) : NULL;

	for (; n; n = tree_next(n)) {
		json_t *j = json_from_bytes(n->path);
		const char *shown_as = json_string_value(j);
		bool found = shown_as && !strcmp(shown_as, name);

		json_decref(j);
		if (found)
			break;
	}
	return n;
}

int engine_explain(struct engine *e, const char *cgroup, char **ret_text, json_t **ret_facts)
{
	struct node *n = NULL;
	size_t size;
	char *text = NULL;
	FILE *f;

	if (cgroup && e->tree)
		n = tree_by_path(e->tree, cgroup) ?: node_shown_as(e, cgroup);
	else if (cgroup && e->host && (!*cgroup || !strcmp(cgroup, "/")))
		n = e->host;
	if (cgroup && (!n || (!engine_shown(n) && n != e->host)))
		return -ENOENT;
	f = open_memstream(&text, &size);
	if (!f)
		return -ENOMEM;
	/* What was asked for comes first. */
	if (n)
		explain_group(e, n, f);
	explain_whole(e, f);
	explain_sizes(e, f);
	for (size_t i = 0; !n && i < e->loop->n_groups; i++)
		if (e->loop->groups[i]->wish.hurt)
			explain_group(e, e->loop->groups[i]->owner, f);
	if (fclose(f) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_facts = n && n->group ? engine_group_json(e, n, n->group->has_prev ? &n->group->prev : NULL) : json_object();
	return 0;
}
