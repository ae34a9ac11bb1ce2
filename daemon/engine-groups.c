/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which groups are looked at, and when: quiet groups cost nothing but their
 * watches; one that something happened to is engaged (has a loop_group and is
 * sampled in every tick) until it is quiet and has nothing left to remember.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine-internal.h"
#include "log.h"

static uint64_t threshold_usec(const struct engine *e, const struct node *n)
{
	const struct config_policy *p = config_policy_for(e->config, n->path, NULL);
	double share = p ? p->controller.pressure_high : e->config->controller.pressure_high;
	uint64_t t = (uint64_t)(share * (double)e->config->psi_window_usec);

	return t ? t : 1;
}

static void note_psi(struct engine *e, int psi_errno)
{
	if (!psi_errno) {
		e->caps.triggers = 1;
		e->caps.trigger_window_usec = e->config->psi_window_usec;
		return;
	}
	if (e->caps.triggers < 0)
		e->caps.triggers = 0;
	if (e->psi_said)
		return;
	e->psi_said = true;
	if (psi_errno == EOPNOTSUPP || psi_errno == ENOENT)
		return; /* said with the capability itself */
	if (psi_errno == EMFILE || psi_errno == ENFILE)
		engine_degrade(e, "descriptors",
			"not every group can have a pressure trigger: the rest is polled; "
			"raise LimitNOFILE=");
	else
		engine_degrade(e, "triggers", "pressure triggers are refused (%s): pressure is polled",
			strerror(psi_errno));
}

static unsigned parts_for(const struct engine *e, const struct node *n)
{
	unsigned parts = WATCH_CHILDREN;

	/* Plain files under --root announce nothing that can be relied on. */
	if (n->kind == NODE_UNIT && !n->own && !*e->root) {
		parts |= WATCH_EVENTS;
		if (e->group_actuator)
			parts |= WATCH_THP_EVENTS;
		if (e->caps.psi == PSI_OK)
			parts |= WATCH_PRESSURE;
	}
	return parts;
}

void engine_watch_node(struct engine *e, struct node *n)
{
	unsigned parts = parts_for(e, n);
	int psi_errno = 0, r;

	if (!e->watch || n->watched == parts)
		return;
	if (n->watched)
		watch_remove_group(e->watch, n->token);
	r = watch_add_group(e->watch, n->token, n->path, parts, threshold_usec(e, n),
		e->config->psi_window_usec, &psi_errno);
	n->watched = r > 0 ? (unsigned char)r : 0;
	if (parts & WATCH_PRESSURE)
		note_psi(e, psi_errno);
	/* New groups below one that is not watched have to be looked for. */
	if (r >= 0 && !(r & WATCH_CHILDREN))
		e->polling = e->rescan = true;
	/* Without any announcement of trouble the group has to be polled. */
	if (r >= 0 && n->kind == NODE_UNIT && !n->own && !(r & (WATCH_PRESSURE | WATCH_EVENTS)))
		e->polling = true;
}

static void note_events(struct node *n, const struct memcg_sample *s)
{
	n->last_max = value_or(s->events.max, 0);
	n->last_oom_kill = value_or(s->events.oom_kill, 0);
	n->events_known = true;
	/* The next cheap look compares with this one: nothing between the two is missed. */
	n->last_events = value_or(s->events.high, 0) + n->last_max + n->last_oom_kill;
	n->last_pressure_usec = value_or(s->psi.some.total_usec, 0);
	n->polled = true;
}

static void wind_back(uint64_t *counter, uint64_t by)
{
	if (value_known(*counter))
		*counter = value_sub(*counter, by);
}

/* The first sample of a group that was woken by its limit comes after the fact:
 * what happened since the last look belongs to the first step. */
static void restore_events(const struct node *n, struct memcg_sample *s)
{
	uint64_t max = value_sub(s->events.max, n->last_max);
	uint64_t oom_kill = value_sub(s->events.oom_kill, n->last_oom_kill);

	if (!n->events_known)
		return;
	wind_back(&s->events.max, max);
	wind_back(&s->events_local.max, max);
	wind_back(&s->events.oom_kill, oom_kill);
	wind_back(&s->events_local.oom_kill, oom_kill);
}

