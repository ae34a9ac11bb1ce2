# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, seeds

TITLE = "from the kernel's own values a group gets its sizes, and never more than the ceiling"
# What may be written under each top-level value; `inherit` where it supplies more.
CEILING = {"always": {"never", "madvise", "inherit", "always"},
           "madvise": {"never", "madvise", "inherit"},
           "never": {"never", "inherit"}, "boot": {"never", "inherit"}}
# With the 2M size at `inherit`: what each size may come to in effect.
RANK = {"never": 0, "madvise": 1, "always": 2}
MOST = {"always": 2, "madvise": 1, "never": 0, "boot": 0}


# A new group is watched from its first page. In one that is older than the daemon
# nothing announces fresh memory, so the audit has to find it.
AUDIT = 60
NOTICED = {"new": 10, "old": AUDIT + 15}


def guests(long):
    found = []
    busy = f"fill:size=1M,seconds={40 if long else 16}"
    for seed in seeds(long):
        found += [Guest("t_default_start.sh", seed, what, "always", "new", busy, seed=seed,
                        key=f"{what}-always", weight=15) for what in ("mthpd", "nothing")]
        found.append(Guest("t_default_start.sh", seed, "mthpd", "always", "old",
                           f"fill:size=1M,rate=3000,seconds={AUDIT + 30}", seed=seed,
                           key="mthpd-old", weight=15))
    found += [Guest("t_default_start.sh", 1, "mthpd", top, "new", "fill:size=1M,seconds=8",
                    key=f"mthpd-{top}", weight=8,
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


def raised(run):
    """The claim that the three sizes come on in time."""
    began, limit = run.work("run").event("ready")["t"], NOTICED[run.guest.args[3]]
    on = [s["t"] for s in run.stat("run").samples
          if all(s["sizes"][kb]["mode"] != "never" for kb in ("16", "32", "64"))]
    return Claim(f"{run.guest.args[3]} group: 16K, 32K and 64K on, after the work began",
                 on[0] - began if on else None, "<=", limit, "s")


def claims(run, without):
    end = run.work("run").event("done")["t"]
    began = run.work("run").event("ready")["t"]
    seconds = end - began
    rate = run.work("run").rate(began + seconds / 2, end)
    slow = without.work("run")
    slow_end = slow.event("done")["t"]
    return [
        raised(run),
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
    test.claims([[raised(run), Claim("old group: values above the ceiling",
                                     above(run, "always", "always"), "==", 0)]
                 for run in runs if run.guest.key == "mthpd-old"])
    for top in ("madvise", "never", "boot"):
        run = next(run for run in runs if run.guest.key == f"mthpd-{top}")
        kernel_top = "always" if top == "boot" else top
        names = {"boot": "transparent_hugepage=never at boot, top level `always` later"}
        test.claims([[Claim(f"{names.get(top, 'top level ' + top)}: above the ceiling",
                            above(run, top, kernel_top), "==", 0)]])
    test.control("without mthpd", [claims(run, run) for run in nothing])
