/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-actuator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "baseline-groups.h"
#include "cleanup.h"

/* So many failed writes are told one by one; the list of them is in the status. */
#define TOLD_MAX 16

struct group_actuator {
	int cg_fd;
	struct baseline *baseline;
	struct group_table *table; /* the baseline's */
	struct actuator_ops ops;
	void *userdata;
	bool dry_run, reassert;
	bool warned_journal, warned_full, warned_name, warned_unparseable[OWN_FILES];
	unsigned told; /* failed writes, since one went well */
	struct actuator_counts counts;
	struct group_failures failures;
	char conflict[GROUP_FILE_PATH_MAX];
};

/* One file of one group while it is worked on. */
struct target {
	const char *path;
	uint64_t id;
	enum own_file k;
	int fd; /* of the group */
};

int group_actuator_new(int cg_fd, struct baseline *b, const struct actuator_ops *ops,
	void *userdata, struct group_actuator **ret)
{
	struct group_actuator *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->cg_fd = cg_fd;
	a->baseline = b;
	a->table = baseline_groups(b);
	a->ops = *ops;
	a->userdata = userdata;
	*ret = a;
	return 0;
}

void group_actuator_free(struct group_actuator *a)
{
	if (a)
		group_failures_clear(&a->failures);
	free(a);
}

void group_actuator_set_dry_run(struct group_actuator *a, bool yes)
{
	a->dry_run = yes;
}

void group_actuator_set_reassert(struct group_actuator *a, bool yes)
{
	a->reassert = yes;
}

void group_actuator_counts(const struct group_actuator *a, struct actuator_counts *ret)
{
	*ret = a->counts;
}

/* ---- what a person reads ------------------------------------------------ */

#define warn(a, ...) actuator_warn(&(a)->ops, (a)->userdata, __VA_ARGS__)

static void warn_unparseable(struct group_actuator *a, const char *path, enum own_file k)
{
	if (a->warned_unparseable[k])
		return;
	a->warned_unparseable[k] = true;
	warn(a, "%s/%s: the text of the file is not understood: it is never written", path,
		own_file_name[k]);
}

static void warn_failed(struct group_actuator *a, const char *path, enum own_file k,
	const char *value, int error)
{
	unsigned refusing = group_failures_refusing(&a->failures, k, value);

	if (a->told++ >= TOLD_MAX)
		return;
	if (a->told == TOLD_MAX)
		warn(a, "%s/%s: %s; further groups whose files fail are in the status only", path,
			own_file_name[k], strerror(-error));
	else if (knob_denied(error))
		warn(a, "%s/%s: %s: the group is not steered", path, own_file_name[k],
			strerror(-error));
	else if (error == -EINVAL && refusing >= GROUP_REFUSING_MAX)
		warn(a,
			"%s/%s: the kernel refuses \"%s\", as in %u other groups: not tried again in "
			"any group before the next reload",
			path, own_file_name[k], value, refusing - 1);
	else if (error == -EINVAL)
		warn(a, "%s/%s: the kernel refuses \"%s\": not tried again in this group before the "
			"next reload",
			path, own_file_name[k], value);
	else
		warn(a, "%s/%s: cannot be set to \"%s\": %s: tried again at the next audit", path,
			own_file_name[k], value, strerror(-error));
}

static void warn_journal(struct group_actuator *a, int error)
{
	if (a->warned_journal)
		return;
	a->warned_journal = true;
	warn(a, "cannot write the journal of start values, so no group is changed: %s",
		strerror(-error));
}

/* The journal cannot take the group. */
static void warn_no_entry(struct group_actuator *a, const char *path, int error)
{
	bool *warned = error == -EILSEQ ? &a->warned_name : &a->warned_full;

	if (*warned)
		return;
	*warned = true;
	if (error == -EILSEQ)
		warn(a,
			"%s: the name is not UTF-8 and cannot be journaled: the group is not "
			"steered",
			path);
	else if (error == -ENOSPC)
		warn(a,
			"%s: the journal of start values is full (%d groups, or %u MiB of names): "
			"this group and others are not steered",
			path, BASELINE_GROUPS_MAX, BASELINE_GROUPS_BYTES_MAX >> 20);
	else
		warn(a, "%s: cannot be journaled, the group is not steered: %s", path,
			strerror(-error));
}

static void tell_foreign(struct group_actuator *a, const struct target *t, const char *expected,
	const char *found, bool adopted)
{
	char path[GROUP_FILE_PATH_MAX];

	a->counts.foreign_changes++;
	snprintf(path, sizeof(path), "%s/%s", t->path, own_file_name[t->k]);
	if (a->ops.foreign)
		a->ops.foreign(path, expected, found, adopted, a->userdata);
}

