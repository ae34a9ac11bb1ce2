/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A picture of /sys/kernel/mm/transparent_hugepage (mm/huge_memory.c,
 * mm/khugepaged.c): which sizes there are, what every switch says, what the
 * per-size counters count. Taken relative to a directory descriptor. Called by
 * the engine at start, at each audit and when inputs of the host rules are
 * due. Never writes; never assumes 2 MiB, 511 or a list of sizes.
 */
#ifndef MTHPD_THP_H
#define MTHPD_THP_H

#include "parse.h"

#define THP_SIZES_MAX 24
#define THP_PATH_MAX 64

/* From weak to strong; inherit resolves through the top-level switch. */
enum thp_mode {
	THP_MODE_NONE = -1, /* absent or unparseable */
	THP_NEVER,
	THP_MADVISE,
	THP_ALWAYS,
	THP_INHERIT,
};
const char *thp_mode_to_string(enum thp_mode m);
enum thp_mode thp_mode_from_string(const char *s);

struct thp_size {
	uint64_t size_kb;
	struct choice enabled; /* n = 0: no file (a shmem-only size) or unparseable */
	struct choice shmem_enabled;
	bool enabled_unparseable; /* the file is there, and cannot be read or is not understood */
};

struct thp_tree {
	unsigned page_kb;
	uint64_t pmd_kb;     /* hpage_pmd_size, else the largest directory, else what one page of
				8-byte entries maps: 2048, 32768, 524288 for 4, 16, 64 KiB pages */
	uint64_t pmd_nr;     /* pmd_kb / page_kb */
	bool per_size;       /* at least one hugepages-<n>kB/enabled */
	bool mthp_collapse;  /* a per-size stats directory has a collapse_* counter */
	bool size_swpin;     /* per-size stats/swpin */
	bool unparseable;    /* some choice file cannot be read or is not understood */
	char unparseable_path[THP_PATH_MAX]; /* the first one */
	unsigned n_sizes;    /* ascending by size_kb */
	struct thp_size sizes[THP_SIZES_MAX];
	struct choice enabled, shmem_enabled, defrag;
	/* khugepaged/ and shrink_underused: VALUE_ABSENT where the file is not there */
	uint64_t max_ptes_none, max_ptes_swap, max_ptes_shared, pages_to_scan,
		scan_sleep_millisecs, alloc_sleep_millisecs, khugepaged_defrag, shrink_underused;
	uint64_t full_scans, pages_collapsed;
};

/* Reads the whole directory at @dirfd. Entries that are not directories named
 * hugepages-<digits>kB are ignored; sizes are sorted; past THP_SIZES_MAX the
 * largest are kept. @page_kb is the base page size of the machine (or of the
 * fake tree). Returns 0, or -ENOENT when the directory has neither `enabled`
 * nor a size, or -EINVAL when @page_kb is 0; @ret is untouched then. A single
 * unreadable or unparseable file only marks its field. Reads at most 512 bytes
 * of a file; a longer one is unparseable. */
int thp_tree_read(int dirfd, unsigned page_kb, struct thp_tree *ret);

/* Base page size in KiB implied by a tree, for --root (the real machine asks
 * sysconf): the one whose page of 8-byte entries maps hpage_pmd_size, or
 * without that file the largest directory; else the smallest size with
 * `enabled` / 4 (mm: the lowest anonymous order is 2) if that is 4..64; else
 * @fallback_kb. */
unsigned thp_guess_page_kb(int dirfd, unsigned fallback_kb);

/* The mode of @c as an enum; THP_MODE_NONE when absent. */
enum thp_mode thp_choice_mode(const struct choice *c);
/* @mode with inherit resolved through @top. */
enum thp_mode thp_effective(enum thp_mode mode, enum thp_mode top);

/* What a size's shmem_enabled comes to (mm/shmem.c,
 * shmem_allowable_huge_orders): inherit is the top level's token; a top level
 * of deny is never for all, force is always for sizes that inherit and never
 * for the others. Points into the choices or to a constant; NULL = unknown. */
const char *thp_shmem_effective(const struct choice *size, const struct choice *top);

/* Path of a size's switch relative to the directory, e.g.
 * "hugepages-64kB/enabled". Returns @buf. */
const char *thp_size_path(char buf[THP_PATH_MAX], uint64_t size_kb, const char *file);

/* Per-size counters (hugepages-<n>kB/stats); VALUE_ABSENT where missing. */
struct thp_stats {
	uint64_t anon_fault_alloc, anon_fault_fallback, anon_fault_fallback_charge,
		anon_fault_fallback_margin /* our kernel */, swpin,
		swpin_fallback, swpout, swpout_fallback, split, split_failed, split_deferred,
		nr_anon, nr_anon_partially_mapped, collapse_alloc;
};
/* Returns 0 or -ENOENT when the size has no stats directory. */
int thp_stats_read(int dirfd, uint64_t size_kb, struct thp_stats *ret);

#endif
