/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only place that writes to the kernel's THP files while the daemon runs.
 * Given a path under transparent_hugepage and a wanted value it reads, compares,
 * journals and writes, in this order: a value that already stands is not
 * written, a token that the file does not list is never written, EINVAL is
 * remembered for this run. What keeps a file from being steered is told once when
 * it begins and once when it ends: a text that is not understood (until it is
 * again), or EROFS, EACCES or EPERM (until the next probe). Where no file at all
 * can be written the actuator only observes. It also notices values that somebody else changed and either
 * adopts them (they are the baseline from then on) or re-asserts ours. Somebody
 * who replaces our values of one file more than three times has it: the file is
 * adopted and left alone, whichever of the two was asked for, because to write
 * again later would be the same fight at a slower pace. Called by the engine;
 * never decides what is wanted.
 */
#ifndef MTHPD_ACTUATOR_H
#define MTHPD_ACTUATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "baseline.h"

#define ACTUATOR_REASSERT_MAX 3

enum actuator_result {
	ACTUATOR_SAME, /* it already stood there */
	ACTUATOR_WRITTEN,
	ACTUATOR_DRY,	   /* dry run: would have written */
	ACTUATOR_READONLY, /* this file: EROFS, EACCES, EPERM; would have written */
	ACTUATOR_FOREIGN,  /* somebody changed it: adopted just now, or left to them for good */
	ACTUATOR_REFUSED,  /* EINVAL now or before, token not listed, unparseable file, other errno
			    */
	ACTUATOR_GONE,	   /* no such file */
};

struct actuator;

struct actuator_counts {
	uint64_t writes, write_errors, foreign_changes;
};

struct actuator_ops {
	/* One line per event that a person should read; at most once per cause where noted above.
	 */
	void (*warn)(const char *message, void *userdata);
	/* From now on @path cannot be steered, for the reason in @sentence; with NULL it can be
	 * again. @path "": not one file can be written, which stands for all files that cannot.
	 * NULL = not told. */
	void (*trouble)(const char *path, const char *sentence, void *userdata);
	/* @path now holds @found, written by somebody else; @adopted: it is the
	 * baseline now, otherwise ours is about to be written again. */
	void (*foreign)(const char *path, const char *expected, const char *found, bool adopted,
		void *userdata);
	/* @path, of a group that is not steered any more, went from our @old back to @now.
	 * NULL = not told. */
	void (*given_back)(const char *path, const char *old, const char *now, void *userdata);
};

/* One line for @ops->warn, if there is one; what is too long for a path and a sentence is
 * cut. For the actuators alone. */
void actuator_warn(const struct actuator_ops *ops, void *userdata, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* @thp_fd and @b are borrowed. */
int actuator_new(int thp_fd, struct baseline *b, const struct actuator_ops *ops, void *userdata,
	struct actuator **ret);
void actuator_free(struct actuator *a);
void actuator_set_dry_run(struct actuator *a, bool yes);
void actuator_set_reassert(struct actuator *a, bool yes);
/* Not one managed file can be written, as a write or the probe learned. */
bool actuator_read_only(const struct actuator *a);
/* @path cannot be written, as far as is known. */
bool actuator_denied(const struct actuator *a, const char *path);
/* @path is managed, and what it says can be steered (knob_usable()), as of the last look. */
bool actuator_usable(const struct actuator *a, const char *path);

/* Which managed files are writable? access(2)-like, without changing a value;
 * forgets denials of before. Returns 0 when at least one is, or none is there at
 * all, otherwise -errno (-EROFS, -EACCES, ...). */
int actuator_probe(struct actuator *a);

/* Records the start value of @path; call once per managed file before anything
 * else (again is harmless). -EINVAL: not a path of ours, or the file cannot be
 * parsed and is not written until it can, when its start value is taken; -ENOENT:
 * no such file; other -errno of reading, as with -EINVAL. */
int actuator_manage(struct actuator *a, const char *path);

/* Current value of @path into @buf: the selected token of a choice file, or
 * the number. Returns 0 or -errno (-EINVAL unparseable, -ENOBUFS). */
int actuator_read(struct actuator *a, const char *path, char *buf, unsigned size);

/* The words that @path lists, with the one that stood there at the last look; NULL
 * unless it is managed, usable, and no number. */
const struct choice *actuator_choice(const struct actuator *a, const char *path);

/* Would apply() try to write @value: does the file list it, as of the last
 * look, and has the kernel not refused it? For callers that know a weaker
 * token to ask for instead. */
bool actuator_accepts(const struct actuator *a, const char *path, const char *value);

/* Wants @value at @path. The old value is copied to @ret_old (size
 * BASELINE_VALUE_LEN, may be NULL; untouched when it could not be read). Never
 * returns a value outside the enum. */
enum actuator_result actuator_apply(
	struct actuator *a, const char *path, const char *value, char *ret_old);

/* For the audit: has somebody changed @path since our last look? Handles it as
 * apply would: ACTUATOR_FOREIGN (adopted), or what came of re-asserting our
 * value. Otherwise ACTUATOR_SAME, _GONE or _REFUSED (unparseable). */
enum actuator_result actuator_audit(struct actuator *a, const char *path);

/* The @i-th file that is left to somebody else, NULL past the last: the reason
 * for a degraded state. Each has been warned about once. */
const char *actuator_conflict(const struct actuator *a, unsigned i);
/* A person asked for a fresh start (reload): such files are steered again. */
void actuator_forget_conflicts(struct actuator *a);

void actuator_counts(const struct actuator *a, struct actuator_counts *ret);

#endif
