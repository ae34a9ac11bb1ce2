# SPDX-License-Identifier: LGPL-2.1-or-later
import statistics

from pgtest import guest, kernel, oom_kills, rate
from vmtest import Claim, ratio, seeds

TITLE = "four groups side by side that want different things: each near its own best"

GROUPS = ("fill", "random", "seq", "sparse")
BEST = 0.97
SETTLED = 30  # seconds, reported apart
# By hand, the same for all groups, or each its own; `nothing` is the kernel alone.
FIXED = ("best", "nothing", "open", "small")
GLOBAL = ("nothing", "open", "small")
# The mean slow-down under the best single setting, against per group. On this kernel
# the best is its own gate, which already costs only the scans.
WORSE = 1.05


def seconds(long):
    return SETTLED + (120 if long else 40)


def guests(long):
    found = [guest("t_colocation.sh", seed, seconds(long), what, *GROUPS, seed=seed, key=what,
                   timeout=3600, weight=seconds(long))
             for seed in seeds(long)
             for what in FIXED + ("mthpd",) + (("global",) if long else ())]
    if long:
        found.append(guest("t_colocation.sh", 1, seconds(long), "stock", *GROUPS, key="stock",
                           kernel=kernel("--stock"), timeout=3600, weight=seconds(long)))
    return found


def rates(run, start=SETTLED):
    return {g: rate(run, g, start, run.guest.args[1]) for g in GROUPS}


def own_best(fixed):
    """Each group's best under any of the fixed settings, all groups running."""
    found = [rates(run) for run in fixed]
    return {g: max(r[g] for r in found) for g in GROUPS}


def slow_down(run, best):
    """Mean over the groups of the time that the same work takes, 1 = its own best."""
    return statistics.mean(best[g] / max(rates(run)[g], 1e-9) for g in GROUPS)


def claims(run, best, of):
    now = rates(run)
    single = min(slow_down(of[what], best) for what in GLOBAL)
    return [Claim(f"{g}: touches per second against its own best ({best[g]:.0f})",
                  ratio(now[g], best[g]), ">=", BEST) for g in GROUPS] + [
        Claim("mean slow-down under the best single setting, against this one",
              single / slow_down(run, best), ">=", WORSE),
        Claim("OOM kills more than with small pages only",
              oom_kills(run, GROUPS) - oom_kills(of["small"], GROUPS), "<=", 0)]


def judge(test, runs):
    mine = {}
    for run in runs:
        mine.setdefault(run.guest.seed, {})[run.guest.key] = run
    best = {seed: own_best([of[what] for what in FIXED]) for seed, of in mine.items()}
    test.claims([claims(of["mthpd"], best[seed], of) for seed, of in mine.items()])
    for what in FIXED + ("global", "stock", "mthpd"):
        for seed, of in mine.items():
            if what in of:
                now, early = rates(of[what]), {g: rate(of[what], g, 0, SETTLED) for g in GROUPS}
                test.note(f"{what:8} seed {seed}: " + "  ".join(
                    f"{g} {now[g]:.0f} ({now[g] / best[seed][g]:.2f})" for g in GROUPS) +
                    f"  slow-down {slow_down(of[what], best[seed]):.2f};  first {SETTLED} s: " +
                    " ".join(f"{early[g]:.0f}" for g in GROUPS))
    for what in ("nothing", "small", "global"):
        found = [claims(of[what], best[seed], of) for seed, of in mine.items() if what in of]
        if found:
            test.control(f"{what} instead of mthpd", found)
