/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The closed loop without the world: groups with their controllers, the host
 * rules, the arbiter and the limits on the rate of change. The engine feeds it
 * samples and applies what it wants; replay and the simulations do the same
 * in virtual time. Deterministic: nothing in here reads a clock, a file or a
 * random number, and groups are visited in the order in which they were added.
 *
 * One tick is: loop_begin(), loop_observe_host(), loop_observe() for each hot
 * group, loop_decide().
 */
#ifndef MTHPD_LOOP_H
#define MTHPD_LOOP_H

#include "arbiter.h"
#include "own.h"
#include "rate.h"

#define LOOP_KNOBS_MAX (2 * THP_SIZES_MAX + 8)

/* A group that is looked at. Quiet groups need none: the engine creates one
 * when a group gets hot and frees it when nothing is left to remember. */
struct loop_group {
	uint64_t id;
	const char *path; /* borrowed */
	const struct config_policy *policy; /* NULL = defaults */
	bool controlled;
	struct controller ctl;
	struct ctl_wish wish;
	bool has_prev, gone;
	struct memcg_sample prev;
	struct memcg_delta delta;
	bool observed; /* in this tick */
	struct own own;	  /* its own files, where the kernel has them */
	struct rate rate; /* of changes of those */
	void *owner;   /* the engine's */
};

/* What one file should hold. */
struct loop_want {
	char path[THP_PATH_MAX];
	char value[CHOICE_LEN];
	bool is_size;  /* hugepages-<n>kB/enabled, or the top-level switch in legacy mode */
	unsigned size; /* index into plan.sizes */
	enum reason reason;
	const struct loop_group *cause; /* NULL = the host, or nobody */
};

struct loop {
	const struct config *config;
	struct plan plan;
	struct hostrules host;
	struct arbiter arbiter;
	struct loop_group **groups;
	size_t n_groups, size_groups;
	unsigned cpus;
	uint64_t now_usec;
	bool may_probe, foreign, dying, rate_limited;
	bool raised; /* some group asks for sizes above their start values */
	uint64_t host_available_bytes, host_total_bytes, anon_total_bytes;
	struct rate rate; /* of changes of the global switches */
	struct loop_want wants[LOOP_KNOBS_MAX];
	unsigned n_wants;
	uint64_t decisions;
};

/* @config is borrowed and must outlive the loop or be replaced by
 * loop_reconfigure(). NULL on ENOMEM. */
struct loop *loop_new(
	const struct config *config, const struct plan *plan, unsigned cpus, uint64_t now_usec);
void loop_free(struct loop *l);
/* New configuration or new baseline: controllers keep what they learned,
 * their rungs are carried over to the new ladder, policies are looked up anew. */
void loop_reconfigure(struct loop *l, const struct config *config, const struct plan *plan);

/* NULL on ENOMEM. @path is borrowed. */
struct loop_group *loop_group_add(struct loop *l, uint64_t id, const char *path);
void loop_group_remove(struct loop *l, struct loop_group *g);
/* The group has files of its own: @base is what stood there before mthpd, @stands what
 * stands there now, "" = not there or not understood. With PerGroup=no they are left
 * alone. Before its first look, or again when somebody changed them. */
void loop_group_own(struct loop *l, struct loop_group *g, const struct own_values *base,
	const struct own_values *stands);

void loop_begin(struct loop *l, uint64_t now_usec);
void loop_observe_host(struct loop *l, const struct hostrules_input *host_in);
/* One sample of one group: the first only sets the start, each further one is
 * a step of its controller. */
void loop_observe(struct loop *l, struct loop_group *g, const struct memcg_sample *s);
/* Fills wants[] and each group's own.want. With @held nothing moves: wants are those of
 * the last tick. Returns true when at least one value differs from the last tick's, or
 * from what stands in a group's own file. */
bool loop_decide(struct loop *l, bool held);
/* The engine tells when a decision was really applied (at least one write). */
void loop_applied(struct loop *l, uint64_t now_usec);
/* The same for a group's own files. */
void loop_group_applied(struct loop *l, struct loop_group *g, uint64_t now_usec);

/* What would be wanted in the group's own files now, held or not; @ret may be &g->own. */
void loop_own_wish(const struct loop *l, const struct loop_group *g, struct own *ret);
/* True when the group's controller has nothing to remember and is quiet, and what is wanted
 * in its own files stands: nothing is to be looked at before something happens to it. */
bool loop_group_rests(const struct loop *l, const struct loop_group *g);
/* The same, and no policy has a say in what is wanted for it: it can be let go. */
bool loop_group_idle(const struct loop *l, const struct loop_group *g);
/* Earliest time at which a tick is needed: 0 = at the next interval,
 * VALUE_ABSENT = only when something happens. */
uint64_t loop_wake_usec(const struct loop *l);

const struct loop_want *loop_want_for(const struct loop *l, const char *path);

#endif