/* @s = NULL: nothing is to be expected of the group's files. */
static void note_unclear(struct engine *e, struct node *n, const struct memcg_sample *s)
{
	const char *file = s ? s->unclear : NULL;

	/* A cheap look does not see what a full one found. */
	if (s && !s->full_depth && n->unclear_full)
		return;
	if (file == n->unclear)
		return;
	n->unclear = file;
	n->unclear_full = file && strcmp(file, "memory.pressure") != 0 && strcmp(file, "memory.events") != 0;
	e->unclear_changed = true;
}

void engine_tell_unclear(struct engine *e)
{
	const struct node *first = NULL;
	unsigned n = 0;

	if (!e->unclear_changed)
		return;
	e->unclear_changed = false;
	for (struct node *i = tree_root(e->tree); i; i = tree_next(i)) {
		n += i->unclear != NULL;
		first = !first && i->unclear ? i : first;
	}
	e->unclear = n;
	if (!first)
		engine_undegrade(e, "groups-unclear");
	else if (n == 1)
		engine_degrade(e, "groups-unclear",
			"%s of %.150s is not understood: the group is judged by the rest",
			first->unclear, first->path);
	else
		engine_degrade(e, "groups-unclear",
			"%s of %.150s is not understood, nor are files of %u other groups: "
			"they are judged by the rest", first->unclear, first->path, n - 1);
}

static void let_go(struct engine *e, struct node *n)
{
	if (!n->group)
		return;
	engine_own_let_go(e, n->group);
	loop_group_remove(e->loop, n->group);
	n->group = NULL;
}

bool engine_steers(const struct engine *e, const struct node *n)
{
	const struct config_policy *p;

	if (n->kind != NODE_UNIT || n->own)
		return false;
	p = config_policy_for(e->config, n->path, NULL);
	return !p || p->controlled;
}

/* The group's own files cannot be read. Without them it would have a say in the switches of
 * all, so it has none until the next audit looks again. */
static void put_off(struct engine *e, struct node *n, int error)
{
	loop_group_remove(e->loop, n->group);
	n->group = NULL;
	n->unread = e->unread = true;
	engine_degrade(e, "groups-unread", "%.150s: its memory.thp.* cannot be read (%s): it is not steered", n->path,
		strerror(-error));
}

void engine_engage(struct engine *e, struct node *n, uint64_t now_usec)
{
	bool fresh = !n->group;
	int r;

	n->wants_look = false;
	if (!engine_steers(e, n))
		return;
	if (fresh) {
		n->group = loop_group_add(e->loop, n->id, n->path);
		if (!n->group)
			return;
		n->group->owner = n;
		r = engine_own_look(e, n->group);
		if (r < 0) {
			put_off(e, n, r);
			return;
		}
		n->unread = false;
	}
	n->engaged_until_usec = now_usec + ENGAGE_USEC;
	n->next_look_usec = 0;
	if (fresh && e->ready) {
		struct memcg_sample s;

		/* The first look only sets the start: the sooner the better. */
		if (engine_peek(e, n, &s) == MEMCG_OK) {
			restore_events(n, &s);
			e->loop->now_usec = now_usec;
			loop_observe(e->loop, n->group, &s);
		}
	}
	if (fresh)
		engine_sample_first(e, n->group);
	engine_schedule(e);
}

static void on_changed(struct node *n, void *userdata)
{
	struct engine *e = userdata;

	engine_watch_node(e, n);
	if (n->kind != NODE_UNIT) {
		note_unclear(e, n, NULL);
		let_go(e, n);
		return;
	}
	e->cgroups_seen += !n->seen;
	n->seen = true;
	n->events_known |= e->ready; /* made while we run: it starts at 0 */
	/* A new group is where fresh memory is about to be used. Those of the start, and
	 * those above the limit, are looked at some at a time. */
	n->wants_look = true;
	if (e->ready && e->loop->n_groups < ENGAGED_MAX) {
		engine_engage(e, n, engine_now_usec());
		return;
	}
	e->looks_pending = true;
	engine_schedule(e);
}

