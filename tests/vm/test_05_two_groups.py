# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os

from vmtest import Claim, Guest, seeds

TITLE = "two groups: the protected one decides, hurt or quiet"
HARMFUL = ("16", "32", "64")
REACTION = 5  # seconds
VETO = 300    # seconds of any ten minutes


def guests(long):
    found = []
    for seed in seeds(long):
        for what, protected in (("mthpd", "hurt"), ("mthpd", "quiet"), ("nothing", "hurt")):
            # Ten minutes with the first seed: the veto is spent in them.
            seconds = 620 if long and seed == 1 and protected == "hurt" and what == "mthpd" else 66
            found.append(Guest("t_two_groups.sh", seed, 12 if what == "nothing" else seconds, what,
                               protected, seed=seed, key=f"{what}-{protected}",
                               timeout=3600 if long else 900, weight=seconds / 2))
    return found


def modes(sample):
    return {sample["sizes"][kb]["mode"] for kb in HARMFUL}


def statuses(run, since):
    """[(t, size words, size reasons, groups)] from `mthpctl --json status`."""
    folder = run.path("status")
    found = []
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else [], key=float):
        with open(os.path.join(folder, name)) as f:
            status = json.load(f)
        sizes = [s for s in status["sizes"] if str(s["size_kb"]) in HARMFUL]
        if float(name) >= since:
            found.append(({s["actual"] for s in sizes}, {s["reason"] for s in sizes},
                          {g["path"]: g["state"] for g in status["cgroups"]}))
    return found


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags) if flags else None


def claims(run, wanted):
    hurt = run.stat("run", "hurt.group")
    begin = hurt.pressure_start()
    end = run.work("hurt").event("done")["t"]
    after = hurt.between(begin + REACTION, end)
    within_veto = [s for s in after if s["t"] <= begin + VETO]
    seen = statuses(run, begin + REACTION)[:int(VETO / 5)]
    down = [s["t"] for s in hurt.between(begin - 1, end) if modes(s) == {wanted}]
    return [
        Claim(f"sizes of the hurt group at {wanted} after", down[0] - begin if down else None,
              "<=", REACTION, "s"),
        Claim(f"share of the samples from then on with all of them at {wanted} (sysfs)",
              share(modes(s) == {wanted} for s in within_veto), "==", 1),
        Claim("the same in `mthpctl --json status`",
              share(actual == {wanted} for actual, _, _ in seen), "==", 1),
        Claim("share of the status with hurt.group in drop",
              share(groups["hurt.group"] == "drop" for _, _, groups in seen), "==", 1),
    ]


def judge(test, runs):
    def of(key):
        return [run for run in runs if run.guest.key == key]

    for key, wanted in (("mthpd-hurt", "never"), ("mthpd-quiet", "madvise")):
        test.claims([claims(run, wanted) for run in of(key)],
                    prefix=f"Protect on {key[6:]}: ")
        reasons = [set().union(*(r for _, r, _ in statuses(run, 0)[-6:])) for run in of(key)]
        test.note(f"reasons: {sorted(set().union(*reasons))}")
    test.claims([[Claim("reason with the quiet group protected", "shielded" if all(
        reasons == {"shielded"} for _, reasons, _ in statuses(run, 0)[-3:]) else "other",
        "==", "shielded")] for run in of("mthpd-quiet")])
    for run in of("mthpd-hurt"):
        if run.guest.args[1] < 600:
            continue
        hurt = run.stat("run", "hurt.group")
        window = hurt.between(hurt.pressure_start(), hurt.pressure_start() + 600)
        test.claims([[Claim("share of ten minutes with the sizes off",
                            share(modes(s) == {"never"} for s in window), ">=", 0.5)]])
    test.control("without mthpd, never wanted,", [claims(run, "never") for run in of("nothing-hurt")])
    test.control("without mthpd, madvise wanted,",
                 [claims(run, "madvise") for run in of("nothing-hurt")])
