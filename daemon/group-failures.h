/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What could not be written to memory.thp.* of groups, and why: kept by the group
 * actuator, so that a value is not tried again in every tick and a person can be
 * told of each group. EINVAL holds until a reload, for that group, and for all once
 * GROUP_REFUSING_MAX groups that were there together had it; a denial (EROFS, EACCES, EPERM) is found out
 * each time anew; anything else waits for the next audit. A file that is missing
 * counts from the second time on: its group may be about to go. Bounded: the oldest
 * of GROUP_FAILURES_MAX, and of GROUP_FAILURES_OF_FILE for one file, makes room; an
 * EINVAL after all others.
 * Never touches a file.
 */
#ifndef MTHPD_GROUP_FAILURES_H
#define MTHPD_GROUP_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include "own.h"

#define GROUP_FAILURES_MAX 1024
#define GROUP_FAILURES_OF_FILE 16 /* more than there are sizes */
/* A value that so many groups refuse is refused by the kernel. */
#define GROUP_REFUSING_MAX 3
/* Values of one file that are counted over all groups. */
#define GROUP_REFUSED_MAX 16

struct group_failure {
	uint64_t id;
	char *path; /* of the group */
	enum own_file k;
	char value[OWN_VALUE_LEN];
	int error;   /* -errno */
	bool counts; /* not only a missing file, seen once */
	bool waits;  /* not to be tried before the next audit */
};

struct group_failures {
	struct group_failure *list; /* the oldest first */
	unsigned n, room;
	struct group_refused {
		char value[OWN_VALUE_LEN];
		unsigned groups;
		uint64_t id[GROUP_REFUSING_MAX]; /* of those groups */
	} refused[OWN_FILES][GROUP_REFUSED_MAX];
	unsigned generation; /* another one: the list is another one */
};

/* @value could not be written to file @k of the group, -errno @error. Returns true
 * when a person should be told: nothing of the kind is known of the group yet. Without
 * memory nothing is kept. */
bool group_failures_note(struct group_failures *f, const char *path, uint64_t id, enum own_file k,
	const char *value, int error);
/* Why @value is not in that file: -errno, 0 = nothing is known against it. */
int group_failures_why(
	const struct group_failures *f, uint64_t id, enum own_file k, const char *value);
/* As why(), but only what forbids another try now. */
int group_failures_forbids(
	const struct group_failures *f, uint64_t id, enum own_file k, const char *value);
/* How many groups refused @value, EINVAL: of those that are there, up to GROUP_REFUSING_MAX,
 * where it stays. */
unsigned group_failures_refusing(
	const struct group_failures *f, enum own_file k, const char *value);

/* File @k of the group was written, or holds what is wanted: only its EINVAL stand. */
void group_failures_settled(struct group_failures *f, uint64_t id, enum own_file k);
/* An audit: what waits may be tried again. */
void group_failures_retry(struct group_failures *f);
/* The group is gone. */
void group_failures_forget(struct group_failures *f, uint64_t id);
/* All is forgotten, and the memory given back. */
void group_failures_clear(struct group_failures *f);

#endif
