/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "footprint.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <sys/mman.h>

static bool locked;

int footprint_lock(void)
{
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0)
		return -errno;
	locked = true;
	return 0;
}

void footprint_trim(void)
{
	if (locked)
		munlockall();
	malloc_trim(0);
	if (locked)
		locked = footprint_lock() == 0;
}
