# SPDX-License-Identifier: LGPL-2.1-or-later
import math
import statistics

from pgtest import guest, is_gated, is_open, share, writes
from vmtest import Claim, seeds

TITLE = "from a change of phase to the first write of the group's files"

GROUP = "seq.group"
# Limits in seconds, with the privilege for short PSI windows and without.
MODES = {"default": ((), 2.3), "privileged": (("500ms", "500ms"), 1.2)}
MIN_CHANGES = 100  # in the long form
WANTED = 2  # seconds at the end of a phase in which the right value must stand


def guests(long):
    changes = 40 if long else 8
    found = [guest("t_reaction.sh", seed, changes, "mthpd", *config, seed=seed, key=mode,
                   timeout=3600, weight=changes * 12)
             for mode, (config, _) in MODES.items() for seed in seeds(long)]
    return found + [guest("t_reaction.sh", 1, 4, "small", key="small", timeout=3600)]


def changes(run):
    """[(begin, end, mode)] of the phases that follow a change."""
    lines = [line for line in run.work(GROUP).lines if line["event"] in ("phase", "end")]
    return [(a["t"], b["t"], a["mode"]) for a, b in zip(lines[1:], lines[2:])]


def latencies(run):
    """Seconds to the first write in each phase; infinite where there was none."""
    times = [t for t, _ in writes(run, GROUP)]
    return [min((t - begin for t in times if begin <= t < end), default=math.inf)
            for begin, end, _ in changes(run)]


def percentile(values, part):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def stands(run, mode, right):
    """Share of the ends of phases with the right value in the files."""
    stat = run.stat("run", GROUP)
    return share(share(right(s) for s in stat.between(end - WANTED, end)) == 1
                 for _, end, m in changes(run) if m == mode)


def claims(runs, limit):
    found = [value for run in runs for value in latencies(run)]
    count = sum(len(writes(run, GROUP)) for run in runs)
    return [
        Claim(f"p99 of {len(found)} changes", percentile(found, 0.99), "<=", limit, "s"),
        Claim("phases of scans that end with the gate open",
              statistics.mean(stands(run, "seq", is_open) for run in runs), ">=", 0.95),
        Claim("phases of random touches that end with it closed",
              statistics.mean(stands(run, "random", is_gated) for run in runs), ">=", 0.95),
        Claim("writes for each change", count / len(found), "<=", 3)]


def judge(test, runs):
    for mode, (_, limit) in MODES.items():
        mine = [run for run in runs if run.guest.key == mode]
        found = [value for run in mine for value in latencies(run)]
        if len(mine) > 1:
            test.claims([[Claim(f"{mode}: changes", len(found), ">=", MIN_CHANGES)]])
        test.claims([claims(mine, limit)], prefix=f"{mode}: ")
        for kind in ("seq", "random"):
            part = [value for run in mine for value, (_, _, m) in zip(latencies(run), changes(run))
                    if m == kind]
            test.note(f"{mode}: to {kind}: median {statistics.median(part):.2f} s, "
                      f"p90 {percentile(part, 0.9):.2f} s, max {max(part):.2f} s, n={len(part)}")
    small = [run for run in runs if run.guest.key == "small"]
    test.control("a daemon that writes the smallest size", [claims(small, MODES["default"][1])])
