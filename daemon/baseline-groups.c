/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "baseline-groups.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

/* The text of an entry without its path, every value at its longest. */
#define ENTRY_TEXT_MAX 640

/* ---- the table ---------------------------------------------------------- */

/* Where @id is, or would be. */
static unsigned position(const struct group_table *t, uint64_t id)
{
	unsigned low = 0, high = t->n;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (t->entries[middle]->id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct group_entry *groups_find(const struct group_table *t, uint64_t id)
{
	unsigned i = position(t, id);

	return i < t->n && t->entries[i]->id == id ? t->entries[i] : NULL;
}

static void free_entry(struct group_entry *e)
{
	if (!e)
		return;
	free(e->path);
	free(e->text);
	free(e);
}

/* Bytes of @path as JSON; 0: not UTF-8 or no memory. */
static size_t path_bytes(const char *path)
{
	json_t *json = json_string(path);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_ENCODE_ANY) : NULL;

	json_decref(json);
	return text ? strlen(text) : 0;
}

static int make_room(struct group_table *t)
{
	unsigned room = t->room ? 2 * t->room : 16;
	struct group_entry **entries;

	if (t->n < t->room)
		return 0;
	entries = realloc(t->entries, room * sizeof(struct group_entry *));
	if (!entries)
		return -ENOMEM;
	t->entries = entries;
	t->room = room;
	return 0;
}

static void drop_path(struct group_table *t, const char *path)
{
	for (unsigned i = t->n; i-- > 0;)
		if (!strcmp(t->entries[i]->path, path))
			groups_drop(t, t->entries[i]);
}

/* Without a look for the same path or id. */
static int insert(struct group_table *t, const char *path, uint64_t id, struct group_entry **ret)
{
	size_t bytes = path_bytes(path) + ENTRY_TEXT_MAX;
	struct group_entry *e;
	unsigned i;

	if (id == 0 || id > INT64_MAX || !group_path_valid(path))
		return -EINVAL;
	if (bytes == ENTRY_TEXT_MAX)
		return -EILSEQ;
	if (t->n == BASELINE_GROUPS_MAX || t->bytes_max + bytes > BASELINE_GROUPS_BYTES_MAX)
		return -ENOSPC;
	if (make_room(t) < 0)
		return -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->id = id;
	e->bytes_max = bytes;
	e->path = strdup(path);
	if (!e->path) {
		free_entry(e);
		return -ENOMEM;
	}
	i = position(t, id);
	memmove(t->entries + i + 1, t->entries + i, (t->n - i) * sizeof(struct group_entry *));
	t->entries[i] = e;
	t->n++;
	t->bytes_max += bytes;
	*ret = e;
	return 0;
}

int groups_add(struct group_table *t, const char *path, uint64_t id, struct group_entry **ret)
{
	struct group_entry *e = groups_find(t, id);

	if (e)
		groups_drop(t, e);
	drop_path(t, path);
	return insert(t, path, id, ret);
}

void groups_drop(struct group_table *t, struct group_entry *e)
{
	unsigned i = position(t, e->id);

	t->n--;
	memmove(t->entries + i, t->entries + i + 1, (t->n - i) * sizeof(struct group_entry *));
	t->bytes_max -= e->bytes_max;
	t->dirty |= group_entry_is_changed(e) || e->text;
	free_entry(e);
}

void groups_drop_idle(struct group_table *t, struct group_entry *e)
{
	for (unsigned k = 0; k < OWN_FILES; k++)
		if (group_file_is_changed(&e->files[k]) || e->files[k].contested)
			return;
	groups_drop(t, e);
}

void groups_clear(struct group_table *t)
{
	for (unsigned i = 0; i < t->n; i++)
		free_entry(t->entries[i]);
	free(t->entries);
	*t = (struct group_table){0};
}

bool group_file_is_changed(const struct group_file *f)
{
	return f->written[0] || f->old[0];
}

bool group_entry_is_changed(const struct group_entry *e)
{
	for (unsigned k = 0; k < OWN_FILES; k++)
		if (group_file_is_changed(&e->files[k]))
			return true;
	return false;
}

static void forget_change(struct group_file *f)
{
	f->baseline[0] = f->written[0] = f->old[0] = f->previous[0] = '\0';
}

static void set_value(char dst[OWN_VALUE_LEN], const char *value)
{
	/* the caller may hand over a pointer to @dst itself */
	memmove(dst, value, strnlen(value, OWN_VALUE_LEN - 1) + 1);
	dst[OWN_VALUE_LEN - 1] = '\0';
}

static bool is_value(const char *stored, const char *value)
{
	return stored[0] && !strcmp(stored, value);
}

/* ---- the text ----------------------------------------------------------- */

static json_t *encode_file(const struct group_file *f, enum own_file k)
{
	return json_pack("{s:s, s:s, s:s?, s:s?}", "file", own_file_name[k], "baseline",
		f->baseline, "written", f->written[0] ? f->written : NULL, "old",
		f->old[0] ? f->old : NULL);
}

static char *encode_entry(const struct group_entry *e)
{
	json_t *files = json_array(), *all;
	char *text = NULL;

	for (unsigned k = 0; files && k < OWN_FILES; k++) {
		/* a failed append frees what it was given and leaves the list short */
		if (group_file_is_changed(&e->files[k]) &&
			json_array_append_new(files, encode_file(&e->files[k], k)) < 0) {
			json_decref(files);
			return NULL;
		}
	}
	all = json_pack(
		"{s:s, s:I, s:o}", "path", e->path, "id", (json_int_t)e->id, "files", files);
	if (all)
		text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return text;
}

/* Entries keep their text: a journal of a thousand groups is replaced because of
 * one of them. Returns the bytes of all, -ENOMEM. */
static ssize_t make_texts(struct group_table *t)
{
	ssize_t bytes = 0;

	for (unsigned i = 0; i < t->n; i++) {
		struct group_entry *e = t->entries[i];

		if (!e->text && group_entry_is_changed(e)) {
			e->text = encode_entry(e);
			if (!e->text)
				return -ENOMEM;
		}
		bytes += e->text ? (ssize_t)strlen(e->text) + 4 : 0;
	}
	return bytes;
}

char *groups_append_text(struct group_table *t, char *text)
{
	static const char opening[] = ",\n \"groups\": [", closing[] = "\n ]\n}";
	ssize_t bytes = make_texts(t);
	const char *separator = "\n  ";
	char *grown, *end;

	if (bytes == 0)
		return text;
	grown = bytes < 0 ? NULL
			  : realloc(text, strlen(text) + (size_t)bytes + sizeof(opening) +
						  sizeof(closing));
	if (!grown) {
		free(text);
		return NULL;
	}
	end = strrchr(grown, '}');
	while (end[-1] == '\n')
		end--;
	end = stpcpy(end, opening);
	for (unsigned i = 0; i < t->n; i++) {
		if (!t->entries[i]->text)
			continue;
		end = stpcpy(stpcpy(end, separator), t->entries[i]->text);
		separator = ",\n  ";
	}
	stpcpy(end, closing);
	return grown;
}

static bool decode_value(enum own_file k, const json_t *json, char dst[OWN_VALUE_LEN])
{
	const char *s = json_string_value(json);

	if (!s)
		return json && json_is_null(json);
	if (!own_value_valid(k, s))
		return false;
	set_value(dst, s);
	return true;
}

static bool decode_file(const json_t *json, struct group_entry *e)
{
	const char *name = json_string_value(json_object_get(json, "file"));
	struct group_file *f;
	enum own_file k = 0;

	while (k < OWN_FILES && name && strcmp(name, own_file_name[k]))
		k++;
	if (!name || k == OWN_FILES)
		return false;
	f = &e->files[k];
	if (group_file_is_changed(f))
		return false;
	return decode_value(k, json_object_get(json, "baseline"), f->baseline) &&
	       decode_value(k, json_object_get(json, "written"), f->written) &&
	       decode_value(k, json_object_get(json, "old"), f->old) && f->baseline[0] &&
	       f->written[0];
}

/* Only what the actuator could have journaled. */
static bool decode_entry(const json_t *json, struct group_table *t)
{
	const char *path = json_string_value(json_object_get(json, "path"));
	const json_t *id = json_object_get(json, "id");
	json_t *files = json_object_get(json, "files"), *file;
	struct group_entry *e;
	size_t i;

	if (!path || !json_is_integer(id) || json_integer_value(id) <= 0 || !json_is_array(files) ||
		json_array_size(files) == 0 || groups_find(t, (uint64_t)json_integer_value(id)) ||
		insert(t, path, (uint64_t)json_integer_value(id), &e) < 0)
		return false;
	json_array_foreach(files, i, file)
	{
		if (!decode_file(file, e))
			return false;
	}
	return true;
}

bool groups_decode(struct group_table *t, const json_t *json)
{
	json_t *entry;
	size_t i;

	if (json && !json_is_array(json))
		return false;
	json_array_foreach(json, i, entry)
	{
		if (!decode_entry(entry, t))
			return false;
	}
	return true;
}

/* ---- one file of one group ---------------------------------------------- */

static void touch(struct baseline *b, struct group_entry *e)
{
	free(e->text);
	e->text = NULL;
	baseline_groups(b)->dirty = true;
}

bool baseline_group_settle(
	struct baseline *b, struct group_entry *e, enum own_file k, const char *value)
{
	struct group_file *f = &e->files[k];
	bool foreign;

	if (f->noted || !group_file_is_changed(f))
		return false;
	f->noted = true;
	/* killed before the write: the older value of ours still stands */
	if (is_value(f->old, value))
		set_value(f->written, f->old);
	foreign = !is_value(f->written, value) && strcmp(f->baseline, value);
	f->old[0] = '\0';
	if (foreign || !strcmp(f->baseline, value))
		forget_change(f);
	touch(b, e);
	return foreign;
}

void baseline_group_adopt(struct baseline *b, struct group_entry *e, enum own_file k)
{
	forget_change(&e->files[k]);
	touch(b, e);
}

int baseline_group_journal(struct baseline *b, struct group_entry *e, enum own_file k,
	const char *old_value, const char *new_value)
{
	struct group_file *f = &e->files[k];
	int r;

	if (!own_value_valid(k, old_value) || !own_value_valid(k, new_value))
		return -EINVAL;
	f->noted = true;
	if (!f->written[0])
		set_value(f->baseline, old_value);
	set_value(f->previous, f->written);
	if (!strcmp(old_value, f->baseline) || is_value(f->written, old_value))
		set_value(f->old, old_value);
	set_value(f->written, new_value);
	touch(b, e);
	r = baseline_save(b, true);
	if (r < 0) {
		set_value(f->written, f->previous);
		f->previous[0] = f->old[0] = '\0';
		touch(b, e);
	}
	return r;
}

int baseline_group_done(struct baseline *b, struct group_entry *e, enum own_file k, bool ok)
{
	struct group_file *f = &e->files[k];

	if (!ok)
		set_value(f->written, f->previous);
	f->previous[0] = f->old[0] = '\0';
	if (!f->written[0] || !strcmp(f->written, f->baseline))
		forget_change(f);
	touch(b, e);
	return baseline_save(b, false);
}

int baseline_groups_flush(struct baseline *b)
{
	return baseline_groups(b)->dirty ? baseline_save(b, false) : 0;
}

/* ---- putting back ------------------------------------------------------- */

struct report {
	baseline_report_fn fn;
	void *userdata;
};

static void report(const struct report *to, const struct group_entry *e, enum own_file k,
	const char *outcome, const char *from, int error)
{
	char path[GROUP_FILE_PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", e->path, own_file_name[k]);
	if (to->fn)
		to->fn(path, outcome, from, e->files[k].baseline, error, to->userdata);
}

static bool is_there(int cg_fd, const struct group_entry *e)
{
	_cleanup_close_ int fd = group_open(cg_fd, e->path, e->id);

	return fd != -ESTALE;
}

/* Returns 0 when the file is settled, -errno when it has to be tried again. */
static int restore_value(
	int group_fd, const struct group_entry *e, enum own_file k, const struct report *to)
{
	const struct group_file *f = &e->files[k];
	char value[OWN_VALUE_LEN] = "";
	int r = group_read(group_fd, own_file_name[k], k, value);

	if (r == 0 && strcmp(value, f->baseline)) {
		if (!is_value(f->written, value) && !is_value(f->old, value)) {
			report(to, e, k, "left", value, 0);
			return 0;
		}
		r = group_write(group_fd, k, f->baseline);
		if (r == 0)
			report(to, e, k, "restored", value, 0);
	}
	return r;
}

static int restore_file(
	int cg_fd, int group_fd, struct group_entry *e, enum own_file k, const struct report *to)
{
	int r = group_fd < 0 ? group_fd : restore_value(group_fd, e, k, to);

	if (group_fd >= 0 && (r == -ENOENT || r == -ENODEV)) {
		if (is_there(cg_fd, e))
			report(to, e, k, "left", "", ENOENT);
		r = 0;
	}
	if (r < 0 && r != -ESTALE) {
		report(to, e, k, "failed", "", -r);
		return r;
	}
	forget_change(&e->files[k]);
	return 0;
}

static int restore_group(int cg_fd, struct group_entry *e, const struct report *to)
{
	_cleanup_close_ int fd = cg_fd < 0 ? -ENODEV : group_open(cg_fd, e->path, e->id);
	int failures = 0;

	for (unsigned k = 0; k < OWN_FILES; k++)
		if (group_file_is_changed(&e->files[k]) && restore_file(cg_fd, fd, e, k, to) < 0)
			failures++;
	return failures;
}

int baseline_groups_restore(struct baseline *b, int cg_fd, baseline_report_fn fn, void *userdata)
{
	struct group_table *t = baseline_groups(b);
	const struct report to = {fn, userdata};
	int failures = 0;

	for (unsigned i = t->n; i-- > 0;) {
		struct group_entry *e = t->entries[i];

		failures += restore_group(cg_fd, e, &to);
		touch(b, e);
		groups_drop_idle(t, e);
	}
	return failures;
}
