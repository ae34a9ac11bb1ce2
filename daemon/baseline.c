/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "caps.h"
#include "cleanup.h"
#include "journal.h"

#define JOURNAL_NEW "baseline.json.new"
#define JOURNAL_ASIDE "baseline.json.ignored"

struct baseline {
	int dir_fd, lock_fd;
	bool on_disk;
	int save_error; /* of the last attempt, 0 = it went well */
	struct journal j;
};

/* ---- the journal's file ------------------------------------------------- */

static int write_all(int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = write(fd, text, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		left -= (size_t)n;
	}
	return 0;
}

static int replace_journal(int dir_fd, const char *text, bool sync)
{
	_cleanup_close_ int fd = openat(
		dir_fd, JOURNAL_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	int r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, text);
	if (r == 0 && sync && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat(dir_fd, JOURNAL_NEW, dir_fd, JOURNAL_NAME) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(dir_fd, JOURNAL_NEW, 0);
		return r;
	}
	/* the name as well: the directory may be on a real disk */
	return sync && fsync(dir_fd) < 0 ? -errno : 0;
}

int baseline_save(struct baseline *b, bool sync)
{
	_cleanup_free_ char *text = journal_encode(&b->j);
	int r = text ? replace_journal(b->dir_fd, text, sync) : -ENOMEM;

	if (r == 0) {
		b->on_disk = true;
		b->j.groups.dirty = false;
	}
	b->save_error = r;
	return r;
}

int baseline_error(const struct baseline *b)
{
	return b->save_error;
}

int baseline_try_again(struct baseline *b)
{
	return b->save_error ? baseline_save(b, true) : 0;
}

static int save(struct baseline *b)
{
	return baseline_save(b, true);
}

struct group_table *baseline_groups(struct baseline *b)
{
	return &b->j.groups;
}

/* Reads the journal into a NUL-terminated buffer. -ENOENT: there is none. */
static int read_journal(int dir_fd, char **ret_text, size_t *ret_len)
{
	/* O_NONBLOCK: a FIFO in its place must not stop us */
	_cleanup_close_ int fd =
		openat(dir_fd, JOURNAL_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_free_ char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > JOURNAL_BYTES_MAX)
		return -EFBIG;
	/* nobody else writes it: if it grows all the same, it is cut and does not parse */
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, text + len, (size_t)st.st_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	text = NULL;
	return 0;
}

/* Returns NULL when the journal was loaded or there is none. */
static const char *load(struct baseline *b)
{
	_cleanup_free_ char *text = NULL;
	size_t len = 0;
	int r = read_journal(b->dir_fd, &text, &len);

	if (r == -ENOENT)
		return NULL;
	b->on_disk = true;
	if (r < 0)
		return JOURNAL_IGNORED("cannot be read, or is no file that mthpd wrote");
	return journal_decode(&b->j, text, len);
}

/* ---- opening ------------------------------------------------------------ */

static void read_boot_id(const char *root, char ret[BOOT_ID_LEN])
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/random/boot_id", root);
	n = parse_read_at(AT_FDCWD, path, ret, BOOT_ID_LEN);
	if (n > 0)
		ret[strspn(ret, "0123456789abcdef-")] = '\0';
	/* a fake tree: every start is of the same boot */
	if (n <= 0 || !ret[0])
		snprintf(ret, BOOT_ID_LEN, "none");
}

/* One spelling for one directory: a journal is used only under the root that it
 * was written for. */
static char *canonical_root(const char *root)
{
	char *real = root[0] ? realpath(root, NULL) : NULL;

	if (!real)
		return strdup(root);
	if (!strcmp(real, "/"))
		real[0] = '\0';
	return real;
}

static int take_lock(int dir_fd)
{
	/* 0600: whoever can open it could take the lock and keep mthpd out */
	_cleanup_close_ int fd =
		openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return take_fd(&fd);
}

