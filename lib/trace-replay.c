/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "trace-replay-internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "trace-fields.h"


const struct config *replay_config(const struct replay *r)
{
	return r->override ? r->override : r->recorded;
}

static void make_plan(const struct replay *r, const struct config *c, struct plan *ret)
{
	plan_build(&r->tree, c, r->header.boot_never, r->header.mem_total_kb, ret);
}

/* ---- what is decided --------------------------------------------------- */

static struct knob *find_knob(struct replay *r, const char *path)
{
	for (unsigned i = 0; i < r->n_knobs; i++)
		if (!strcmp(r->knobs[i].path, path))
			return &r->knobs[i];
	return NULL;
}

static bool unwritten(const json_t *list, const char *path)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)list, i, v)
		if (json_is_string(v) && !strcmp(json_string_value(v), path))
			return true;
	return false;
}

static uint64_t rounded(double per_sec)
{
	return per_sec > 0 && per_sec < 1e18 ? (uint64_t)per_sec : 0;
}

/* As describe_cause() of the daemon. */
static void describe_cause(const struct replay *r, const struct loop_want *w, struct trace_decision *d)
{
	d->some = d->full = -1;
	d->margin_bytes = d->refault_per_sec = VALUE_ABSENT;
	for (size_t i = 0; i < r->loop->n_groups; i++)
		if (r->loop->groups[i] != w->cause && r->loop->groups[i]->wish.hurt)
			d->others++;
	if (!w->cause)
		return;
	d->group = w->cause->path;
	d->some = w->cause->ctl.some;
	d->full = w->cause->ctl.full;
	d->margin_bytes = w->cause->ctl.margin_bytes;
	d->refault_per_sec = rounded(w->cause->ctl.refault_per_sec);
}

/* @stands is what the file holds in the replay's world. */
static bool change(struct replay *r, const struct loop_want *w, char stands[CHOICE_LEN])
{
	struct trace_decision *d = &r->now[r->n_now];

	if (r->n_now == RECORDED_MAX)
		return false;
	memcpy(r->now_old[r->n_now], stands, CHOICE_LEN);
	memcpy(stands, w->value, CHOICE_LEN);
	r->now_want[r->n_now] = *w;
	*d = (struct trace_decision){
		.now_usec = r->loop->now_usec,
		.realtime_usec = r->header.realtime_usec + (r->tick.now_usec - r->header.now_usec),
		.number = ++r->decisions,
		.knob = r->now_want[r->n_now].path,
		.old_value = r->now_old[r->n_now],
		.new_value = r->now_want[r->n_now].value,
		.reason = reason_word(w->reason),
		.outcome = "replayed",
	};
	describe_cause(r, w, d);
	r->n_now++;
	return true;
}

static bool apply_one(struct replay *r, const struct loop_want *w, const json_t *not_written)
{
	struct knob *k = find_knob(r, w->path);

	if (!k || !strcmp(k->replayed, w->value))
		return false;
	if (!r->override && unwritten(not_written, w->path)) {
		memcpy(k->replayed, w->value, CHOICE_LEN);
		return false;
	}
	return change(r, w, k->replayed);
}

/* A group's own files. */
static bool apply_own(struct replay *r, struct loop_group *g)
{
	bool any = false;

	for (unsigned f = 0; f < OWN_FILES && own_differs(&g->own); f++) {
		struct loop_want w = { .reason = g->own.reason[f], .cause = g };

		if (!strcmp(g->own.want.value[f], g->own.stands.value[f]))
			continue;
		snprintf(w.path, sizeof(w.path), "%s", own_file_name[f]);
		memcpy(w.value, g->own.want.value[f], CHOICE_LEN);
		any |= change(r, &w, g->own.stands.value[f]);
	}
	return any;
}

/* A file that the loop no longer wants to steer gets its baseline back. */
static bool give_back(struct replay *r, const struct knob *k, const json_t *not_written)
{
	struct loop_want w = { .reason = REASON_NOT_MANAGED };
	char buf[CHOICE_LEN];
	const char *base = trace_tree_value(&r->tree, k->path, buf);

	if (!base || loop_want_for(r->loop, k->path))
		return false;
	snprintf(w.path, sizeof(w.path), "%s", k->path);
	snprintf(w.value, sizeof(w.value), "%s", base);
	return apply_one(r, &w, not_written);
}

