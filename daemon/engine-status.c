/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is told about the engine: status, features, history and verify. Reads
 * the engine, never changes it; the shapes are those of mthpctl(1).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine-internal.h"

/* Groups in a status: the engaged ones first, then the others. */
#define STATUS_GROUPS_MAX 1000

const char *engine_state_word(const struct engine *e)
{
	if (e->stopped)
		return "off";
	if (engine_held(e))
		return "held";
	if (e->dry_run)
		return "dry-run";
	if (e->n_degraded)
		return "degraded";
	return "active";
}

static json_t *degraded_json(const struct engine *e)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < e->n_degraded; i++)
		json_array_append_new(a, json_from_bytes(e->degraded[i].text));
	return a;
}

static json_t *string_or_null(const char *s)
{
	return s && *s ? json_from_bytes(s) : json_null();
}

const char *engine_baseline_or(struct engine *e, const char *path, const char *otherwise)
{
	const char *b = baseline_get(e->baseline, path);

	return b ? b : otherwise;
}

static const char *resolve(const char *mode, const char *top)
{
	return mode && !strcmp(mode, "inherit") ? top : mode;
}

/* The mode in force now: the file's word, with inherit resolved. */
static json_t *size_json(struct engine *e, const struct thp_tree *now, unsigned i)
{
	const struct thp_size *z = &now->sizes[i];
	const char *top = choice_value(&now->enabled);
	char path[THP_PATH_MAX], actual[CHOICE_LEN] = "";
	const struct loop_want *w;
	enum reason r;

	thp_size_path(path, z->size_kb, "enabled");
	if (z->enabled.n || z->enabled_unparseable)
		actuator_read(e->actuator, path, actual, sizeof(actual));
	w = loop_want_for(e->loop, path);
	r = w ? w->reason : REASON_NOT_MANAGED;
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o}", "size_kb", (json_int_t)z->size_kb,
		"baseline", string_or_null(engine_baseline_or(e, path, actual)), "actual", string_or_null(actual),
		"effective", string_or_null(resolve(actual, top ? top : "never")),
		"wanted", string_or_null(engine_wanted(e, path)),
		"reason", reason_word(r), "reason_text", reason_text(r),
		"cgroup", string_or_null(w && w->cause ? w->cause->path : NULL),
		"shmem", string_or_null(choice_value(&z->shmem_enabled)),
		"shmem_effective", string_or_null(thp_shmem_effective(&z->shmem_enabled, &now->shmem_enabled)));
}

static json_t *legacy_size_json(struct engine *e)
{
	const struct loop_want *w = loop_want_for(e->loop, "enabled");
	char actual[CHOICE_LEN] = "";
	enum reason r = w ? w->reason : REASON_NOT_MANAGED;

	actuator_read(e->actuator, "enabled", actual, sizeof(actual));
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:n, s:n}", "size_kb",
		(json_int_t)e->tree_base.pmd_kb, "baseline", string_or_null(engine_baseline_or(e, "enabled", actual)),
		"actual", string_or_null(actual), "effective", string_or_null(actual),
		"wanted", string_or_null(engine_wanted(e, "enabled")), "reason", reason_word(r),
		"reason_text", reason_text(r), "cgroup", string_or_null(w && w->cause ? w->cause->path : NULL),
		"shmem", "shmem_effective");
}

static json_t *sizes_json(struct engine *e, const struct thp_tree *now)
{
	json_t *a = json_array();

	if (!now->per_size)
		json_array_append_new(a, legacy_size_json(e));
	for (unsigned i = 0; i < now->n_sizes; i++)
		json_array_append_new(a, size_json(e, now, i));
	return a;
}

static json_t *number_text(const char *s)
{
	uint64_t v;

	return s && parse_u64(s, &v) == 0 ? json_from_value(v) : json_null();
}