/* Takes the lock but does not load. -ENOENT: no such directory. */
static int open_locked(const char *runtime_dir, const char *root, struct baseline **ret)
{
	struct baseline *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->lock_fd = -1;
	b->j.restore_on_exit = true;
	b->j.root = canonical_root(root);
	b->dir_fd = open(runtime_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->dir_fd < 0)
		r = -errno;
	else if (!b->j.root)
		r = -ENOMEM;
	else if (!journal_is_utf8(b->j.root))
		r = -EILSEQ;
	else
		r = b->lock_fd = take_lock(b->dir_fd);
	if (r < 0) {
		baseline_free(b);
		return r;
	}
	read_boot_id(b->j.root, b->j.boot_id);
	*ret = b;
	return 0;
}

int baseline_open(
	const char *runtime_dir, const char *root, struct baseline **ret, const char **ret_warning)
{
	const char *warning;
	struct baseline *b;
	int r;

	if (mkdir(runtime_dir, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = open_locked(runtime_dir, root, &b);
	if (r < 0)
		return r;
	warning = load(b);
	if (warning == journal_of_another_root) { /* what it knows is lost to nobody */
		baseline_free(b);
		return -EXDEV;
	}
	if (warning && renameat(b->dir_fd, JOURNAL_NAME, b->dir_fd, JOURNAL_ASIDE) < 0) {
		r = -errno;
		baseline_free(b);
		return r;
	}
	if (warning)
		b->on_disk = false;
	*ret = b;
	*ret_warning = warning;
	return 0;
}

void baseline_free(struct baseline *b)
{
	if (!b)
		return;
	cleanup_close(&b->lock_fd);
	cleanup_close(&b->dir_fd);
	groups_clear(&b->j.groups);
	free(b->j.root);
	free(b->j.hold);
	free(b);
}

/* ---- what stood, what we wrote ------------------------------------------ */

static int add_entry(struct baseline *b, const char *path, const char *value)
{
	struct journal_entry *e;

	if (b->j.n == BASELINE_FILES_MAX)
		return -ENOSPC;
	e = &b->j.files[b->j.n++];
	*e = (struct journal_entry){.noted = true};
	snprintf(e->path, sizeof(e->path), "%s", path);
	journal_set_value(e->baseline, value);
	return 0;
}

static bool is_value(const char *stored, const char *value)
{
	return stored[0] && !strcmp(stored, value);
}

int baseline_note_start(struct baseline *b, const char *path, const char *value, bool *ret_foreign)
{
	struct journal_entry *e = journal_find(&b->j, path);
	bool foreign = false;
	int r = 0;

	if (strlen(path) >= THP_PATH_MAX || !knob_value_valid(path, value))
		return -EINVAL;
	if (!e) {
		r = add_entry(b, path, value);
	} else if (!e->noted) {
		e->noted = true;
		if (is_value(e->old, value)) {
			/* killed before the write: the older value of ours still stands */
			journal_set_value(e->written, e->old);
		} else if (!is_value(e->written, value) && strcmp(e->baseline, value)) {
			journal_set_value(e->baseline, value);
			foreign = true;
		}
		if (!strcmp(e->baseline, value))
			journal_forget_change(e);
		e->old[0] = '\0';
		r = save(b);
	}
	if (r < 0)
		return r;
	*ret_foreign = foreign;
	return 0;
}

const char *baseline_get(const struct baseline *b, const char *path)
{
	const struct journal_entry *e = journal_find(&b->j, path);

	return e ? e->baseline : NULL;
}

const char *baseline_written(const struct baseline *b, const char *path)
{
	const struct journal_entry *e = journal_find(&b->j, path);

	return e && e->written[0] ? e->written : NULL;
}

static void known_of(const struct journal_entry *e, struct choice *known)
{
	knob_known_add(known, e->baseline);
	knob_known_add(known, e->written);
	knob_known_add(known, e->old);
}

void baseline_known(const struct baseline *b, const char *path, struct choice *known)
{
	const struct journal_entry *e = journal_find(&b->j, path);

	if (e)
		known_of(e, known);
}

int baseline_adopt(struct baseline *b, const char *path, const char *value)
{
	struct journal_entry *e = journal_find(&b->j, path);
	bool changed;

	if (!e)
		return -ENOENT;
	if (!knob_value_valid(path, value))
		return -EINVAL;
	changed = journal_is_changed(e);
	journal_set_value(e->baseline, value);
	journal_forget_change(e);
	return changed ? save(b) : 0;
}

int baseline_journal(
	struct baseline *b, const char *path, const char *old_value, const char *new_value)
{
	struct journal_entry *e = journal_find(&b->j, path);
	int r;

	if (!e || !e->noted)
		return -ENOENT;
	if (!knob_value_valid(path, old_value) || !knob_value_valid(path, new_value))
		return -EINVAL;
	journal_set_value(e->previous, e->written);
	if (!strcmp(old_value, e->baseline) || is_value(e->written, old_value))
		journal_set_value(e->old, old_value);
	journal_set_value(e->written, new_value);
	r = save(b);
	if (r < 0) {
		journal_set_value(e->written, e->previous);
		e->previous[0] = e->old[0] = '\0';
	}
	return r;
}

int baseline_written_done(struct baseline *b, const char *path, bool ok)
{
	struct journal_entry *e = journal_find(&b->j, path);

	if (!e)
		return -ENOENT;
	if (!ok)
		journal_set_value(e->written, e->previous);
	if (!strcmp(e->written, e->baseline))
		e->written[0] = '\0';
	e->previous[0] = e->old[0] = '\0';
	return save(b);
}

int baseline_set_restore_on_exit(struct baseline *b, bool yes)
{
	if (b->on_disk && b->j.restore_on_exit == yes)
		return 0;
	b->j.restore_on_exit = yes;
	return save(b);
}

int baseline_set_hold(struct baseline *b, const char *reason)
{
	char *copy = NULL;

	if (!reason && !b->j.hold)
		return 0;
	if (reason) {
		if (strlen(reason) > BASELINE_REASON_MAX || !journal_is_utf8(reason))
			return -EINVAL;
		copy = strdup(reason);
		if (!copy)
			return -ENOMEM;
	}
	free(b->j.hold);
	b->j.hold = copy;
	return save(b);
}

const char *baseline_hold(const struct baseline *b)
{
	return b->j.hold;
}

bool baseline_restore_wanted(const struct baseline *b)
{
	return b->j.restore_on_exit && !b->j.hold;
}

/* ---- putting back ------------------------------------------------------- */

struct report {
	baseline_report_fn fn;
	void *userdata;
};

static void report(const struct report *to, const struct journal_entry *e, const char *outcome,
	const char *from, int error)
{
	if (to->fn)
		to->fn(e->path, outcome, from, e->baseline, error, to->userdata);
}

/* The order of restoring: what gets weaker before what gets stronger, the
 * top-level switch first among the former and last among the latter, because
 * it decides what `inherit` means. */
#define RESTORE_STEPS 4
static unsigned restore_step(const struct journal_entry *e, int thp_fd)
{
	bool top = !strcmp(e->path, "enabled") || !strcmp(e->path, "shmem_enabled");
	char value[KNOB_VALUE_LEN];
	struct choice known = {0};

	known_of(e, &known);
	if (knob_read(thp_fd, e->path, &known, value) == 0 &&
		knob_raises(e->path, value, e->baseline))
		return top ? 3 : 2;
	return top ? 0 : 1;
}

/* Returns 0 when the file is settled, -errno when it has to be tried again. */
static int restore_file(struct journal_entry *e, int thp_fd, const struct report *to)
{
	char value[KNOB_VALUE_LEN] = "";
	struct choice known = {0};
	int r;

	known_of(e, &known);
	r = knob_read(thp_fd, e->path, &known, value);
	if (r == -ENOENT || r == -ENODEV) {
		report(to, e, "left", value, ENOENT);
		journal_forget_change(e);
		return 0;
	}
	if (r == 0 && strcmp(value, e->baseline)) {
		if (!is_value(e->written, value) && !is_value(e->old, value)) {
			report(to, e, "left", value, 0);
			journal_set_value(e->baseline, value);
			journal_forget_change(e);
			return 0;
		}
		r = knob_kind(e->path) == KNOB_CHOICE && !choice_lists(&known, e->baseline)
			    ? -EINVAL
			    : knob_write(thp_fd, e->path, e->baseline);
		if (r == 0)
			report(to, e, "restored", value, 0);
	}
	if (r < 0)
		report(to, e, "failed", value, -r);
	else
		journal_forget_change(e);
	return r;
}

/* The first step that raises: groups go back before it, because they may have been
 * narrower than what the machine as a whole allowed. */
#define RESTORE_STEP_GROUPS 2
bool baseline_changed(const struct baseline *b)
{
	for (unsigned i = 0; i < b->j.n; i++)
		if (journal_is_changed(&b->j.files[i]))
			return true;
	for (size_t i = 0; i < b->j.groups.n; i++)
		if (group_entry_is_changed(b->j.groups.entries[i]))
			return true;
	return false;
}

int baseline_restore(
	struct baseline *b, int thp_fd, int cg_fd, baseline_report_fn fn, void *userdata)
{
	const struct report to = {fn, userdata};
	unsigned steps[BASELINE_FILES_MAX] = {0};
	int failures = 0, r = 0;

	for (unsigned i = 0; i < b->j.n; i++)
		steps[i] = journal_is_changed(&b->j.files[i]) ? restore_step(&b->j.files[i], thp_fd)
							      : RESTORE_STEPS;
	for (unsigned step = 0; step < RESTORE_STEPS; step++) {
		if (step == RESTORE_STEP_GROUPS)
			failures += baseline_groups_restore(b, cg_fd, fn, userdata);
		for (unsigned i = 0; i < b->j.n; i++) {
			if (steps[i] == step && restore_file(&b->j.files[i], thp_fd, &to) < 0)
				failures++;
		}
	}
	if (failures || b->j.hold)
		r = save(b);
	else if (unlinkat(b->dir_fd, JOURNAL_NAME, 0) < 0 && errno != ENOENT)
		r = -errno;
	else
		b->on_disk = false;
	return r < 0 ? r : failures;
}

static bool has_changes(const struct baseline *b)
{
	for (unsigned i = 0; i < b->j.n; i++)
		if (journal_is_changed(&b->j.files[i]))
			return true;
	return false;
}

/* Where the daemon found it. -1: there is none. */
static int open_cgroup_root(const char *root)
{
	static struct caps caps; /* paths are much for a stack */
	_cleanup_close_ int root_fd = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *mount;

	if (root_fd < 0)
		return -1;
	caps_probe(root, root_fd, NULL, &caps);
	if (caps.cgroup_mode != HOST_CGROUP_V2)
		return -1;
	mount = caps.cgroup_mount + strspn(caps.cgroup_mount, "/");
	return openat(root_fd, *mount ? mount : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int restore_locked(struct baseline *b, baseline_report_fn fn, void *userdata)
{
	_cleanup_close_ int thp_fd = -1, cg_fd = -1;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/sys/kernel/mm/transparent_hugepage", b->j.root);
	thp_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (thp_fd < 0 && (errno != ENOENT || has_changes(b)))
		return -errno;
	if (b->j.groups.n > 0)
		cg_fd = open_cgroup_root(b->j.root);
	return baseline_restore(b, thp_fd, cg_fd, fn, userdata);
}

int baseline_restore_command(const char *runtime_dir, const char *root, bool only_if_wanted,
	baseline_report_fn fn, void *userdata, const char **ret_warning)
{
	const char *warning = NULL;
	struct baseline *b = NULL;
	int r = open_locked(runtime_dir, root, &b);

	if (r < 0 && r != -ENOENT) /* no directory: no journal */
		return r;
	r = 0;
	if (b)
		warning = load(b);
	if (warning && warning != journal_of_another_boot)
		r = -EBADMSG;
	if (b && b->on_disk && !warning && (!only_if_wanted || baseline_restore_wanted(b)))
		r = restore_locked(b, fn, userdata);
	baseline_free(b);
	*ret_warning = warning;
	return r;
}
