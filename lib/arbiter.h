/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Many wishes, one set of global switches: the arbiter weighs harm against
 * benefit for every size, in CPU microseconds per second so that they add, and
 * says what each switch should hold and on whose account. Called by loop.c
 * after the controllers have stepped; it never looks at samples and never
 * writes. One place for vetoes, for the shield of protected groups and for
 * the caps of the host rules.
 *
 * For each size: `always` (the level that the groups ask for) if
 * benefit > 1.25 x harm and nobody vetoes, `madvise` from 0.8 x on, else
 * `never`. A hurt group may veto if its policy says Protect=yes or if it holds
 * at least 5 % of all anonymous memory; a veto that overrides a larger benefit
 * lasts for at most half of any ten minutes. A protected group that is not
 * hurt keeps `madvise` against unprotected ones.
 */
#ifndef MTHPD_ARBITER_H
#define MTHPD_ARBITER_H

#include "controller.h"
#include "hostrules.h"

#define ARBITER_VETO_USEC (UINT64_C(300) * 1000000)
#define ARBITER_VETO_SHARE 0.05

struct arbiter_vote {
	struct ctl_wish wish;
	unsigned weight; /* 1..10000, 100 = neutral */
	bool protect;
	bool limits;     /* the wish is bounded by the policy, not by evidence */
	double anon_share; /* of all anonymous memory, 0..1 */
	uint64_t min_kb, max_kb, max_ptes_none; /* of the policy; VALUE_ABSENT = none */
	void *group;     /* handed back as the cause */
};

struct arbiter_size {
	enum plan_level level;
	const char *word;
	enum reason reason;
	void *cause; /* the group with the largest say, NULL = the host */
	/* state */
	bool touched; /* was below its start value once: the start value is no longer sacrosanct */
	uint64_t veto_left_usec;
	bool veto_spent;
};

struct arbiter {
	uint64_t last_usec;
	struct arbiter_size size[THP_SIZES_MAX];
	uint64_t shmem_max_kb; /* shmem sizes above this are off; VALUE_MAX = none is */
	void *shmem_cause;
	/* VALUE_ABSENT / "" = not steered */
	uint64_t max_ptes_none, khugepaged_defrag, scan_sleep_millisecs;
	const char *defrag;
	enum reason ptes_reason, defrag_reason, scan_reason;
	void *ptes_cause, *defrag_cause;
};

void arbiter_init(struct arbiter *a, const struct plan *p, uint64_t now_usec);
/* Decides anew. The cause pointers are those of the votes. */
void arbiter_decide(struct arbiter *a, const struct plan *p, const struct arbiter_vote *votes,
	size_t n_votes, const struct hostrules *host, uint64_t now_usec);
/* True when the arbiter gives this group less than its wish. */
bool arbiter_clamps(const struct arbiter *a, const struct plan *p, const struct ctl_wish *w);

#endif
