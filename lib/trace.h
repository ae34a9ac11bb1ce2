/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces: what the loop saw and what was decided, one JSON object per line, so
 * that any decision can be looked at again elsewhere, and another configuration
 * tried on the same days. Written by the daemon (engine-sample.c makes the
 * objects, mthpctl record keeps them), read by replay, plot and the tests. This
 * part knows the lines and their meaning; trace-replay.h runs the loop over
 * them. Never trusts a file: every number is checked, every fault has a line.
 *
 * Lines, by their "kind":
 *   header    once, first: "format", "version", "mthpd", "kernel", "features",
 *             "config" (the whole configuration as text), "tree" (switches with
 *             their baselines), "stands" (what the steered files hold), "cpus",
 *             "mem_total_kb", "boot_never", "realtime_usec" at "now_usec",
 *             "state" (what the loop remembers, with a "version" of its own),
 *             "anonymized"
 *   tick      one step of the loop and all that it saw: "now_usec", "host",
 *             "khugepaged", "dying_cgroups", "sizes" (statistics), "groups"
 *             ("id", "path", "policy", "sample"); "held", "foreign",
 *             "rebased", "apply" where true; "tree" and "config" where they
 *             are others than before, since "reconfigured_usec"; "stands" that changed by other hands;
 *             "unwritten" files, which the last tick's decisions did not reach
 *   decision  one change of one file, as in mthpctl history, with "now_usec" of
 *             its tick, whose line stands before it
 *   end       why the recording ended, and the sums; missing after a crash
 * Times are microseconds of CLOCK_MONOTONIC, except realtime_usec. Numbers that
 * the kernel did not give are null or missing, "max" is no limit. Unknown keys
 * are skipped, an unknown kind or version is a fault.
 */
#ifndef MTHPD_TRACE_H
#define MTHPD_TRACE_H

#include <jansson.h>
#include <stdio.h>

#include "host.h"
#include "loop.h"
#include "memcg.h"
#include "thp.h"

#define TRACE_FORMAT "mthpd-trace"
#define TRACE_VERSION 1
/* Of the header's "state", which follows the loop's own structures and so changes
 * more often than the lines: whoever adds, removes or redefines a member of the
 * tables in trace-state.c raises it. A plot does not need the state. */
#define TRACE_STATE_VERSION 4
/* A longer line is a fault. */
#define TRACE_LINE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define TRACE_DEPTH_MAX 16
/* Groups in one tick; what is left out is counted ("left_out"). */
#define TRACE_GROUPS_MAX 1000
#define TRACE_CPUS_MAX 65536

struct trace_why {
	uint64_t line; /* 0 = the file as a whole */
	char text[256];
};

enum trace_kind { TRACE_HEADER, TRACE_TICK, TRACE_DECISION, TRACE_END };

/* ---- lines ------------------------------------------------------------- */

struct trace_reader;
/* @f is borrowed. NULL on ENOMEM. */
struct trace_reader *trace_reader_new(FILE *f);
void trace_reader_free(struct trace_reader *r);
/* The next line: 1 with a new reference and its kind; 0 at the end; -EBADMSG
 * with @why (never after 0), -EIO with @why, or -ENOMEM. The first line has to
 * be the header, and only that one. A last line that has no newline and is no
 * JSON was being written when something ended: it is skipped, see trace_torn(). */
int trace_read(struct trace_reader *r, json_t **ret, enum trace_kind *ret_kind, struct trace_why *why);
/* Number of the line that was read last. */
uint64_t trace_line(const struct trace_reader *r);
/* True when the file ended in the middle of a line. */
bool trace_torn(const struct trace_reader *r);

/* One line with its newline, to be freed; NULL on ENOMEM. */
char *trace_line_text(const json_t *record, size_t *ret_len);

/* ---- what the lines hold ----------------------------------------------- */

/* Strings are borrowed from the JSON object. */
struct trace_header {
	const char *mthpd, *kernel, *config_text;
	bool anonymized, boot_never;
	unsigned cpus;
	uint64_t mem_total_kb, realtime_usec, now_usec;
	struct thp_tree tree;
	json_t *stands; /* object: path to value */
	json_t *state;  /* object or NULL: a fresh loop */
};
int trace_header_get(const json_t *j, struct trace_header *ret, struct trace_why *why);

struct trace_group {
	uint64_t id;
	const char *path, *policy; /* policy NULL = the defaults */
	bool late;	     /* came during the tick */
	uint64_t added_usec; /* absent unless its controller has not stepped yet */
	bool has_first, has_sample, has_own;
	struct own own;      /* base, stands, want */
	bool gone;	    /* vanished during the tick */
	struct memcg_sample first; /* the look that set its start */
	struct memcg_sample sample;
};

