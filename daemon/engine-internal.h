/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine's insides, shared by its files only: engine.c (life and ticks),
 * engine-host.c (the machine as a whole), engine-groups.c and engine-survey.c (which groups
 * are looked at),
 * engine-act.c (files: wanted, written, changed by others), engine-own.c (the same for
 * groups' own files), engine-status.c, engine-explain.c and engine-size.c (what is told about it),
 * engine-sample.c (what the loop saw, for traces).
 */
#ifndef MTHPD_ENGINE_INTERNAL_H
#define MTHPD_ENGINE_INTERNAL_H

#include "actuator.h"
#include "baseline.h"
#include "caps.h"
#include "engine.h"
#include "group-actuator.h"
#include "history.h"
#include "loop.h"
#include "memcg.h"
#include "tree.h"
#include "watch.h"

/* A group that something happened to is looked at for this long at least. */
#define ENGAGE_USEC UINT64_C(10000000)
/* Sampling in one tick stops here; the rest comes first in the next tick. */
#define TICK_BUDGET_USEC UINT64_C(200000)
/* A group that waited so long for its turn is as urgent as one in trouble. */
#define OVERDUE_USEC UINT64_C(5000000)
/* A new group is looked at when it is made unless so many are already: then in its turn. */
#define ENGAGED_MAX 1024
/* Groups of the start, and others that wait for their turn, that a tick begins to look at;
 * the fewer when as many are in trouble. */
#define START_GROUPS 256
#define START_GROUPS_BUSY 16
/* Groups looked at in one audit when the machine uses this much fresh memory. */
#define SURVEY_GROUPS 64
#define SURVEY_PAGES_PER_SEC 1000
/* Without cgroups nothing announces trouble: the quiet machine is polled. */
#define HOST_POLL_USEC UINT64_C(5000000)
/* Groups whose trigger is tried again in one audit. */
#define RETRY_TRIGGERS 32
/* Groups whose files were not understood and that are looked at again in one audit. */
#define RETRY_UNCLEAR 32
/* From then to the return of the memory; what else is freed meanwhile shares it. */
#define TRIM_USEC UINT64_C(1000000)
/* From the first refusal of a large folio to a look at that group alone. */
#define HURRY_USEC UINT64_C(200000)
#define DEGRADED_MAX 96 /* each file that is steered may have a reason of its own */

/* One file that is steered, and what stands there as far as we know. */
struct engine_knob {
	char path[THP_PATH_MAX];
	char stands[CHOICE_LEN];
	bool reread; /* it can be steered again: what stands is to be read */
};

/* A group that a tick is to look at. */
struct due {
	uint64_t token, looked_usec; /* looked at last */
	bool urgent;
};

struct engine {
	struct event_base *base;
	struct engine_options options;
	char *root, *runtime_dir, *config_file;
	int root_fd, thp_fd, cg_fd;
	struct config *config;
	struct caps caps;
	struct thp_tree tree_base; /* baseline values, not what mthpd wrote */
	struct baseline *baseline;
	struct actuator *actuator;
	struct group_actuator *group_actuator; /* NULL = the kernel has no files per group */
	struct loop *loop;
	struct tree *tree;
	struct watch *watch;
	struct node *host; /* where there is no cgroup v2: the machine as one group */
	struct event *tick, *audit, *trim, *hurry;
	struct engine_knob knobs[LOOP_KNOBS_MAX + 1];
	unsigned n_knobs;
	char *brief_hold;   /* engine_hold_briefly(), NULL = none */
	bool rescan;        /* some directories cannot be watched for new groups */
	unsigned unclear; /* groups with a file that is not understood */
	bool unread;      /* some group may be one whose own files cannot be read */
	bool unclear_changed; /* their number, since it was told */
	unsigned poll_skip; /* groups already polled in this round */
	bool polling;       /* --root, or some groups cannot be watched */
	bool dry_from_start; /* nothing was ever written */
	bool dry_run, replan, stopped, overloaded, psi_said, ready;
	struct due *due; /* scratch of engine_observe_groups() */
	size_t size_due;
	unsigned skipped;   /* groups not sampled in the last tick for lack of time */
	unsigned survey_round; /* of the running look at all groups, see struct node */
	bool looks_pending;    /* some groups were never looked at: see struct node */
	uint64_t audit_usec; /* AuditInterval, shortened where the watchdog asks */
	uint64_t audit_collapses; /* of the machine at the last audit */
	uint64_t audit_fresh, audit_at_usec; /* fresh pages of the machine at the last audit */
	uint64_t min_free_kbytes;
	uint64_t cgroups_seen, wakeups;
	struct host_sample host_now;
	struct history history;
	struct engine_sampler *sampler; /* NULL until somebody listens */
	bool replanned;			/* since the last tick */
	uint64_t dying_cgroups;
	const struct engine_observer *observers[ENGINE_OBSERVERS_MAX];
	unsigned n_observers;
	struct {
		char key[THP_PATH_MAX], text[320];
	} degraded[DEGRADED_MAX];
	unsigned n_degraded;
	unsigned failures_told; /* generation of the group actuator's */
	bool journal_failed; /* and something was not written for that */
};

uint64_t engine_now_usec(void);

/* ---- engine.c */
void engine_schedule(struct engine *e);

void engine_tell_changed(struct engine *e);
/* The last busy group was let go, or a large answer was made: the memory that it took
 * is given back a moment later (an answer has been sent by then). */
void engine_trim_later(struct engine *e);
/* Groups that are marked as hurried are looked at before the next tick. */
void engine_hurry(struct engine *e);
/* What is missing here and can be mended goes into the status. */
void engine_degrade_capabilities(struct engine *e);
/* Why nothing may move; NULL = no hold. */
const char *engine_held(const struct engine *e);

/* ---- engine-host.c */
/* Reads the machine's files into host_now. */
void engine_look_at_host(struct engine *e, uint64_t now_usec);
/* The same for a tick of the loop, with what the host rules want besides. */
void engine_sample_host(struct engine *e, uint64_t now_usec);
/* The machine as one group, where there is no cgroup v2 to tell them apart: MEMCG_OK. */
int engine_sample_machine(const struct engine *e, struct memcg_sample *s);

/* ---- engine-groups.c */
int engine_groups_init(struct engine *e);
void engine_groups_free(struct engine *e);
/* Is @n a unit that mthpd has a say in? */
bool engine_steers(const struct engine *e, const struct node *n);
/* Something happened to @n: look at it in every tick for a while. */
void engine_engage(struct engine *e, struct node *n, uint64_t now_usec);
void engine_observe_groups(struct engine *e, uint64_t now_usec);
void engine_observe_hurried(struct engine *e, uint64_t now_usec);
/* Lets go of groups with nothing left to remember. */
void engine_retire(struct engine *e, uint64_t now_usec);
void engine_rearm_triggers(struct engine *e);
/* Groups whose files are not understood came or went: says the first and how many. */
void engine_tell_unclear(struct engine *e);
/* When the next group is due: 0 = at the next interval, VALUE_ABSENT = never by itself. */
uint64_t engine_groups_due(struct engine *e, uint64_t now_usec);
/* A full look outside of the loop, for status. */
int engine_peek(struct engine *e, const struct node *n, struct memcg_sample *ret);
/* Watches what there is to be watched of @n, if that is not done. */
void engine_watch_node(struct engine *e, struct node *n);

/* ---- engine-survey.c */
/* The next groups that were never looked at; false when there are none left. */
bool engine_look_at_more(struct engine *e, uint64_t now_usec);
/* Groups that nothing announces: waiting for room, new controllers, a busy machine. */
void engine_audit_groups(struct engine *e, uint64_t now_usec);

/* ---- engine-size.c */
/* The largest folio that a group can have, and the one that it is to have, in KiB; 0 =
 * single pages. Reads the files of the group and of its ancestors. */
struct engine_largest {
	uint64_t kb, wanted_kb;
};
struct engine_largest engine_largest_of(struct engine *e, const struct node *n);

/* ---- engine-status.c */
/* "active", "held", ... */
const char *engine_state_word(const struct engine *e);
/* The start value of a switch; @otherwise where mthpd has not changed it. */
const char *engine_baseline_or(struct engine *e, const char *path, const char *otherwise);
/* Is the group one that is told about? */
bool engine_shown(const struct node *n);
const char *engine_group_state(const struct engine *e, const struct node *n);
/* @o: what engine_own_read() says of the group, or not present. */
enum reason engine_group_reason(const struct node *n, const struct config_policy *p, const struct own *o);
/* How large folios are let into a group, as its margin file @now says; NULL = it has none. */
const char *engine_gate_word(const char *now, enum gate_state wish);
/* The same as the loop would have it: the start value where it asks for nothing. */
const char *engine_gate_wish(const struct own *o, enum gate_state wish);
json_t *engine_group_json(struct engine *e, const struct node *n, const struct memcg_sample *s);

/* ---- engine-act.c */
/* Is there a switch that can be steered by what it says? 0, or an exit code after it said
 * that there is none. Wants the baseline. */
int engine_act_check(struct engine *e);
int engine_act_init(struct engine *e);
/* Writes what the loop wants where it differs from what stands. */
void engine_apply(struct engine *e);
/* Looks for values that somebody else changed. True when what is wanted is to be
 * written again, although it was wanted before. */
bool engine_audit_files(struct engine *e);
/* A person asked for a fresh start (reload): files that could not be written may be again,
 * and what was given up to others is ours. True as above. */
bool engine_retry_files(struct engine *e);
void engine_replan(struct engine *e);
struct engine_knob *engine_knob(struct engine *e, const char *path);
/* What @path should hold: the loop's want, under a hold what stands; NULL = not steered. */
const char *engine_wanted(struct engine *e, const char *path);

/* Somebody else changed a file: logged, and told to those who listen. */
void engine_tell_foreign(
	struct engine *e, const char *path, const char *expected, const char *found, bool adopted);
/* A decision was carried out (or would have been): told, remembered. @group: whose file it
 * is about, where nothing but that is known of it; NULL = that of the cause. False where
 * nothing came of it. */
bool engine_record(struct engine *e, const struct loop_want *w, const char *group, const char *old_value,
	enum actuator_result r);

/* ---- engine-own.c */
int engine_own_init(struct engine *e);
/* Which memory.thp.* there are, for the capabilities, as soon as there is a group to look at. */
void engine_own_probe(struct engine *e);
void engine_own_free(struct engine *e);
/* The configuration was read again. */
void engine_own_reconfigure(struct engine *e);
/* A group was added to the loop: has it files of its own? 0 or, where it has but they
 * cannot be read, -errno: then nothing is to be wanted for it. */
int engine_own_look(struct engine *e, struct loop_group *g);
/* What the files of a group say now, with what is wanted there; not present where
 * nothing is steered. */
void engine_own_read(struct engine *e, const struct node *n, struct own *ret);
/* Why @value does not stand in file @f of the group, for a person; "" = no reason is known. */
#define ENGINE_WHY_NOT_LEN 128
void engine_own_why_not(const struct engine *e, uint64_t id, enum own_file f, const char *value,
	char ret[ENGINE_WHY_NOT_LEN]);
/* Writes what is wanted in groups' own files where it differs; true when anything was. */
bool engine_own_apply(struct engine *e);
/* The group is let go (it still exists): nothing of ours stays in its files. */
void engine_own_let_go(struct engine *e, struct loop_group *g);
/* The group does not exist any more. */
void engine_own_forget(struct engine *e, uint64_t id);
/* Adds to @differences what stands otherwise than wanted. */
void engine_own_verify(struct engine *e, json_t *differences);
/* The @i-th of groups' files that is left to somebody else; NULL past the last. */
const char *engine_own_conflict(const struct engine *e, unsigned i);
/* Looks for values that somebody else changed, and for those that nobody wants any more. */
void engine_own_audit(struct engine *e);

/* ---- engine-sample.c */
/* Around each step of the loop: before loop_begin(), and between loop_decide()
 * and the writing. @always: what is wanted is written even if it is not new;
 * @applies: it is now. */
void engine_sample_begin(struct engine *e, uint64_t now_usec);
void engine_sample_end(struct engine *e, bool held, bool always, bool applies);
/* A group that was just added to the loop, with its first look. */
void engine_sample_first(struct engine *e, const struct loop_group *g);
void engine_sample_free(struct engine *e);

#endif
