/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of the baseline that is about memory cgroups: for each group whose
 * memory.thp.* files mthpd changed, what they held before, what it wrote, and
 * the group's path and inode, so that a group of the same name that was created
 * later never gets the old one's values. Called by the group actuator, and by
 * baseline.c for the journal's text and for restoring. Never trusts a path of
 * the journal, never touches a group whose inode is another one.
 *
 * In baseline.json these are "groups", absent where there are none:
 * [{"path","id","files":[{"file","baseline","written","old"}]}], the three
 * values as in "files" (baseline.h).
 *
 * At most BASELINE_GROUPS_MAX groups, and BASELINE_GROUPS_BYTES_MAX of text,
 * which long names reach first; one group more is refused with -ENOSPC. A group
 * whose name is not UTF-8 cannot be journaled: -EILSEQ.
 */
#ifndef MTHPD_BASELINE_GROUPS_H
#define MTHPD_BASELINE_GROUPS_H

#include <stddef.h>

#include "baseline.h"
#include "group-knob.h"

#define BASELINE_GROUPS_MAX 4096
#define BASELINE_GROUPS_BYTES_MAX (4U << 20)
/* "<path>/memory.thp.max_size" */
#define GROUP_FILE_PATH_MAX (4096 + 32)

struct json_t;

/* An empty string is "none"; without `written` the baseline is what stands. */
struct group_file {
	char baseline[OWN_VALUE_LEN];
	char written[OWN_VALUE_LEN]; /* what mthpd wrote last, or is about to write */
	char old[OWN_VALUE_LEN];     /* the value of ours that a write under way replaces */
	/* not in the text: */
	char previous[OWN_VALUE_LEN]; /* `written` before the write under way */
	bool noted;			/* seen in this run, not only in a journal */
	bool yielded;			/* contested too often: somebody else's */
	unsigned contested;		/* how often somebody replaced a value of ours */
};

struct group_entry {
	uint64_t id; /* inode */
	char *path;
	struct group_file files[OWN_FILES];
	bool audited;	  /* the group actuator's */
	char *text;	  /* this entry in the journal, NULL when it has to be made anew */
	size_t bytes_max; /* what the text may come to */
};

struct group_table {
	struct group_entry **entries; /* by id */
	unsigned n, room;
	size_t bytes_max;
	bool dirty; /* differs from the text on disk */
};

/* ---- the table ---------------------------------------------------------- */

struct group_entry *groups_find(const struct group_table *t, uint64_t id);
/* An entry of the same path belongs to a group that is gone: it is dropped.
 * -EINVAL: no path of a group, or an id of 0 or from 2^63 up. */
int groups_add(struct group_table *t, const char *path, uint64_t id, struct group_entry **ret);
void groups_drop(struct group_table *t, struct group_entry *e);
/* Drops @e if it says nothing any more: nothing changed, nothing contested. */
void groups_drop_idle(struct group_table *t, struct group_entry *e);
void groups_clear(struct group_table *t);

bool group_file_is_changed(const struct group_file *f);
bool group_entry_is_changed(const struct group_entry *e);

/* Puts the section into @text, a JSON object in malloc'ed memory. Returns it,
 * or NULL after freeing it when there is no memory. */
char *groups_append_text(struct group_table *t, char *text);
/* Takes the section; NULL is none. False: not what groups_append_text() wrote. */
bool groups_decode(struct group_table *t, const struct json_t *json);

/* ---- one file of one group ---------------------------------------------- */

/* @value stands; what does it mean after a crash? As baseline_note_start(): true
 * when somebody else changed it since, it is the baseline then. Once per file. */
bool baseline_group_settle(
	struct baseline *b, struct group_entry *e, enum own_file k, const char *value);
/* Somebody else wrote: what stands is the baseline. Not on disk before the next
 * journaling or baseline_groups_flush(). */
void baseline_group_adopt(struct baseline *b, struct group_entry *e, enum own_file k);

/* Journals that the file goes from @old_value to @new_value; on disk when it
 * returns 0, with one fsync. */
int baseline_group_journal(struct baseline *b, struct group_entry *e, enum own_file k,
	const char *old_value, const char *new_value);
/* The write happened, or failed (@ok false puts the old state back). Replaces the
 * journal without fsync: it matters to whoever comes after a crash of mthpd, and
 * a crash of the machine ends the boot that the journal is good for. */
int baseline_group_done(struct baseline *b, struct group_entry *e, enum own_file k, bool ok);
/* Replaces the journal if it says something else, without fsync. */
int baseline_groups_flush(struct baseline *b);

/* Puts back, with the reports of baseline_restore(); the path is that of the
 * file, "<group>/memory.thp.max_size". Groups that are gone, or were created
 * anew, are not reported. @cg_fd: the cgroup2 root; without it (-1) every file
 * fails with ENODEV. Does not save. Returns the number of failures. */
int baseline_groups_restore(struct baseline *b, int cg_fd, baseline_report_fn fn, void *userdata);

#endif
