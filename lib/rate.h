/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often something may change: never more than RATE_PER_MINUTE decisions in a
 * minute, and a bound per hour for those that go up. One of these stands behind
 * the global switches, one behind each group that has files of its own. Called
 * by loop.c; keeps the times of the last decisions, nothing else.
 */
#ifndef MTHPD_RATE_H
#define MTHPD_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Never more decisions than this in a minute, whatever MaxChangesPerHour says. */
#define RATE_PER_MINUTE 6

struct rate {
	uint64_t *times; /* newest last */
	unsigned n, room; /* known, allocated */
	unsigned size;    /* as many are kept at most */
	unsigned per_hour; /* 1..3600 */
};

/* Sets the hourly bound; the newest times are kept. */
void rate_set(struct rate *r, unsigned per_hour);
void rate_done(struct rate *r);
/* Without memory for one more the oldest goes. */
void rate_note(struct rate *r, uint64_t now_usec);
/* May anything change now? */
bool rate_may_change(const struct rate *r, uint64_t now_usec);
/* May something go up? The last change of a minute is kept for a way down. */
bool rate_may_step_up(const struct rate *r, uint64_t now_usec);

#endif