static void apply(struct replay *r, const json_t *not_written)
{
	bool any = false;

	for (unsigned i = 0; i < r->loop->n_wants; i++)
		any |= apply_one(r, &r->loop->wants[i], not_written);
	for (unsigned i = 0; i < r->n_knobs; i++)
		any |= give_back(r, &r->knobs[i], not_written);
	if (any)
		loop_applied(r->loop, r->loop->now_usec);
	for (size_t i = 0; i < r->loop->n_groups; i++)
		if (apply_own(r, r->loop->groups[i]))
			loop_group_applied(r->loop, r->loop->groups[i], r->loop->now_usec);
}

bool replay_same(const struct trace_decision *a, const struct trace_decision *b)
{
	const char *x = a->group ? a->group : "", *y = b->group ? b->group : "";
	size_t n = strlen(x), m = strlen(y);
	bool group = !strcmp(x, y);

	if (!strncmp(x, "...", 3) && n - 3 <= m)
		group = !strcmp(x + 3, y + m - (n - 3));
	return group && a->now_usec == b->now_usec && !strcmp(a->knob, b->knob) &&
	       !strcmp(a->old_value, b->old_value) && !strcmp(a->new_value, b->new_value) &&
	       !strcmp(a->reason, b->reason);
}

static void tell(struct replay *r)
{
	const struct replay_step step = {
		.now_usec = r->tick.now_usec,
		.realtime_usec = r->header.realtime_usec + (r->tick.now_usec - r->header.now_usec),
		.recorded = r->was,
		.n_recorded = r->n_was,
		.replayed = r->now,
		.n_replayed = r->n_now,
	};

	for (size_t i = 0; i < r->n_was; i++) {
		struct knob *k = find_knob(r, r->was[i].knob);

		if (k)
			snprintf(k->recorded, sizeof(k->recorded), "%s", r->was[i].new_value);
		for (size_t n = 0; n < r->n_now; n++)
			if (replay_same(&r->was[i], &r->now[n])) {
				r->sum.equal++;
				break;
			}
	}
	r->sum.recorded += r->n_was;
	r->sum.replayed += r->n_now;
	if (r->fn && (r->n_was || r->n_now))
		r->fn(&step, r->userdata);
}

/* ---- one tick ---------------------------------------------------------- */

static void on_fault(const char *file, unsigned line, const char *message, void *userdata)
{
	struct trace_why *why = userdata;

	(void)file;
	if (!*why->text)
		snprintf(why->text, sizeof(why->text), "config: line %u of it: %.180s", line, message);
}

static int load_config(struct replay *r, const char *text, struct config **ret)
{
	int e;

	*r->why->text = '\0';
	e = config_load_text("trace", text, strlen(text), on_fault, r->why, ret);
	return e == -EINVAL ? -EBADMSG : e;
}

/* Another baseline, or the configuration was read again. */
static int reconfigure(struct replay *r)
{
	struct config *c = NULL;
	struct plan p;
	int e = 0;

	if (r->tick.has_tree)
		r->tree = r->tick.tree;
	r->loop->now_usec = value_or(r->tick.reconfigured_usec, r->last_usec);
	if (r->tick.config_text)
		e = load_config(r, r->tick.config_text, &c);
	if (e < 0)
		return e;
	make_plan(r, r->override ? r->override : c ? c : r->recorded, &p);
	loop_reconfigure(r->loop, r->override ? r->override : c ? c : r->recorded, &p);
	if (c) {
		config_free(r->recorded);
		r->recorded = c;
	}
	replay_set_policies(r);
	return 0;
}

/* Values that came by other hands than ours. */
static void take_stands(struct replay *r, json_t *stands)
{
	const char *path;
	json_t *v;

	json_object_foreach(stands, path, v)
	{
		struct knob *k = find_knob(r, path);

		if (!k)
			continue;
		snprintf(k->recorded, sizeof(k->recorded), "%s", json_string_value(v));
		snprintf(k->replayed, sizeof(k->replayed), "%s", json_string_value(v));
	}
}