static json_t *knob_number(struct engine *e, const char *path, uint64_t actual)
{
	const struct loop_want *w = loop_want_for(e->loop, path);
	char buf[32];

	snprintf(buf, sizeof(buf), "%" PRIu64, actual);
	return json_pack("{s:o, s:o, s:o, s:s}", "baseline",
		number_text(engine_baseline_or(e, path, value_known(actual) ? buf : "")),
		"actual", json_from_value(actual), "wanted", number_text(engine_wanted(e, path)),
		"reason", reason_word(w ? w->reason : REASON_NOT_MANAGED));
}

static json_t *knob_text(struct engine *e, const char *path, const char *actual)
{
	const struct loop_want *w = loop_want_for(e->loop, path);

	return json_pack("{s:o, s:o, s:o, s:s}", "baseline", string_or_null(engine_baseline_or(e, path, actual)),
		"actual", string_or_null(actual), "wanted", string_or_null(engine_wanted(e, path)),
		"reason", reason_word(w ? w->reason : REASON_NOT_MANAGED));
}

static json_t *khugepaged_json(struct engine *e, const struct thp_tree *now)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"max_ptes_none", knob_number(e, "khugepaged/max_ptes_none", now->max_ptes_none),
		"defrag", knob_number(e, "khugepaged/defrag", now->khugepaged_defrag),
		"scan_sleep_millisecs",
		knob_number(e, "khugepaged/scan_sleep_millisecs", now->scan_sleep_millisecs),
		"shrink_underused", knob_number(e, "shrink_underused", now->shrink_underused),
		"max_ptes_swap", json_from_value(now->max_ptes_swap),
		"max_ptes_shared", json_from_value(now->max_ptes_shared),
		"pages_to_scan", json_from_value(now->pages_to_scan),
		"alloc_sleep_millisecs", json_from_value(now->alloc_sleep_millisecs));
}

/* ---- groups ------------------------------------------------------------ */

const char *engine_group_state(const struct engine *e, const struct node *n)
{
	if (!engine_steers(e, n))
		return "watch-only";
	return n->group ? ctl_state_to_string(n->group->ctl.state) : ctl_state_to_string(CTL_RUN);
}

const char *engine_gate_word(const char *now, enum gate_state wish)
{
	if (!*now)
		return NULL;
	if (!strcmp(now, "0"))
		return gate_state_to_string(wish == GATE_KERNEL ? GATE_OPEN : wish);
	return !strcmp(now, "inherit") || !strcmp(now, "auto") ? gate_state_to_string(GATE_KERNEL) : "fixed";
}

const char *engine_gate_wish(const struct own *o, enum gate_state wish)
{
	const char *base = o->base.value[OWN_MARGIN];

	return wish == GATE_KERNEL ? engine_gate_word(base, wish) : gate_state_to_string(wish);
}

static bool gate_stands_open(const struct node *n, const struct own *o)
{
	return o->present && gate_open(&n->group->ctl.gate) && !strcmp(o->stands.value[OWN_MARGIN], "0");
}

enum reason engine_group_reason(const struct node *n, const struct config_policy *p, const struct own *o)
{
	if (n->kind == NODE_CONTAINER)
		return REASON_CONTAINER;
	if (n->own || (p && !p->controlled))
		return REASON_NOT_CONTROLLED;
	if (!n->group)
		return REASON_START_VALUES;
	if (o->present && o->reason[OWN_MAX_SIZE] == REASON_HELD)
		return REASON_HELD;
	/* A gate that stands open says more than a size at its start value. */
	return gate_stands_open(n, o) ? n->group->ctl.gate.reason : n->group->wish.reason;
}

/* Which kind of shortage of swap the group meets, if any. */
static const char *group_swap(
	const struct engine *e, const struct node *n, const struct memcg_sample *s)
{
	if (s && s->swap_max_bytes == 0)
		return "cgroup-limit";
	if (s && value_known(s->swap_max_bytes) && s->swap_current_bytes >= s->swap_max_bytes &&
		value_known(s->swap_current_bytes))
		return "cgroup-limit";
	/* The kernel that says why swap-out failed also knows of the ancestors' limits. */
	if (n->group && n->group->delta.d_split_avoided && e->loop->host.swap == SWAP_ROOM)
		return "cgroup-limit";
	return swap_state_to_string(e->loop->host.swap);
}

