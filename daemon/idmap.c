/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "idmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 64

struct idmap_entry {
	uint64_t id; /* 0 = free */
	uint32_t value;
};

/* Tokens and watch numbers are counted upwards; the multiplier (2^64 divided
 * by the golden ratio) spreads them over the upper bits. */
static size_t home(const struct idmap *m, uint64_t id)
{
	return (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (m->size - 1);
}

/* Where @id is, or the free entry where it would go. */
static size_t find(const struct idmap *m, uint64_t id)
{
	size_t i = home(m, id);

	while (m->entries[i].id != 0 && m->entries[i].id != id)
		i = (i + 1) & (m->size - 1);
	return i;
}

static int grow(struct idmap *m)
{
	struct idmap bigger = {.size = m->size ? m->size * 2 : SIZE_FIRST, .used = m->used};

	bigger.entries = calloc(bigger.size, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < m->size; i++) {
		if (m->entries[i].id != 0)
			bigger.entries[find(&bigger, m->entries[i].id)] = m->entries[i];
	}
	free(m->entries);
	*m = bigger;
	return 0;
}

void idmap_done(struct idmap *m)
{
	free(m->entries);
	*m = (struct idmap){0};
}

int idmap_put(struct idmap *m, uint64_t id, uint32_t value)
{
	size_t i;

	if ((m->used + 1) * 4 > m->size * 3) {
		int r = grow(m);

		if (r < 0)
			return r;
	}
	i = find(m, id);
	if (m->entries[i].id == 0)
		m->used++;
	m->entries[i] = (struct idmap_entry){id, value};
	return 0;
}

bool idmap_get(const struct idmap *m, uint64_t id, uint32_t *ret_value)
{
	size_t i;

	if (!m->entries)
		return false;
	i = find(m, id);
	if (m->entries[i].id == 0)
		return false;
	*ret_value = m->entries[i].value;
	return true;
}

/* Closes the gap by moving back what probing had pushed past it, so that no
 * mark of the deleted is needed. */
void idmap_remove(struct idmap *m, uint64_t id)
{
	size_t gap, i;

	if (!m->entries)
		return;
	gap = find(m, id);
	if (m->entries[gap].id == 0)
		return;
	m->used--;
	for (i = (gap + 1) & (m->size - 1); m->entries[i].id != 0; i = (i + 1) & (m->size - 1)) {
		size_t from_home = (i - home(m, m->entries[i].id)) & (m->size - 1);
		size_t from_gap = (i - gap) & (m->size - 1);

		if (from_home >= from_gap) {
			m->entries[gap] = m->entries[i];
			gap = i;
		}
	}
	m->entries[gap].id = 0;
}