static enum thp_mode mode_in_force(const struct replay *r, const char *value)
{
	enum thp_mode m = thp_effective(thp_mode_from_string(value), thp_choice_mode(&r->tree.enabled));

	return m >= THP_NEVER && m <= THP_ALWAYS ? m : THP_NEVER;
}

/* The time that is over was spent with what stands now. */
static void count_time(struct replay *r, uint64_t usec)
{
	char path[THP_PATH_MAX];

	for (unsigned i = 0; i < r->sum.n_sizes; i++) {
		struct replay_size *z = &r->sum.sizes[i];
		const struct knob *k = find_knob(
			r, r->loop->plan.legacy ? "enabled" : thp_size_path(path, z->size_kb, "enabled"));

		if (!k)
			continue;
		z->recorded_usec[mode_in_force(r, k->recorded)] += usec;
		z->replayed_usec[mode_in_force(r, k->replayed)] += usec;
	}
}

/* Files that the tick's decisions did not reach are told by the line after it. */
static int run_tick(struct replay *r, const json_t *not_written)
{
	const struct trace_tick *t = &r->tick;
	bool changed;
	int e;

	count_time(r, t->now_usec - r->last_usec);
	take_stands(r, t->stands);
	e = replay_drop_others(r);
	if (e == 0 && (t->has_tree || t->config_text))
		e = reconfigure(r);
	if (e == 0)
		e = replay_add_groups(r, false);
	if (e < 0)
		return e;
	if (t->rebased)
		hostrules_rebase(&r->loop->host);
	loop_begin(r->loop, t->now_usec);
	r->loop->foreign = t->foreign;
	replay_drop_gone(r);
	e = replay_add_groups(r, true);
	if (e < 0)
		return e;
	replay_observe(r);
	r->n_now = 0;
	r->loop->now_usec = value_or(t->decided_usec, t->now_usec);
	changed = loop_decide(r->loop, t->held);
	if (changed || t->apply)
		apply(r, not_written);
	r->sum.ticks++;
	r->sum.left_out += value_or(t->left_out, 0);
	r->last_usec = r->sum.end_usec = t->now_usec;
	tell(r);
	return 0;
}

static void forget_tick(struct replay *r)
{
	if (r->has_tick)
		trace_tick_done(&r->tick);
	json_decref(r->tick_json);
	r->tick_json = NULL;
	r->has_tick = false;
	json_array_clear(r->recorded_json);
	r->n_was = 0;
}

static int finish_tick(struct replay *r, const json_t *next)
{
	uint64_t line = r->why->line;
	int e = 0;

	if (r->has_tick) {
		r->why->line = r->tick_line;
		e = run_tick(r, json_object_get(next, "unwritten"));
		if (e == 0)
			r->why->line = line;
	}
	forget_tick(r);
	return e;
}

/* ---- the file ---------------------------------------------------------- */

static int fill_knobs(struct replay *r)
{
	const char *path;
	json_t *v;

	json_object_foreach(r->header.stands, path, v)
	{
		struct knob *k = &r->knobs[r->n_knobs++];

		snprintf(k->path, sizeof(k->path), "%s", path);
		snprintf(k->recorded, sizeof(k->recorded), "%s", json_string_value(v));
		snprintf(k->replayed, sizeof(k->replayed), "%s", json_string_value(v));
	}
	r->sum.n_sizes = r->loop->plan.n_sizes;
	for (unsigned i = 0; i < r->sum.n_sizes; i++)
		r->sum.sizes[i].size_kb = r->loop->plan.sizes[i].size_kb;
	return 0;
}

static int take_header(struct replay *r, json_t *j)
{
	struct plan p;
	int e;

	r->header_json = j;
	e = trace_header_get(j, &r->header, r->why);
	if (e == 0)
		e = load_config(r, r->header.config_text, &r->recorded);
	if (e < 0)
		return e;
	r->tree = r->header.tree;
	r->sum.anonymized = r->header.anonymized;
	r->sum.start_usec = r->sum.end_usec = r->last_usec = r->header.now_usec;
	make_plan(r, r->recorded, &p);
	r->loop = loop_new(r->recorded, &p, r->header.cpus, r->header.now_usec);
	if (!r->loop)
		return -ENOMEM;
	if (r->header.state) {
		/* What was learned was learned under the recorded configuration. */
		const struct config *override = r->override;

		r->override = NULL;
		e = trace_state_get(r->header.state, r->loop, replay_group_new, r, &r->decisions, r->why);
		r->override = override;
	}
	if (e == 0 && r->override) {
		make_plan(r, r->override, &p);
		loop_reconfigure(r->loop, r->override, &p);
	}
	return e < 0 ? e : fill_knobs(r);
}

