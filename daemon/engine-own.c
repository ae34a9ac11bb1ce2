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

	log_warning("%s holds %s instead of %s: changed by somebody else, %s", path, found, expected,
		adopted ? "taken over as the new baseline" : "writing ours again");
	for (unsigned i = 0; i < e->n_observers; i++)
		if (e->observers[i]->drift)
			e->observers[i]->drift(path, expected, found, e->observers[i]->userdata);
	for (size_t i = 0; adopted && i < e->loop->n_groups; i++) {
		struct loop_group *g = e->loop->groups[i];
		size_t n = strlen(g->path);

		if (!strncmp(path, g->path, n) && path[n] == '/' && !strchr(path + n + 1, '/'))
			engine_own_look(e, g);
	}
}

_Static_assert(GROUP_VALUE_LEN == OWN_VALUE_LEN && (int)GROUP_MARGIN == (int)OWN_MARGIN &&
		       (int)GROUP_MAX_PTES_NONE == (int)OWN_MAX_PTES_NONE &&
		       (int)GROUP_KNOBS == (int)OWN_FILES,
	"the loop's files are the actuator's");

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
	struct group_values now, base;

	if (!e->group_actuator ||
		group_actuator_look(e->group_actuator, g->path, g->id, &now, &base) < 0)
		return;
	loop_group_own(e->loop, g, (const char(*)[OWN_VALUE_LEN])base.value,
		(const char(*)[OWN_VALUE_LEN])now.value);
}

void engine_own_read(struct engine *e, const char *path, uint64_t id, struct own *ret)
{
	struct group_values now, base;

	*ret = (struct own){ 0 };
	if (!e->group_actuator || !e->config->per_group ||
		group_actuator_look(e->group_actuator, path, id, &now, &base) < 0)
		return;
	ret->present = true;
	memcpy(ret->base, base.value, sizeof(ret->base));
	memcpy(ret->stands, now.value, sizeof(ret->stands));
	memcpy(ret->want, base.value, sizeof(ret->want));
	for (unsigned f = 0; f < OWN_FILES; f++)
		ret->reason[f] = REASON_START_VALUES;
}

static bool apply_group(struct engine *e, struct loop_group *g)
{
	bool any = false;

	for (unsigned f = 0; f < OWN_FILES; f++) {
		struct loop_want w = { .reason = g->own.reason[f], .cause = g };
		enum actuator_result r;
		char was[OWN_VALUE_LEN];

		if (!strcmp(g->own.want[f], g->own.stands[f]))
			continue;
		memcpy(was, g->own.stands[f], sizeof(was));
		snprintf(w.path, sizeof(w.path), "%s", own_file_name[f]);
		memcpy(w.value, g->own.want[f], sizeof(w.value));
		r = group_actuator_apply(e->group_actuator, g->path, g->id, f, w.value, NULL);
		if (r == ACTUATOR_GONE)
			break; /* the tree notices */
		if (r == ACTUATOR_FOREIGN) {
			/* Taken over just now, or left to somebody for good: what stands is wanted. */
			engine_own_look(e, g);
			break;
		}
		/* Refused values are remembered as standing: one attempt, no storm. */
		memcpy(g->own.stands[f], w.value, sizeof(w.value));
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
	struct group_values now, base;

	for (size_t i = 0; e->group_actuator && i < e->loop->n_groups; i++) {
		const struct loop_group *g = e->loop->groups[i];

		if (!g->own.present ||
			group_actuator_look(e->group_actuator, g->path, g->id, &now, &base) < 0)
			continue;
		for (unsigned f = 0; f < OWN_FILES; f++) {
			const char *wanted = engine_held(e) ? g->own.stands[f] : g->own.want[f];
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

static bool controlled(const struct engine *e, const struct node *n)
{
	const struct config_policy *p = config_policy_for(e->config, n->path, NULL);

	return n->kind == NODE_UNIT && !n->own && e->config->per_group && (!p || p->controlled);
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
		if (node && node->id == id && controlled(e, node))
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
