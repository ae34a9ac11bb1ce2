/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Collects the faults of a configuration as one text, for test_config*.c. */
#ifndef MTHPD_TEST_CONFIG_FAULTS_H
#define MTHPD_TEST_CONFIG_FAULTS_H

#include <stdbool.h>
#include <stdio.h>

struct faults {
	char text[64 * 1024];
	size_t used;
	unsigned n;
	bool hide_file;
	const char *strip; /* a leading part of file names to leave out */
};

static inline void collect_fault(
	const char *file, unsigned line, const char *message, void *userdata)
{
	struct faults *f = userdata;
	size_t room = sizeof(f->text) - f->used;
	size_t skip = f->strip ? strlen(f->strip) : 0;
	int n;

	if (f->hide_file)
		n = snprintf(f->text + f->used, room, "%u: %s\n", line, message);
	else
		n = snprintf(f->text + f->used, room, "%s:%u: %s\n", file + skip, line, message);
	f->n++;
	f->used += n > 0 && (size_t)n < room ? (size_t)n : 0;
}

#endif
