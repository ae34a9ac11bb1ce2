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

static void on_warn(const char *message, void *userdata)
{
	(void)userdata;
	log_warning("%s", message);
}

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

static const struct actuator_ops ops = { .warn = on_warn, .foreign = on_foreign };

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

void engine_own_look(struct engine *e, struct loop_group *g)
{
	struct own_values now, base;

	if (!e->group_actuator ||
		group_actuator_look(e->group_actuator, g->path, g->id, &now, &base) < 0)
		return;
	loop_group_own(e->loop, g, &base, &now);
}

void engine_own_read(struct engine *e, const char *path, uint64_t id, struct own *ret)
{
	struct own_values now, base;

	*ret = (struct own){ 0 };
	if (!e->group_actuator || !e->config->per_group ||
		group_actuator_look(e->group_actuator, path, id, &now, &base) < 0)
		return;
	own_set(ret, &base, &now);
	ret->want = base;
	ret->present = true;
}

static bool apply_group(struct engine *e, struct loop_group *g)
{
	bool any = false;

	for (unsigned f = 0; f < OWN_FILES; f++) {
		struct loop_want w = { .reason = g->own.reason[f], .cause = g };
		enum actuator_result r;
		char was[OWN_VALUE_LEN];

		if (!strcmp(g->own.want.value[f], g->own.stands.value[f]))
			continue;
		memcpy(was, g->own.stands.value[f], sizeof(was));
		snprintf(w.path, sizeof(w.path), "%s", own_file_name[f]);
		memcpy(w.value, g->own.want.value[f], sizeof(w.value));
		/* What was refused only counts as standing. */
		r = group_actuator_apply(e->group_actuator, g->path, g->id, f, w.value,
			strcmp(was, g->own.base.value[f]) == 0 ? was : NULL);
		if (r == ACTUATOR_GONE)
			break; /* the tree notices */
		if (r == ACTUATOR_FOREIGN) {
			/* Taken over just now, or left to somebody for good: what stands is wanted. */
			engine_own_look(e, g);
			break;
		}
		/* Refused values are remembered as standing: one attempt, no storm. */
		memcpy(g->own.stands.value[f], w.value, sizeof(w.value));
		any |= engine_record(e, &w, was, r);
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
	return any;
}

void engine_own_let_go(struct engine *e, struct loop_group *g)
{
	if (e->group_actuator)
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
}

void engine_own_verify(struct engine *e, json_t *differences)
{
	struct own_values now, base;

	for (size_t i = 0; e->group_actuator && i < e->loop->n_groups; i++) {
		const struct loop_group *g = e->loop->groups[i];

		if (!g->own.present ||
			group_actuator_look(e->group_actuator, g->path, g->id, &now, &base) < 0)
			continue;
		for (unsigned f = 0; f < OWN_FILES; f++) {
			const char *wanted = engine_held(e) ? g->own.stands.value[f] : g->own.want.value[f];
			char path[PATH_MAX];

			if (!*wanted || !strcmp(wanted, now.value[f]))
				continue;
			snprintf(path, sizeof(path), "%s/%s", g->path, own_file_name[f]);
			json_array_append_new(differences, json_pack("{s:o, s:s, s:s, s:s}", "path",
				json_from_bytes(path), "wanted", wanted, "actual", now.value[f], "why",
				e->dry_run ? "dry run" : "changed by somebody else, or refused by the kernel"));
		}
	}
}

/* What an earlier run left in groups that are not steered now. */
static void give_back_unclaimed(struct engine *e)
{
	const char *path;
	uint64_t id;
	unsigned n = 0;

	while (group_actuator_written(e->group_actuator, n, &path, &id))
		n++;
	while (n-- > 0) {
		const struct node *node;
		char copy[PATH_MAX];

		if (!group_actuator_written(e->group_actuator, n, &path, &id))
			continue;
		node = tree_by_path(e->tree, path);
		if (node && node->id == id && e->config->per_group && engine_steers(e, node))
			continue;
		snprintf(copy, sizeof(copy), "%s", path);
		group_actuator_give_back(e->group_actuator, copy, id);
	}
}

const char *engine_own_conflict(const struct engine *e, unsigned i)
{
	return e->group_actuator ? group_actuator_conflict(e->group_actuator, i) : NULL;
}

void engine_own_audit(struct engine *e)
{
	if (!e->group_actuator)
		return;
	group_actuator_audit(e->group_actuator);
	if (!e->start_pending && e->tree)
		give_back_unclaimed(e);
}