/* ---- finding the group -------------------------------------------------- */

/* The entry of the group, if there is one. Another path under the same inode is
 * another group, where a file system uses numbers again. */
static struct group_entry *find_entry(struct group_actuator *a, const char *path, uint64_t id)
{
	struct group_entry *e = groups_find(a->table, id);

	if (e && strcmp(e->path, path)) {
		groups_drop(a->table, e);
		return NULL;
	}
	return e;
}

void group_actuator_forget(struct group_actuator *a, uint64_t id)
{
	struct group_entry *e = groups_find(a->table, id);

	if (e)
		groups_drop(a->table, e);
	group_failures_forget(&a->failures, id);
}

/* As group_open(). A group that is gone takes its entry with it. */
static int open_group(struct group_actuator *a, const char *path, uint64_t id)
{
	int fd = group_open(a->cg_fd, path, id);

	if (fd == -ESTALE)
		group_actuator_forget(a, id);
	return fd;
}

/* A file is missing: because its group is? */
static bool has_vanished(struct group_actuator *a, const char *path, uint64_t id)
{
	_cleanup_close_ int fd = open_group(a, path, id);

	return fd == -ESTALE;
}

/* ---- looking ------------------------------------------------------------ */

static int read_value(struct group_actuator *a, const struct target *t, char value[OWN_VALUE_LEN])
{
	int r = group_read(t->fd, own_file_name[t->k], t->k, value);

	if (r == -EINVAL)
		warn_unparseable(a, t->path, t->k);
	return r;
}

/* @found stands in a file that an earlier run wrote. Returns the entry if there is
 * one still: whoever is told may look, and find the group gone. */
static struct group_entry *settle(
	struct group_actuator *a, const struct target *t, const char *found)
{
	struct group_entry *e = find_entry(a, t->path, t->id);
	char expected[OWN_VALUE_LEN];

	if (!e)
		return NULL;
	snprintf(expected, sizeof(expected), "%s", e->files[t->k].written);
	if (!baseline_group_settle(a->baseline, e, t->k, found))
		return e;
	tell_foreign(a, t, expected, found, true);
	return find_entry(a, t->path, t->id);
}

static int look_at_file(struct group_actuator *a, const struct target *t, char *now, char *base)
{
	const struct group_entry *e;
	int r = read_value(a, t, now);

	if (r < 0)
		return r;
	e = settle(a, t, now);
	snprintf(base, OWN_VALUE_LEN, "%s",
		e && e->files[t->k].written[0] ? e->files[t->k].baseline : now);
	return 0;
}

int group_actuator_look(struct group_actuator *a, const char *path, uint64_t id,
	struct own_values *ret_now, struct own_values *ret_base)
{
	struct own_values now = {0}, base = {0};
	_cleanup_close_ int fd = -1;
	bool any = false, missing = false;

	if (!*path)
		return -ENOENT;
	fd = open_group(a, path, id);
	if (fd < 0)
		return fd;
	for (unsigned k = 0; k < OWN_FILES; k++) {
		const struct target t = {path, id, k, fd};
		int r = look_at_file(a, &t, now.value[k], base.value[k]);

		if (r < 0 && r != -ENOENT && r != -ENODEV && r != -EINVAL)
			return r;
		missing |= r == -ENOENT || r == -ENODEV;
		any |= r == 0 || r == -EINVAL;
	}
	if (missing && has_vanished(a, path, id))
		return -ESTALE;
	if (!any)
		return -ENOENT;
	*ret_now = now;
	*ret_base = base;
	return 0;
}

/* ---- values that cannot be had ------------------------------------------ */

int group_actuator_why(
	const struct group_actuator *a, uint64_t id, enum own_file k, const char *value)
{
	return group_failures_why(&a->failures, id, k, value);
}

const struct group_failures *group_actuator_failures(const struct group_actuator *a)
{
	return &a->failures;
}

void group_actuator_settled(struct group_actuator *a, uint64_t id, enum own_file k)
{
	group_failures_settled(&a->failures, id, k);
}

static int access_of(const struct target *t)
{
	return faccessat(t->fd, own_file_name[t->k], W_OK, 0) < 0 ? -errno : 0;
}

bool group_actuator_may_retry(struct group_actuator *a, const char *path, uint64_t id,
	enum own_file k, const char *value)
{
	int error = group_failures_why(&a->failures, id, k, value);
	_cleanup_close_ int fd = -1;

