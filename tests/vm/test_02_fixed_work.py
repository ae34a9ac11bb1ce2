# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, ratio, seeds

TITLE = "fixed work beyond the limit: near the better static setting from every start"

# Against random touches the better static setting is the measure; neighbouring
# touches cannot be told from them in time without a sensor of use, and are
# measured against `never`.
LIMITS = {"random": 1.10, "runs": 1.05, "seq": 1.05}
STARTS = ("never", "64", "256", "all")
# Percent of the work of cases.sh; in the long form the better static setting takes
# a minute.
PERCENT = {"random": 105, "runs": 145, "seq": 155}
MINUTE = 60


def guests(long):
    found = []
    for case, starts, percent in (("random", ("64", "all"), 30), ("runs", ("64",), 30),
                                  ("seq", ("64",), 30)):
        if long:
            starts, percent = STARTS, PERCENT[case]
        for seed in seeds(long):
            # Without mthpd: what a fixed setting does to runs and scans is known.
            limit = LIMITS[case] + 0.01 if case == "random" or long else 0
            found.append(Guest("t_fixed_work.sh", case, seed, percent, limit,
                               *starts, seed=seed, key=case, timeout=3600 if long else 900,
                               weight=30 * len(starts) + (30 if case == "random" else 0)))
    return found


def better_static(run, start):
    """Seconds (with populating, and without) of the better of `never` and the start."""
    never = run.work("never")
    times = [(never.whole(), never.elapsed())]
    if run.has(f"work-nothing-{start}"):
        static = run.work(f"nothing-{start}")
        if static.finished():  # else it was cut, and is slower
            times.append((static.whole(), static.elapsed()))
    return min(times)


def claims(run, name, start):
    case = run.guest.key
    work, never = run.work(name), run.work("never")
    best = better_static(run, start) if case == "random" else (never.whole(), never.elapsed())
    against = "the better static" if case == "random" else "never"
    return [
        Claim(f"{case} from {start}: time against {against}",
              ratio(work.whole(), best[0]), "<=", LIMITS[case]),
        Claim(f"{case} from {start}: the same without populating",
              ratio(work.elapsed(), best[1]), "<=", LIMITS[case]),
        Claim(f"{case} from {start}: OOM kills more than with never",
              run.stat(name).oom_kills() - run.stat("never").oom_kills(), "<=", 0),
    ]


def judge(test, runs):
    for case in LIMITS:
        mine = [run for run in runs if run.guest.key == case]
        starts = mine[0].guest.args[4:]
        best = [min(better_static(run, start)[1] for start in starts) for run in mine]
        if starts == STARTS:
            test.claims([[Claim(f"{case}: the best static setting takes", seconds, ">=", MINUTE,
                                "s")] for seconds in best])
        else:
            test.note(f"{case}: the better static setting takes {best[0]:.1f} s")
        for start in starts:
            test.claims([claims(run, f"mthpd-{start}", start) for run in mine])
            if start == "never" or not mine[0].has(f"work-nothing-{start}"):
                continue
            # Large folios help runs and scans from some starts: only random
            # touches must be lost without mthpd.
            test.control(f"without mthpd, {case} from {start},",
                         [claims(run, f"nothing-{start}", start) for run in mine],
                         must_fail=case == "random")
