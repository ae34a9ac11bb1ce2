/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the actuators and a restore say to those who called them, kept for the
 * tests of both: the callbacks take a struct notices as their userdata.
 */
#ifndef MTHPD_TEST_NOTICES_H
#define MTHPD_TEST_NOTICES_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct notices {
	unsigned warnings, foreign, adopted, n_reports, recovered;
	char last_warning[PATH_MAX + 512], last_recovered[128], foreign_text[PATH_MAX + 128]; /* "path expected->found" */
	char given_back[PATH_MAX + 128]; /* the last: "path old->now" */
	char reports[8192]; /* "outcome path from->to errno\n" per call */
};

static inline void note_warning(const char *message, void *userdata)
{
	struct notices *n = userdata;

	n->warnings++;
	snprintf(n->last_warning, sizeof(n->last_warning), "%s", message);
}

/* A trouble is read as a warning is. */
static inline void note_trouble(const char *path, const char *sentence, void *userdata)
{
	struct notices *n = userdata;

	if (sentence)
		note_warning(sentence, userdata);
	else
		snprintf(n->last_recovered, sizeof(n->last_recovered), "%s", path);
	n->recovered += !sentence;
}

static inline void note_foreign(
	const char *path, const char *expected, const char *found, bool adopted, void *userdata)
{
	struct notices *n = userdata;

	n->foreign++;
	n->adopted += adopted;
	snprintf(n->foreign_text, sizeof(n->foreign_text), "%s %s->%s", path, expected, found);
}

static inline void note_given_back(const char *path, const char *old, const char *now, void *userdata)
{
	struct notices *n = userdata;

	snprintf(n->given_back, sizeof(n->given_back), "%s %s->%s", path, old, now);
}

static inline void note_report(const char *path, const char *outcome, const char *from,
	const char *to, int error, void *userdata)
{
	struct notices *n = userdata;
	size_t used = strlen(n->reports);

	n->n_reports++;
	snprintf(n->reports + used, sizeof(n->reports) - used, "%s %s %s->%s %d\n", outcome, path,
		from, to, error);
}

static inline void forget_reports(struct notices *n)
{
	n->reports[0] = '\0';
	n->n_reports = 0;
}

#endif
