/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From wants to files and back: which files are steered, what stands in them,
 * what was written and why, and what somebody else changed meanwhile.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "engine-internal.h"
#include "log.h"

#define THP_DIR "sys/kernel/mm/transparent_hugepage"

static const char *const number_files[] = {
	"khugepaged/max_ptes_none",
	"khugepaged/defrag",
	"khugepaged/scan_sleep_millisecs",
	"shrink_underused",
};

const char *engine_wanted(struct engine *e, const char *path)
{
	const struct loop_want *w = loop_want_for(e->loop, path);
	const struct engine_knob *k = engine_knob(e, path);

	/* A hold wants what stands. */
	if (w && k && engine_held(e))
		return k->stands;
	return w ? w->value : NULL;
}

struct engine_knob *engine_knob(struct engine *e, const char *path)
{
	for (unsigned i = 0; i < e->n_knobs; i++)
		if (!strcmp(e->knobs[i].path, path))
			return &e->knobs[i];
	return NULL;
}

static void on_warn(const char *message, void *userdata)
{
	(void)userdata;
	log_warning("%s", message);
}

/* What the capabilities say about files follows them. */
static void count_files(struct engine *e)
{
	const struct thp_tree *t = &e->tree_base;
	char path[THP_PATH_MAX];

	e->caps.n_usable = e->caps.n_denied = 0;
	for (unsigned i = 0; i < t->n_sizes; i++)
		e->caps.n_usable += actuator_usable(
			e->actuator, thp_size_path(path, t->sizes[i].size_kb, "enabled"));
	for (unsigned i = 0; i < e->n_knobs; i++)
		e->caps.n_denied += actuator_denied(e->actuator, e->knobs[i].path);
	e->caps.n_steered = e->n_knobs;
	e->caps.writable = !actuator_read_only(e->actuator);
}

static void on_trouble(const char *path, const char *sentence, void *userdata)
{
	struct engine *e = userdata;
	const char *key = *path ? path : "read-only";

	count_files(e);
	if (sentence) {
		engine_degrade(e, key, "%s%s",
			*path ? "" : "nothing is written, changes are only logged: ", sentence);
		return;
	}
	engine_undegrade(e, key);
	e->replan = true;
	for (unsigned i = 0; i < e->n_knobs; i++)
		e->knobs[i].reread |= !*path || !strcmp(e->knobs[i].path, path);
	if (actuator_usable(e->actuator, path) && !actuator_denied(e->actuator, path))
		log_info("%s can be steered again", path);
}

void engine_tell_foreign(
	struct engine *e, const char *path, const char *expected, const char *found, bool adopted)
{
	log_warning("%s holds %s instead of %s: changed by somebody else, %s", path, found, expected,
		adopted ? "taken over as the new baseline" : "writing ours again");
	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->drift)
			e->observers[i]->drift(path, expected, found, e->observers[i]->userdata);
}

static void on_foreign(
	const char *path, const char *expected, const char *found, bool adopted, void *userdata)
{
	struct engine *e = userdata;
	struct engine_knob *k = engine_knob(e, path);

	engine_tell_foreign(e, path, expected, found, adopted);
	if (!adopted)
		return;
	if (k)
		snprintf(k->stands, sizeof(k->stands), "%s", found);
	e->replan = true;
}

static const struct actuator_ops ops = {.warn = on_warn, .trouble = on_trouble, .foreign = on_foreign};

static void manage(struct engine *e, const char *path, void *userdata)
{
	struct engine_knob *k;

	(void)userdata;
	if (actuator_manage(e->actuator, path) == -ENOENT || e->n_knobs == sizeof(e->knobs) / sizeof(e->knobs[0]))
		return;
	k = &e->knobs[e->n_knobs++];
	*k = (struct engine_knob){0};
	snprintf(k->path, sizeof(k->path), "%s", path);
	actuator_read(e->actuator, path, k->stands, sizeof(k->stands)); /* else "": told already */
}

/* Each file that is there to be steered, in the order in which it is written. */
typedef void (*file_fn)(struct engine *e, const char *path, void *userdata);

