/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "actuator.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"

/* A choice file cannot have more distinct tokens; a number file that refuses
 * so many distinct values is not worth another try. */
#define REFUSED_MAX CHOICE_MAX
/* The longest path of a group, and a sentence. */
#define MESSAGE_MAX (PATH_MAX + 512)

struct refused {
	char value[KNOB_VALUE_LEN];
	bool by_kernel; /* EINVAL; otherwise not listed by the file */
};

/* What was told about a file last. */
enum told { TOLD_NOTHING, TOLD_TEXT, TOLD_DENIED };

struct file {
	char path[THP_PATH_MAX];
	struct choice known; /* tokens as of the last look, n = 0 for a number */
	bool usable;	     /* as of the last look: the text is understood and can be steered */
	bool gone;	     /* as of the last look: there is no such file */
	bool started;	     /* its start value is known */
	int denied;	     /* -errno of an attempt to write; 0 = none since the last probe */
	enum told told;
	unsigned contested;  /* how often somebody replaced a value of ours */
	bool yielded;	     /* contested too often: theirs */
	int warned_errno; /* of the last write that failed otherwise; 0 after one that went well */
	unsigned n_refused;
	struct refused refused[REFUSED_MAX];
};

struct actuator {
	int thp_fd;
	struct baseline *baseline;
	struct actuator_ops ops;
	void *userdata;
	bool dry_run, reassert, read_only;
	bool warned_journal;
	struct actuator_counts counts;
	unsigned n;
	struct file files[BASELINE_FILES_MAX];
};

int actuator_new(int thp_fd, struct baseline *b, const struct actuator_ops *ops, void *userdata,
	struct actuator **ret)
{
	struct actuator *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->thp_fd = thp_fd;
	a->baseline = b;
	a->ops = *ops;
	a->userdata = userdata;
	*ret = a;
	return 0;
}

void actuator_free(struct actuator *a)
{
	free(a);
}

void actuator_set_dry_run(struct actuator *a, bool yes)
{
	a->dry_run = yes;
}

void actuator_set_reassert(struct actuator *a, bool yes)
{
	a->reassert = yes;
}

bool actuator_read_only(const struct actuator *a)
{
	return a->read_only;
}

void actuator_counts(const struct actuator *a, struct actuator_counts *ret)
{
	*ret = a->counts;
}

static struct file *find_file(const struct actuator *a, const char *path)
{
	for (unsigned i = 0; i < a->n; i++)
		if (!strcmp(a->files[i].path, path))
			return (struct file *)&a->files[i];
	return NULL;
}

/* ---- what a person reads ------------------------------------------------ */

void actuator_warn(const struct actuator_ops *ops, void *userdata, const char *format, ...)
{
	char message[MESSAGE_MAX];
	va_list args;

	if (!ops->warn)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	ops->warn(message, userdata);
}

#define warn(a, ...) actuator_warn(&(a)->ops, (a)->userdata, __VA_ARGS__)

static void warn_journal(struct actuator *a, int error)
{
	if (a->warned_journal)
		return;
	a->warned_journal = true;
	warn(a, "cannot write the journal of start values, so nothing is changed: %s",
		strerror(-error));
}

static void tell_trouble(struct actuator *a, const char *path, const char *sentence)
{
	if (a->ops.trouble)
		a->ops.trouble(path, sentence, a->userdata);
}

/* Tells what keeps @f from being steered, if that is another matter than before. */
static void tell_file(struct actuator *a, struct file *f)
{
	char sentence[KNOB_TROUBLE_LEN] = "";
	enum told told = f->told;

	f->told = !f->usable && !f->gone ? TOLD_TEXT : f->denied && !a->read_only ? TOLD_DENIED : TOLD_NOTHING;
	if (f->told == told)
		return;
	if (told)
		tell_trouble(a, f->path, NULL);
	if (f->told == TOLD_TEXT)
		knob_trouble(a->thp_fd, f->path, &f->known, sentence);
	else if (f->told == TOLD_DENIED)
		snprintf(sentence, sizeof(sentence), "%s cannot be written (%s): it stays as it is",
			f->path, strerror(-f->denied));
	if (*sentence)
		tell_trouble(a, f->path, sentence);
	else
		f->told = TOLD_NOTHING;
}