static void on_removed(struct node *n, void *userdata)
{
	struct engine *e = userdata;

	engine_own_forget(e, n->id);
	note_unclear(e, n, NULL);
	let_go(e, n);
	if (e->watch && n->watched)
		watch_remove_group(e->watch, n->token);
}

static const struct tree_ops tree_ops = { .changed = on_changed, .removed = on_removed };

static void on_pressure(uint64_t token, void *userdata)
{
	struct engine *e = userdata;
	struct node *n = tree_by_token(e->tree, token);

	e->wakeups++;
	if (n)
		engine_engage(e, n, engine_now_usec());
}

/* The kernel refused this group a large folio. When a fill begins the next moments
 * count: what is filled in small pieces stays small. */
static void on_refused(uint64_t token, void *userdata)
{
	struct engine *e = userdata;
	struct node *n = tree_by_token(e->tree, token);
	uint64_t now = engine_now_usec();

	e->wakeups++;
	if (!n)
		return;
	engine_engage(e, n, now);
	n->hurried = n->group && n->group->own.present && gate_undecided(&n->group->ctl.gate, now);
	if (n->hurried)
		engine_hurry(e);
}

static void on_gone(uint64_t token, void *userdata)
{
	struct engine *e = userdata;
	struct node *n = tree_by_token(e->tree, token);

	if (n && n->parent)
		tree_child_removed(e->tree, n->parent, n->name);
}

/* Somebody wrote cgroup.pressure=0: the group lives, its pressure is not told. */
static void on_pressure_lost(uint64_t token, void *userdata)
{
	struct engine *e = userdata;
	struct node *n = tree_by_token(e->tree, token);

	if (!n)
		return;
	log_debug("%s: pressure is switched off for this group; its events still count", n->path);
	n->watched &= (unsigned char)~WATCH_PRESSURE;
}

static void on_child(uint64_t token, const char *name, bool created, void *userdata)
{
	struct engine *e = userdata;
	struct node *n = tree_by_token(e->tree, token);

	if (!n)
		return;
	if (created)
		tree_child_created(e->tree, n, name);
	else
		tree_child_removed(e->tree, n, name);
}

static void on_overflow(void *userdata)
{
	struct engine *e = userdata;

	log_debug("inotify queue overflowed: the whole tree is read again");
	tree_scan(e->tree, tree_root(e->tree));
}

static const struct watch_ops watch_ops = {
	.pressure = on_pressure,
	.events = on_pressure,
	.thp_events = on_refused,
	.gone = on_gone,
	.pressure_lost = on_pressure_lost,
	.child = on_child,
	.overflow = on_overflow,
};

int engine_groups_init(struct engine *e)
{
	struct node *root;
	int r;

	if (e->cg_fd < 0)
		return 0;
	e->tree = tree_new(e->cg_fd, e->config, e->caps.own_cgroup, &tree_ops, e);
	if (!e->tree)
		return -ENOMEM;
	e->polling = *e->root != '\0';
	r = watch_new(e->base, e->cg_fd, &watch_ops, e, &e->watch);
	if (r < 0) {
		engine_degrade(e, "inotify", "cgroups cannot be watched (%s): they are polled", strerror(-r));
		e->polling = true;
	}
	root = tree_root(e->tree);
	engine_watch_node(e, root);
	tree_scan(e->tree, root);
	return 0;
}

void engine_groups_free(struct engine *e)
{
	tree_free(e->tree);
	e->tree = NULL;
	watch_free(e->watch);
	e->watch = NULL;
}

void engine_rearm_triggers(struct engine *e)
{
	if (!e->watch || !e->tree)
		return;
	for (struct node *n = tree_root(e->tree); n; n = tree_next(n))
		if (n->watched & WATCH_PRESSURE)
			watch_rearm(e->watch, n->token, n->path, threshold_usec(e, n),
				e->config->psi_window_usec);
}

