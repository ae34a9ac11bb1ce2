/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups' own files (memory.thp.*) on a kernel that has them: what is wanted is
 * written, what somebody else changed is taken over, and a group that is let go
 * keeps nothing of ours.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine-internal.h"
#include "log.h"

/* Groups that are asked whether they may be written to before all are said not to be. */
#define DENIED_GROUPS_MAX 64
/* Groups that are asked which files they have. */
#define PROBED_GROUPS 16

static void on_warn(const char *message, void *userdata)
{
	(void)userdata;
	log_warning("%s", message);
}

/* ---- what could not be written ------------------------------------------ */

void engine_own_why_not(const struct engine *e, uint64_t id, enum own_file f, const char *value,
	char ret[ENGINE_WHY_NOT_LEN])
{
	int error = e->group_actuator ? -group_actuator_why(e->group_actuator, id, f, value) : 0;
	const char *name = strerrorname_np(error);

	*ret = '\0';
	if (engine_held(e))
		snprintf(ret, ENGINE_WHY_NOT_LEN, "held");
	else if (e->dry_run)
		snprintf(ret, ENGINE_WHY_NOT_LEN, "dry run");
	else if (error == ENOSPC) /* a write of ours needs no room */
		snprintf(ret, ENGINE_WHY_NOT_LEN, "the journal of start values has no room for it");
	else if (error)
		snprintf(ret, ENGINE_WHY_NOT_LEN, "refused: %s (%s)", name ? name : "?", strerror(error));
}

/* No group at all may be written to: -errno of one; 0 = some may, or not many were seen. */
static int all_denied(struct engine *e)
{
	unsigned seen = 0;
	int error = 0;

	if (!e->tree)
		return 0;
	for (struct node *n = tree_root(e->tree); n && seen < DENIED_GROUPS_MAX; n = tree_next(n)) {
		int r = engine_steers(e, n) ? group_actuator_denied(e->group_actuator, n->path, n->id) : -ENOENT;

		if (r == -ENOENT || r == -ESTALE)
			continue;
		if (!knob_denied(r))
			return 0;
		error = r;
		seen++;
	}
	return error;
}

static void list_failures(const struct group_failures *f, char *list, size_t size)
{
	size_t n = 0;
	unsigned left = 0;

	for (unsigned i = 0; i < f->n; i++) {
		const struct group_failure *x = &f->list[i];
		const char *name = strerrorname_np(-x->error);
		size_t len = strlen(x->path) + strlen(own_file_name[x->k]) + 48;

		if (!x->counts)
			continue;
		/* The name of at least one group is told, cut if it is long. */
		if (n && n + len > size) {
			left++;
			continue;
		}
		n += (size_t)snprintf(list + n, size - n, "%s%s/%s (%s, %s)", n ? ", " : "", x->path,
			own_file_name[x->k], x->value, name ? name : "?");
		if (n >= size)
			n = size - 1;
	}
	if (left)
		snprintf(list + n, size - n, " and %u more", left);
}

/* What was logged one by one, as one sentence for the status. */
static void tell_failures(struct engine *e)
{
	const struct group_failures *f = group_actuator_failures(e->group_actuator);
	char list[256] = "";
	int denied;

	if (f->generation == e->failures_told)
		return;
	e->failures_told = f->generation;
	list_failures(f, list, sizeof(list) - sizeof(" and 1000 more"));
	denied = *list ? -all_denied(e) : 0;
	if (denied)
		engine_degrade(e, "group-files",
			"memory groups cannot be steered: %s; it takes a cgroup2 tree that is mounted "
			"read-write, and root with CAP_DAC_OVERRIDE", strerror(denied));
	else if (*list)
		engine_degrade(e, "group-files", "not written: %s", list);
	else
		engine_undegrade(e, "group-files");
}

/* ---- what somebody else writes ------------------------------------------- */

/* @path is "<group>/memory.thp.<file>". */
static void on_foreign(
	const char *path, const char *expected, const char *found, bool adopted, void *userdata)
{
	struct engine *e = userdata;

	engine_tell_foreign(e, path, expected, found, adopted);
	for (size_t i = 0; adopted && i < e->loop->n_groups; i++) {
		struct loop_group *g = e->loop->groups[i];
		size_t n = strlen(g->path);

		if (!strncmp(path, g->path, n) && path[n] == '/' && !strchr(path + n + 1, '/'))
			engine_own_look(e, g);
	}
}

static void on_given_back(const char *path, const char *old, const char *now, void *userdata)
{
	struct loop_want w = { .reason = REASON_GIVEN_BACK };
	const char *file = strrchr(path, '/');
	char group[PATH_MAX];

	snprintf(group, sizeof(group), "%.*s", (int)(file - path), path);
	snprintf(w.path, sizeof(w.path), "%s", file + 1);
	snprintf(w.value, sizeof(w.value), "%s", now);
	engine_record(userdata, &w, group, old, ACTUATOR_WRITTEN);
}

