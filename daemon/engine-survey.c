/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups that nothing announces: those of the start, in their turn, and what an audit
 * looks for.
 */
#include "engine-internal.h"

/* Engages up to @max quiet groups that this round has not had yet; false when
 * there was none left, which ends the round. */
static bool look_at_some(struct engine *e, unsigned max, uint64_t for_usec, uint64_t now_usec)
{
	unsigned done = 0;

	for (struct node *n = tree_root(e->tree); n && done < max; n = tree_next(n)) {
		if (n->kind != NODE_UNIT || n->survey_round == e->survey_round)
			continue;
		n->survey_round = e->survey_round;
		if (n->group || n->own)
			continue;
		engine_engage(e, n, now_usec);
		n->engaged_until_usec = now_usec + for_usec;
		done++;
	}
	if (done < max)
		e->survey_round++;
	return done == max;
}

/* How many groups a tick begins to look at: those in trouble go first, but however many they
 * are, the others have their turn. */
static unsigned groups_to_begin(const struct engine *e)
{
	unsigned troubled = 0;

	for (size_t i = 0; i < e->loop->n_groups; i++) {
		const struct loop_group *g = e->loop->groups[i];

		troubled += g->ctl.pressed_ticks || g->wish.hurt;
	}
	return troubled < START_GROUPS ? START_GROUPS : START_GROUPS_BUSY;
}

bool engine_look_at_more(struct engine *e, uint64_t now_usec)
{
	unsigned left = groups_to_begin(e);

	for (struct node *n = e->tree ? tree_root(e->tree) : NULL; n; n = tree_next(n)) {
		if (!n->wants_look)
			continue;
		if (!left--)
			return true;
		engine_engage(e, n, now_usec);
		n->engaged_until_usec = now_usec + 2 * e->config->interval_usec;
	}
	return false;
}

/* Groups without a trigger although the kernel has them: it may have been
 * switched on again, or descriptors may have come free. */
static void retry_triggers(struct engine *e)
{
	unsigned left = RETRY_TRIGGERS;

	if (!e->watch || *e->root || e->caps.psi != PSI_OK)
		return;
	for (struct node *n = tree_root(e->tree); n && left; n = tree_next(n)) {
		if (n->kind != NODE_UNIT || n->own || (n->watched & WATCH_PRESSURE))
			continue;
		left--;
		engine_watch_node(e, n);
	}
}

/* Nothing else tells that such files are good again. */
static void retry_unclear(struct engine *e, uint64_t now_usec)
{
	unsigned left = RETRY_UNCLEAR;

	for (struct node *n = tree_root(e->tree); e->unclear && n && left; n = tree_next(n))
		if (n->unclear) {
			engine_engage(e, n, now_usec);
			left--;
		}
}

static void retry_unread(struct engine *e)
{
	bool any = false;

	if (!e->unread)
		return;
	for (struct node *n = tree_root(e->tree); n; n = tree_next(n)) {
		any |= n->unread;
		n->wants_look |= n->unread;
	}
	if (!any)
		engine_undegrade(e, "groups-unread");
	e->unread = any;
	e->looks_pending |= any;
}

void engine_audit_groups(struct engine *e, uint64_t now_usec)
{
	uint64_t fresh = value_or(e->host_now.pgfault, 0) +
			 value_or(e->host_now.thp_fault_alloc, 0) * e->loop->plan.pmd_nr;
	uint64_t elapsed = now_usec - e->audit_at_usec;
	uint64_t collapses = value_or(e->host_now.thp_collapse_alloc, 0);
	/* khugepaged at work may be filling a group up: nothing else tells of it. */
	bool collapsing = e->audit_at_usec && collapses > e->audit_collapses;
	bool busy = e->audit_at_usec && elapsed &&
		    value_sub(fresh, e->audit_fresh) * 1000000 / elapsed >= SURVEY_PAGES_PER_SEC;

	e->audit_fresh = fresh;
	e->audit_collapses = collapses;
	e->audit_at_usec = now_usec;
	/* Groups that wait for room: nothing announces that it came back. */
	for (size_t i = 0; i < e->loop->n_groups; i++) {
		struct node *n = e->loop->groups[i]->owner;

		if (n->next_look_usec == VALUE_ABSENT && !loop_group_rests(e->loop, e->loop->groups[i]))
			n->next_look_usec = 0;
	}
	if (!e->tree)
		return;
	tree_recheck_no_memory(e->tree, 100);
	retry_triggers(e);
	retry_unclear(e, now_usec);
	retry_unread(e);
	if (collapsing || (busy && plan_can_raise(&e->loop->plan)))
		look_at_some(e, SURVEY_GROUPS, ENGAGE_USEC, now_usec);
}
