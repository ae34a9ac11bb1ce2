/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim: the control loop against toy memory cgroups in virtual time.
 *
 *   sim --list | --all | --calibrate | NAME... [--seed=N] [--trace]
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "scenario.h"

static unsigned passed, failed;
static bool nothing_always_passes = true, never_always_passes = true;

static void print_share(const char *name, double v)
{
	printf(" %s %5.1f%%", name, 100 * v);
}

static void run_one(const struct scenario *s, uint64_t seed, bool trace)
{
	struct score sc;

	scenario_run(s, seed ? seed : s->seed, trace, &sc);
	nothing_always_passes &= sc.nothing_passes;
	never_always_passes &= sc.never_passes;
	printf("%-24s", s->name);
	print_share("mthpd", sc.mthpd);
	print_share("best", sc.best);
	printf(" (%-5s)", sc.best_name);
	print_share("nothing", sc.nothing);
	print_share("never", sc.never);
	print_share("bang", sc.bang_bang);
	printf(" | regret %5.1f%% loss %5.1f%% %-10s drop %4.0f s settle %4.0f s changes %3u, %u/min, "
	       "%u/10 min oom %u | %s",
		100 * sc.regret, 100 * sc.loss, sc.loser, sc.drop_sec, sc.settle_sec, sc.changes,
		sc.per_minute, sc.per_ten_minutes, sc.oom_kills, sc.passed ? "pass" : "FAIL: ");
	printf("%s\n", sc.fault);
	fflush(stdout);
	passed += sc.passed;
	failed += !sc.passed;
}

static const struct scenario *find(const char *name)
{
	for (unsigned i = 0; i < n_scenarios_tuning; i++)
		if (!strcmp(scenarios_tuning[i].name, name))
			return &scenarios_tuning[i];
	for (unsigned i = 0; i < n_scenarios_judging; i++)
		if (!strcmp(scenarios_judging[i].name, name))
			return &scenarios_judging[i];
	return NULL;
}

static void check(const char *what, bool good)
{
	printf("%-24s %s\n", what, good ? "pass" : "FAIL");
	passed += good;
	failed += !good;
}

static void run_all(uint64_t seed)
{
	check("calibration", calibrate(false));
	for (unsigned i = 0; i < n_scenarios_tuning; i++)
		run_one(&scenarios_tuning[i], seed, false);
	for (unsigned i = 0; i < n_scenarios_judging; i++)
		run_one(&scenarios_judging[i], seed, false);
	/* Limits that doing nothing, or always saying never, would keep are no limits. */
	check("doing-nothing-fails", !nothing_always_passes);
	check("always-never-fails", !never_always_passes);
}

static void list(void)
{
	for (unsigned i = 0; i < n_scenarios_tuning; i++)
		printf("%-24s tuning   %s\n", scenarios_tuning[i].name, scenarios_tuning[i].what);
	for (unsigned i = 0; i < n_scenarios_judging; i++)
		printf("%-24s judging  %s\n", scenarios_judging[i].name, scenarios_judging[i].what);
}

static int usage(FILE *f)
{
	fputs("sim --list | --all | --calibrate | NAME... [--seed=N] [--trace]\n", f);
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "list", no_argument, NULL, 'l' },
		{ "all", no_argument, NULL, 'a' }, { "calibrate", no_argument, NULL, 'c' },
		{ "seed", required_argument, NULL, 's' }, { "trace", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	bool all = false, trace = false;
	uint64_t seed = 0;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'l') {
			list();
			return 0;
		}
		if (o == 'c')
			return calibrate(true) ? 0 : 1;
		if (o == 'h')
			return usage(stdout);
		if (o == '?')
			return usage(stderr);
		all |= o == 'a';
		trace |= o == 't';
		if (o == 's')
			seed = strtoull(optarg, NULL, 10);
	}
	if (all == (optind < argc))
		return usage(stderr);
	if (all)
		run_all(seed);
	for (int i = optind; i < argc; i++) {
		const struct scenario *s = find(argv[i]);

		if (!s) {
			fprintf(stderr, "sim: no scenario %s (see --list)\n", argv[i]);
			return 2;
		}
		run_one(s, seed, trace);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
