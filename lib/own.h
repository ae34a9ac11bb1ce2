/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A group's own files (memory.thp.*, see kernel-patches/): what stood there
 * before mthpd, what stands there now, and what is wanted. On a kernel that has
 * them no group decides for another: each gets its own largest folio,
 * max_ptes_none and margin, and the arbiter only hears what stays global.
 * Called by loop.c; turns a wish into three values, never above what stood there
 * at the start, and knows nothing of pressure.
 */
#ifndef MTHPD_OWN_H
#define MTHPD_OWN_H

#include "controller.h"

enum own_file { OWN_MAX_SIZE, OWN_MAX_PTES_NONE, OWN_MARGIN, OWN_FILES };
/* "memory.thp.max_size" and so on. */
extern const char *const own_file_name[OWN_FILES];
/* What such a group tells beside them. */
#define OWN_EVENTS "memory.thp.events"

#define OWN_VALUE_LEN CHOICE_LEN
/* "" = no such file, or not understood: never wanted otherwise. */
struct own_values {
	char value[OWN_FILES][OWN_VALUE_LEN];
};

struct own {
	bool present; /* the group has the files, and they may be steered */
	struct own_values base;	  /* before mthpd */
	/* As far as we know; also what was to be written, in a dry run and where it could not be. */
	struct own_values stands;
	struct own_values want;
	enum reason reason[OWN_FILES];
};

/* Is @value what the file shows after it was written? Then what stands can be compared with
 * what was written. max_size: max, or bytes in decimal, a power of two from 4096 to 1 TiB
 * (others are rounded by the kernel); max_ptes_none: inherit or a number of pages; margin:
 * inherit, auto or a number of pages. Numbers up to INT_MAX, without leading zeros.
 * mm/memcg_thp.c: memory_thp_*_write. */
bool own_value_valid(enum own_file f, const char *value);

/* Starts over: what was before mthpd and what stands; nothing else is wanted. */
void own_set(struct own *o, const struct own_values *base, const struct own_values *stands);

/* The same for one file: what others do there leaves what is wanted of the rest. */
void own_set_file(struct own *o, enum own_file f, const struct own_values *base, const struct own_values *stands);

/* What the group's policy allows; VALUE_ABSENT = it does not say. */
struct own_limits {
	uint64_t min_kb, max_kb, ptes_max;
};
struct own_limits own_limits_of(const struct config_policy *policy, const struct plan *p);

/* What the wish comes to in this group's files. The ladder's rungs are coarse, a policy's
 * MinSize= and MaxSize= are met to the size. A file whose start value an administrator has chosen is only narrowed:
 * max_size and max_ptes_none below it, margin not at all. */
void own_decide(struct own *o, const struct plan *p, const struct ctl_wish *w,
	const struct own_limits *limits);
/* Some value that is wanted does not stand. */
bool own_differs(const struct own *o);
/* No larger folios for now: what would go up stays as it stands. */
void own_hold_back(struct own *o);

#endif