/* @why: the first of the files that cannot be written, NULL = some can. */
static void set_read_only(struct actuator *a, const struct file *why)
{
	/* systemd sets it for each service; then our own unit is the first suspect */
	const char *unit =
		getenv("INVOCATION_ID") ? "; check the unit's hardening (ReadWritePaths=)" : "";
	char sentence[KNOB_TROUBLE_LEN];

	if (a->read_only == (why != NULL))
		return;
	a->read_only = why != NULL;
	if (!why) {
		tell_trouble(a, "", NULL);
		return;
	}
	if (why->denied == -EROFS)
		snprintf(sentence, sizeof(sentence),
			"%s: sysfs is mounted read-only: observing only; mount the host's /sys "
			"read-write or run on the host%s",
			why->path, unit);
	else
		snprintf(sentence, sizeof(sentence),
			"%s: %s: observing only; it takes root with CAP_DAC_OVERRIDE%s", why->path,
			strerror(-why->denied), unit);
	tell_trouble(a, "", sentence);
}

/* ---- looking ------------------------------------------------------------ */

/* Asks about each managed file; @anew: what failed earlier counts no longer. */
static void find_denied(struct actuator *a, bool anew)
{
	const struct file *first = NULL;
	bool writable = false;

	for (unsigned i = 0; i < a->n; i++) {
		struct file *f = &a->files[i];
		int r = faccessat(a->thp_fd, f->path, W_OK, 0) < 0 ? -errno : 0;

		if (knob_denied(r) || anew)
			f->denied = knob_denied(r) ? r : 0;
		writable |= r == 0 && !f->denied;
		if (f->denied && !first)
			first = f;
	}
	set_read_only(a, writable ? NULL : first);
	for (unsigned i = 0; i < a->n; i++)
		tell_file(a, &a->files[i]);
}

int actuator_probe(struct actuator *a)
{
	find_denied(a, true);
	for (unsigned i = 0; a->read_only && i < a->n; i++)
		if (a->files[i].denied)
			return a->files[i].denied;
	return 0;
}

bool actuator_denied(const struct actuator *a, const char *path)
{
	const struct file *f = find_file(a, path);

	return f && f->denied;
}

bool actuator_usable(const struct actuator *a, const char *path)
{
	const struct file *f = find_file(a, path);

	return f && f->usable;
}

const struct choice *actuator_choice(const struct actuator *a, const char *path)
{
	const struct file *f = find_file(a, path);

	return f && f->usable && f->known.n ? &f->known : NULL;
}

static bool is_gone(int error)
{
	return error == -ENOENT || error == -ENODEV;
}

static int look(struct actuator *a, struct file *f, char value[KNOB_VALUE_LEN])
{
	int r = knob_read(a->thp_fd, f->path, &f->known, value);

	f->gone = is_gone(r);
	f->usable = r == 0 && knob_usable(f->path, &f->known);
	tell_file(a, f);
	return r;
}

static enum actuator_result unreadable(int error)
{
	return is_gone(error) ? ACTUATOR_GONE : ACTUATOR_REFUSED;
}

static void tell_foreign(
	struct actuator *a, const char *path, const char *expected, const char *found, bool adopted)
{
	a->counts.foreign_changes++;
	if (a->ops.foreign)
		a->ops.foreign(path, expected, found, adopted, a->userdata);
}

static int note_start(struct actuator *a, struct file *f, const char *value)
{
	const char *journaled = baseline_written(a->baseline, f->path);
	char expected[KNOB_VALUE_LEN];
	bool foreign = false;
	int r;

	snprintf(expected, sizeof(expected), "%s", journaled ? journaled : "");
	r = baseline_note_start(a->baseline, f->path, value, &foreign);
	if (r == 0 && foreign)
		tell_foreign(a, f->path, expected, value, true);
	f->started = r == 0;
	return r;
}

