# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest

TITLE = "what quiet groups cost (design, promise 7)"
LIMITS = {500: (10, 6), 10000: (100, 24)}  # ms of CPU per minute, MiB resident
AUDITS = 10


def guests(long):
    found = [Guest("t_quiet_groups.sh", 500, key="500", weight=25)]
    if long:
        found.append(Guest("t_quiet_groups.sh", 10000, key="10000", mem="6000M", timeout=3600,
                           weight=600))
    return found


def judge(test, runs):
    for run in runs:
        count = run.guest.args[0]
        cpu_ms, rss_mib = LIMITS[count]
        used = (run.number("cpu-after") - run.number("cpu-before")) / 1000
        counters = run.json("status-run")["counters"]
        wakeups = counters["wakeups"] - run.json("status-before")["counters"]["wakeups"]
        test.claims([[
            Claim(f"{count} groups: seen", counters["cgroups_seen"], ">=", count),
            # A daemon that does nothing would be cheaper still.
            Claim(f"{count} groups: wake-ups in {AUDITS} audits, no fewer", wakeups, ">=", AUDITS),
            Claim(f"{count} groups: and hardly more", wakeups, "<=", AUDITS + 2),
            Claim(f"{count} groups: CPU time per minute", used / 10, "<=", cpu_ms, "ms"),
            Claim(f"{count} groups: VmRSS", run.number("rss-unasked") / 1024, "<=", rss_mib,
                  "MiB"),
            Claim(f"{count} groups: VmRSS once somebody asked for the status",
                  run.number("rss") / 1024, "<=", rss_mib, "MiB"),
        ]])
        test.note(f"{count} groups: {run.number('fds'):.0f} descriptors, "
                  f"ready after {run.number('ready'):.1f} s of guest time")