/* ---- looking ----------------------------------------------------------- */

int engine_peek(struct engine *e, const struct node *n, struct memcg_sample *ret)
{
	if (n == e->host)
		return engine_sample_machine(e, ret);
	return memcg_sample_read(e->cg_fd, n->path, MEMCG_FULL, engine_now_usec(),
		value_known(e->host_now.mem_total_kb) ? e->host_now.mem_total_kb * 1024 : VALUE_ABSENT, ret);
}

static void vanished(struct engine *e, struct node *n)
{
	if (n->parent)
		tree_child_removed(e->tree, n->parent, n->name);
}

static void observe_one(struct engine *e, struct node *n, uint64_t now_usec)
{
	struct memcg_sample s;
	uint64_t wake;
	int r = engine_peek(e, n, &s);

	if (r == MEMCG_GONE) {
		vanished(e, n);
		return;
	}
	if (r != MEMCG_OK) {
		n->next_look_usec = now_usec + ENGAGE_USEC;
		return;
	}
	if (n != e->host)
		note_unclear(e, n, &s);
	/* A unit with groups below it speaks for them: their limits count as well. */
	if (n->child)
		memset(&s.events_local, 0xff, sizeof(s.events_local));
	note_events(n, &s);
	loop_observe(e->loop, n->group, &s);
	wake = controller_wake_usec(&n->group->ctl, now_usec);
	n->next_look_usec = now_usec < n->engaged_until_usec || !n->group->ctl.quiet_since_usec ? 0 : wake;
	if (n == e->host && n->next_look_usec == VALUE_ABSENT)
		n->next_look_usec = now_usec + HOST_POLL_USEC;
}

void engine_observe_hurried(struct engine *e, uint64_t now_usec)
{
	uint64_t token;

	/* Looking at one may remove others. */
	do {
		token = 0;
		for (size_t i = 0; i < e->loop->n_groups && !token; i++) {
			struct node *n = e->loop->groups[i]->owner;

			token = n->hurried ? n->token : 0;
			n->hurried = false;
		}
		if (token)
			observe_one(e, tree_by_token(e->tree, token), now_usec);
	} while (token);
}

/* A cheap look at a group that nothing watches: pressure above the low mark or
 * a counter of its limits that moved engages it. False when it is gone. */
static bool poll_one(struct engine *e, struct node *n, uint64_t now_usec)
{
	struct memcg_sample s;
	uint64_t total, events, stall;
	bool seen = n->polled;
	int r = memcg_sample_read(e->cg_fd, n->path, MEMCG_CHEAP, now_usec, VALUE_ABSENT, &s);

	if (r == MEMCG_GONE) {
		vanished(e, n);
		return false;
	}
	if (r != MEMCG_OK)
		return true;
	note_unclear(e, n, &s);
	total = value_or(s.psi.some.total_usec, 0);
	events = value_or(s.events.high, 0) + value_or(s.events.max, 0) + value_or(s.events.oom_kill, 0);
	stall = value_sub(total, n->last_pressure_usec);
	n->polled = true;
	if (seen &&
		((double)stall > e->config->controller.pressure_low * (double)e->config->interval_usec ||
			events > n->last_events))
		engine_engage(e, n, now_usec);
	n->last_pressure_usec = total;
	n->last_events = events;
	return true;
}

/* Those that rest in the loop, and those that wait there for a time to come, have to be
 * told of pressure as the others are. */
static bool is_due(const struct node *n, uint64_t now_usec)
{
	return n->group && n->next_look_usec <= now_usec;
}

static bool out_of_time(uint64_t start_usec)
{
	return engine_now_usec() - start_usec > TICK_BUDGET_USEC;
}