static void each_file(struct engine *e, file_fn fn, void *userdata)
{
	const struct thp_tree *t = &e->tree_base;
	char path[THP_PATH_MAX];

	for (unsigned i = 0; i < t->n_sizes; i++)
		if (t->sizes[i].enabled.n || t->sizes[i].enabled_unparseable)
			fn(e, thp_size_path(path, t->sizes[i].size_kb, "enabled"), userdata);
	for (unsigned i = 0; e->config->shmem && i < t->n_sizes; i++)
		fn(e, thp_size_path(path, t->sizes[i].size_kb, "shmem_enabled"), userdata);
	if (!t->per_size)
		fn(e, "enabled", userdata);
	fn(e, "defrag", userdata);
	for (size_t i = 0; i < sizeof(number_files) / sizeof(number_files[0]); i++)
		fn(e, number_files[i], userdata);
}

/* Files that are only read: the switches that others inherit, and what status tells. */
static void check_unsteered(struct engine *e, const char *path)
{
	char sentence[KNOB_TROUBLE_LEN];

	if (engine_knob(e, path))
		return;
	if (*knob_trouble(e->thp_fd, path, NULL, sentence))
		engine_degrade(e, path, "%s", sentence);
	else
		engine_undegrade(e, path);
}

static void check_all_unsteered(struct engine *e)
{
	char path[THP_PATH_MAX];

	check_unsteered(e, "enabled");
	check_unsteered(e, "shmem_enabled");
	for (unsigned i = 0; i < e->tree_base.n_sizes; i++)
		check_unsteered(e, thp_size_path(path, e->tree_base.sizes[i].size_kb, "shmem_enabled"));
}

struct usable {
	unsigned yes, no;
	char first[KNOB_TROUBLE_LEN]; /* the first that is not */
};

static void count_usable(struct engine *e, const char *path, void *userdata)
{
	struct usable *u = userdata;
	char sentence[KNOB_TROUBLE_LEN];
	struct choice known = {0};

	if (knob_kind(path) != KNOB_CHOICE || faccessat(e->thp_fd, path, F_OK, 0) < 0)
		return;
	baseline_known(e->baseline, path, &known);
	if (!*knob_trouble(e->thp_fd, path, &known, sentence))
		u->yes++;
	else if (u->no++ == 0)
		memcpy(u->first, sentence, sizeof(sentence));
}

/* The tree as it was before mthpd: what stands now, with the journaled
 * baseline where we wrote. */
static void select_token(struct choice *c, const char *token)
{
	for (unsigned i = 0; i < c->n; i++)
		if (!strcmp(c->token[i], token))
			c->selected = i;
}

static void base_choice(struct engine *e, const char *path, struct choice *c)
{
	const char *base = baseline_get(e->baseline, path);
	const struct choice *now = actuator_choice(e->actuator, path);

	if (now)
		*c = *now;
	if (base)
		select_token(c, base);
}

static void base_number(struct engine *e, const char *path, uint64_t *v)
{
	const char *base = baseline_get(e->baseline, path);

	if (base)
		parse_u64(base, v);
}

static void load_tree(struct engine *e)
{
	struct thp_tree *t = &e->tree_base;
	char path[THP_PATH_MAX];

	for (unsigned i = 0; i < t->n_sizes; i++) {
		base_choice(e, thp_size_path(path, t->sizes[i].size_kb, "enabled"), &t->sizes[i].enabled);
		base_choice(e, thp_size_path(path, t->sizes[i].size_kb, "shmem_enabled"),
			&t->sizes[i].shmem_enabled);
	}
	base_choice(e, "enabled", &t->enabled);
	base_choice(e, "defrag", &t->defrag);
	base_number(e, "khugepaged/max_ptes_none", &t->max_ptes_none);
	base_number(e, "khugepaged/defrag", &t->khugepaged_defrag);
	base_number(e, "khugepaged/scan_sleep_millisecs", &t->scan_sleep_millisecs);
	base_number(e, "shrink_underused", &t->shrink_underused);
}

static void make_plan(struct engine *e, struct plan *p)
{
	load_tree(e);
	plan_build(&e->tree_base, e->config, e->caps.boot_never, e->host_now.mem_total_kb, p);
}

