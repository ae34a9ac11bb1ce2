/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What mthpd may write on this machine: for every managed size its baseline,
 * its ceiling, and the words for each level in between; and the ladder of
 * rungs that is built from the sizes the kernel offers. Rebuilt whenever the
 * baseline, the top-level switch or the configuration changes. Called by the
 * loop; knows no pressure and no groups. The one place where the ceiling of
 * design.md section 4 is computed.
 */
#ifndef MTHPD_PLAN_H
#define MTHPD_PLAN_H

#include "config.h"
#include "thp.h"

/* How much of a size is allowed, from weak to strong. */
enum plan_level {
	PLAN_OFF,     /* never */
	PLAN_ASKED,   /* madvise, or the baseline where that is weaker */
	PLAN_BASE,    /* what stood there at the start */
	PLAN_RAISED,  /* the ceiling */
};

struct plan_size {
	uint64_t size_kb;
	bool managed;           /* has a readable `enabled` and is named by Sizes= */
	enum thp_mode baseline; /* never, madvise, always or inherit */
	enum thp_mode ceiling;  /* the same; effective(ceiling) >= what a step up writes */
	bool lists_madvise, lists_inherit, lists_always, lists_never;
};

/* A size's shmem_enabled, steered only with Shmem=yes: its start value, or never. */
struct plan_shmem {
	uint64_t size_kb;
	char base[CHOICE_LEN];
};

/* Rung r allows the sizes up to max_kb[r]; rung 0 allows none, the highest all. */
#define PLAN_RUNGS_MAX 16

struct plan {
	bool legacy;       /* no per-size files: sizes[0] is the top-level switch */
	bool boot_never;   /* transparent_hugepage=never on the command line */
	unsigned page_kb;
	uint64_t pmd_kb, pmd_nr;
	enum thp_mode top; /* baseline of the top-level switch */
	unsigned n_sizes;  /* ascending */
	struct plan_size sizes[THP_SIZES_MAX];
	unsigned n_shmem; /* sizes whose shmem_enabled may be lowered */
	struct plan_shmem shmem[THP_SIZES_MAX];
	unsigned n_rungs;
	uint64_t rung_max_kb[PLAN_RUNGS_MAX];
	unsigned raise_rung; /* the loop raises sizes above their baseline up to this rung only */
	/* numbers: VALUE_ABSENT where the file is not there */
	uint64_t ptes_base;        /* baseline of max_ptes_none, capped by [Limits] MaxPtesNone */
	bool ptes_limited;         /* it is that cap */
	uint64_t ptes_recent;      /* after recent pressure; = ptes_base where the kernel honours only 0 and PMD_NR-1 */
	bool ptes_two_values;      /* mTHP collapse with a size below PMD: 0 or PMD_NR-1 only */
	uint64_t khugepaged_defrag; /* baseline */
	uint64_t scan_sleep_millisecs;
	uint64_t shrink_underused;
	char defrag_base[CHOICE_LEN], defrag_low[CHOICE_LEN]; /* "" = not steered */
	uint64_t pmd_too_large_kb; /* the PMD size if it is a risk on this host by itself, else 0 */
};

/* @tree holds the baseline values (not what mthpd wrote). @mem_total_kb may be
 * VALUE_ABSENT. Always succeeds; a size that cannot be steered is unmanaged. */
void plan_build(const struct thp_tree *tree, const struct config *c, bool boot_never,
	uint64_t mem_total_kb, struct plan *ret);

/* The word to write for a managed size at a level; always one that the file lists. */
const char *plan_word(const struct plan *p, const struct plan_size *s, enum plan_level level);
/* The effective strength of that word: THP_NEVER, THP_MADVISE or THP_ALWAYS. */
enum thp_mode plan_strength(const struct plan *p, const struct plan_size *s, enum plan_level level);

/* The level that a group at (@rung, @raised) allows for a size. */
enum plan_level plan_rung_level(
	const struct plan *p, const struct plan_size *s, unsigned rung, bool raised);
/* The same for one that has sizes up to @max_kb. */
enum plan_level plan_size_level(
	const struct plan *p, const struct plan_size *s, uint64_t max_kb, bool raised);

/* The next rung above or below @rung with a visible effect, carried on past
 * rungs that change nothing; @rung itself when there is none. */
unsigned plan_rung_up(const struct plan *p, unsigned rung, bool raised);
unsigned plan_rung_down(const struct plan *p, unsigned rung, bool raised);
/* The highest rung whose largest size is at most @size_kb. */
unsigned plan_rung_for(const struct plan *p, uint64_t size_kb);
/* The largest size that a group at @rung has within its policy's bounds, which hold to the
 * size: the ladder's rungs are coarser. In KiB; VALUE_ABSENT = no such bound; VALUE_MAX = any. */
uint64_t plan_rung_kb(const struct plan *p, unsigned rung, uint64_t min_kb, uint64_t max_kb);
static inline unsigned plan_top(const struct plan *p)
{
	return p->n_rungs - 1;
}
/* True when raising would change something: some size up to raise_rung stands below its ceiling. */
bool plan_can_raise(const struct plan *p);
/* The largest size that the top rung leaves on, in KiB, 0 when none is. */
uint64_t plan_largest_on_kb(const struct plan *p, unsigned rung, bool raised);
/* The same of the sizes up to @max_kb. */
uint64_t plan_largest_below_kb(const struct plan *p, unsigned rung, bool raised, uint64_t max_kb);

#endif