static void poll_groups(struct engine *e, uint64_t now_usec)
{
	struct node *n = tree_root(e->tree), *after;
	uint64_t start_usec = engine_now_usec();
	unsigned passed = 0, skip = e->poll_skip;

	if (!e->watch || e->rescan)
		tree_scan(e->tree, n);
	if (*e->root)
		tree_recheck_no_memory(e->tree, 100);
	e->poll_skip = 0;
	while (n) {
		after = tree_next_beside(n);
		/* Where the last tick ran out of time this one goes on. */
		if (passed++ < skip) {
			n = tree_next(n);
			continue;
		}
		if (out_of_time(start_usec)) {
			e->poll_skip = passed - 1;
			return;
		}
		if (n->kind == NODE_UNIT && !n->own && !is_due(n, now_usec) &&
			!(n->watched & (WATCH_PRESSURE | WATCH_EVENTS)) && !poll_one(e, n, now_usec))
			n = after; /* it is gone, with all that was below it */
		else
			n = tree_next(n);
	}
}

static bool is_hot(const struct loop_group *g)
{
	return g->ctl.pressed_ticks || g->wish.hurt || !g->has_prev;
}

static int by_urgency(const void *pa, const void *pb)
{
	const struct due *a = pa, *b = pb;

	if (a->urgent != b->urgent)
		return a->urgent ? -1 : 1;
	return (a->looked_usec > b->looked_usec) - (a->looked_usec < b->looked_usec);
}

/* The groups that are due, by token because looking at one may remove others: those in
 * trouble and those that waited for long, then the rest; each from the one that was
 * looked at longest ago, so that all have their turn when time runs out. */
static size_t collect_due(struct engine *e, uint64_t now_usec)
{
	const struct loop *l = e->loop;
	size_t n = 0;

	if (e->size_due < l->n_groups) {
		struct due *p = realloc(e->due, l->size_groups * sizeof(*p));

		if (!p)
			return 0;
		e->due = p;
		e->size_due = l->size_groups;
	}
	for (size_t i = 0; i < l->n_groups; i++) {
		const struct loop_group *g = l->groups[i];
		const struct node *node = g->owner;
		uint64_t looked_usec = g->has_prev ? g->prev.now_usec : 0;

		if (node->next_look_usec <= now_usec)
			e->due[n++] = (struct due){ node->token, looked_usec,
				is_hot(g) || now_usec - looked_usec > OVERDUE_USEC };
	}
	qsort(e->due, n, sizeof(*e->due), by_urgency);
	return n;
}

void engine_observe_groups(struct engine *e, uint64_t now_usec)
{
	size_t n = collect_due(e, now_usec), done;

	for (done = 0; done < n && !out_of_time(now_usec); done++) {
		struct node *node = e->tree ? tree_by_token(e->tree, e->due[done].token) : e->host;

		if (node && node->group)
			observe_one(e, node, now_usec);
	}
	e->skipped = (unsigned)(n - done);
	if (e->skipped)
		engine_degrade(e, "overloaded",
			"looking at all groups takes longer than %d ms: the rest comes in the next tick",
			(int)(TICK_BUDGET_USEC / 1000));
	else
		engine_undegrade(e, "overloaded");
	if (e->polling && e->tree)
		poll_groups(e, now_usec);
}

void engine_retire(struct engine *e, uint64_t now_usec)
{
	size_t n_groups = e->loop->n_groups;

	for (size_t i = e->loop->n_groups; i-- > 0;) {
		struct loop_group *g = e->loop->groups[i];
		struct node *n = g->owner;

		if (n != e->host && now_usec >= n->engaged_until_usec && loop_group_idle(e->loop, g))
			let_go(e, n);
	}
	if (n_groups && !e->loop->n_groups)
		engine_trim_later(e);
}

uint64_t engine_groups_due(struct engine *e, uint64_t now_usec)
{
	uint64_t due = e->polling || e->looks_pending ? 0 : VALUE_ABSENT;

	for (size_t i = 0; i < e->loop->n_groups; i++) {
		const struct node *n = e->loop->groups[i]->owner;

		due = value_min(due, n->next_look_usec);
	}
	return due > now_usec ? due : 0;
}
