/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the machine as a whole says: /proc/vmstat, /proc/meminfo, /proc/swaps,
 * /proc/pressure/memory, /proc/cmdline and where the cgroup2 tree with the
 * memory controller is. Paths are relative to the descriptor of the root
 * directory ("/" or --root). Called by the engine; never writes.
 */
#ifndef MTHPD_HOST_H
#define MTHPD_HOST_H

#include <limits.h>

#include "parse.h"

struct host_sample {
	uint64_t now_usec;
	int psi_errno; /* 0 = psi is filled; ENOENT (built without), EOPNOTSUPP (off), EINVAL ... */
	struct psi psi;
	uint64_t mem_total_kb, mem_available_kb, swap_total_kb, swap_free_kb; /* meminfo */
	uint64_t swaps_size_kb, swaps_used_kb;                              /* /proc/swaps */
	/* vmstat, cumulative */
	uint64_t pgfault, pgmajfault, pswpin, pswpout, compact_stall, compact_fail, thp_fault_alloc,
		thp_fault_fallback, thp_collapse_alloc, thp_swpout_fallback, refault_anon,
		allocstall; /* over all zones */
	uint64_t min_free_kbytes; /* /proc/sys/vm/min_free_kbytes */
};

/* Returns 0; every part that is missing is absent. -ENOENT only if not one of
 * the files could be read, @ret is untouched then. @root_fd is the descriptor
 * of "/" or --root. Limits: vmstat 32 KiB, swaps 16 KiB, meminfo 8 KiB. */
int host_sample_read(int root_fd, uint64_t now_usec, struct host_sample *ret);

/* Where cgroups are. The daemon asks libcgroup on the real machine; this is
 * the answer for --root, from DIR/proc/self/mountinfo, cgroup.controllers at
 * the mount, DIR/proc/cmdline and DIR/proc/cgroups; DIR/sys/fs/cgroup where
 * mountinfo names no cgroup mount and that directory is not empty. A tree
 * without cgroup.controllers is taken for whole unless something says that
 * memory is elsewhere. At most 8 MiB of mountinfo are read. */
enum host_cgroup_mode {
	HOST_CGROUP_V2,        /* cgroup2 mount with the memory controller */
	HOST_CGROUP_HYBRID,    /* cgroup2 is mounted, memory sits on v1 */
	HOST_CGROUP_V1,        /* only v1 */
	HOST_CGROUP_NO_MEMORY, /* cgroup2, memory controller disabled at boot */
	HOST_CGROUP_NONE,
	HOST_CGROUP_UNREACHABLE, /* never found here: for a caller who cannot open the mount point */
};
struct host_cgroups {
	enum host_cgroup_mode mode;
	char mount_point[PATH_MAX]; /* of cgroup2, absolute, without the --root prefix; "" if none */
	/* The offending word of the command line, "" if none: cgroup_disable=memory,
	 * or systemd.unified_cgroup_hierarchy=0 for hybrid and v1. */
	char boot_option[64];
};
/* Returns 0 or -ENOMEM. */
int host_cgroups_find(int root_fd, struct host_cgroups *ret);
/* "v2", "hybrid", "v1", "no-memory-controller", "none", "unreachable". */
const char *host_cgroup_mode_to_string(enum host_cgroup_mode m);

/* True when the kernel command line holds transparent_hugepage=never, also with
 * another value after it; what follows "--" is not the kernel's. */
bool host_boot_never(int root_fd);

/* tmpfs mounts whose own huge= option is always, within_size or advise: they
 * ignore shmem_enabled, so nothing here governs them. Calls @fn for each. */
typedef void (*host_tmpfs_fn)(const char *mount_point, const char *huge, void *userdata);
void host_tmpfs_huge(int root_fd, host_tmpfs_fn fn, void *userdata);

#endif
