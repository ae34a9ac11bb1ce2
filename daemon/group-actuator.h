/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only place that writes to memory.thp.* of memory cgroups while the daemon
 * runs; for them what actuator.h is for the machine's own files. Given a group
 * and a wanted value it reads, compares, journals and writes, in this order: a
 * value that already stands is not written, one that could not be written is
 * tried again as group-failures.h says; a group that vanished or was created anew
 * between any two system calls is an outcome, not an error. It also notices
 * values that somebody else changed over ours and adopts or re-asserts, each
 * file of each group by itself. Called by the engine; never decides what is
 * wanted.
 *
 * A group is its path (relative to the cgroup2 root, no leading slash) and its
 * inode. At most BASELINE_GROUPS_MAX groups hold values of ours at a time; one
 * more is refused, with one warning.
 */
#ifndef MTHPD_GROUP_ACTUATOR_H
#define MTHPD_GROUP_ACTUATOR_H

#include "actuator.h"
#include "group-failures.h"
#include "group-knob.h"

struct group_actuator;

/* @cg_fd (the cgroup2 root) and @b are borrowed. The path that ops->foreign is
 * given is "<group>/memory.thp.x". Of this actuator, @ops may call
 * group_actuator_look() and nothing else. */
int group_actuator_new(int cg_fd, struct baseline *b, const struct actuator_ops *ops,
	void *userdata, struct group_actuator **ret);
void group_actuator_free(struct group_actuator *a);
void group_actuator_set_dry_run(struct group_actuator *a, bool yes);
void group_actuator_set_reassert(struct group_actuator *a, bool yes);

/* What stands, and the baseline: the start value where we wrote, else what
 * stands. Settles what a journal of an earlier run says about the group. Returns
 * 0, -ENOENT (no such files: stock kernel, or the root), -ESTALE (the group is
 * gone, or another one has its name), other -errno. */
int group_actuator_look(struct group_actuator *a, const char *path, uint64_t id,
	struct own_values *ret_now, struct own_values *ret_base);

/* Wants @value (own_value_valid()). In a file that mthpd has not written another value
 * than @expected (NULL = any) is somebody else's and the start value from now on: told,
 * ACTUATOR_FOREIGN, and @value is to be thought over. Never returns a value outside the
 * enum. ACTUATOR_REFUSED: not written now or before, group_actuator_why() says why, and
 * a person was told once. */
enum actuator_result group_actuator_apply(struct group_actuator *a, const char *path, uint64_t id,
	enum own_file k, const char *value, const char *expected);

/* An audit: has somebody changed a value of ours? Handles each as apply would. It begins,
 * which lets what could not be written for a reason that may pass be tried again; looks at
 * each group that is steered; and at the rest that values of ours are in, which an earlier
 * run wrote or which could not be given back: that is done now, if @give_back. Groups that
 * are gone are forgotten. */
void group_actuator_audit_begin(struct group_actuator *a);
/* *ret_now: what stands after it. @expected: what stood in the files that mthpd has not
 * written; another value there is told, and the baseline. NULL = not known. Returns 0, also
 * where a file is missing or not understood, or as group_actuator_look(). */
int group_actuator_audit_group(struct group_actuator *a, const char *path, uint64_t id,
	const struct own_values *expected, struct own_values *ret_now);
/* The cheap look at a group in which nothing happens: true if values of ours are in its files
 * and stand there. The other files are not read. */
bool group_actuator_stands(struct group_actuator *a, const char *path, uint64_t id);
void group_actuator_audit_rest(struct group_actuator *a, bool give_back);

/* Why @value does not stand in that file: -errno of the last try, 0 = none is known. */
int group_actuator_why(
	const struct group_actuator *a, uint64_t id, enum own_file k, const char *value);
/* @value does not stand there and may be written by now: it did not fail for good, and a
 * file that denied it can be opened for writing. */
bool group_actuator_may_retry(struct group_actuator *a, const char *path, uint64_t id,
	enum own_file k, const char *value);
/* Which of the files that a group of our kernel has are there: bit k for enum own_file
 * k, bit OWN_FILES for memory.thp.events. 0 also when the group is gone. */
#define GROUP_FILES_ALL ((1U << (OWN_FILES + 1)) - 1)
unsigned group_actuator_files(struct group_actuator *a, const char *path, uint64_t id);
/* Which of the group's files deny writing: 0 for none, -EACCES or the like for all
 * that are there, -ENOENT for no files at all, other -errno. */
int group_actuator_denied(struct group_actuator *a, const char *path, uint64_t id);
/* What could not be written, as long as it counts; lives until the next call that
 * changes something. */
const struct group_failures *group_actuator_failures(const struct group_actuator *a);
/* What is wanted was seen to stand, whoever wrote it: what failed before does not matter. */
void group_actuator_settled(struct group_actuator *a, uint64_t id, enum own_file k);

/* The group is gone. */
void group_actuator_forget(struct group_actuator *a, uint64_t id);

/* Puts the group's files back to their baseline where they hold what we wrote
 * (it is no longer controlled). 0 also when the group is gone, or somebody else's
 * value was left; otherwise the first -errno. */
int group_actuator_give_back(struct group_actuator *a, const char *path, uint64_t id);

/* The @i-th file that is left to somebody else, "<group>/memory.thp.x", NULL past
 * the last; lives until the next call. Each has been warned about once. */
const char *group_actuator_conflict(struct group_actuator *a, unsigned i);
/* A person asked for a fresh start (reload): such files are steered again, and what
 * could not be written is tried again. */
void group_actuator_forget_conflicts(struct group_actuator *a);

void group_actuator_counts(const struct group_actuator *a, struct actuator_counts *ret);

#endif