static void warn_about_sizes(struct engine *e)
{
	const struct config *c = e->config;
	uint64_t smallest = e->tree_base.n_sizes ? e->tree_base.sizes[0].size_kb : e->tree_base.pmd_kb;

	for (unsigned i = 0; !c->all_sizes && i < c->n_sizes; i++) {
		uint64_t kb = config_size_kb(&c->sizes[i], e->tree_base.pmd_kb, smallest);
		bool known = kb == e->tree_base.pmd_kb;

		for (unsigned j = 0; j < e->tree_base.n_sizes; j++)
			known |= e->tree_base.sizes[j].size_kb == kb;
		if (!known)
			log_warning("Sizes= names %" PRIu64 "K, which this kernel does not have", kb);
	}
	if (value_known(c->max_ptes_none) && c->max_ptes_none >= e->tree_base.pmd_nr)
		log_warning("MaxPtesNone=%" PRIu64 " is above the maximum here, %" PRIu64,
			c->max_ptes_none, e->tree_base.pmd_nr - 1);
}

static void warn_about_plan(struct engine *e)
{
	const struct plan *p = &e->loop->plan;

	if (p->ptes_two_values && value_known(p->ptes_base) && p->ptes_base &&
		p->ptes_base != p->pmd_nr - 1)
		log_warning("max_ptes_none=%" PRIu64 " is kept, but this kernel collapses to sizes "
			    "below the PMD only at 0 or %" PRIu64, p->ptes_base, p->pmd_nr - 1);
	if (p->pmd_too_large_kb)
		log_warning("the PMD size, %" PRIu64 " MiB, is large against this host's memory: "
			    "madvise at most for it unless MaxMode=always", p->pmd_too_large_kb / 1024);
	if (p->boot_never)
		log_info("transparent_hugepage=never on the kernel command line: nothing is raised");
}

int engine_act_check(struct engine *e)
{
	struct usable u = {0};

	each_file(e, count_usable, &u);
	if (u.yes)
		return 0;
	if (!u.no)
		log_err("%s/" THP_DIR " holds no switch that mthpd knows: there is nothing to steer", e->root);
	else
		log_err("not one switch in %s/" THP_DIR " can be steered: %s%s", e->root, u.first,
			u.no > 1 ? ", and the others are no better" : "");
	return ENGINE_EX_UNAVAILABLE;
}

int engine_act_init(struct engine *e)
{
	struct plan p;
	int r = actuator_new(e->thp_fd, e->baseline, &ops, e, &e->actuator);

	if (r < 0)
		return r;
	actuator_set_dry_run(e->actuator, e->dry_run);
	actuator_set_reassert(e->actuator, e->config->foreign == FOREIGN_REASSERT);
	r = engine_own_init(e);
	if (r < 0)
		return r;
	each_file(e, manage, NULL);
	check_all_unsteered(e);
	actuator_probe(e->actuator);
	count_files(e);
	make_plan(e, &p);
	e->loop = loop_new(e->config, &p, (unsigned)sysconf(_SC_NPROCESSORS_ONLN), engine_now_usec());
	if (!e->loop)
		return -ENOMEM;
	e->replan = false;
	warn_about_sizes(e);
	warn_about_plan(e);
	return 0;
}

void engine_replan(struct engine *e)
{
	struct plan p;

	make_plan(e, &p);
	loop_reconfigure(e->loop, e->config, &p);
	e->replan = false;
	e->replanned = true;
}

/* ---- writing ----------------------------------------------------------- */

static void publish(struct engine *e, const struct decision *d)
{
	char text[512], some[16], margin[24];

	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->decision)
			e->observers[i]->decision(d, e->observers[i]->userdata);
	decision_to_text(d, text, sizeof(text));
	if (!getenv("JOURNAL_STREAM") || *e->root) {
		log_info("%s", text);
		return;
	}
	snprintf(some, sizeof(some), "%.3f", d->some);
	snprintf(margin, sizeof(margin), "%" PRIu64, d->margin_bytes);
	sd_journal_send("MESSAGE=%s", text, "MESSAGE_ID=7d2c5b0ce2f14a6c9b6a4a1f0e8d3c55",
		"PRIORITY=6", "SYSLOG_IDENTIFIER=mthpd", "MTHPD_CGROUP=%s", d->group, "MTHPD_KNOB=%s", d->knob,
		"MTHPD_OLD=%s", d->old_value, "MTHPD_NEW=%s", d->new_value, "MTHPD_REASON=%s",
		reason_word(d->reason), "MTHPD_SOME=%s", d->some >= 0 ? some : "",
		"MTHPD_MARGIN=%s", value_known(d->margin_bytes) ? margin : "", NULL);
}

