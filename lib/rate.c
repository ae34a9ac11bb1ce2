/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_USEC UINT64_C(60000000)

int rate_set(struct rate *r, unsigned per_hour)
{
	unsigned size = per_hour < RATE_PER_MINUTE ? RATE_PER_MINUTE : per_hour;

	if (size != r->size) {
		uint64_t *times = calloc(size, sizeof(*times));
		unsigned keep = r->n < size ? r->n : size;

		if (!times)
			return -ENOMEM;
		if (keep)
			memcpy(times, r->times + (r->n - keep), keep * sizeof(*times));
		free(r->times);
		r->times = times;
		r->n = keep;
		r->size = size;
	}
	r->per_hour = per_hour;
	return 0;
}

void rate_done(struct rate *r)
{
	free(r->times);
	*r = (struct rate){ 0 };
}

void rate_note(struct rate *r, uint64_t now_usec)
{
	if (r->n == r->size) {
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
