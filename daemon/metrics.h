/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Metrics in the text format of Prometheus (version 0.0.4): over HTTP where
 * [Metrics] Listen= says so, and as a text for varlink's Metrics(). Called by
 * main and service.c. Reads the engine when somebody asks, counts decisions as
 * they happen, and never wakes up by itself. The number of series is bounded:
 * METRICS_GROUPS_MAX groups have some of their own, the rest is summed.
 */
#ifndef MTHPD_METRICS_H
#define MTHPD_METRICS_H

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>

#include "engine.h"

/* Groups with series of their own, by anonymous memory. */
#define METRICS_GROUPS_MAX 32
/* Groups whose decisions are counted one by one; those of later ones are summed. */
#define METRICS_COUNTED_MAX 256
#define METRICS_CONNECTIONS_MAX 16
#define METRICS_TIMEOUT_SEC 10
#define METRICS_HEADER_BYTES_MAX 8192

struct metrics;

/* Listens where the configuration says; where that fails the state is degraded.
 * The result must be freed after @e. 0 or -ENOMEM, -ENOSPC. */
int metrics_new(struct event_base *base, struct engine *e, struct metrics **ret);
void metrics_free(struct metrics *m);
/* The whole text, to be freed; NULL on ENOMEM. */
char *metrics_text(struct metrics *m);

/* The text of @facts, the object of engine_metrics() with the member "changes":
 * {"reasons": {REASON: n}, "cgroups": {PATH: n}, "others": n}. What is missing,
 * null or of another type has no line; the order is that of the tables within. */
void metrics_print(FILE *f, const json_t *facts);

#endif