struct trace_tick {
	uint64_t now_usec, decided_usec; /* decided: absent = now */
	uint64_t reconfigured_usec;	 /* absent = at the tick before */
	bool held, foreign, rebased, apply;
	bool has_host, has_tree;
	struct host_sample host;
	uint64_t full_scans, pages_collapsed, dying_cgroups;
	unsigned n_stats;
	uint64_t stats_kb[THP_SIZES_MAX];
	struct thp_stats stats[THP_SIZES_MAX];
	struct thp_tree tree;
	const char *config_text; /* NULL = as before */
	json_t *stands;		 /* object or NULL */
	json_t *unwritten;	 /* array of paths or NULL */
	struct trace_group *groups;
	size_t n_groups;
	uint64_t left_out;
};
/* trace_tick_done() it; @j must live as long. */
int trace_tick_get(const json_t *j, struct trace_tick *ret, struct trace_why *why);
void trace_tick_done(struct trace_tick *t);

struct trace_decision {
	uint64_t now_usec, realtime_usec, number;
	const char *knob, *old_value, *new_value, *reason, *outcome; /* @reason as its word */
	const char *group; /* NULL = the host */
	double some, full; /* -1 unknown */
	uint64_t margin_bytes, refault_per_sec;
	unsigned others;
};
int trace_decision_get(const json_t *j, struct trace_decision *ret, struct trace_why *why);
/* As decision lines and mthpctl history have it. NULL on ENOMEM. */
json_t *trace_decision_json(const struct trace_decision *d);

/* ---- parts, for whoever writes a trace; NULL on ENOMEM ----------------- */

json_t *trace_tree_json(const struct thp_tree *t);
int trace_tree_get(const json_t *j, struct thp_tree *ret, struct trace_why *why);
json_t *trace_memcg_json(const struct memcg_sample *s);
int trace_memcg_get(const json_t *j, struct memcg_sample *ret, struct trace_why *why);
json_t *trace_host_json(const struct host_sample *s);
int trace_host_get(const json_t *j, struct host_sample *ret, struct trace_why *why);
/* With "size_kb". */
json_t *trace_stats_json(uint64_t size_kb, const struct thp_stats *s);
int trace_stats_get(const json_t *j, uint64_t *ret_size_kb, struct thp_stats *ret, struct trace_why *why);

/* A string that may be any bytes: what is not UTF-8 becomes \xNN. */
json_t *trace_bytes_json(const char *s);

/* The baseline value of a file as text, e.g. "khugepaged/defrag" -> "1"; NULL
 * when the tree has none. @buf is of CHOICE_LEN. */
const char *trace_tree_value(const struct thp_tree *t, const char *path, char *buf);

/* ---- the loop's memory (trace-state.c) --------------------------------- */

/* A group's own files: what stood there, stands there and was wanted last. Reading
 * leaves @o untouched on a fault (-EBADMSG). */
json_t *trace_own_json(const struct own *o);
int trace_own_get(const json_t *j, struct own *o, struct trace_why *why);
/* "changes_usec": the times of the last changes. -EBADMSG when they are not that or too many. */
json_t *trace_rate_json(const struct rate *r);
int trace_rate_get(const json_t *object, const char *what, bool required, struct rate *r,
	struct trace_why *why);

/* Everything that decides about the next tick: controllers, holds, caps, vetoes,
 * rates, samples to take differences from. At most TRACE_GROUPS_MAX groups. */
json_t *trace_state_json(const struct loop *l, uint64_t decisions);
/* Puts it into a loop without groups whose plan and configuration are those of
 * the header; another TRACE_STATE_VERSION is a fault. @group_new is asked for each group; it adds it to @l (NULL =
 * ENOMEM). Returns 0, -EBADMSG or -ENOMEM. */
typedef struct loop_group *(*trace_group_fn)(
	struct loop *l, uint64_t id, const char *path, const char *policy, void *userdata);
int trace_state_get(const json_t *j, struct loop *l, trace_group_fn group_new, void *userdata,
	uint64_t *ret_decisions, struct trace_why *why);

/* ---- the configuration as text (trace-config.c) ------------------------ */

/* Every key with its value in force, policies too; config_load_text() makes the
 * same configuration of it. [Metrics] is left out: it says where this machine
 * listens, and decides nothing. To be freed; NULL on ENOMEM. */
char *trace_config_text(const struct config *c);

/* ---- names (trace-names.c) --------------------------------------------- */

#define TRACE_SALT_BYTES 16
/* Replaces the names of groups and policies in a record by words that are the
 * same for the same name and @salt, and say nothing else: "g3fa4c1d09e.service".
 * Unit suffixes (.service, .scope, .slice, ...) are kept. False on ENOMEM. */
bool trace_anonymize(json_t *record, const unsigned char salt[TRACE_SALT_BYTES]);
/* SipHash-2-4 (Aumasson, Bernstein: a short-input keyed hash). */
uint64_t trace_siphash(const unsigned char key[16], const void *data, size_t len);

#endif
