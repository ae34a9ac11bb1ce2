/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The daemon's own memory: kept from being reclaimed (the watcher of memory
 * must not be its victim), and given back after a large answer. Called by main
 * and by the engine; both are best effort and never fail loudly.
 */
#ifndef MTHPD_FOOTPRINT_H
#define MTHPD_FOOTPRINT_H

/* Locks what is and will be in memory, page by page as it is used. 0 or -errno
 * (-EPERM, -ENOMEM: RLIMIT_MEMLOCK): the daemon works without. */
int footprint_lock(void);

/* Returns free heap to the kernel. Locked pages cannot be returned
 * (mm/madvise.c: MADV_DONTNEED is -EINVAL on VM_LOCKED), so the lock is lifted
 * meanwhile if footprint_lock() had taken it. */
void footprint_trim(void);

#endif