int actuator_manage(struct actuator *a, const char *path)
{
	struct file *f = find_file(a, path);
	char value[KNOB_VALUE_LEN];
	int r;

	if (strlen(path) >= THP_PATH_MAX || knob_kind(path) == KNOB_NONE)
		return -EINVAL;
	if (!f) {
		if (a->n == BASELINE_FILES_MAX)
			return -ENOSPC;
		f = &a->files[a->n];
		*f = (struct file){0};
		snprintf(f->path, sizeof(f->path), "%s", path);
		/* after a crash the journal may know more than a fake file shows */
		baseline_known(a->baseline, path, &f->known);
	}
	r = look(a, f, value);
	if (is_gone(r))
		return -ENOENT;
	if (f == &a->files[a->n])
		a->n++;
	return r < 0 ? r : note_start(a, f, value);
}

int actuator_read(struct actuator *a, const char *path, char *buf, unsigned size)
{
	struct file *f = find_file(a, path);
	char value[KNOB_VALUE_LEN];
	int r = f ? look(a, f, value) : knob_read(a->thp_fd, path, NULL, value);

	if (r < 0)
		return r;
	if (strlen(value) >= size)
		return -ENOBUFS;
	snprintf(buf, size, "%s", value);
	return 0;
}

/* ---- values that cannot be had ------------------------------------------ */

static const struct refused *find_refused(const struct file *f, const char *value)
{
	for (unsigned i = 0; i < f->n_refused; i++)
		if (!strcmp(f->refused[i].value, value))
			return &f->refused[i];
	return NULL;
}

static bool is_listed(const struct file *f, const char *value)
{
	return knob_kind(f->path) == KNOB_NUMBER || choice_lists(&f->known, value);
}

static bool is_acceptable(const struct file *f, const char *value)
{
	const struct refused *before = find_refused(f, value);

	if (!is_listed(f, value))
		return false;
	return before ? !before->by_kernel : f->n_refused < REFUSED_MAX;
}

bool actuator_accepts(const struct actuator *a, const char *path, const char *value)
{
	const struct file *f = find_file(a, path);

	return f && knob_value_valid(path, value) && is_acceptable(f, value);
}

/* Remembers and warns, once per value. */
static void refuse(struct actuator *a, struct file *f, const char *value, bool by_kernel)
{
	struct refused *r = (struct refused *)find_refused(f, value);

	if (!r) {
		if (f->n_refused == REFUSED_MAX)
			return;
		r = &f->refused[f->n_refused++];
		snprintf(r->value, sizeof(r->value), "%s", value);
	}
	r->by_kernel |= by_kernel;
	if (by_kernel)
		warn(a, "%s: the kernel refuses \"%s\": not tried again", f->path, value);
	else
		warn(a, "%s: this kernel does not list \"%s\": not written", f->path, value);
}

/* ---- writing ------------------------------------------------------------ */

static enum actuator_result write_failed(
	struct actuator *a, struct file *f, const char *value, int error)
{
	a->counts.write_errors++;
	if (knob_denied(error)) {
		f->denied = error;
		find_denied(a, false); /* has the whole directory become read-only? */
		return ACTUATOR_READONLY;
	}
	if (error == -EINVAL)
		refuse(a, f, value, true);
	else if (unreadable(error) == ACTUATOR_REFUSED && f->warned_errno != error) {
		f->warned_errno = error;
		warn(a, "%s: cannot write \"%s\": %s", f->path, value, strerror(-error));
	}
	return unreadable(error);
}

static enum actuator_result write_value(
	struct actuator *a, struct file *f, const char *old, const char *value)
{
	int r, done;

	if (!is_acceptable(f, value)) {
		if (!find_refused(f, value) && !is_listed(f, value))
			refuse(a, f, value, false);
		return ACTUATOR_REFUSED;
	}
	if (a->dry_run)
		return ACTUATOR_DRY;
	if (f->denied)
		return ACTUATOR_READONLY;
	r = baseline_journal(a->baseline, f->path, old, value);
	if (r < 0) {
		warn_journal(a, r);
		a->counts.write_errors++;
		return ACTUATOR_REFUSED;
	}
	r = knob_write(a->thp_fd, f->path, value);
	done = baseline_written_done(a->baseline, f->path, r == 0);
	if (done < 0)
		warn_journal(a, done);
	if (r < 0)
		return write_failed(a, f, value, r);
	f->warned_errno = 0;
	a->counts.writes++;
	return ACTUATOR_WRITTEN;
}

