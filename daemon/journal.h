/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of baseline.json (see baseline.h) and what it says, as a struct.
 * Used by baseline.c alone, and by nobody else to read or write that file.
 * Pure: text in, struct out, and back; opens nothing. Takes nothing that the
 * actuator could not have journaled: a path outside the known set, a value of
 * another form or a second entry for a path makes the whole text unusable.
 */
#ifndef MTHPD_JOURNAL_H
#define MTHPD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "baseline-groups.h"

#define JOURNAL_NAME "baseline.json"
/* The one reason for which there is rightly nothing to put back. */
extern const char journal_of_another_boot[];
/* The one that is good, but not for this --root. */
extern const char journal_of_another_root[];
#define JOURNAL_IGNORED(why) JOURNAL_NAME " " why ": ignored"
/* BASELINE_FILES_MAX entries with every value at its longest come to 15 KiB, a
 * root to 24 KiB at most. */
#define JOURNAL_BYTES_MAX (65536 + BASELINE_GROUPS_BYTES_MAX)
#define BOOT_ID_LEN 64

/* An empty string is "none". */
struct journal_entry {
	char path[THP_PATH_MAX];
	char baseline[KNOB_VALUE_LEN];
	char written[KNOB_VALUE_LEN]; /* what mthpd wrote last, or is about to write */
	char old[KNOB_VALUE_LEN];     /* the value of ours that a write under way replaces */
	/* not in the text: */
	bool noted;		       /* seen in this run, not only in a journal */
	char previous[KNOB_VALUE_LEN]; /* `written` before the write under way */
};

struct journal {
	char boot_id[BOOT_ID_LEN]; /* of this boot, never a foreign one */
	char *root;
	bool restore_on_exit;
	char *hold; /* reason; NULL = no hold */
	unsigned n;
	struct journal_entry files[BASELINE_FILES_MAX];
	struct group_table groups;
};

struct journal_entry *journal_find(const struct journal *j, const char *path);
bool journal_is_changed(const struct journal_entry *e);
void journal_forget_change(struct journal_entry *e);
/* @dst may be @value. Longer values are cut; callers have checked. */
void journal_set_value(char dst[KNOB_VALUE_LEN], const char *value);

/* JSON holds nothing else. */
bool journal_is_utf8(const char *s);

/* Returns malloc'ed text, NULL when there is no memory. */
char *journal_encode(struct journal *j);

/* Fills restore_on_exit, hold, files and groups of @j from @text, if it is of the boot
 * and root that @j names. Returns NULL, or static text that says why it cannot
 * be used; these fields then are as in a run without a journal. */
const char *journal_decode(struct journal *j, const char *text, size_t len);

#endif
