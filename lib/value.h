/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The one convention for numbers that the kernel may not have: a uint64_t that
 * is either a real value (below 2^63), VALUE_MAX ("max", no limit) or
 * VALUE_ABSENT (no such file or key, unreadable, or not a number). Absent is
 * never 0: whoever prints one prints null, whoever decides on one must ask.
 * Used by every sample in lib/ and by the status output.
 */
#ifndef MTHPD_VALUE_H
#define MTHPD_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#define VALUE_ABSENT UINT64_MAX
#define VALUE_MAX (UINT64_MAX - 1)
/* Real values end here: the kernel prints "unlimited" page counters as
 * 2^63-1 rounded down to a page (v1) and counters never come near. */
#define VALUE_LIMIT (UINT64_C(1) << 63)

static inline bool value_known(uint64_t v)
{
	return v < VALUE_LIMIT;
}

/* a - b, 0 when it would be negative or when either is not a real value. */
static inline uint64_t value_sub(uint64_t a, uint64_t b)
{
	return value_known(a) && value_known(b) && a > b ? a - b : 0;
}

/* v, or @otherwise when v is not a real value. */
static inline uint64_t value_or(uint64_t v, uint64_t otherwise)
{
	return value_known(v) ? v : otherwise;
}

/* The smaller of two limits; absent counts as no limit. */
static inline uint64_t value_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
