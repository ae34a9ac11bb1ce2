/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scope-bound release of resources. Used everywhere; knows nothing of mthpd.
 * Each helper is safe on its "nothing held" value (-1, NULL), so a variable
 * can be initialised at its declaration and returned from any point.
 */
#ifndef MTHPD_CLEANUP_H
#define MTHPD_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_close_ __attribute__((cleanup(cleanup_close)))
#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))
#define _cleanup_fclose_ __attribute__((cleanup(cleanup_fclose)))
#define _cleanup_closedir_ __attribute__((cleanup(cleanup_closedir)))

/* Hands the value over to the caller and leaves "nothing held" behind. */
static inline int take_fd(int *fd)
{
	int r = *fd;

	*fd = -1;
	return r;
}

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

#endif
