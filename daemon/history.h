/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The last decisions, with everything that is needed to explain them later:
 * when, which file, from what to what, why, for which group and on which
 * numbers. A ring of fixed size. Filled by the engine, read by status,
 * explain and history.
 */
#ifndef MTHPD_HISTORY_H
#define MTHPD_HISTORY_H

#include <jansson.h>

#include "reason.h"
#include "thp.h"

#define HISTORY_MAX 512
#define HISTORY_GROUP_LEN 128

struct decision {
	uint64_t number;
	uint64_t realtime_usec;
	char knob[THP_PATH_MAX];
	char old_value[CHOICE_LEN], new_value[CHOICE_LEN];
	enum reason reason;
	char group[HISTORY_GROUP_LEN]; /* "" = the host; a longer path keeps its end behind "..." */
	const char *outcome;           /* static word: "written", "dry-run", "read-only", "refused" */
	double some, full;             /* -1 unknown */
	uint64_t margin_bytes, refault_per_sec;
	unsigned others; /* further groups that were hurt at that time */
};

struct history {
	struct decision ring[HISTORY_MAX];
	uint64_t n; /* ever added */
};

/* Copies @d in and numbers it; returns the stored record. */
const struct decision *history_add(struct history *h, const struct decision *d);
/* The newest record is @back = 0; NULL beyond the oldest kept. */
const struct decision *history_get(const struct history *h, uint64_t back);
void history_set_group(struct decision *d, const char *path);

json_t *decision_to_json(const struct decision *d);
/* "hugepages-64kB/enabled always -> never: drop-pressure, web.service (some 71 %, ...)" */
void decision_to_text(const struct decision *d, char *buf, size_t size);

/* A string that may be any bytes as a JSON string: what is not UTF-8 becomes
 * \xNN, written with a backslash. */
json_t *json_from_bytes(const char *s);
/* null for an absent or unlimited value. */
json_t *json_from_value(uint64_t v);
/* null for a negative share. */
json_t *json_from_share(double v);

#endif
