# SPDX-License-Identifier: LGPL-2.1-or-later
from pgtest import guest
from vmtest import Claim

TITLE = "quiet groups that a policy binds: when they have their value, and what they cost"
# Seconds until each has it (each value is journaled, with all others, before it is
# written); ms of CPU per minute; MiB resident.
LIMITS = {500: (10, 80, 8), 4000: (160, 800, 24)}
AUDITS = 10


def guests(long):
    return [guest("t_quiet_bound.sh", count, key=str(count), mem="3000M", timeout=3600, weight=100)
            for count in LIMITS if count == 500 or long]


def claims(run):
    count = run.guest.args[0]
    bound_sec, cpu_ms, rss_mib = LIMITS[count]
    used = (run.number("cpu-after") - run.number("cpu-before")) / 1000
    counters = [run.json(f"status-{when}")["counters"] for when in ("before", "run")]
    reasons = {d["reason"] for d in run.json("history")["decisions"] if d["knob"] == "memory.thp.max_size"}
    return [
        Claim(f"{count} groups: all bound after", run.number("bound"), "<=", bound_sec, "s"),
        Claim(f"{count} groups: reasons", " ".join(sorted(reasons)), "==", "policy-limit"),
        Claim(f"{count} groups: writes in {AUDITS} audits",
              counters[1]["writes"] - counters[0]["writes"], "==", 0),
        Claim(f"{count} groups: wake-ups in them, no fewer",
              counters[1]["wakeups"] - counters[0]["wakeups"], ">=", AUDITS),
        Claim(f"{count} groups: and hardly more",
              counters[1]["wakeups"] - counters[0]["wakeups"], "<=", AUDITS + 2),
        Claim(f"{count} groups: CPU time per minute", used / 10, "<=", cpu_ms, "ms"),
        Claim(f"{count} groups: VmRSS", run.number("rss-unasked") / 1024, "<=", rss_mib, "MiB"),
        Claim(f"{count} groups: stopped, all put back, after", run.number("stopped"), "<=", 10, "s"),
        Claim(f"{count} groups: values left", run.number("left"), "==", 0)]


def judge(test, runs):
    for run in runs:
        test.claims([claims(run)])
