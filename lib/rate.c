/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rate.h"

#include <stdlib.h>
#include <string.h>

#define MINUTE_USEC UINT64_C(60000000)

void rate_set(struct rate *r, unsigned per_hour)
{
	unsigned size = per_hour < RATE_PER_MINUTE ? RATE_PER_MINUTE : per_hour;

	if (r->n > size) {
		memmove(r->times, r->times + (r->n - size), size * sizeof(*r->times));
		r->n = size;
	}
	r->size = size;
	r->per_hour = per_hour;
}

void rate_done(struct rate *r)
{
	free(r->times);
	*r = (struct rate){ 0 };
}

/* Most groups never change: room is made as it is needed. */
static void grow(struct rate *r)
{
	unsigned room = r->room ? r->room * 2 : RATE_PER_MINUTE;
	uint64_t *times;

	if (room > r->size)
		room = r->size;
	times = realloc(r->times, room * sizeof(*times));
	if (!times)
		return;
	r->times = times;
	r->room = room;
}

void rate_note(struct rate *r, uint64_t now_usec)
{
	if (r->n == r->room && r->room < r->size)
		grow(r);
	if (!r->room)
		return; /* out of memory */
	if (r->n == r->size || r->n == r->room) {
		memmove(r->times, r->times + 1, (r->n - 1) * sizeof(*r->times));
		r->n--;
	}
	r->times[r->n++] = now_usec;
}

static unsigned since(const struct rate *r, uint64_t now_usec, uint64_t usec)
{
	unsigned n = 0;

	while (n < r->n && now_usec - r->times[r->n - 1 - n] < usec)
		n++;
	return n;
}

bool rate_may_change(const struct rate *r, uint64_t now_usec)
{
	return since(r, now_usec, MINUTE_USEC) < RATE_PER_MINUTE;
}

bool rate_may_step_up(const struct rate *r, uint64_t now_usec)
{
	return since(r, now_usec, 60 * MINUTE_USEC) < r->per_hour &&
	       since(r, now_usec, MINUTE_USEC) < RATE_PER_MINUTE - 1;
}
