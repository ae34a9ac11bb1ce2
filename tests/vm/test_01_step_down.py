# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, first_step_down, seeds

TITLE = "random touches beyond the limit: 16-64K are off within 3 s, then as fast as `never`"


def guests(long):
    return [Guest("t_step_down.sh", seed, 40 if long else 9, seed=seed, weight=30)
            for seed in seeds(long)]


def claims(run, name):
    never, work, stat = run.work("static"), run.work(name), run.stat(name)
    begin = stat.pressure_start()
    down = first_step_down(run, name)
    if name == "never":
        down = begin  # it was down before anything began
    end = work.event("done")["t"]
    from_t = begin + 6
    never_from, never_end = never.event("ready")["t"] + 1, never.event("done")["t"]
    never_stat = run.stat("static")

    def swapins(s, w, a, b):
        return s.grown("vm_pswpin", a, b) / (w.total_at(b) - w.total_at(a))

    return [
        Claim("first step down after the pressure began", None if down is None else down - begin,
              "<=", 3, "s"),
        Claim("pages swapped in per touch, 6 s later, against never",
              swapins(stat, work, from_t, end) / swapins(never_stat, never, never_from, never_end),
              "<=", 1.2),
        Claim("touches per second, 6 s later, against never",
              work.rate(from_t, end) / never.rate(never_from, never_end), ">=", 0.9),
        Claim("OOM kills more than with never", stat.oom_kills() - never_stat.oom_kills(),
              "<=", 0),
    ]


def judge(test, runs):
    test.claims([claims(run, "mthpd") for run in runs])
    test.control("without mthpd (nothing)", [claims(run, "nothing") for run in runs])
    test.control("always-never", [claims(run, "never") for run in runs], must_fail=False)
