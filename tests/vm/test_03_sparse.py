# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest

TITLE = "one page in 16 touched: fits with small pages, and comes to fit from 16-64K"


def guests(long):
    return [Guest("t_sparse.sh", seed, 25000000 if long else 6500000, seed=seed, weight=60)
            for seed in range(1, 6 if long else 2)]


def last_quarter(work):
    """Touches per second in the last quarter of the time."""
    begin, end = work.event("ready")["t"], work.event("done")["t"]
    return work.rate(begin + (end - begin) * 3 / 4, end)


def claims(run, name):
    never, work = run.work("static"), run.work(name)
    finished = work.touches() == never.touches()
    return [
        Claim("time against never", work.elapsed() / never.elapsed() if finished else None,
              "<=", 4),
        Claim("touches per second in the last quarter, against never",
              last_quarter(work) / last_quarter(never), ">=", 0.9),
        Claim("OOM kills more than with never",
              run.stat(name).oom_kills() - run.stat("static").oom_kills(), "<=", 0),
    ]


def judge(test, runs):
    test.claims([[Claim("never takes", run.work("static").elapsed(), ">=", 15, "s")]
                 for run in runs])
    test.claims([claims(run, "mthpd") for run in runs])
    test.control("without mthpd (nothing)", [claims(run, "nothing") for run in runs])
    test.control("always-never", [claims(run, "never") for run in runs], must_fail=False)
