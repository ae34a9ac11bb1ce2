# SPDX-License-Identifier: LGPL-2.1-or-later
import statistics

from pgtest import guest, oom_kills
from vmtest import Claim, seeds

TITLE = "groups that change what they do, out of step: near the best setting of each phase"

GROUPS = ("group0", "group1", "group2", "group3")
FIXED = ("nothing", "open", "small")
# A phase of 30 or 60 s at a fifth of a processor; a fifth of it goes by before
# anything can be seen, so this is far from what holds once settled (test 01).
NEAR = {60: 0.90, 30: 0.90}
# The kernel's own gate, the best setting for all phases, costs the scans only.
BETTER = 1.02


def guests(long):
    periods, count = ((60, 30), 8) if long else ((30,), 3)
    return [guest("t_phases.sh", seed, period, count, what, seed=seed, key=f"{what}-{period}",
                  timeout=7200, weight=period * count)
            for period in periods for seed in seeds(long) for what in FIXED + ("mthpd",)]


def phases(run):
    """{(group, index): (mode, touches per second with populating)} of all whole phases."""
    found = {}
    for group in GROUPS:
        work = run.work(group)
        # The first is shorter, so that the groups are out of step.
        for index in range(1, run.guest.args[2] + 1):
            begin, done = work.event("phase", index), work.event("done", index)
            found[group, index] = (begin["mode"], done["touches"] / (done["t"] - begin["t"]))
    return found


def against_best(run, of):
    """[(mode, share of the best fixed setting's rate in that phase)]"""
    fixed = [phases(of[what]) for what in FIXED]
    return [(mode, rate / max(f[phase][1] for f in fixed))
            for phase, (mode, rate) in phases(run).items()]


def mean(run, of):
    return statistics.geometric_mean(max(share, 1e-6) for _, share in against_best(run, of))


def claims(run, of):
    period = run.guest.args[1]
    own = mean(run, of)
    best = max(mean(of[what], of) for what in FIXED)
    return [
        Claim(f"every {period} s: rate against each phase's best setting, mean", own, ">=",
              NEAR[period]),
        Claim(f"every {period} s: the same, against the best setting for all phases", own / best,
              ">=", BETTER),
        Claim(f"every {period} s: OOM kills more than with small pages only",
              oom_kills(run, GROUPS) - oom_kills(of["small"], GROUPS), "<=", 0)]


def judge(test, runs):
    sets = {}
    for run in runs:
        what, _, period = run.guest.key.partition("-")
        sets.setdefault((int(period), run.guest.seed), {})[what] = run
    for period in sorted({period for period, _ in sets}):
        mine = [of for (p, _), of in sets.items() if p == period]
        test.claims([claims(of["mthpd"], of) for of in mine])
        for what in FIXED + ("mthpd",):
            by_mode = {}
            for of in mine:
                for mode, share in against_best(of[what], of):
                    by_mode.setdefault(mode, []).append(share)
            test.note(f"{what:8} every {period} s: " + "  ".join(
                f"{mode} {statistics.mean(shares):.2f}" for mode, shares in sorted(by_mode.items())))
        for what in FIXED:
            test.control(f"{what} instead of mthpd, every {period} s,",
                         [claims(of[what], of) for of in mine])
