/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Scenarios that no constant of the controller was chosen on. */
#include "scenario.h"

const struct scenario scenarios_judging[] = {
	{
		.name = "j-fill",
		.what = "fresh memory in an ample limit, smaller maps and more user time",
		.seconds = 300, .seed = 1011, .start = START_PMD,
		.limits = { .regret = .06, .loss = .06, .gap = NO_LIMIT, .drop_sec = NO_DROP, .settle_sec = 30 },
		.specs = { { .path = "fill", .limit_mib = 80,
			.phases = { { LOAD_FILL, 300, 20, .think_usec = 20 } } } },
	},
};
const unsigned n_scenarios_judging = sizeof(scenarios_judging) / sizeof(scenarios_judging[0]);