/* ---- values of other people --------------------------------------------- */

static const char *expected_value(const struct actuator *a, const struct file *f)
{
	const char *written = baseline_written(a->baseline, f->path);

	return written ? written : baseline_get(a->baseline, f->path);
}

/* @found is not what we left there. Returns true when @wanted is to be written
 * over it; otherwise it is adopted. Only a value that mthpd wrote is worth
 * re-asserting: whoever changes a file that we never touched is in charge of it. */
static bool take_foreign(struct actuator *a, struct file *f, const char *found, const char *wanted)
{
	bool ours = baseline_written(a->baseline, f->path) != NULL;
	char expected[KNOB_VALUE_LEN];
	bool again;

	snprintf(expected, sizeof(expected), "%s", expected_value(a, f));
	if (ours)
		f->contested++;
	again = a->reassert && ours && f->contested <= ACTUATOR_REASSERT_MAX &&
		strcmp(found, wanted) && !a->dry_run && !f->denied;
	if (!again) {
		int r = baseline_adopt(a->baseline, f->path, found);

		if (r < 0)
			warn_journal(a, r);
	}
	tell_foreign(a, f->path, expected, found, !again);
	if (f->contested > ACTUATOR_REASSERT_MAX && !f->yielded) {
		f->yielded = true;
		warn(a, "%s: expected \"%s\", found \"%s\": left to others until the next reload",
			f->path, expected, found);
	}
	return again;
}

/* A look before a file is written or compared. -EINVAL also where it says nothing usable; a
 * file that did so at the start has its start value taken now. */
static int look_to_steer(struct actuator *a, struct file *f, char value[KNOB_VALUE_LEN])
{
	int r = look(a, f, value);

	if (r == 0 && !f->usable)
		return -EINVAL;
	return r == 0 && !f->started ? note_start(a, f, value) : r;
}

enum actuator_result actuator_apply(
	struct actuator *a, const char *path, const char *value, char *ret_old)
{
	struct file *f = find_file(a, path);
	char current[KNOB_VALUE_LEN];
	int r;

	if (!f || !knob_value_valid(path, value))
		return ACTUATOR_REFUSED;
	r = look_to_steer(a, f, current);
	if (r < 0)
		return unreadable(r);
	if (ret_old)
		snprintf(ret_old, BASELINE_VALUE_LEN, "%s", current);
	if (strcmp(current, expected_value(a, f)) && !take_foreign(a, f, current, value))
		return ACTUATOR_FOREIGN;
	if (!strcmp(current, value))
		return ACTUATOR_SAME;
	return f->yielded ? ACTUATOR_FOREIGN : write_value(a, f, current, value);
}

enum actuator_result actuator_audit(struct actuator *a, const char *path)
{
	struct file *f = find_file(a, path);
	char current[KNOB_VALUE_LEN], ours[KNOB_VALUE_LEN];
	int r;

	if (!f)
		return ACTUATOR_REFUSED;
	r = look_to_steer(a, f, current);
	if (r < 0)
		return unreadable(r);
	snprintf(ours, sizeof(ours), "%s", expected_value(a, f));
	if (!strcmp(current, ours))
		return ACTUATOR_SAME;
	return take_foreign(a, f, current, ours) ? write_value(a, f, current, ours)
						 : ACTUATOR_FOREIGN;
}

const char *actuator_conflict(const struct actuator *a, unsigned i)
{
	for (unsigned k = 0; k < a->n; k++)
		if (a->files[k].yielded && i-- == 0)
			return a->files[k].path;
	return NULL;
}

void actuator_forget_conflicts(struct actuator *a)
{
	for (unsigned k = 0; k < a->n; k++) {
		a->files[k].yielded = false;
		a->files[k].contested = 0;
	}
}
