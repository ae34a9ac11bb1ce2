/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sim: the control loop against toy memory cgroups in virtual time.
 *
 *   sim --list | --all | --calibrate | NAME... [--seed=N] [--seeds=N] [--trace]
 *
 * --seeds=N runs each named scenario with N seeds and gives the mean of the
 * regret with its bootstrap 95 % interval: a claim to be better than every fixed
 * setting takes an upper end below zero.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "scenario.h"

#define RESAMPLES 2000
#define SEEDS_MAX 100

static unsigned passed, failed;
static bool nothing_always_passes = true, never_always_passes = true;

static void print_share(const char *name, double v)
{
	printf(" %s %5.1f%%", name, 100 * v);
}

/* Returns the regret. */
static double run_one(const struct scenario *s, uint64_t seed, bool trace)
{
	struct score sc;

	scenario_run(s, seed ? seed : s->seed, trace, &sc);
	nothing_always_passes &= sc.nothing_passes;
	never_always_passes &= sc.never_passes;
	printf("%-22s", s->name);
	print_share("mthpd", sc.mthpd);
	print_share("best", sc.best);
	printf(" (%-5s)", sc.best_name);
	print_share("start", sc.nothing);
	print_share("never", sc.never);
	print_share("bang", sc.bang_bang);
	printf(" | regret %5.1f%% loss %5.1f%% %-9s drop ", 100 * sc.regret, 100 * sc.loss,
		sc.loser);
	if (sc.drop_sec >= 0)
		printf("%3.0f s", sc.drop_sec);
	else
		printf(" none");
	printf(" settle %3.0f s changes %2u (bang %3u), %u/min, %u/10 min, oom %u, looks %4.1f/min "
	       "| %s%s\n",
		sc.settle_sec, sc.changes, sc.bang_changes, sc.per_minute, sc.per_ten_minutes,
		sc.oom_kills, sc.looks, sc.passed ? "pass" : "FAIL: ", sc.fault);
	fflush(stdout);
	passed += sc.passed;
	failed += !sc.passed;
	return sc.regret;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bootstrap(const double *v, unsigned n, double *ret_low, double *ret_high)
{
	static double mean[RESAMPLES];
	uint64_t x = UINT64_C(0x9E3779B97F4A7C15);

	for (unsigned i = 0; i < RESAMPLES; i++) {
		mean[i] = 0;
		for (unsigned k = 0; k < n; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			mean[i] += v[(x >> 32) * n >> 32] / n;
		}
	}
	qsort(mean, RESAMPLES, sizeof(mean[0]), compare);
	*ret_low = mean[RESAMPLES / 40];
	*ret_high = mean[RESAMPLES - 1 - RESAMPLES / 40];
}

static void run_seeds(const struct scenario *s, uint64_t seed, unsigned n)
{
	double regret[SEEDS_MAX], sum = 0, low, high;

	for (unsigned i = 0; i < n; i++) {
		regret[i] = run_one(s, (seed ? seed : s->seed) + i, false);
		sum += regret[i];
	}
	bootstrap(regret, n, &low, &high);
	printf("%-22s regret over %u seeds: %.2f%%, 95 %% interval %.2f%% .. %.2f%%\n", s->name, n,
		100 * sum / n, 100 * low, 100 * high);
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
	fputs("sim --list | --all | --calibrate | NAME... [--seed=N] [--seeds=N] [--trace]\n", f);
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"list", no_argument, NULL, 'l'},
		{"all", no_argument, NULL, 'a'}, {"calibrate", no_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'}, {"seeds", required_argument, NULL, 'n'},
		{"trace", no_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	bool all = false, trace = false;
	unsigned long seeds = 1;
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
		if (o == 'n')
			seeds = strtoul(optarg, NULL, 10);
	}
	if (all == (optind < argc) || !seeds || seeds > SEEDS_MAX)
		return usage(stderr);
	if (all)
		run_all(seed);
	for (int i = optind; i < argc; i++) {
		const struct scenario *s = find(argv[i]);

		if (!s) {
			fprintf(stderr, "sim: no scenario %s (see --list)\n", argv[i]);
			return 2;
		}
		if (seeds > 1)
			run_seeds(s, seed, (unsigned)seeds);
		else
			run_one(s, seed, trace);
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
