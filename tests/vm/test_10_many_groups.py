# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, seeds

TITLE = "2,000 groups come and go under load: no descriptor, no memory, no spin"


def guests(long):
    return [Guest("t_many_groups.sh", seed, 2000, "mthpd", seed=seed, icount=False, key="mthpd",
                  weight=60) for seed in seeds(long)] + \
           [Guest("t_many_groups.sh", 1, 80, "nothing", icount=False, key="nothing", weight=15)]


def figures(run, name):
    return {key: float(value) for key, value in
            (line.split() for line in run.text(f"figures-{name}").splitlines())}


def claims(run):
    quarter, end, rest, later = (figures(run, n) for n in ("quarter", "end", "rest", "rest-later"))
    mthpd = run.guest.key == "mthpd"
    loaded = run.json("status-loaded") if mthpd else None
    groups = {g["path"] for g in run.json("status-rest")["cgroups"]} if mthpd else None
    busy = (end["cpu_usec"] - quarter["cpu_usec"]) / (end["uptime"] - quarter["uptime"]) / 1e6
    return [
        # A group may be gone before its name is read: nothing was missed then.
        Claim("groups that it saw", loaded["counters"]["cgroups_seen"] if mthpd else None,
              ">=", 1800),
        Claim("the group under pressure, meanwhile", next(
            g["state"] for g in loaded["cgroups"] if g["path"] == "hot.group") if mthpd else None,
            "==", "drop"),
        # Twenty groups are alive at either time.
        Claim("descriptors: growth over three quarters of them", end["fds"] - quarter["fds"],
              "<=", 8),
        Claim("descriptors at rest, against a quarter of the way", rest["fds"] - quarter["fds"],
              "<=", 0),
        Claim("threads: growth", end["threads"] - quarter["threads"], "<=", 0),
        Claim("VmRSS: growth over three quarters of them", rest["rss_kb"] - quarter["rss_kb"],
              "<=", 256, "KiB"),
        Claim("groups in status at rest, that are gone",
              len([g for g in groups if g.startswith("churn")]) if mthpd else None, "==", 0),
        Claim("share of a processor while they come and go", busy, "<=", 0.5),
        Claim("share of a processor at rest", (later["cpu_usec"] - rest["cpu_usec"]) /
              (later["uptime"] - rest["uptime"]) / 1e6, "<=", 0.02),
    ]


def judge(test, runs):
    mthpd = [run for run in runs if run.guest.key == "mthpd"]
    test.claims([claims(run) for run in mthpd])
    for run in mthpd:
        end = figures(run, "end")
        test.note(f"descriptors {end['fds']:.0f}, VmRSS {end['rss_kb']:.0f} KiB, "
                  f"CPU {end['cpu_usec'] / 1e6:.2f} s in {end['uptime']:.0f} s")
    test.control("without mthpd", [claims(run) for run in runs if run.guest.key == "nothing"])
