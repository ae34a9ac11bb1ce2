/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A map from 64-bit identities to 32-bit indices: open addressing, 16 bytes an
 * entry, at most three quarters full. Called by watch.c to find a group by its token or
 * its inotify watch in constant time. Never iterates, never owns anything.
 */
#ifndef MTHPD_IDMAP_H
#define MTHPD_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap {
	struct idmap_entry *entries; /* NULL while empty */
	size_t size;                 /* a power of two */
	size_t used;
};

/* A zeroed struct idmap is an empty map. */
void idmap_done(struct idmap *m);
/* @id is not 0. Replaces an older value. 0 or -ENOMEM. */
int idmap_put(struct idmap *m, uint64_t id, uint32_t value);
bool idmap_get(const struct idmap *m, uint64_t id, uint32_t *ret_value);
void idmap_remove(struct idmap *m, uint64_t id);

#endif
