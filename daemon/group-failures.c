/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-failures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "knob.h"

static struct group_failure *find(
	const struct group_failures *f, uint64_t id, enum own_file k, const char *value)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct group_failure *e = &f->list[i];

		if (e->id == id && e->k == k && !strcmp(e->value, value))
			return e;
	}
	return NULL;
}

static void drop(struct group_failures *f, unsigned i)
{
	free(f->list[i].path);
	f->n--;
	memmove(f->list + i, f->list + i + 1, (f->n - i) * sizeof(*f->list));
	f->generation++;
}

/* Is the like of it known of the group? */
static bool is_known(const struct group_failures *f, uint64_t id, enum own_file k, int error)
{
	for (unsigned i = 0; i < f->n; i++) {
		const struct group_failure *e = &f->list[i];

		/* a group that may not be written to is so in all its files */
		if (e->id == id && e->counts && e->error == error && (e->k == k || knob_denied(error)))
			return true;
	}
	return false;
}

/* ---- values that the kernel refuses -------------------------------------- */

static struct group_refused *find_refused(
	const struct group_failures *f, enum own_file k, const char *value)
{
	const struct group_refused *r = f->refused[k];

	for (unsigned i = 0; i < GROUP_REFUSED_MAX; i++)
		if (!strcmp(r[i].value, value))
			return (struct group_refused *)&r[i];
	return NULL;
}

/* Each group counts once, however often it was asked. */
static void count_refused(
	struct group_failures *f, uint64_t id, enum own_file k, const char *value)
{
	struct group_refused *r = find_refused(f, k, value);

	if (!r)
		r = find_refused(f, k, "");
	if (!r || r->groups == GROUP_REFUSING_MAX)
		return;
	for (unsigned i = 0; i < r->groups; i++)
		if (r->id[i] == id)
			return;
	snprintf(r->value, sizeof(r->value), "%s", value);
	r->id[r->groups++] = id;
}

/* A group that is gone does not count, unless it is settled whose the value is. */
static void uncount_refused(struct group_refused *r, uint64_t id)
{
	unsigned n = 0;

	if (r->groups == GROUP_REFUSING_MAX)
		return;
	for (unsigned i = 0; i < r->groups; i++)
		if (r->id[i] != id)
			r->id[n++] = r->id[i];
	r->groups = n;
	if (!n)
		r->value[0] = '\0';
}

unsigned group_failures_refusing(const struct group_failures *f, enum own_file k, const char *value)
{
	const struct group_refused *r = find_refused(f, k, value);

	return r ? r->groups : 0;
}

/* ---- keeping ------------------------------------------------------------- */

/* Drops the oldest, @id != 0: of file @k of that group; one that does not hold until a
 * reload where there is one. */
static void drop_oldest(struct group_failures *f, uint64_t id, enum own_file k)
{
	unsigned found = f->n;

	for (unsigned i = f->n; i-- > 0;) {
		const struct group_failure *e = &f->list[i];

		if (id && (e->id != id || e->k != k))
			continue;
		if (found == f->n || e->error != -EINVAL || f->list[found].error == -EINVAL)
			found = i;
	}
	if (found < f->n)
		drop(f, found);
}

static void make_room(struct group_failures *f, uint64_t id, enum own_file k)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n; i++)
		n += f->list[i].id == id && f->list[i].k == k;
	if (n >= GROUP_FAILURES_OF_FILE)
		drop_oldest(f, id, k);
	if (f->n == GROUP_FAILURES_MAX)
		drop_oldest(f, 0, k);
}

static struct group_failure *add(struct group_failures *f, const char *path)
{
	char *copy = strdup(path);

	if (copy && f->n == f->room) {
		unsigned room = f->room ? 2 * f->room : 8;
		struct group_failure *list = realloc(f->list, room * sizeof(*list));

		if (!list) {
			free(copy);
			return NULL;
		}
		f->list = list;
		f->room = room;
	}
	if (!copy)
		return NULL;
	f->list[f->n] = (struct group_failure){.path = copy};
	return &f->list[f->n++];
}

bool group_failures_note(struct group_failures *f, const char *path, uint64_t id, enum own_file k,
	const char *value, int error)
{
	struct group_failure *e = find(f, id, k, value);
	bool again = e && e->error == error;
	bool counts = again || (error != -ENOENT && error != -ENODEV);
	bool known = again ? e->counts : error != -EINVAL && is_known(f, id, k, error);

	if (!e) {
		make_room(f, id, k);
		e = add(f, path);
	}
	if (!e)
		return counts;
	if (error == -EINVAL && !again)
		count_refused(f, id, k, value);
	if (counts && !(again && e->counts))
		f->generation++;
	e->id = id;
	e->k = k;
	snprintf(e->value, sizeof(e->value), "%s", value);
	e->error = error;
	e->counts = counts;
	e->waits = counts && !knob_denied(error);
	return counts && !known;
}

int group_failures_why(
	const struct group_failures *f, uint64_t id, enum own_file k, const char *value)
{
	const struct group_failure *e = find(f, id, k, value);

	if (e)
		return e->counts ? e->error : 0;
	return group_failures_refusing(f, k, value) >= GROUP_REFUSING_MAX ? -EINVAL : 0;
}

int group_failures_forbids(
	const struct group_failures *f, uint64_t id, enum own_file k, const char *value)
{
	const struct group_failure *e = find(f, id, k, value);

	if (e)
		return e->waits ? e->error : 0;
	return group_failures_why(f, id, k, value);
}

/* ---- forgetting ---------------------------------------------------------- */

void group_failures_settled(struct group_failures *f, uint64_t id, enum own_file k)
{
	for (unsigned i = f->n; i-- > 0;)
		if (f->list[i].id == id && f->list[i].k == k && f->list[i].error != -EINVAL)
			drop(f, i);
}

void group_failures_retry(struct group_failures *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->list[i].error != -EINVAL)
			f->list[i].waits = false;
}

void group_failures_forget(struct group_failures *f, uint64_t id)
{
	for (unsigned i = f->n; i-- > 0;)
		if (f->list[i].id == id)
			drop(f, i);
	for (unsigned k = 0; k < OWN_FILES; k++)
		for (unsigned i = 0; i < GROUP_REFUSED_MAX; i++)
			uncount_refused(&f->refused[k][i], id);
}

void group_failures_clear(struct group_failures *f)
{
	unsigned generation = f->generation + 1;

	for (unsigned i = 0; i < f->n; i++)
		free(f->list[i].path);
	free(f->list);
	*f = (struct group_failures){.generation = generation};
}
