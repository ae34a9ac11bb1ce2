/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdio.h>
#include <string.h>

#include "scenario.h"

#define CHANGES_MAX 4096
#define STEADY_CHANGES 2
#define MINUTE_CHANGES 6

/* One run of one law. */
struct run {
	uint64_t work[WORLD_GROUPS_MAX][LOAD_PHASES_MAX];
	double seconds[WORLD_GROUPS_MAX][LOAD_PHASES_MAX];
	unsigned n_groups;
	unsigned change_sec[CHANGES_MAX], n_changes;
	unsigned drop_sec; /* first second with fewer sizes than at the start, 0 = none */
	uint64_t oom_kills, samples;
	char path[WORLD_GROUPS_MAX][48];
};

static unsigned count_specs(const struct scenario *s)
{
	unsigned n = 0;

	while (n < SPECS_MAX && s->specs[n].path)
		n++;
	return n;
}

static bool fewer(const struct world *w, unsigned all, unsigned asked)
{
	return (all & ~w->orders_all) || (asked & ~w->orders_asked);
}

static void run_law(
	const struct scenario *s, uint64_t seed, const struct law *law, bool trace, struct run *ret)
{
	static struct world w;
	unsigned all, asked;
	void *state = NULL;

	memset(ret, 0, sizeof(*ret));
	world_init(&w, s->specs, count_specs(s), seed);
	if (law->start)
		state = law->start(&w, s->start, s->config ? s->config : "");
	else
		world_set_max_order(&w, law->max_order);
	all = w.orders_all;
	asked = w.orders_asked;
	for (unsigned sec = 1; sec <= s->seconds; sec++) {
		world_second(&w);
		if (!law->second || !law->second(state, &w, trace))
			continue;
		if (ret->n_changes < CHANGES_MAX)
			ret->change_sec[ret->n_changes++] = sec;
		if (!ret->drop_sec && fewer(&w, all, asked))
			ret->drop_sec = sec;
	}
	if (law->end)
		law->end(state);
	ret->n_groups = w.n_groups;
	ret->samples = w.samples;
	for (unsigned g = 0; g < w.n_groups; g++) {
		memcpy(ret->work[g], w.groups[g].load.work, sizeof(ret->work[g]));
		for (unsigned p = 0; p < LOAD_PHASES_MAX; p++)
			ret->seconds[g][p] = w.groups[g].load.phases[p].seconds;
		memcpy(ret->path[g], w.groups[g].path, sizeof(ret->path[g]));
		ret->oom_kills += w.groups[g].plant->oom_kill;
	}
	world_free(&w);
}

/* ---- figures ----------------------------------------------------------- */

/* Each phase counts by its length. */
static double group_share(const struct run *r, const struct run *oracle, unsigned g)
{
	double sum = 0, seconds = 0;

	for (unsigned p = 0; p < LOAD_PHASES_MAX; p++)
		if (oracle->work[g][p]) {
			sum += r->seconds[g][p] * (double)r->work[g][p] /
			       (double)oracle->work[g][p];
			seconds += r->seconds[g][p];
		}
	return seconds > 0 ? sum / seconds : 1;
}

static double share(const struct run *r, const struct run *oracle)
{
	double sum = 0;

	for (unsigned g = 0; g < r->n_groups; g++)
		sum += group_share(r, oracle, g);
	return sum / r->n_groups;
}

static double worst_loss(
	const struct run *r, const struct run *best, const struct run *oracle, const char **ret_who)
{
	double worst = -1;

	for (unsigned g = 0; g < r->n_groups; g++) {
		double loss = 1 - group_share(r, oracle, g) / group_share(best, oracle, g);

		if (loss <= worst)
			continue;
		worst = loss;
		*ret_who = r->path[g];
	}
	return worst;
}

static unsigned most_within(const struct run *r, unsigned window, unsigned from)
{
	unsigned most = 0;

	for (unsigned i = 0; i < r->n_changes; i++) {
		unsigned n = 0;

		if (r->change_sec[i] <= from)
			continue;
		while (i + n < r->n_changes && r->change_sec[i + n] < r->change_sec[i] + window)
			n++;
		if (n > most)
			most = n;
	}
	return most;
}

/* The first second after which the decisions keep to the steady rate. */
static unsigned settled_at(const struct run *r)
{
	for (unsigned i = 0; i <= r->n_changes; i++) {
		unsigned from = i ? r->change_sec[i - 1] : 0;

		if (most_within(r, 600, from) <= STEADY_CHANGES)
			return from;
	}
	return 0;
}

/* ---- judgement --------------------------------------------------------- */

