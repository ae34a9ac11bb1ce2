/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's heart: wakes up (watch), looks (memcg, host, thp), lets the
 * loop decide, and hands what it wants to the actuator. README.md (reading order)
 * shows the calls through which one sample travels.
 * Called by main and by the services (varlink, metrics), which only read. Never decides:
 * what is wanted comes from lib/.
 */
#ifndef MTHPD_ENGINE_H
#define MTHPD_ENGINE_H

#include <event2/event.h>
#include <jansson.h>

#include "config.h"

struct engine;

struct engine_options {
	const char *config_file; /* NULL = the system's */
	const char *root;        /* "" = the machine */
	const char *runtime_dir;
	bool dry_run;
};

/* Exit codes of sysexits.h that callers of mthpd rely on. */
#define ENGINE_EX_UNAVAILABLE 69
#define ENGINE_EX_CONFIG 78

/* Takes @config over. Returns 0 or an exit code after it said why. */
int engine_new(struct event_base *base, const struct engine_options *o, struct config *config,
	struct engine **ret);
/* First look and first decisions, before READY=1. */
void engine_start(struct engine *e);
/* Puts everything back where RestoreOnExit says so. Returns the exit code. */
int engine_stop(struct engine *e);
void engine_free(struct engine *e);

/* 0; -EINVAL after each fault was logged: the old configuration stands whole, and
 * @why has the first fault with its place. */
#define ENGINE_WHY_LEN 512
int engine_reload(struct engine *e, char why[ENGINE_WHY_LEN]);
/* A hold freezes all switches where they are, over a restart too. */
int engine_hold(struct engine *e, const char *reason);
int engine_release(struct engine *e);
/* A second hold, which ends with the daemon: for callers that see when whoever
 * asked for it has gone (the bus). NULL ends it. Both may stand at once. */
int engine_hold_briefly(struct engine *e, const char *reason);
/* Puts the baseline back and holds. Number of failures. */
int engine_restore(struct engine *e);

/* What happens, for those who pass it on (bus, socket, traces). Callbacks run on
 * the loop, must not call back into orders above, and are kept in order. */
struct decision;
struct engine_observer {
	void (*decision)(const struct decision *d, void *userdata);
	/* Somebody else changed @path. */
	void (*drift)(const char *path, const char *expected, const char *found, void *userdata);
	/* State, degraded reasons or sizes may have changed. */
	void (*changed)(void *userdata);
	/* Does anybody want samples now? Asked once per tick; NULL = never. */
	bool (*wants_samples)(void *userdata);
	/* One tick as the loop saw it (borrowed), in the form of lib/trace.h. */
	void (*sample)(json_t *tick, void *userdata);
	void *userdata;
};
#define ENGINE_OBSERVERS_MAX 4
/* @o must outlive the engine. -ENOSPC beyond ENGINE_OBSERVERS_MAX. */
int engine_observe(struct engine *e, const struct engine_observer *o);

/* Says it once per @key and keeps it for status, where a later text of the same key takes
 * its place. */
void engine_degrade(struct engine *e, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void engine_undegrade(struct engine *e, const char *key);

/* All return new references. */
json_t *engine_status(struct engine *e);
/* The members version, state, degraded, sizes and counters of the status. */
json_t *engine_summary(struct engine *e);
json_t *engine_features(struct engine *e);
/* For metrics: the summary with "release", "stats" {NAME: {SIZE_KB: n}},
 * "khugepaged", "swap", "groups" (as in the status, with "some_usec",
 * "full_usec" and "refault_anon"; the @max_groups with the most anonymous memory)
 * and "rest" {"groups", "anon_bytes", "unread"}. */
json_t *engine_metrics(struct engine *e, size_t max_groups);
/* [Metrics] Listen=, NULL = off. Valid until the next reload. */
const char *engine_metrics_listen(const struct engine *e);
json_t *engine_history(struct engine *e, unsigned n);
json_t *engine_verify(struct engine *e, bool *ret_ok);
/* @cgroup NULL = the whole. -ENOENT when there is no such group. */
int engine_explain(struct engine *e, const char *cgroup, char **ret_text, json_t **ret_facts);
/* The header of a trace that begins now, and a decision of the running tick. */
json_t *engine_trace_header(struct engine *e);
json_t *engine_decision_json(struct engine *e, const struct decision *d);
/* What mthpd can do here, one line per capability, to stderr. */
void engine_print_features(struct engine *e);

#endif
