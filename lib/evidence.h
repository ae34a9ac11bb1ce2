/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a controller makes of one tick before it decides anything: rates, room,
 * how many ticks in a row something has been so, and what the work costs.
 * Called by controller.c only; fills the controller's fields, never its state.
 */
#ifndef MTHPD_EVIDENCE_H
#define MTHPD_EVIDENCE_H

#include "controller.h"

#define SEC UINT64_C(1000000)

/* Room that a group must have before it counts as nearly full: the memcg-margin
 * discussion uses 512 pages; 64 pages for each CPU sit in per-CPU stocks. */
#define MARGIN_PAGES 512
#define STOCK_PAGES 64
#define INFLOW_SEC 1.2
/* Anonymous pages that return from swap per second before swap counts as cost:
 * a stream through the page cache makes a handful return now and then. */
#define REFAULT_PER_SEC 100.0
/* Growth of more than this many pages per page fault means large folios are
 * being filled in; with nothing left of the limit that is bloat. */
#define BLOAT_PAGES_PER_FAULT 2.0
#define BLOAT_PAGES_MIN 256
/* Strong pressure without a counter of the limit moving: all tasks stall for
 * four times PressureHigh and less than a twentieth of the limit is left. */
#define STRONG_FULL 4.0
#define STRONG_MARGIN_DIV 20
/* Pages back from swap per major fault: 1.0 with single pages, 1.8 and more with
 * large folios. */
#define AMPLIFIED 1.1
/* Fresh pages per second that make raising worth a try, for how many ticks. */
#define RAISE_PAGES_PER_SEC 1000.0
#define RAISE_TICKS 3
#define BENEFIT_FAULTS_PER_SEC 500.0
/* The user/system split is sampled per tick on most kernels: below this much
 * user time in a window, or this share of all CPU time, it says nothing. */
#define COST_USER_MIN_USEC 3e5
#define COST_USER_SHARE 0.10
#define COST_REGIME 1.6
#define EXONERATE_MIN_USEC (30 * SEC)
#define EXONERATE_MAX_USEC (600 * SEC)

/* All of one tick's evidence. */
void evidence_observe(struct controller *c, const struct config_controller *cfg,
	const struct ctl_input *in);

/* Less room than counts as nearly full (clean page cache is room). */
bool evidence_nearly_full(const struct controller *c);

/* Signs that the group really has large folios: whole ones come back from swap,
 * memory grows faster than it is touched, or the kernel says so. Neither major
 * faults nor growth say nothing, which counts as a sign. */
bool evidence_uses_large(const struct controller *c, const struct ctl_input *in);

void evidence_cost_add(struct ctl_cost *a, const struct memcg_delta *d);
/* J = (system + w/2 * some) / user with w the CPUs kept busy; -1 when user
 * time is too small a part of it to be a measure of progress. */
double evidence_cost(const struct ctl_cost *a, unsigned cpus);
/* Relative noise of a comparison: user time is sampled 250 times a second, and
 * a count of n samples is good to 1/sqrt(n). */
double evidence_cost_noise(const struct ctl_cost *a, const struct ctl_cost *b);

#endif
