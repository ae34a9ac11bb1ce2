/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One look at one memory cgroup (cgroup v2, mm/memcontrol.c), and the change
 * between two looks. Samples are taken relative to the descriptor of the
 * cgroup2 root; margins need the ancestors, so the path is walked upwards.
 * Called by the engine; the deltas are all that the controller ever sees.
 * Never keeps state, never treats a vanished cgroup as an error.
 */
#ifndef MTHPD_MEMCG_H
#define MTHPD_MEMCG_H

#include "parse.h"

enum memcg_result {
	MEMCG_OK = 0,
	MEMCG_GONE = 1,      /* the cgroup vanished at some step, or is only coming: drop the sample */
	MEMCG_NO_MEMORY = 2, /* it has no memory.current and no memory.events, and is not to have
				them (cgroup.controllers without memory, or the root) */
};

/* How much to read. The cheap look costs two small reads: memory.pressure and
 * memory.events (and memory.current to tell MEMCG_NO_MEMORY where the latter is
 * not to be had). The full one costs thirteen (fourteen on our kernel), and two or three for each
 * ancestor below the root. */
enum memcg_depth { MEMCG_CHEAP, MEMCG_FULL };

struct memcg_events {
	uint64_t low, high, max, oom, oom_kill, oom_group_kill;
};

struct memcg_sample {
	uint64_t now_usec; /* monotonic, of the first read */
	uint64_t id;       /* inode of the cgroup directory: a new one is a new group */
	bool full_depth;   /* the fields below the line are filled */
	bool psi_off;      /* pressure file exists but reading says EOPNOTSUPP, or is absent */
	int psi_errno;     /* 0, ENOENT, EOPNOTSUPP, EACCES, EINVAL (text not understood) ... */
	/* Name (a constant) of the first file of this group whose text is not understood: not a
	 * number, or not one known key; memory.pressure and memory.events come first. NULL = none. */
	const char *unclear;
	struct psi psi;
	struct memcg_events events; /* hierarchical */
	/* ---- MEMCG_FULL only: after a cheap look all below is VALUE_ABSENT ---- */
	struct memcg_events events_local; /* memory.events.local, absent before Linux 5.2 */
	uint64_t current_bytes;
	uint64_t max_bytes, high_bytes, low_bytes, min_bytes; /* this group's own */
	uint64_t limit_bytes;  /* smallest min(max, high) over the group and its ancestors */
	uint64_t margin_bytes; /* smallest (min(max, high) - current) over the same, 0 when over it;
				  VALUE_MAX = no limit, VALUE_ABSENT = limited, usage unknown */
	uint64_t swap_current_bytes, swap_max_bytes;
	uint64_t swap_events_max, swap_events_fail;
	/* memory.stat, bytes or events as the kernel prints them */
	uint64_t anon, file, kernel, shmem, anon_thp, shmem_thp, inactive_anon, inactive_file, file_dirty,
		file_writeback, pgfault, pgmajfault, refault_anon, refault_file, activate_anon, pgscan,
		pgsteal, thp_fault_alloc, thp_collapse_alloc, thp_swpout_fallback, swapcached;
	/* absent on a stock kernel (kernel-patches/): pages swapped in and out, pages of large
	 * folios looked at by reclaim and those found in use, splits that swap made useless,
	 * large folios refused because of memory.thp.max_size */
	uint64_t pswpin, pswpout, thp_scanned, thp_young, thp_split_avoided, thp_size_limited;
	/* memory.thp.events: large folios refused for lack of room */
	uint64_t margin_anon, margin_swpin, margin_shmem, margin_collapse;
	uint64_t usage_usec, user_usec, system_usec; /* cpu.stat */
};

/* Reads the group at @path (relative to @root_fd, no leading slash, "" is the
 * root, which has neither limits nor memory.current: MEMCG_NO_MEMORY). Returns
 * an enum memcg_result or a negative errno for anything that is neither:
 * EMFILE, ENFILE, ENOMEM, EIO; EACCES when memory.current and memory.events may
 * not be read; EINVAL for an empty, "." or ".." component; ENAMETOOLONG from
 * PATH_MAX - 15 up. @ret is whole on MEMCG_OK and untouched otherwise.
 *
 * A file that is not there, not readable or not understood leaves its fields
 * VALUE_ABSENT, as does a memory.stat of 32 KiB or more. A full sample is of one
 * and the same group; a cheap one that was replaced while it was read bears the
 * new group's id. A limit from 2^63 - 64 KiB up, or above @mem_total_bytes * 16
 * (0 or absent = not known), counts as none. */
int memcg_sample_read(int root_fd, const char *path, enum memcg_depth depth, uint64_t now_usec,
	uint64_t mem_total_bytes, struct memcg_sample *ret);

/* What happened between two samples of one group. Rates are not computed here:
 * counters are differences over dt_usec, saturated at 0. */
struct memcg_delta {
	uint64_t dt_usec;
	double some, full;  /* stall share 0..1, clamped; -1 when PSI is not there */
	/* From events_local where both samples have them, else from events. d_oom:
	 * a limit of this very group led to an OOM; d_oom_kill: victims. */
	uint64_t d_high, d_max, d_oom, d_oom_kill;
	uint64_t d_oom_victim; /* victims that lived in this very group; 0 without events_local */
	uint64_t d_pgfault, d_pgmajfault, d_refault_anon, d_refault_file, d_pgscan, d_pgsteal;
	uint64_t d_thp_fault_alloc, d_thp_collapse_alloc, d_swpout_fallback;
	uint64_t d_swap_fail; /* swap.events max + fail */
	uint64_t d_pswpin, d_pswpout, d_thp_scanned, d_thp_young, d_split_avoided, d_size_limited;
	uint64_t d_margin_anon, d_margin_swpin, d_margin_shmem, d_margin_collapse;
	uint64_t d_usage_usec, d_user_usec, d_system_usec;
	int64_t d_current_bytes, d_anon_bytes, d_anon_thp_bytes, d_swap_bytes; /* signed: growth */
	unsigned anomalies; /* counters that went backwards on the same inode: re-based, delta 0 */
};

/* 0, or -ESTALE when @cur is another cgroup (inode) or time did not advance:
 * the caller starts again from @cur. Absent on either side gives 0. */
int memcg_delta(const struct memcg_sample *prev, const struct memcg_sample *cur,
	struct memcg_delta *ret);

/* A difference as a rate. */
static inline double memcg_per_sec(uint64_t n, const struct memcg_delta *d)
{
	return (double)n * 1e6 / (double)d->dt_usec;
}

/* Room before the limit in bytes when clean inactive page cache is counted as
 * room: margin + max(0, inactive_file - file_dirty - file_writeback);
 * VALUE_MAX when unlimited, VALUE_ABSENT when the margin is. */
uint64_t memcg_margin_with_cache(const struct memcg_sample *s);

/* Charged memory that no LRU explains: current - anon - file - kernel in bytes,
 * saturated at 0; freed parts of large folios waiting for a split show here.
 * VALUE_ABSENT when one of the four is (memory.stat has kernel since 5.18). */
uint64_t memcg_slack_bytes(const struct memcg_sample *s);

/* anon_thp / anon in 0..1 (0 without anonymous memory), or -1 when the kernel
 * does not say. */
double memcg_thp_share(const struct memcg_sample *s);

#endif
