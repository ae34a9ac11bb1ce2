# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, seeds

TITLE = "quiet: not one write, and no tick but the audit"
AUDIT = 60  # seconds
# Runs of a thread that one audit may cost: the timer's, and one for each other
# thread that it may wake.
RUNS_PER_AUDIT = 3


def guests(long):
    seconds = 600 if long else 120
    found = [Guest("t_quiet.sh", seed, seconds, "mthpd", seed=seed, key="mthpd", weight=20)
             for seed in seeds(long)]
    return found + [Guest("t_quiet.sh", 1, 60, what, key=what, weight=10)
                    for what in ("nothing", "rewriter")]


def counter(run, when, key):
    return run.json(f"status-{when}")["counters"][key]


def claims(run):
    seconds = run.guest.args[1]
    audits = seconds // AUDIT + 1
    mthpd = run.guest.key == "mthpd"
    return [
        Claim("the watcher sees a write", run.text("probe").strip(), "==", "seen"),
        Claim("decisions before the quiet (or the test tests nothing)",
              counter(run, "before", "decisions") if mthpd else None, ">=", 2),
        Claim(f"writes in {seconds} s", int(run.text("write-count")), "==", 0),
        Claim("writes by its own count", counter(run, "after", "writes") -
              counter(run, "before", "writes") if mthpd else None, "==", 0),
        Claim(f"runs of its threads in {seconds} s",
              run.number("wakeups-after") - run.number("wakeups-before"), "<=",
              audits * RUNS_PER_AUDIT),
    ]


def judge(test, runs):
    mthpd = [run for run in runs if run.guest.key == "mthpd"]
    test.claims([claims(run) for run in mthpd])
    for run in mthpd:
        test.note(f"CPU time {run.number('cpu-after') - run.number('cpu-before'):.0f} us, "
                  f"wake-ups by its own count {counter(run, 'after', 'wakeups') - counter(run, 'before', 'wakeups')}")
    for what, label in (("nothing", "without mthpd"), ("rewriter", "a daemon that writes again")):
        test.control(label, [claims(run) for run in runs if run.guest.key == what])
    rewriter = next(run for run in runs if run.guest.key == "rewriter")
    test.claims([[Claim("writes of the one that writes again, seen by the watcher",
                        int(rewriter.text("write-count")), ">=", 10)]])