static const struct actuator_ops ops = {
	.warn = on_warn, .foreign = on_foreign, .given_back = on_given_back
};

void engine_own_probe(struct engine *e)
{
	struct caps *c = &e->caps;
	unsigned seen = 0, files = 0;

	if (!e->group_actuator || !e->tree || c->own_files_known)
		return;
	for (struct node *n = tree_root(e->tree); n && seen < PROBED_GROUPS; n = tree_next(n)) {
		if (n->kind != NODE_UNIT)
			continue;
		files |= group_actuator_files(e->group_actuator, n->path, n->id);
		seen++;
	}
	if (!seen)
		return;
	c->own_files_known = true;
	c->own_files = files;
	engine_degrade_capabilities(e);
}

/* ---- wants and files ----------------------------------------------------- */

int engine_own_init(struct engine *e)
{
	int r;

	if (!e->caps.memcg_margin || e->cg_fd < 0)
		return 0;
	r = group_actuator_new(e->cg_fd, e->baseline, &ops, e, &e->group_actuator);
	if (r < 0)
		return r;
	group_actuator_set_dry_run(e->group_actuator, e->dry_run);
	group_actuator_set_reassert(e->group_actuator, e->config->foreign == FOREIGN_REASSERT);
	return 0;
}

void engine_own_free(struct engine *e)
{
	group_actuator_free(e->group_actuator);
	e->group_actuator = NULL;
}

/* May the group's own files be steered? Not those of a slice that speaks for groups without
 * memory files: no policy has named it for this. */
static bool may_steer_files(const struct engine *e, const struct node *n)
{
	return e->group_actuator && !(e->tree && tree_is_slice(n) && !tree_names(e->tree, n));
}

int engine_own_look(struct engine *e, struct loop_group *g)
{
	struct own_values now, base;
	int r;

	if (!may_steer_files(e, g->owner))
		return 0;
	r = group_actuator_look(e->group_actuator, g->path, g->id, &now, &base);
	if (r == 0)
		loop_group_own(e->loop, g, &base, &now);
	return r == -ENOENT || r == -ESTALE || !e->config->per_group ? 0 : r;
}

void engine_own_read(struct engine *e, const struct node *n, struct own *ret)
{
	struct own_values now, base;
	struct own wish;

	*ret = (struct own){ 0 };
	if (!may_steer_files(e, n) || !e->config->per_group || (n->group && !n->group->own.present) ||
		group_actuator_look(e->group_actuator, n->path, n->id, &now, &base) < 0)
		return;
	own_set(ret, &base, &now);
	ret->want = base;
	ret->present = true;
	if (!n->group)
		return;
	wish = n->group->own;
	/* Nothing is decided under a hold: what would be wanted now? */
	if (engine_held(e))
		loop_own_wish(e->loop, n->group, &wish);
	ret->want = wish.want;
	memcpy(ret->reason, wish.reason, sizeof(ret->reason));
	for (unsigned f = 0; engine_held(e) && f < OWN_FILES; f++)
		if (strcmp(now.value[f], wish.want.value[f]) != 0)
			ret->reason[f] = REASON_HELD;
}

/* Taken over just now, or left to somebody for good: what stands in the file is wanted. */
static void take_file(struct engine *e, struct loop_group *g, enum own_file f)
{
	struct own_values now, base;

	if (group_actuator_look(e->group_actuator, g->path, g->id, &now, &base) == 0)
		own_set_file(&g->own, f, &base, &now);
}

static bool apply_group(struct engine *e, struct loop_group *g)
{
	bool any = false;

	for (enum own_file f = 0; f < OWN_FILES; f++) {
		struct loop_want w = { .reason = g->own.reason[f], .cause = g };
		enum actuator_result r;
		char was[OWN_VALUE_LEN];

		if (!strcmp(g->own.want.value[f], g->own.stands.value[f]))
			continue;
		memcpy(was, g->own.stands.value[f], sizeof(was));
		snprintf(w.path, sizeof(w.path), "%s", own_file_name[f]);
		memcpy(w.value, g->own.want.value[f], sizeof(w.value));
		r = group_actuator_apply(e->group_actuator, g->path, g->id, f, w.value,
			strcmp(was, g->own.base.value[f]) == 0 ? was : NULL);
		if (r == ACTUATOR_GONE)
			break; /* the tree notices */
		if (r == ACTUATOR_FOREIGN) {
			take_file(e, g, f);
			continue;
		}
		/* What was refused counts as standing until the actuator would try it again. */
		memcpy(g->own.stands.value[f], w.value, sizeof(w.value));
		any |= engine_record(e, &w, NULL, was, r);
	}
	return any;
}

