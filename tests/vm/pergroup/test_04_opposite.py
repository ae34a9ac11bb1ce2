# SPDX-License-Identifier: LGPL-2.1-or-later
import statistics

from pgtest import guest, is_gated, is_open, is_small, oom_kills, share
from vmtest import Claim, seeds

TITLE = "two, five and fifty groups that want opposite things get them at the same time"

# number of groups -> limit in MiB, seconds, patterns dealt out in turn. Fifty share
# one processor, so all takes them longer.
CASES = {2: (64, 40, ("seq", "random")),
         5: (64, 60, ("seq", "random", "fill", "sparse", "runs")),
         50: (8, 150, ("seq", "random"))}
LAST = 10  # seconds at the end in which the wanted values stand
WANTED = {"seq": ("gate open", is_open), "runs": ("gate open", is_open),
          "random": ("gate closed", is_gated), "sparse": ("gate closed", is_gated),
          "fill": ("large folios", lambda sample: not is_small(sample))}


def guests(long):
    found = []
    for count, (limit, seconds, patterns) in CASES.items():
        for what in ("mthpd", "nothing", "small"):
            chosen = seeds(long) if what == "mthpd" else (1,)
            if what == "small" and count != 2 and not long:
                continue
            # What is never written needs no time to be missed.
            time = seconds if what == "mthpd" else min(seconds, 30)
            found += [guest("t_opposite.sh", seed, time, what, limit, count, *patterns,
                            seed=seed, key=f"{what}-{count}", timeout=7200, weight=time)
                      for seed in chosen]
    return found


def names(run):
    count, patterns = run.guest.args[4], run.guest.args[5:]
    return [f"{patterns[i % len(patterns)]}.{i}" for i in range(count)]


def right(run, group):
    """Share of the last samples with the value that the group's pattern wants."""
    stat = run.stat("run", group)
    end = stat.samples[-1]["t"]
    return share(WANTED[group.partition(".")[0]][1](s) for s in stat.between(end - LAST, end))


def claims(run):
    groups = names(run)
    found = []
    for pattern in dict.fromkeys(run.guest.args[5:]):
        mine = [group for group in groups if group.startswith(pattern + ".")]
        found.append(Claim(f"{len(groups)} groups: {pattern}: {WANTED[pattern][0]}",
                           statistics.mean(right(run, group) for group in mine), ">=", 0.95))
    found.append(Claim(f"{len(groups)} groups: OOM kills", oom_kills(run, groups), "<=", 0))
    return found


def judge(test, runs):
    for count in CASES:
        test.claims([claims(run) for run in runs if run.guest.key == f"mthpd-{count}"])
        for what, label in (("nothing", "without mthpd"),
                            ("small", "a daemon that writes the smallest size")):
            mine = [claims(run) for run in runs if run.guest.key == f"{what}-{count}"]
            if mine:
                test.control(f"{label}, {count} groups,", mine)