static void miss(struct score *sc, const char *what)
{
	size_t n = strlen(sc->fault);

	sc->passed = false;
	snprintf(sc->fault + n, sizeof(sc->fault) - n, "%s%s", n ? ", " : "", what);
}

static bool over(double value, double limit)
{
	return limit > NO_LIMIT && value > limit;
}

static void judge(const struct limits *l, struct score *sc)
{
	sc->passed = true;
	if (over(sc->regret, l->regret))
		miss(sc, "regret");
	if (over(sc->loss, l->loss))
		miss(sc, "loss");
	if (over(sc->gap, l->gap))
		miss(sc, "gap");
	if (l->drop_sec > 0 && (sc->drop_sec <= 0 || sc->drop_sec > l->drop_sec))
		miss(sc, "first drop");
	if (l->drop_sec <= NO_DROP && sc->drop_sec > 0)
		miss(sc, "drop");
	if (l->settle_sec > 0 && sc->settle_sec > l->settle_sec)
		miss(sc, "settle");
	if (l->changes && sc->changes > l->changes)
		miss(sc, "changes");
	if (sc->per_minute > MINUTE_CHANGES)
		miss(sc, "changes per minute");
	if (sc->oom_kills > sc->oom_best + l->oom)
		miss(sc, "oom kills");
	if (over(sc->harm, HARM_MAX))
		miss(sc, "harm");
	if (l->looks > 0 && sc->looks > l->looks)
		miss(sc, "looks");
}

/* Would a law that never decides anything keep the limits on work? */
static bool passes(const struct limits *l, const struct run *r, const struct run *best,
	const struct run *oracle)
{
	const char *who;

	return !over(1 - share(r, oracle) / share(best, oracle), l->regret) &&
	       !over(worst_loss(r, best, oracle, &who), l->loss) &&
	       !over(1 - share(r, oracle), l->gap);
}

static void find_oracle(const struct run *statics, struct run *ret)
{
	*ret = statics[0];
	for (unsigned i = 1; i < LAW_STATICS; i++)
		for (unsigned g = 0; g < ret->n_groups; g++)
			for (unsigned p = 0; p < LOAD_PHASES_MAX; p++)
				if (statics[i].work[g][p] > ret->work[g][p])
					ret->work[g][p] = statics[i].work[g][p];
}

void scenario_run(const struct scenario *s, uint64_t seed, bool trace, struct score *ret)
{
	static struct run statics[LAW_STATICS], oracle, mthpd, nothing, bang;
	static char loser[48];
	unsigned best = 0;
	struct score sc = {.drop_sec = -1};
	const char *who = "";

	for (unsigned i = 0; i < LAW_STATICS; i++)
		run_law(s, seed, &law_static[i], false, &statics[i]);
	find_oracle(statics, &oracle);
	for (unsigned i = 1; i < LAW_STATICS; i++)
		if (share(&statics[i], &oracle) > share(&statics[best], &oracle))
			best = i;
	if (s->start == START_ALL)
		nothing = statics[LAW_STATICS - 1];
	else
		run_law(s, seed, &law_nothing, false, &nothing);
	run_law(s, seed, &law_bang_bang, false, &bang);
	run_law(s, seed, &law_mthpd, trace, &mthpd);
	sc.mthpd = share(&mthpd, &oracle);
	sc.best = share(&statics[best], &oracle);
	sc.best_name = law_static[best].name;
	sc.nothing = share(&nothing, &oracle);
	sc.never = share(&statics[0], &oracle);
	sc.bang_bang = share(&bang, &oracle);
	sc.regret = 1 - sc.mthpd / sc.best;
	sc.gap = 1 - sc.mthpd;
	sc.harm = 1 - sc.mthpd / sc.nothing;
	sc.looks = (double)mthpd.samples * 60 / s->seconds / mthpd.n_groups;
	sc.bang_changes = bang.n_changes;
	sc.loss = worst_loss(&mthpd, &statics[best], &oracle, &who);
	snprintf(loser, sizeof(loser), "%s", who);
	sc.loser = loser;
	sc.changes = mthpd.n_changes;
	sc.per_minute = most_within(&mthpd, 60, 0);
	if (mthpd.drop_sec)
		sc.drop_sec = mthpd.drop_sec;
	sc.settle_sec = settled_at(&mthpd);
	sc.per_ten_minutes = most_within(&mthpd, 600, (unsigned)sc.settle_sec);
	sc.oom_kills = (unsigned)mthpd.oom_kills;
	sc.oom_best = (unsigned)statics[best].oom_kills;
	judge(&s->limits, &sc);
	sc.nothing_passes = passes(&s->limits, &nothing, &statics[best], &oracle);
	sc.never_passes = passes(&s->limits, &statics[0], &statics[best], &oracle);
	*ret = sc;
}
