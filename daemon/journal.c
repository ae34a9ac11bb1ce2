/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "journal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOURNAL_FORMAT 1

void journal_set_value(char dst[KNOB_VALUE_LEN], const char *value)
{
	/* the caller may hand over a pointer to @dst itself */
	memmove(dst, value, strnlen(value, KNOB_VALUE_LEN - 1) + 1);
	dst[KNOB_VALUE_LEN - 1] = '\0';
}

struct journal_entry *journal_find(const struct journal *j, const char *path)
{
	for (unsigned i = 0; i < j->n; i++)
		if (!strcmp(j->files[i].path, path))
			return (struct journal_entry *)&j->files[i];
	return NULL;
}

bool journal_is_changed(const struct journal_entry *e)
{
	return e->written[0] || e->old[0];
}

void journal_forget_change(struct journal_entry *e)
{
	e->written[0] = e->old[0] = e->previous[0] = '\0';
}

bool journal_is_utf8(const char *s)
{
	json_t *json = json_string(s);
	bool ok = json != NULL;

	json_decref(json);
	return ok;
}

static json_t *encode_entry(const struct journal_entry *e)
{
	return json_pack("{s:s, s:s, s:s?, s:s?}", "path", e->path, "baseline", e->baseline,
		"written", e->written[0] ? e->written : NULL, "old", e->old[0] ? e->old : NULL);
}

char *journal_encode(struct journal *j)
{
	json_t *files = json_array(), *hold, *all;
	char *text = NULL;

	for (unsigned i = 0; files && i < j->n; i++) {
		/* a failed append frees what it was given and leaves the list short */
		if (journal_is_changed(&j->files[i]) &&
			json_array_append_new(files, encode_entry(&j->files[i])) < 0) {
			json_decref(files);
			return NULL;
		}
	}
	hold = j->hold ? json_pack("{s:s}", "reason", j->hold) : json_null();
	all = json_pack("{s:i, s:s, s:s, s:b, s:o, s:o}", "format", JOURNAL_FORMAT, "boot_id",
		j->boot_id, "root", j->root, "restore_on_exit", (int)j->restore_on_exit, "hold",
		hold, "files", files);
	if (all)
		text = json_dumps(all, JSON_INDENT(1));
	json_decref(all);
	return text ? groups_append_text(&j->groups, text) : NULL;
}

static bool decode_value(const char *path, const json_t *value, char dst[KNOB_VALUE_LEN])
{
	const char *s = json_string_value(value);

	if (!s)
		return value && json_is_null(value);
	if (strlen(s) >= KNOB_VALUE_LEN || !knob_value_valid(path, s))
		return false;
	journal_set_value(dst, s);
	return true;
}

/* Only what the actuator could have journaled: a known path, its baseline, and
 * a value of ours. */
static bool decode_entry(json_t *json, struct journal *j)
{
	const char *path = json_string_value(json_object_get(json, "path"));
	struct journal_entry *e;

	if (j->n == BASELINE_FILES_MAX || !path || strlen(path) >= THP_PATH_MAX ||
		journal_find(j, path))
		return false;
	e = &j->files[j->n];
	*e = (struct journal_entry){0};
	snprintf(e->path, sizeof(e->path), "%s", path);
	if (!decode_value(path, json_object_get(json, "baseline"), e->baseline) ||
		!decode_value(path, json_object_get(json, "written"), e->written) ||
		!decode_value(path, json_object_get(json, "old"), e->old) || !e->baseline[0] ||
		!e->written[0])
		return false;
	j->n++;
	return true;
}

static bool decode_hold(const json_t *json, struct journal *j)
{
	const char *reason = json_string_value(json_object_get(json, "reason"));

	if (json_is_null(json))
		return true;
	if (!reason || strlen(reason) > BASELINE_REASON_MAX)
		return false;
	j->hold = strdup(reason);
	return j->hold != NULL;
}

static bool string_is(const json_t *json, const char *wanted)
{
	const char *s = json_string_value(json);

	return s && !strcmp(s, wanted);
}

const char journal_of_another_boot[] = JOURNAL_IGNORED("is from another boot");
const char journal_of_another_root[] = JOURNAL_IGNORED("belongs to another --root");

/* Fills @j from the parsed journal. Returns NULL or why it cannot be used. */
static const char *decode(json_t *json, struct journal *j)
{
	const json_t *restore = json_object_get(json, "restore_on_exit");
	json_t *files = json_object_get(json, "files"), *file;
	size_t i;

	if (json_integer_value(json_object_get(json, "format")) != JOURNAL_FORMAT)
		return JOURNAL_IGNORED("is not of the format that this version knows");
	if (!string_is(json_object_get(json, "root"), j->root))
		return journal_of_another_root;
	if (!string_is(json_object_get(json, "boot_id"), j->boot_id))
		return journal_of_another_boot;
	if (!json_is_boolean(restore) || !json_is_array(files) ||
		!decode_hold(json_object_get(json, "hold"), j))
		return JOURNAL_IGNORED("is corrupt");
	j->restore_on_exit = json_is_true(restore);
	json_array_foreach(files, i, file)
	{
		if (!decode_entry(file, j))
			return JOURNAL_IGNORED("names a file or a value that mthpd never writes");
	}
	if (!groups_decode(&j->groups, json_object_get(json, "groups")))
		return JOURNAL_IGNORED("names a group's file or a value that mthpd never writes");
	return NULL;
}

const char *journal_decode(struct journal *j, const char *text, size_t len)
{
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *warning;

	if (!json)
		return JOURNAL_IGNORED("is truncated or corrupt");
	warning = decode(json, j);
	json_decref(json);
	if (warning) {
		j->n = 0;
		groups_clear(&j->groups);
		j->restore_on_exit = true;
		free(j->hold);
		j->hold = NULL;
	}
	return warning;
}