static void describe_cause(const struct engine *e, const struct loop_want *w, struct decision *d)
{
	d->some = d->full = -1;
	d->margin_bytes = d->refault_per_sec = VALUE_ABSENT;
	for (size_t i = 0; i < e->loop->n_groups; i++)
		if (e->loop->groups[i] != w->cause && e->loop->groups[i]->wish.hurt)
			d->others++;
	if (!w->cause)
		return;
	history_set_group(d, w->cause->path);
	d->some = w->cause->ctl.some;
	d->full = w->cause->ctl.full;
	d->margin_bytes = w->cause->ctl.margin_bytes;
	d->refault_per_sec = (uint64_t)w->cause->ctl.refault_per_sec;
}

static uint64_t realtime_usec(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* A PMD-sized switch that leaves never starts khugepaged, which raises
 * vm.min_free_kbytes; that is not ours to undo, but it must be known. */
static void report_side_effect(struct engine *e, const char *path)
{
	char buf[64];
	uint64_t v;

	if (parse_read_at(e->root_fd, "proc/sys/vm/min_free_kbytes", buf, sizeof(buf)) < 0 ||
		parse_u64(buf, &v) < 0)
		return;
	if (value_known(e->min_free_kbytes) && v != e->min_free_kbytes)
		log_info("after the change of %s, vm.min_free_kbytes went from %" PRIu64 " to %" PRIu64
			 " (the kernel's own doing when khugepaged starts or stops)",
			path, e->min_free_kbytes, v);
	e->min_free_kbytes = v;
}

static const char *outcome_word(enum actuator_result r)
{
	switch (r) {
	case ACTUATOR_WRITTEN:
		return "written";
	case ACTUATOR_DRY:
		return "dry-run";
	case ACTUATOR_READONLY:
		return "read-only";
	case ACTUATOR_SAME:
	case ACTUATOR_FOREIGN:
	case ACTUATOR_GONE:
	case ACTUATOR_REFUSED:
	default:
		return "refused";
	}
}

bool engine_record(struct engine *e, const struct loop_want *w, const char *group, const char *old_value,
	enum actuator_result r)
{
	struct decision d = { .realtime_usec = realtime_usec(), .reason = w->reason };

	if (r == ACTUATOR_SAME || r == ACTUATOR_REFUSED || r == ACTUATOR_FOREIGN || r == ACTUATOR_GONE)
		return false;
	snprintf(d.old_value, sizeof(d.old_value), "%s", old_value);
	snprintf(d.knob, sizeof(d.knob), "%s", w->path);
	snprintf(d.new_value, sizeof(d.new_value), "%s", w->value);
	d.outcome = outcome_word(r);
	describe_cause(e, w, &d);
	if (group)
		history_set_group(&d, group);
	publish(e, history_add(&e->history, &d));
	return true;
}

/* True when something was written (or would have been). */
static bool apply_one(struct engine *e, const struct loop_want *w)
{
	struct engine_knob *k = engine_knob(e, w->path);
	char was[CHOICE_LEN], old_value[BASELINE_VALUE_LEN] = "";
	enum actuator_result r;

	if (!k || !strcmp(k->stands, w->value))
		return false;
	memcpy(was, k->stands, sizeof(was));
	r = actuator_apply(e->actuator, w->path, w->value, old_value);
	if (r == ACTUATOR_FOREIGN || r == ACTUATOR_GONE)
		return false;
	/* Refused values are remembered as standing: one attempt, no storm. */
	snprintf(k->stands, sizeof(k->stands), "%s", w->value);
	if (!engine_record(e, w, NULL, was, r))
		return false;
	if (r == ACTUATOR_WRITTEN && w->is_size)
		report_side_effect(e, w->path);
	return true;
}

/* A file that is no longer steered (Sizes= was narrowed) does not keep our value. */
static bool give_back(struct engine *e, const struct engine_knob *k)
{
	struct loop_want w = { .reason = REASON_NOT_MANAGED };

	if (loop_want_for(e->loop, k->path) || !baseline_written(e->baseline, k->path))
		return false;
	snprintf(w.path, sizeof(w.path), "%s", k->path);
	snprintf(w.value, sizeof(w.value), "%s", baseline_get(e->baseline, k->path));
	return apply_one(e, &w);
}

void engine_apply(struct engine *e)
{
	bool any = false;

	for (unsigned i = 0; i < e->loop->n_wants; i++)
		any |= apply_one(e, &e->loop->wants[i]);
	for (unsigned i = 0; i < e->n_knobs; i++)
		any |= give_back(e, &e->knobs[i]);
	if (any)
		loop_applied(e->loop, e->loop->now_usec);
	any |= engine_own_apply(e);
	if (any)
		engine_tell_changed(e);
	if (baseline_error(e->baseline)) {
		e->journal_failed = true;
		engine_degrade(e, "journal", "the journal of start values cannot be written (%s): nothing is changed",
			strerror(-baseline_error(e->baseline)));
	}
	if (e->replan) {
		e->loop->foreign = true;
		engine_replan(e);
	}
}

/* ---- what others do ---------------------------------------------------- */

static void audit_top(struct engine *e)
{
	char buf[256];
	struct choice c;

	if (!e->tree_base.per_size)
		return; /* it is one of the steered files then */
	if (parse_read_at(e->thp_fd, "enabled", buf, sizeof(buf)) < 0 || parse_choice(buf, &c) < 0)
		return;
	if (!strcmp(choice_value(&c), choice_value(&e->tree_base.enabled)
				? choice_value(&e->tree_base.enabled) : ""))
		return;
	log_info("the top-level switch is %s now: ceilings are computed anew", choice_value(&c));
	e->tree_base.enabled = c;
	e->replan = true;
}

static void join(char *list, size_t size, const char *word)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%s%s", n ? ", " : "", word);
}