bool engine_own_apply(struct engine *e)
{
	bool any = false;

	for (size_t i = 0; e->group_actuator && i < e->loop->n_groups; i++) {
		struct loop_group *g = e->loop->groups[i];

		if (!own_differs(&g->own) || !apply_group(e, g))
			continue;
		loop_group_applied(e->loop, g, e->loop->now_usec);
		any = true;
	}
	if (e->group_actuator)
		tell_failures(e);
	return any;
}

void engine_own_let_go(struct engine *e, struct loop_group *g)
{
	/* Under a hold it stays where it is; the end of the hold gives back what nobody steers. */
	if (e->group_actuator && !engine_held(e))
		group_actuator_give_back(e->group_actuator, g->path, g->id);
}

void engine_own_forget(struct engine *e, uint64_t id)
{
	if (e->group_actuator)
		group_actuator_forget(e->group_actuator, id);
}

void engine_own_reconfigure(struct engine *e)
{
	if (!e->group_actuator)
		return;
	group_actuator_set_dry_run(e->group_actuator, e->dry_run);
	group_actuator_set_reassert(e->group_actuator, e->config->foreign == FOREIGN_REASSERT);
	group_actuator_forget_conflicts(e->group_actuator);
	for (size_t i = 0; i < e->loop->n_groups; i++) {
		struct loop_group *g = e->loop->groups[i];

		if (!g->own.present || !g->controlled)
			engine_own_let_go(e, g);
		engine_own_look(e, g);
	}
	tell_failures(e);
}

/* @error: -errno of reading the group's files. */
static void verify_file(struct engine *e, const struct loop_group *g, enum own_file f, const char *now,
	int error, json_t *differences)
{
	const char *wanted = engine_held(e) ? g->own.stands.value[f] : g->own.want.value[f];
	char path[PATH_MAX + 32], why[ENGINE_WHY_NOT_LEN];

	if (!*wanted || !strcmp(wanted, now))
		return;
	engine_own_why_not(e, g->id, f, wanted, why);
	if (error)
		snprintf(why, sizeof(why), "the group's files cannot be read: %s", strerror(-error));
	else if (!*now)
		snprintf(why, sizeof(why), "the file is missing, or its text is not understood");
	snprintf(path, sizeof(path), "%s/%s", g->path, own_file_name[f]);
	json_array_append_new(differences, json_pack("{s:o, s:s, s:s?, s:s}", "path", json_from_bytes(path),
		"wanted", wanted, "actual", *now ? now : NULL, "why",
		*why ? why : "changed by somebody else"));
}

void engine_own_verify(struct engine *e, json_t *differences)
{
	for (size_t i = 0; e->group_actuator && i < e->loop->n_groups; i++) {
		const struct loop_group *g = e->loop->groups[i];
		struct own_values now = { 0 }, base;
		int r;

		if (!g->own.present)
			continue;
		r = group_actuator_look(e->group_actuator, g->path, g->id, &now, &base);
		if (r == -ESTALE || r == -ENOENT)
			continue;
		for (unsigned f = 0; f < OWN_FILES; f++)
			verify_file(e, g, f, now.value[f], r, differences);
	}
}

const char *engine_own_conflict(const struct engine *e, unsigned i)
{
	return e->group_actuator ? group_actuator_conflict(e->group_actuator, i) : NULL;
}

/* A value of somebody else in a file of a group is the start value; one of ours that
 * could not be written is wanted again, if it may be tried. */
static void audit_group(struct engine *e, struct loop_group *g)
{
	struct own_values now;

	if (!g->own.present || !g->controlled)
		return;
	/* Somebody's value in another file is found before mthpd writes there. */
	if (loop_group_rests(e->loop, g) && group_actuator_stands(e->group_actuator, g->path, g->id))
		return;
	if (group_actuator_audit_group(e->group_actuator, g->path, g->id, &g->own.base, &now) < 0)
		return;
	for (unsigned f = 0; f < OWN_FILES; f++) {
		char *stands = g->own.stands.value[f];

		if (!strcmp(now.value[f], g->own.want.value[f]))
			group_actuator_settled(e->group_actuator, g->id, f);
		if (strcmp(stands, now.value[f]) != 0 &&
			group_actuator_may_retry(e->group_actuator, g->path, g->id, f, stands))
			memcpy(stands, now.value[f], OWN_VALUE_LEN);
	}
}

void engine_own_audit(struct engine *e)
{
	if (!e->group_actuator)
		return;
	engine_own_probe(e);
	group_actuator_audit_begin(e->group_actuator);
	for (size_t i = 0; i < e->loop->n_groups; i++)
		audit_group(e, e->loop->groups[i]);
	/* Groups that were not looked at yet may be steered. */
	group_actuator_audit_rest(e->group_actuator, !e->looks_pending && e->tree && !engine_held(e));
	tell_failures(e);
}
