# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest

TITLE = "from the kernel's own values a group gets its sizes, and never more than the ceiling"
# What may be written under each top-level value; `inherit` where it supplies more.
CEILING = {"always": {"never", "madvise", "inherit", "always"},
           "madvise": {"never", "madvise", "inherit"},
           "never": {"never", "inherit"}, "boot": {"never", "inherit"}}
# With the 2M size at `inherit`: what each size may come to in effect.
RANK = {"never": 0, "madvise": 1, "always": 2}
MOST = {"always": 2, "madvise": 1, "never": 0, "boot": 0}


def guests(long):
    found = []
    for seed in range(1, 6 if long else 2):
        found += [Guest("t_default_start.sh", seed, 40 if long else 16, what, "always", seed=seed,
                        key=f"{what}-always", weight=15) for what in ("mthpd", "nothing")]
    found += [Guest("t_default_start.sh", 1, 12, "mthpd", top, key=f"mthpd-{top}", weight=10,
                    append="transparent_hugepage=never" if top == "boot" else "")
              for top in ("madvise", "never", "boot")]
    return found


def effective(mode, top):
    return RANK[top if mode == "inherit" else mode]


def above(run, top, kernel_top):
    """Samples and decisions with a size above the ceiling (2M has its own start value)."""
    count = 0
    for sample in run.stat("run").samples:
        count += any(effective(size["mode"], kernel_top) > MOST[top]
                     for kb, size in sample["sizes"].items() if kb != "2048")
    for decision in run.decisions("run"):
        if decision["knob"].startswith("hugepages-") and "2048kB" not in decision["knob"]:
            count += effective(decision["new"], kernel_top) > MOST[top]
            count += decision["new"] not in CEILING[top]
    return count


def small_folios(run):
    """Folios of 16 to 64K that page faults got in the last third of the run."""
    samples = run.stat("run").samples
    late = samples[len(samples) * 2 // 3:]
    return sum(late[-1]["sizes"][kb].get("anon_fault_alloc", 0) -
               late[0]["sizes"][kb].get("anon_fault_alloc", 0) for kb in ("16", "32", "64"))


def claims(run, without):
    samples = run.stat("run").samples
    raised = [s["t"] for s in samples
              if all(s["sizes"][kb]["mode"] != "never" for kb in ("16", "32", "64"))]
    end = run.work("run").event("done")["t"]
    began = run.work("run").event("ready")["t"]
    seconds = end - began
    rate = run.work("run").rate(began + seconds / 2, end)
    slow = without.work("run")
    slow_end = slow.event("done")["t"]
    return [
        Claim("16K, 32K and 64K on, after the work began",
              raised[0] - began if raised else None, "<=", 10, "s"),
        Claim("16-64K folios faulted in, in the last third", small_folios(run), ">=", 1000),
        Claim("touches per second in the second half, against without mthpd",
              rate / slow.rate(slow_end - seconds / 2, slow_end), ">=", 1.3),
        Claim("values above the ceiling", above(run, "always", "always"), "==", 0),
    ]


def judge(test, runs):
    mthpd = [run for run in runs if run.guest.key == "mthpd-always"]
    nothing = [run for run in runs if run.guest.key == "nothing-always"]
    boot = mthpd[0].text("boot")
    test.claims([[Claim("the kernel's own values are Debian's", "yes" if
                        "/enabled:[always]" in boot and
                        "2048kB/enabled:always [inherit]" in boot and
                        boot.count("[never]") >= 7 else "no", "==", "yes")]])
    test.claims([claims(a, b) for a, b in zip(mthpd, nothing)])
    for top in ("madvise", "never", "boot"):
        run = next(run for run in runs if run.guest.key == f"mthpd-{top}")
        kernel_top = "always" if top == "boot" else top
        names = {"boot": "transparent_hugepage=never at boot, top level `always` later"}
        test.claims([[Claim(f"{names.get(top, 'top level ' + top)}: above the ceiling",
                            above(run, top, kernel_top), "==", 0)]])
    test.control("without mthpd", [claims(run, run) for run in nothing])