	if (!error)
		return !a->dry_run; /* forgotten, to make room for others */
	if (error == -EINVAL)
		return false;
	if (!knob_denied(error))
		return true;
	fd = group_open(a->cg_fd, path, id);
	return fd >= 0 && access_of(&(struct target){path, id, k, fd}) == 0;
}

unsigned group_actuator_files(struct group_actuator *a, const char *path, uint64_t id)
{
	_cleanup_close_ int fd = group_open(a->cg_fd, path, id);
	unsigned files = 0;

	for (unsigned k = 0; fd >= 0 && k <= OWN_FILES; k++)
		if (faccessat(fd, k < OWN_FILES ? own_file_name[k] : OWN_EVENTS, F_OK, 0) == 0)
			files |= 1U << k;
	return files;
}

int group_actuator_denied(struct group_actuator *a, const char *path, uint64_t id)
{
	_cleanup_close_ int fd = group_open(a->cg_fd, path, id);
	int result = -ENOENT;

	if (fd < 0)
		return fd;
	for (unsigned k = 0; k < OWN_FILES; k++) {
		const struct target t = {path, id, k, fd};
		int error = access_of(&t);

		if (error == 0)
			return 0;
		if (error != -ENOENT)
			result = error;
	}
	return result;
}

/* What a failed system call amounts to. */
static enum actuator_result failed(
	struct group_actuator *a, const struct target *t, const char *value, int error)
{
	bool missing = error == -ENOENT || error == -ENODEV;

	if (error == -ESTALE || (missing && has_vanished(a, t->path, t->id)))
		return ACTUATOR_GONE;
	if (group_failures_note(&a->failures, t->path, t->id, t->k, value, error))
		warn_failed(a, t->path, t->k, value, error);
	/* Seen once, the file of a group may be about to go. */
	if (missing && !group_failures_why(&a->failures, t->id, t->k, value))
		return ACTUATOR_GONE;
	a->counts.write_errors++;
	return knob_denied(error) ? ACTUATOR_READONLY : ACTUATOR_REFUSED;
}

/* ---- writing ------------------------------------------------------------ */

/* Said already, for the machine rather than for the group. */
static enum actuator_result not_journaled(
	struct group_actuator *a, const struct target *t, const char *value, int error)
{
	a->counts.write_errors++;
	group_failures_note(&a->failures, t->path, t->id, t->k, value, error);
	return ACTUATOR_REFUSED;
}

/* Journals, then writes. */
static enum actuator_result write_journaled(struct group_actuator *a, const struct target *t,
	struct group_entry *e, const char *old, const char *value)
{
	int r, done;

	r = baseline_group_journal(a->baseline, e, t->k, old, value);
	if (r < 0) {
		groups_drop_idle(a->table, e);
		warn_journal(a, r);
		return not_journaled(a, t, value, r);
	}
	r = group_write(t->fd, t->k, value);
	done = baseline_group_done(a->baseline, e, t->k, r == 0);
	groups_drop_idle(a->table, e);
	if (done < 0)
		warn_journal(a, done);
	if (r < 0)
		return failed(a, t, value, r);
	group_failures_settled(&a->failures, t->id, t->k);
	a->told = 0;
	a->counts.writes++;
	return ACTUATOR_WRITTEN;
}

static enum actuator_result write_value(
	struct group_actuator *a, const struct target *t, const char *old, const char *value)
{
	struct group_entry *e = find_entry(a, t->path, t->id);
	int r;

	if (group_failures_forbids(&a->failures, t->id, t->k, value))
		return ACTUATOR_REFUSED;
	if (a->dry_run)
		return ACTUATOR_DRY;
	/* Asked first: what may not be written need not be journaled. */
	r = access_of(t);
	if (r < 0)
		return failed(a, t, value, r);
	r = e ? 0 : groups_add(a->table, t->path, t->id, &e);
	if (r < 0) {
		warn_no_entry(a, t->path, r);
		return not_journaled(a, t, value, r);
	}
	return write_journaled(a, t, e, old, value);
}

/* ---- values of other people --------------------------------------------- */

/* @found stands where we wrote something else. Returns true when @wanted is to be
 * written over it; otherwise it is adopted. @e may be gone then: whoever is told
 * may look. */