static json_t *own_file_json(struct engine *e, const struct node *n, const struct own *o, enum own_file f)
{
	const char *now = o->stands.value[f], *wanted = o->want.value[f];
	int error = 0;

	if (e->group_actuator && strcmp(now, wanted) != 0)
		error = -group_actuator_why(e->group_actuator, n->id, f, wanted);
	return json_pack("{s:o, s:o, s:o, s:s, s:o}", "baseline", string_or_null(o->base.value[f]), "actual",
		string_or_null(now), "wanted", string_or_null(wanted), "reason", reason_word(o->reason[f]),
		"error", string_or_null(error ? strerrorname_np(error) : NULL));
}

/* The group's own files and what stands behind them; null on a kernel
 * without, and with PerGroup=no. */
static json_t *own_json(struct engine *e, const struct node *n, const struct own *o, const struct memcg_sample *s)
{
	const struct loop_group *g = n->group;
	enum gate_state wish = g ? g->ctl.gate.state : GATE_KERNEL;
	json_t *j;

	if (!o->present)
		return json_null();
	j = json_pack("{s:o, s:o, s:s, s:o}", "gate", string_or_null(engine_gate_word(o->stands.value[OWN_MARGIN], wish)),
		"gate_wanted", string_or_null(engine_gate_wish(o, wish)), "gate_reason",
		reason_word(g ? g->ctl.gate.reason : REASON_START_VALUES), "density",
		json_from_share(g ? gate_density(&g->ctl.gate, e->loop->now_usec) : -1));
	for (unsigned f = 0; f < OWN_FILES; f++)
		json_object_set_new(j, own_file_name[f] + strlen("memory.thp."), own_file_json(e, n, o, f));
	if (!s)
		return j;
	json_object_set_new(j, "counters", json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "margin_anon", json_from_value(s->margin_anon),
		"margin_swpin", json_from_value(s->margin_swpin), "margin_shmem", json_from_value(s->margin_shmem),
		"margin_collapse", json_from_value(s->margin_collapse),
		"size_limited", json_from_value(s->thp_size_limited),
		"split_avoided", json_from_value(s->thp_split_avoided),
		"scanned_pages", json_from_value(s->thp_scanned), "young_pages", json_from_value(s->thp_young),
		"pswpin", json_from_value(s->pswpin), "pswpout", json_from_value(s->pswpout)));
	return j;
}

