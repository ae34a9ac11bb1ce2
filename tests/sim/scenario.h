/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is simulated and what the result must keep. The tables are in
 * scenarios-tuning.c (to look at while constants of the controller are chosen)
 * and scenarios-judging.c (never looked at for that: other sizes, other mixes,
 * other seeds). score.c runs one and judges it.
 */
#ifndef MTHPD_SIM_SCENARIO_H
#define MTHPD_SIM_SCENARIO_H

#include "law.h"

#define SPECS_MAX 5
#define NO_LIMIT (-1.0)
#define NO_DROP (-2.0)

/* Shares are 0..1. NO_LIMIT = not judged. */
struct limits {
	double regret;     /* work lost against the best fixed setting of the whole run */
	double loss;       /* work lost by any one group against that setting */
	double gap;	   /* work lost against the best setting of each phase */
	double drop_sec;   /* from the start to the first size taken away; NO_DROP = none may be */
	double settle_sec; /* after it at most two decisions in any ten minutes; 0 = not judged */
	unsigned changes;  /* decisions in the whole run, 0 = not judged */
	unsigned oom;      /* kills more than under the best fixed setting */
	double looks;      /* samples per group and minute, 0 = not judged */
};

/* In every scenario: mthpd may not lose more than this against the values that
 * it found at start. Raising small sizes costs a few percent where small maps
 * are hardly used, and nothing on a stock kernel tells. */
#define HARM_MAX 0.05

struct scenario {
	const char *name, *what;
	unsigned seconds;
	uint64_t seed;
	enum start_values start;
	const char *config; /* NULL = the defaults */
	struct limits limits;
	struct group_spec specs[SPECS_MAX];
};

extern const struct scenario scenarios_tuning[], scenarios_judging[];
extern const unsigned n_scenarios_tuning, n_scenarios_judging;

/* What came out; work is relative to the best fixed setting of each phase. */
struct score {
	double mthpd, best, nothing, never, bang_bang; /* mean share of the oracle's work */
	const char *best_name;
	double regret, loss, gap, drop_sec, settle_sec;
	const char *loser; /* the group of @loss */
	double harm, looks;
	unsigned changes, per_minute, per_ten_minutes, oom_kills, oom_best, bang_changes;
	bool passed, nothing_passes, never_passes;
	char fault[160];   /* the limits that were missed */
};

void scenario_run(const struct scenario *s, uint64_t seed, bool trace, struct score *ret);

#endif