static bool take_foreign(struct group_actuator *a, const struct target *t, struct group_entry *e,
	const char *found, const char *wanted)
{
	struct group_file *f = &e->files[t->k];
	char expected[OWN_VALUE_LEN];
	bool again, yields;

	snprintf(expected, sizeof(expected), "%s", f->written);
	f->contested++;
	yields = f->contested > ACTUATOR_REASSERT_MAX && !f->yielded;
	f->yielded |= yields;
	again = a->reassert && !f->yielded && strcmp(found, wanted) && !a->dry_run;
	if (!again)
		baseline_group_adopt(a->baseline, e, t->k);
	tell_foreign(a, t, expected, found, !again);
	if (yields)
		warn(a,
			"%s/%s: expected \"%s\", found \"%s\": left to others until the next "
			"reload",
			t->path, own_file_name[t->k], expected, found);
	return again;
}

static enum actuator_result apply_to_file(
	struct group_actuator *a, const struct target *t, const char *value, const char *expected)
{
	char current[OWN_VALUE_LEN];
	struct group_entry *e;
	bool ours;
	int r = read_value(a, t, current);

	if (r == -EINVAL)
		return ACTUATOR_REFUSED;
	if (r < 0)
		return failed(a, t, value, r);
	e = settle(a, t, current);
	ours = e && e->files[t->k].written[0];
	if (ours && strcmp(current, e->files[t->k].written) && !take_foreign(a, t, e, current, value))
		return ACTUATOR_FOREIGN;
	if (!ours && expected && strcmp(current, expected)) {
		tell_foreign(a, t, expected, current, true);
		return ACTUATOR_FOREIGN;
	}
	if (!strcmp(current, value)) {
		group_failures_settled(&a->failures, t->id, t->k);
		return ACTUATOR_SAME;
	}
	e = find_entry(a, t->path, t->id);
	return e && e->files[t->k].yielded ? ACTUATOR_FOREIGN : write_value(a, t, current, value);
}

/* What was adopted or forgotten on the way goes to disk once. */
static void flush(struct group_actuator *a)
{
	int r = baseline_groups_flush(a->baseline);

	if (r < 0)
		warn_journal(a, r);
}

enum actuator_result group_actuator_apply(struct group_actuator *a, const char *path, uint64_t id,
	enum own_file k, const char *value, const char *expected)
{
	struct target t = {path, id, k, -1};
	enum actuator_result result;

	if (!group_path_valid(path) || !own_value_valid(k, value))
		return ACTUATOR_REFUSED;
	t.fd = open_group(a, path, id);
	result = t.fd < 0 ? failed(a, &t, value, t.fd) : apply_to_file(a, &t, value, expected);
	cleanup_close(&t.fd);
	if (result == ACTUATOR_FOREIGN)
		flush(a);
	return result;
}

/* ---- the audit ---------------------------------------------------------- */

/* @expected stood there, and nothing of ours, when it was looked at last; NULL = not known. */
static int audit_file(struct group_actuator *a, const struct target *t, const char *expected, char *now)
{
	struct group_entry *e;
	char ours[OWN_VALUE_LEN];
	int r = read_value(a, t, now);

	if (r < 0)
		return r;
	e = settle(a, t, now);
	if (!e || !group_file_is_changed(&e->files[t->k])) {
		if (expected && *expected && strcmp(now, expected) != 0)
			tell_foreign(a, t, expected, now, true);
		return 0;
	}
	if (!e->files[t->k].written[0] || !strcmp(now, e->files[t->k].written))
		return 0;
	snprintf(ours, sizeof(ours), "%s", e->files[t->k].written);
	if (take_foreign(a, t, e, now, ours) && write_value(a, t, now, ours) == ACTUATOR_WRITTEN)
		snprintf(now, OWN_VALUE_LEN, "%s", ours);
	return 0;
}

bool group_actuator_stands(struct group_actuator *a, const char *path, uint64_t id)
{
	struct group_entry *e = find_entry(a, path, id);
	char file[GROUP_FILE_PATH_MAX], value[OWN_VALUE_LEN];
	bool any = false;

	for (unsigned k = 0; e && k < OWN_FILES; k++) {
		const struct group_file *f = &e->files[k];

		if (!f->written[0])
			continue;
		/* Whether in the same group does not matter: nothing is written. */
		snprintf(file, sizeof(file), "%s/%s", path, own_file_name[k]);
		if (!f->noted || group_read(a->cg_fd, file, k, value) < 0 || strcmp(value, f->written))
			return false;
		any = true;
	}
	if (any)
		e->audited = true;
	return any;
}

