# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, ratio, seeds

TITLE = "one page in 16 touched: fits with small pages, and comes to fit from 16-64K"
# One set that stays, and memory that is fresh in each pass. Out of the first a
# fixed 16-64K gets by itself, after 40 s, when every piece was swapped out once;
# the controls are judged by the second.
SIZES = {"steady": (6500000, 25000000), "fresh": (40, 60)}


def guests(long):
    return [Guest("t_sparse.sh", seed, kind, SIZES[kind][long], seed=seed, key=kind,
                  weight=100 if kind == "fresh" else 35, timeout=3600 if long else 900)
            for kind in SIZES for seed in seeds(long)]


def last_quarter(work):
    """Touches per second in the last quarter of the time."""
    begin, end = work.lines[0]["t"], work.lines[-1]["t"]
    return work.rate(begin + (end - begin) * 3 / 4, end)


def claims(run, name):
    kind = run.guest.key
    never, work = run.work("static"), run.work(name)
    return [
        Claim(f"{kind}: never takes", never.whole(), ">=", 15, "s"),
        Claim(f"{kind}: time against never", ratio(work.whole(), never.whole()), "<=", 4),
        Claim(f"{kind}: touches per second in the last quarter, against never",
              last_quarter(work) / last_quarter(never), ">=", 0.9),
        Claim(f"{kind}: OOM kills more than with never",
              run.stat(name).oom_kills() - run.stat("static").oom_kills(), "<=", 0),
    ]


def judge(test, runs):
    for kind in SIZES:
        test.claims([claims(run, "mthpd") for run in runs if run.guest.key == kind])
    fresh = [run for run in runs if run.guest.key == "fresh"]
    test.control("without mthpd (nothing)", [claims(run, "nothing") for run in fresh])
    test.control("always-never", [claims(run, "never") for run in fresh], must_fail=False)