json_t *engine_group_json(struct engine *e, const struct node *n, const struct memcg_sample *s)
{
	const struct config_policy *p = config_policy_for(e->config, n->path, NULL);
	const struct controller *c = n->group ? &n->group->ctl : NULL;
	bool steered = engine_steers(e, n);
	unsigned rung = c ? n->group->wish.rung : plan_top(&e->loop->plan);
	struct engine_largest l = { plan_largest_on_kb(&e->loop->plan, rung, e->loop->raised), 0 };
	struct own o = { 0 };
	enum reason r;
	json_t *j;

	if (c || s)
		engine_own_read(e, n, &o);
	r = engine_group_reason(n, p, &o);
	l.wanted_kb = l.kb;
	if (steered && s)
		l = engine_largest_of(e, n);
	j = json_pack("{s:o, s:I, s:o, s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:s, s:s}",
		"path", json_from_bytes(n->path), "id", (json_int_t)n->id,
		"policy", string_or_null(p ? p->name : NULL), "state", engine_group_state(e, n),
		"rung", steered ? (int)rung : -1, "max_size_kb",
		steered ? json_integer((json_int_t)l.kb) : json_null(), "max_size_wanted_kb",
		steered ? json_integer((json_int_t)l.wanted_kb) : json_null(),
		"some", json_from_share(c ? c->some : -1), "full", json_from_share(c ? c->full : -1),
		"margin_bytes", s ? json_from_value(s->margin_bytes) : json_null(),
		"reason", reason_word(r), "reason_text", reason_text(r));

	if (j)
		json_object_set_new(j, "own", own_json(e, n, &o, s));
	if (!j || !s)
		return j;
	json_object_set_new(j, "limit_bytes", json_from_value(s->limit_bytes));
	json_object_set_new(j, "current_bytes", json_from_value(s->current_bytes));
	json_object_set_new(j, "anon_bytes", json_from_value(s->anon));
	json_object_set_new(j, "anon_thp_bytes", json_from_value(s->anon_thp));
	json_object_set_new(j, "anon_thp_share", json_from_share(memcg_thp_share(s)));
	json_object_set_new(j, "slack_bytes", value_known(s->current_bytes) && value_known(s->anon) ?
		json_from_value(memcg_slack_bytes(s)) : json_null());
	json_object_set_new(j, "swap", json_string(group_swap(e, n, s)));
	/* Victims that lived here, so that groups can be added up. */
	json_object_set_new(j, "oom_kills", json_from_value(
		value_known(s->events_local.oom_kill) ? s->events_local.oom_kill : s->events.oom_kill));
	json_object_set_new(j, "refault_anon_per_sec", c ? json_integer((json_int_t)c->refault_per_sec) : json_null());
	json_object_set_new(j, "amplification", json_from_share(c ? c->amplification : -1));
	json_object_set_new(j, "clamped", json_boolean(n->group &&
		arbiter_clamps(&e->loop->arbiter, &e->loop->plan, &n->group->wish)));
	return j;
}

bool engine_shown(const struct node *n)
{
	return n->kind == NODE_UNIT || n->kind == NODE_CONTAINER;
}

static void add_group(struct engine *e, const struct node *n, json_t *a, unsigned *peeks)
{
	struct memcg_sample s;
	bool have = false;

	if (n->group && n->group->has_prev) {
		s = n->group->prev;
		have = true;
	} else if (*peeks < SURVEY_GROUPS) {
		(*peeks)++;
		have = engine_peek(e, n, &s) == MEMCG_OK;
	}
	json_array_append_new(a, engine_group_json(e, n, have ? &s : NULL));
}

static json_t *groups_json(struct engine *e, size_t *ret_omitted)
{
	json_t *a = json_array();
	unsigned peeks = 0;
	size_t total = 0;

	*ret_omitted = 0;
	if (e->host) {
		add_group(e, e->host, a, &peeks);
		return a;
	}
	for (int engaged = 1; engaged >= 0; engaged--)
		for (struct node *n = tree_root(e->tree); n; n = tree_next(n)) {
			if (!engine_shown(n) || (n->group != NULL) != (engaged != 0))
				continue;
			total++;
			if (json_array_size(a) < STATUS_GROUPS_MAX)
				add_group(e, n, a, &peeks);
		}
	*ret_omitted = total - json_array_size(a);
	return a;
}

static json_t *counters_json(struct engine *e)
{
	struct actuator_counts n, own = { 0 };
	struct timespec ts;

	actuator_counts(e->actuator, &n);
	if (e->group_actuator)
		group_actuator_counts(e->group_actuator, &own);
	n.writes += own.writes;
	n.write_errors += own.write_errors;
	n.foreign_changes += own.foreign_changes;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "decisions", (json_int_t)e->loop->decisions,
		"writes", (json_int_t)n.writes, "write_errors", (json_int_t)n.write_errors,
		"foreign_changes", (json_int_t)n.foreign_changes, "cgroups_seen", (json_int_t)e->cgroups_seen,
		"wakeups", (json_int_t)e->wakeups, "cpu_usec",
		(json_int_t)ts.tv_sec * 1000000 + (json_int_t)ts.tv_nsec / 1000);
}