int group_actuator_audit_group(struct group_actuator *a, const char *path, uint64_t id,
	const struct own_values *expected, struct own_values *ret_now)
{
	_cleanup_close_ int fd = open_group(a, path, id);
	struct group_entry *e;
	int error = fd < 0 ? fd : 0;

	*ret_now = (struct own_values){0};
	for (unsigned k = 0; fd >= 0 && k < OWN_FILES; k++) {
		const struct target t = {path, id, k, fd};
		int r = audit_file(a, &t, expected ? expected->value[k] : NULL, ret_now->value[k]);

		if (r != -ENOENT && r != -ENODEV && r != -EINVAL && !error)
			error = r;
	}
	e = find_entry(a, path, id);
	if (e) {
		e->audited = true;
		groups_drop_idle(a->table, e);
	}
	return error;
}

void group_actuator_audit_begin(struct group_actuator *a)
{
	group_failures_retry(&a->failures);
	for (unsigned i = 0; i < a->table->n; i++)
		a->table->entries[i]->audited = false;
}

/* ---- putting back ------------------------------------------------------- */

static void tell_given_back(struct group_actuator *a, const struct target *t, const char *old, const char *now)
{
	char path[GROUP_FILE_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", t->path, own_file_name[t->k]);
	if (a->ops.given_back)
		a->ops.given_back(path, old, now, a->userdata);
}

static int give_back_file(struct group_actuator *a, const struct target *t)
{
	const struct group_entry *e = find_entry(a, t->path, t->id);
	char baseline[OWN_VALUE_LEN], written[OWN_VALUE_LEN];

	if (!e || !e->files[t->k].written[0])
		return 0;
	snprintf(baseline, sizeof(baseline), "%s", e->files[t->k].baseline);
	snprintf(written, sizeof(written), "%s", e->files[t->k].written);
	switch (apply_to_file(a, t, baseline, NULL)) {
	case ACTUATOR_READONLY:
		return -EACCES;
	case ACTUATOR_REFUSED:
		return -EIO;
	case ACTUATOR_WRITTEN:
		tell_given_back(a, t, written, baseline);
		return 0;
	case ACTUATOR_SAME:
	case ACTUATOR_DRY:
	case ACTUATOR_FOREIGN:
	case ACTUATOR_GONE:
	default:
		return 0;
	}
}

int group_actuator_give_back(struct group_actuator *a, const char *path, uint64_t id)
{
	_cleanup_close_ int fd = -1;
	bool reassert = a->reassert;
	int error = 0;

	if (!groups_find(a->table, id))
		return 0;
	fd = open_group(a, path, id);
	if (fd < 0) {
		flush(a);
		return fd == -ESTALE ? 0 : fd;
	}
	a->reassert = false; /* a value that somebody else set stays */
	for (unsigned k = 0; k < OWN_FILES; k++) {
		const struct target t = {path, id, k, fd};
		int r = give_back_file(a, &t);

		if (!error)
			error = r;
	}
	a->reassert = reassert;
	flush(a);
	return error;
}

void group_actuator_audit_rest(struct group_actuator *a, bool give_back)
{
	/* downwards: entries may go on the way */
	for (unsigned i = a->table->n; i-- > 0;) {
		struct group_entry *e = i < a->table->n ? a->table->entries[i] : NULL;
		struct own_values now;
		char path[PATH_MAX];

		if (!e || e->audited)
			continue;
		snprintf(path, sizeof(path), "%s", e->path);
		if (give_back)
			group_actuator_give_back(a, path, e->id);
		else
			group_actuator_audit_group(a, path, e->id, NULL, &now);
	}
	flush(a);
}

/* ---- conflicts ---------------------------------------------------------- */

const char *group_actuator_conflict(struct group_actuator *a, unsigned i)
{
	for (unsigned n = 0; n < a->table->n; n++) {
		const struct group_entry *e = a->table->entries[n];

		for (unsigned k = 0; k < OWN_FILES; k++) {
			if (!e->files[k].yielded || i-- > 0)
				continue;
			snprintf(a->conflict, sizeof(a->conflict), "%s/%s", e->path,
				own_file_name[k]);
			return a->conflict;
		}
	}
	return NULL;
}

void group_actuator_forget_conflicts(struct group_actuator *a)
{
	group_failures_clear(&a->failures);
	a->told = 0;
	for (unsigned n = a->table->n; n-- > 0;) {
		struct group_entry *e = a->table->entries[n];

		for (unsigned k = 0; k < OWN_FILES; k++) {
			e->files[k].contested = 0;
			e->files[k].yielded = false;
		}
		groups_drop_idle(a->table, e);
	}
}