/* What was refused only for want of a journal is wanted again once it can be written: true then. */
static bool audit_journal(struct engine *e)
{
	if (!e->journal_failed || baseline_try_again(e->baseline) < 0)
		return false;
	log_info("the journal of start values can be written again");
	e->journal_failed = false;
	engine_undegrade(e, "journal");
	for (unsigned i = 0; i < e->n_knobs; i++)
		e->knobs[i].reread = true;
	for (size_t i = 0; i < e->loop->n_groups; i++)
		engine_own_look(e, e->loop->groups[i]);
	return true;
}

/* What stands is taken from the files that can be steered again: true if there are any. */
static bool reread_files(struct engine *e)
{
	bool any = false;

	for (unsigned i = 0; i < e->n_knobs; i++) {
		struct engine_knob *k = &e->knobs[i];

		if (!k->reread)
			continue;
		actuator_read(e->actuator, k->path, k->stands, sizeof(k->stands));
		k->reread = false;
		any = true;
	}
	return any;
}

bool engine_retry_files(struct engine *e)
{
	actuator_forget_conflicts(e->actuator);
	engine_undegrade(e, "conflict");
	actuator_probe(e->actuator);
	return reread_files(e);
}

bool engine_audit_files(struct engine *e)
{
	const char *path;
	char joined[100] = "";
	bool again = audit_journal(e);

	for (unsigned i = 0; i < e->n_knobs; i++)
		actuator_audit(e->actuator, e->knobs[i].path);
	again |= reread_files(e);
	check_all_unsteered(e);
	audit_top(e);
	engine_own_audit(e);
	for (unsigned i = 0; (path = actuator_conflict(e->actuator, i)); i++)
		join(joined, sizeof(joined), path);
	for (unsigned i = 0; (path = engine_own_conflict(e, i)); i++)
		join(joined, sizeof(joined), path);
	if (*joined)
		engine_degrade(e, "conflict", "another program keeps changing %s: left to it", joined);
	if (e->replan) {
		e->loop->foreign = true;
		engine_replan(e);
	}
	return again;
}