static void add_tmpfs(const char *mount_point, const char *huge, void *userdata)
{
	json_array_append_new(userdata, json_pack("{s:o, s:s}", "mount", json_from_bytes(mount_point),
		"huge", huge));
}

static json_t *tmpfs_json(const struct engine *e)
{
	json_t *a = json_array();

	host_tmpfs_huge(e->root_fd, add_tmpfs, a);
	return a;
}

json_t *engine_features(struct engine *e)
{
	return caps_to_json(&e->caps);
}

static void read_switches(struct engine *e, struct thp_tree *ret)
{
	if (thp_tree_read(e->thp_fd, e->tree_base.page_kb, ret) < 0)
		*ret = e->tree_base;
}

static json_t *summary_json(struct engine *e, const struct thp_tree *now)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:o}", "version", MTHPD_VERSION, "state", engine_state_word(e),
		"degraded", degraded_json(e), "sizes", sizes_json(e, now), "counters", counters_json(e));
}

json_t *engine_summary(struct engine *e)
{
	struct thp_tree now;

	read_switches(e, &now);
	return summary_json(e, &now);
}

json_t *engine_status(struct engine *e)
{
	struct thp_tree now;
	size_t omitted;
	json_t *j;

	read_switches(e, &now);
	j = summary_json(e, &now);
	if (!j)
		return NULL;
	json_object_set_new(j, "kernel", json_pack("{s:s, s:o}", "release", e->caps.release, "features",
		engine_features(e)));
	json_object_set_new(j, "khugepaged", khugepaged_json(e, &now));
	json_object_set_new(j, "defrag", knob_text(e, "defrag", choice_value(&now.defrag)));
	json_object_set_new(j, "cgroups", groups_json(e, &omitted));
	json_object_set_new(j, "hold", string_or_null(engine_held(e)));
	json_object_set_new(j, "top_level", string_or_null(choice_value(&now.enabled)));
	json_object_set_new(j, "cgroups_omitted", json_integer((json_int_t)omitted));
	json_object_set_new(j, "swap", json_pack("{s:s, s:o, s:o}", "state",
		swap_state_to_string(e->loop->host.swap), "size_kb", json_from_value(e->host_now.swaps_size_kb),
		"used_kb", json_from_value(e->host_now.swaps_used_kb)));
	json_object_set_new(j, "tmpfs_own_huge", tmpfs_json(e));
	json_object_set_new(j, "skipped", json_integer(e->skipped));
	engine_trim_later(e);
	return j;
}

json_t *engine_history(struct engine *e, unsigned n)
{
	json_t *a = json_array();
	const struct decision *d;

	for (unsigned i = 0; i < n && (d = history_get(&e->history, i)); i++)
		json_array_append_new(a, decision_to_json(d));
	return a;
}

json_t *engine_verify(struct engine *e, bool *ret_ok)
{
	json_t *a = json_array();

	for (unsigned i = 0; i < e->n_knobs; i++) {
		const struct engine_knob *k = &e->knobs[i];
		const char *wanted = engine_wanted(e, k->path);
		char actual[CHOICE_LEN] = "";

		if (!wanted || actuator_read(e->actuator, k->path, actual, sizeof(actual)) < 0 ||
			!strcmp(actual, wanted))
			continue;
		json_array_append_new(a, json_pack("{s:s, s:s, s:s, s:s}", "path", k->path, "wanted",
			wanted, "actual", actual, "why", engine_held(e) ? "held" :
			e->dry_run ? "dry run" : actuator_read_only(e->actuator) ? "read-only" :
			actuator_denied(e->actuator, k->path) ? "this file cannot be written" :
			!actuator_usable(e->actuator, k->path) ? "not understood" :
			"changed by somebody else, or refused by the kernel"));
	}
	engine_own_verify(e, a);
	*ret_ok = json_array_size(a) == 0;
	return a;
}
