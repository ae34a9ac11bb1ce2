/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The baseline: what every file under transparent_hugepage, and of each memory
 * cgroup (baseline-groups.h), held before mthpd, and what mthpd wrote last, kept
 * in memory and journaled to RUNTIME_DIR/baseline.json before each write, so
 * that a kill between the journal and the write, or after it, is covered. Called
 * by the actuators and by --restore; nobody else writes the file. Never guesses: a journal that is
 * corrupt, truncated or from another boot is ignored with a warning and the
 * current values become the baseline.
 *
 * The file is replaced atomically (temporary name, fsync, rename) and holds
 * {"format":1,"boot_id":...,"root":...,"restore_on_exit":bool,
 *  "hold":null|{"reason":...}, "files":[{"path","baseline","written","old"}],
 *  "groups": see baseline-groups.h}.
 * "files" names only what mthpd changed: a file at its baseline has no entry.
 * "old" is null unless a write is under way, or if the value being replaced is
 * somebody else's (a re-assertion): such a value must not pass for ours later.
 */
#ifndef MTHPD_BASELINE_H
#define MTHPD_BASELINE_H

#include <stdbool.h>
#include <stddef.h>

#include "knob.h"

#define BASELINE_VALUE_LEN KNOB_VALUE_LEN
#define BASELINE_FILES_MAX 64
#define BASELINE_REASON_MAX 256 /* bytes of a hold's reason, without the NUL */

struct baseline;

/* Opens (creating RUNTIME_DIR, mode 0755, if missing) and takes the lock that
 * makes a second instance fail with -EBUSY. @root is the --root prefix or "".
 * A usable journal is loaded: after a crash the baseline of the first start
 * counts, not what mthpd wrote. One that cannot be used is kept for a person
 * as baseline.json.ignored. Returns 0 or -errno (-EILSEQ: @root is not UTF-8;
 * -EXDEV: there is a journal of another @root, which stays as it is);
 * *ret_warning (static text or NULL) says why a journal was ignored. */
int baseline_open(
	const char *runtime_dir, const char *root, struct baseline **ret, const char **ret_warning);
/* Gives the lock up and leaves the journal as it is. */
void baseline_free(struct baseline *b);

/* Makes @value the baseline of @path if it has none yet. When the journal had
 * an entry: keeps the journaled baseline if @value is what mthpd wrote (or the
 * journaled old value: killed before the write); otherwise somebody changed it
 * since, @value is the new baseline and true is returned in *ret_foreign.
 * -EINVAL: no path or value that mthpd could write; -ENOSPC: too many files. */
int baseline_note_start(struct baseline *b, const char *path, const char *value, bool *ret_foreign);
/* NULL when unknown. Pointers live until the next call that changes @path. */
const char *baseline_get(const struct baseline *b, const char *path);
/* What mthpd wrote last and still stands for, NULL if it never wrote. */
const char *baseline_written(const struct baseline *b, const char *path);
/* Adds to @known the tokens that the journal proves the file to list. */
void baseline_known(const struct baseline *b, const char *path, struct choice *known);
/* Somebody else wrote @value: it is the baseline from now on. */
int baseline_adopt(struct baseline *b, const char *path, const char *value);

/* Journals that @path goes from @old to @new; on disk when it returns 0.
 * A new value equal to the baseline is journaled all the same; the entry is
 * dropped by baseline_written_done(). */
int baseline_journal(
	struct baseline *b, const char *path, const char *old_value, const char *new_value);
/* The write happened (or failed: @ok false puts the old state back). */
int baseline_written_done(struct baseline *b, const char *path, bool ok);

/* Also creates the file when there is none yet. */
int baseline_set_restore_on_exit(struct baseline *b, bool yes);
/* A persistent hold (NULL reason = none); kept over a restart. -EINVAL: not
 * UTF-8 or longer than BASELINE_REASON_MAX. */
int baseline_set_hold(struct baseline *b, const char *reason);
const char *baseline_hold(const struct baseline *b);

/* Should an ordinary stop put the values back? RestoreOnExit says so, unless a
 * persistent hold freezes them where they are, over a restart too. */
bool baseline_restore_wanted(const struct baseline *b);

/* Puts back every file that still holds what mthpd wrote (or the value that
 * was being written); calls @fn for each file that did not hold its baseline
 * already: outcome "restored", "left" (a value someone else set stands; or the
 * file is gone, with @error ENOENT and an empty @from) or "failed" (with errno).
 * Values that lower the risk come first, then the files of groups, then values
 * that raise it; each file is written once. Removes the journal when nothing
 * failed, unless it carries a hold; that stays. @thp_fd: transparent_hugepage;
 * @cg_fd: the cgroup2 root, -1 where there is none (baseline_groups_restore()).
 * Idempotent. Returns the number of failures or -errno. */
typedef void (*baseline_report_fn)(const char *path, const char *outcome, const char *from,
	const char *to, int error, void *userdata);
int baseline_restore(
	struct baseline *b, int thp_fd, int cg_fd, baseline_report_fn fn, void *userdata);
/* Some file holds, or may hold, what mthpd wrote. */
bool baseline_changed(const struct baseline *b);

/* For baseline-groups.c: its table, and the journal as it is now to disk. @sync:
 * with fsync. */
struct group_table *baseline_groups(struct baseline *b);
int baseline_save(struct baseline *b, bool sync);

/* What went wrong when the journal was written last: 0 or -errno (a full /run). While
 * it cannot be written, nothing can be changed. */
int baseline_error(const struct baseline *b);
/* Writes it again if that went wrong; 0 or -errno. */
int baseline_try_again(struct baseline *b);

/* The whole of `mthpd --restore[=exit]`: no daemon needed, refuses with -EBUSY while
 * one holds the lock. @only_if_wanted: obey baseline_restore_wanted() of the file.
 * A missing file is success; one that cannot be used stays and sets *ret_warning, with
 * -EBADMSG unless it is of another boot (nothing that it names still stands). */
int baseline_restore_command(const char *runtime_dir, const char *root, bool only_if_wanted,
	baseline_report_fn fn, void *userdata, const char **ret_warning);

#endif
