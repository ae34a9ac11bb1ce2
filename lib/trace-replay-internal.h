/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two parts of a replay share: trace-replay.c (the file, decisions,
 * sums) and trace-replay-groups.c (groups and what is seen of them). Included by
 * nobody else.
 */
#ifndef MTHPD_TRACE_REPLAY_INTERNAL_H
#define MTHPD_TRACE_REPLAY_INTERNAL_H

#include "trace-replay.h"

#define RECORDED_MAX 4096 /* decisions of one tick that are kept */

/* One steered file, and what stands there in both worlds. */
struct knob {
	char path[THP_PATH_MAX];
	char recorded[CHOICE_LEN], replayed[CHOICE_LEN];
};

struct replay {
	struct trace_reader *reader;
	replay_fn fn;
	void *userdata;
	struct trace_why *why;
	struct replay_summary sum;

	json_t *header_json;
	struct trace_header header;
	struct thp_tree tree;
	struct config *recorded; /* of the trace */
	const struct config *override;
	struct loop *loop;
	struct knob knobs[LOOP_KNOBS_MAX];
	unsigned n_knobs;
	uint64_t decisions, last_usec;

	/* the tick that waits for the next line, and what was decided in it */
	json_t *tick_json;
	struct trace_tick tick;
	bool has_tick;
	uint64_t tick_line;
	json_t *recorded_json; /* array: owns the strings */
	struct trace_decision *was;
	size_t n_was;
	struct trace_decision *now; /* RECORDED_MAX of each */
	struct loop_want *now_want; /* values that the decisions point at */
	char (*now_old)[CHOICE_LEN];
	size_t n_now;
};

/* The recorded configuration, or the one that replaces it. */
const struct config *replay_config(const struct replay *r);

/* A trace_group_fn: adds a group to the loop with its own copy of the path. */
struct loop_group *replay_group_new(
	struct loop *l, uint64_t id, const char *path, const char *policy, void *userdata);
void replay_group_free(struct loop *l, struct loop_group *g);
/* Groups that the tick does not name were let go before it. 0 or -ENOMEM. */
int replay_drop_others(struct replay *r);
/* Groups that vanished during the tick. */
void replay_drop_gone(struct replay *r);
/* Groups that came before the tick (@late: during it) with their first look. 0 or -ENOMEM. */
int replay_add_groups(struct replay *r, bool late);
/* The policies that the tick names, after the loop has looked them up anew. */
void replay_set_policies(struct replay *r);
/* The tick's samples. */
void replay_observe(struct replay *r);

#endif