static int take_tick(struct replay *r, json_t *j)
{
	int e = finish_tick(r, j);

	if (e < 0) {
		json_decref(j);
		return e;
	}
	r->tick_json = j;
	e = trace_tick_get(j, &r->tick, r->why);
	if (e < 0)
		return e;
	r->has_tick = true;
	r->tick_line = r->why->line;
	if (r->tick.now_usec < r->last_usec)
		return trace_fault(r->why, "tick: now_usec goes backwards");
	return 0;
}

static int take_decision(struct replay *r, json_t *j)
{
	struct trace_decision d;
	int e = trace_decision_get(j, &d, r->why);

	/* Not the loop's: a group left it, at any time. */
	if (e == 0 && !strcmp(d.reason, reason_word(REASON_GIVEN_BACK)))
		return 0;
	if (e == 0 && (!r->has_tick ||
			      d.now_usec != value_or(r->tick.decided_usec, r->tick.now_usec)))
		e = trace_fault(r->why, "decision: its tick does not stand before it");
	if (e == 0 && r->n_was == RECORDED_MAX)
		e = trace_fault(r->why, "decision: too many of them in one tick");
	if (json_array_append_new(r->recorded_json, j) < 0 && e == 0)
		e = -ENOMEM;
	if (e == 0)
		r->was[r->n_was++] = d;
	return e;
}

static int take_record(struct replay *r, json_t *j, enum trace_kind kind)
{
	switch (kind) {
	case TRACE_HEADER:
		return take_header(r, j);
	case TRACE_TICK:
		return take_tick(r, j);
	case TRACE_DECISION:
		return take_decision(r, j);
	case TRACE_END:
		r->sum.ended = true;
		json_decref(j);
		return 0;
	}
	json_decref(j);
	return -EBADMSG;
}

static int run_file(struct replay *r)
{
	enum trace_kind kind;
	json_t *j;
	int e;

	while ((e = trace_read(r->reader, &j, &kind, r->why)) > 0) {
		e = take_record(r, j, kind);
		if (e < 0)
			return e;
	}
	if (e == 0)
		e = finish_tick(r, NULL);
	r->sum.torn = trace_torn(r->reader);
	r->sum.torn_line = trace_line(r->reader);
	return e;
}

static void replay_free(struct replay *r)
{
	if (!r)
		return;
	forget_tick(r);
	while (r->loop && r->loop->n_groups)
		replay_group_free(r->loop, r->loop->groups[r->loop->n_groups - 1]);
	loop_free(r->loop);
	config_free(r->recorded);
	json_decref(r->recorded_json);
	json_decref(r->header_json);
	free(r->was);
	free(r->now);
	free(r->now_want);
	free(r->now_old);
	trace_reader_free(r->reader);
	free(r);
}

int replay_run(FILE *f, const struct config *config, replay_fn fn, void *userdata,
	struct replay_summary *ret, struct trace_why *why)
{
	struct replay *r = calloc(1, sizeof(*r));
	int e = -ENOMEM;

	if (r) {
		*why = (struct trace_why){ 0 };
		r->why = why;
		r->fn = fn;
		r->userdata = userdata;
		r->override = config;
		r->sum.worst_some = r->sum.worst_full = -1;
		r->reader = trace_reader_new(f);
		r->recorded_json = json_array();
		r->was = calloc(RECORDED_MAX, sizeof(*r->was));
		r->now = calloc(RECORDED_MAX, sizeof(*r->now));
		r->now_want = calloc(RECORDED_MAX, sizeof(*r->now_want));
		r->now_old = calloc(RECORDED_MAX, sizeof(*r->now_old));
		if (r->reader && r->recorded_json && r->was && r->now && r->now_want && r->now_old)
			e = run_file(r);
	}
	if (e == 0)
		*ret = r->sum;
	replay_free(r);
	return e;
}
