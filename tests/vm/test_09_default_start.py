# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, seeds

TITLE = "from the kernel's own values a group gets its sizes, and never more than the ceiling"
# What may be written under each top-level value; `inherit` where it supplies more.
CEILING = {"always": {"never", "madvise", "inherit", "always"},
           "madvise": {"never", "madvise", "inherit"},
           "never": {"never", "inherit"}, "boot": {"never", "inherit"}}
# What each size may come to in effect. (2M has its own start value.)
RANK = {"never": 0, "madvise": 1, "always": 2}
MOST = {"always": 2, "madvise": 1, "never": 0, "boot": 0}
# A new group is watched from its first page. In one that is older than the daemon
# nothing announces fresh memory, so the audit has to find it.
AUDIT = 60
NOTICED = {"new": 10, "old": AUDIT + 15}
RUNS = ("nothing-always-new", "mthpd-always-new", "mthpd-always-old", "mthpd-madvise-new",
        "mthpd-never-new")


def guests(long):
    return [Guest("t_default_start.sh", seed, 40 if long else 14, *RUNS, seed=seed, weight=35,
                  timeout=1800) for seed in seeds(long)] + \
           [Guest("t_default_start.sh", 1, 14, "mthpd-boot-new", key="boot", weight=10,
                  append="transparent_hugepage=never")]


def effective(mode, top):
    return RANK[top if mode == "inherit" else mode]


def above(run, name):
    """Samples and decisions with a size above the ceiling."""
    top = name.split("-")[1]
    kernel_top = "always" if top == "boot" else top
    count = 0
    for sample in run.stat(name).samples:
        count += any(effective(size["mode"], kernel_top) > MOST[top]
                     for kb, size in sample["sizes"].items() if kb != "2048")
    for decision in run.decisions(name):
        if decision["knob"].startswith("hugepages-") and "2048kB" not in decision["knob"]:
            count += effective(decision["new"], kernel_top) > MOST[top]
            count += decision["new"] not in CEILING[top]
    return count


def small_folios(run, name):
    """Folios of 16 to 64K that page faults got in the last third of the run."""
    samples = run.stat(name).samples
    late = samples[len(samples) * 2 // 3:]
    return sum(late[-1]["sizes"][kb].get("anon_fault_alloc", 0) -
               late[0]["sizes"][kb].get("anon_fault_alloc", 0) for kb in ("16", "32", "64"))


def raised(run, name):
    """The claim that the three sizes come on in time."""
    age = name.split("-")[2]
    began = run.work(name).event("ready")["t"]
    on = [s["t"] for s in run.stat(name).samples
          if all(s["sizes"][kb]["mode"] != "never" for kb in ("16", "32", "64"))]
    return Claim(f"{age} group: 16K, 32K and 64K on, after the work began",
                 on[0] - began if on else None, "<=", NOTICED[age], "s")


def second_half(work):
    begin, end = work.event("ready")["t"], work.event("done")["t"]
    return work.rate((begin + end) / 2, end)


def claims(run, name):
    return [
        raised(run, name),
        Claim("16-64K folios faulted in, in the last third", small_folios(run, name), ">=", 1000),
        Claim("touches per second in the second half, against without mthpd",
              second_half(run.work(name)) / second_half(run.work("nothing-always-new")),
              ">=", 1.3),
        Claim("values above the ceiling", above(run, name), "==", 0),
    ]


def others(run):
    """The ceiling under other start values, and the group that was there before."""
    return [raised(run, "mthpd-always-old")] + [
        Claim(f"{text}: above the ceiling", above(run, name), "==", 0)
        for text, name in (("old group", "mthpd-always-old"),
                           ("top level madvise", "mthpd-madvise-new"),
                           ("top level never", "mthpd-never-new"))]


def is_debian(boot):
    return "/enabled:[always]" in boot and "2048kB/enabled:always [inherit]" in boot and \
        boot.count("[never]") >= 7


def judge(test, runs):
    usual = [run for run in runs if run.guest.key != "boot"]
    boot = next(run for run in runs if run.guest.key == "boot")
    test.claims([[Claim("the kernel's own values are Debian's",
                        "yes" if is_debian(run.text("boot")) else "no", "==", "yes")]
                 for run in usual])
    test.claims([claims(run, "mthpd-always-new") for run in usual])
    test.claims([others(run) for run in usual])
    test.claims([[Claim("never at boot, top level always later: above the ceiling",
                        above(boot, "mthpd-boot-new"), "==", 0)]])
    test.control("without mthpd", [claims(run, "nothing-always-new") for run in usual])
