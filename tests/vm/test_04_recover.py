# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, enabled_sizes, seeds

TITLE = "pressure ends: the sizes of the start are back within 120 s, step by step"
LADDER = [[], [16], [16, 32, 64]]
HOLD = 10  # seconds: the shortest hold after a failed probe


def guests(long):
    return [Guest("t_recover.sh", seed, 1400000 if long else 300000, seed=seed, weight=50)
            for seed in seeds(long)]


def back_after(samples, end):
    """Seconds from `end` to the sample from which on all sizes are on; None = never."""
    last_off = [s["t"] for s in samples if enabled_sizes(s) != LADDER[-1]]
    if last_off and last_off[-1] == samples[-1]["t"]:
        return None
    return max(0, last_off[-1] - end) if last_off else 0


def failed_probes(run, name):
    """When probes failed; the writes of one are one."""
    times = [d["t"] for d in run.decisions(name) if d["reason"] == "probe-failed" and
             d["knob"].startswith("hugepages-")]
    return [t for before, t in zip([None] + times, times) if before is None or t - before > 0.5]


def most_in_hold(times):
    return max((sum(t <= u < t + HOLD for u in times) for t in times), default=0)


def settled(sets):
    """Without what only one sample saw: it fell between the writes of one step."""
    return [s for i, s in enumerate(sets) if s in sets[i + 1:i + 2] or s in sets[max(i - 1, 0):i] or
            i in (0, len(sets) - 1)]


def claims(run, name):
    work = run.work(name)
    end = work.event("done", 0)["t"]
    samples = run.stat(name, f"{name}.group").samples
    pressed = [s for s in samples if s["t"] < end]
    after = settled([enabled_sizes(s) for s in samples if s["t"] >= end])
    steps = [b for a, b in zip(after, after[1:]) if len(b) > len(a)]
    skipped = [b for a, b in zip(after, after[1:]) if len(b) > len(a) and
               (a not in LADDER or b not in LADDER or LADDER.index(b) - LADDER.index(a) != 1)]
    fill = run.lines(f"fill-{name}")[-1]["elapsed"] / run.lines("fill-static")[-1]["elapsed"]
    return [
        Claim("sizes on at the end of the pressure", len(enabled_sizes(pressed[-1])), "==", 0),
        Claim("sizes of the start back after", back_after(samples, end), "<=", 120, "s"),
        Claim("steps up", len(steps), ">=", 2),
        Claim("steps up of more than one rung", len(skipped), "==", 0),
        Claim("most failed probes in one hold period", most_in_hold(failed_probes(run, name)),
              "<=", 1),
        Claim("fresh fill against static always", fill, "<=", 1.10),
        Claim("OOM kills", run.stat(name).oom_kills(), "==", 0),
    ]


def judge(test, runs):
    test.claims([claims(run, "mthpd") for run in runs])
    test.note(f"failed probes: {[len(failed_probes(run, 'mthpd')) for run in runs]}")
    test.control("without mthpd (nothing)", [claims(run, "nothing") for run in runs])
    test.control("always-never", [claims(run, "never") for run in runs])
