# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every key of the configuration: what the real mthpd does with a value of it that is not the default, and that it does
not do so once that line is taken out. A key that is new has to be added here, or test_all_keys_are_here fails.
Keys of the policy decide over traces in virtual time, those of the daemon on a fake tree; PsiWindow= needs a kernel
(tests/vm/test_12_psi_window.py)."""

import os
import re
import time

import script
from script import CALM, FIXTURE, HOT, Script
from world import MIB, TOP, check, equal, run, wait

HALF_IN_USE = {"pswpin": 3000, "pswpout": 3000, "thp_scanned": 2000, "thp_young": 1000, "margin_swpin": 500}
WEB, BUILD = "web.slice/web-shop.service", "build@7.scope"
POLICY = '[Policy "p"]\nMatch=web.slice/**\n'
UP = ("recover-probe", "recover-step", "recovered")


# ---- over a trace: each takes the decisions and says what came of it

def knobs(decisions):
    return sorted({d["knob"] for d in decisions})


def drops(decisions):
    """Groups that caused a drop."""
    return {d["cgroup"] for d in decisions if d["reason"].startswith("drop-")}


def steps_up(decisions, group=None):
    return [d["knob"] for d in decisions if d["reason"] in UP and d["knob"].endswith("/enabled") and
            group in (None, d["cgroup"])]


def first(decisions):
    d = decisions[0]
    return d["knob"], d["new"], d["reason"]


def raised_to(decisions):
    return {d["new"] for d in decisions if d["reason"] in UP and d["knob"] == "hugepages-64kB/enabled"}


def fixture(t, config):
    return script.replay(t, FIXTURE, config)


def thrash(t, config, shmem="never", other_mb=20, own=False):
    """a.service thrashes, b.service is calm."""
    s = Script(shmem=shmem, own=own)
    s.group("a.service", 64, 20)
    s.group("b.service", 2 * other_mb, other_mb)
    calm = {k: n for k, n in CALM.items() if k != "margin_mb"}
    hot = {**HOT, **HALF_IN_USE} if own else HOT
    s.run(5, a_service=CALM, b_service=calm).run(20, a_service=hot, b_service=calm).run(40, a_service=CALM, b_service=calm)
    return s.decisions(t, config)


def with_own_files(t, config):
    """On the kernel of kernel-patches/, which counts that half of the large folios is in use."""
    return thrash(t, config, own=True)


def own_files(decisions, group=None):
    return [(d["knob"], d["reason"]) for d in decisions if d["knob"].startswith("memory.thp.") and group in (None, d["cgroup"])]


def beside_a_large_one(t, config):
    return thrash(t, config, other_mb=2000)


def with_shmem(t, config):
    return thrash(t, config, shmem="always")


def defrag_of(decisions):
    return {(d["knob"], d["new"]) for d in decisions if "defrag" in d["knob"]} >= {("defrag", "never"), ("khugepaged/defrag", "0")}


def large(decisions, size=2048):
    return [d["reason"] for d in decisions if d["knob"] == "hugepages-%dkB/enabled" % size and d["new"] == "never"]


# Section and line: the trace, what to look at, what has to be seen, further configuration.
OVER_TRACES = {
    "Limits MaxMode=madvise": (fixture, raised_to, {"madvise"}, ""),
    "Limits Sizes=64K": (fixture, lambda d: [k for k in knobs(d) if k.startswith("huge")], ["hugepages-64kB/enabled"], ""),
    "Limits MaxPtesNone=0": (fixture, first, ("khugepaged/max_ptes_none", "0", "policy-limit"), ""),
    "Limits Defrag=no": (thrash, defrag_of, False, '[Policy "a"]\nMatch=a.service\nMinSize=64K\n'),
    "Limits Shmem=yes": (with_shmem, lambda d: "hugepages-64kB/shmem_enabled" in knobs(d), True, ""),
    "Limits PerGroup=no": (with_own_files, own_files, [], ""),
    "Controller Density=10%..20%": (with_own_files, lambda d: own_files(d)[:1], [("memory.thp.margin", "gate-probe")], ""),
    "Controller SmallGroup=100M": (with_own_files, lambda d: own_files(d, "b.service")[:1],
                                   [("memory.thp.max_size", "small-group")], ""),
    "Policy Density=10%..20%": (with_own_files, lambda d: own_files(d)[:1], [("memory.thp.margin", "gate-probe")],
                                '[Policy "p"]\nMatch=a.service\n'),
    "Policy SmallGroup=100M": (with_own_files, lambda d: [own_files(d, g)[:1] for g in ("a.service", "b.service")],
                               [[("memory.thp.max_size", "small-group")], []], '[Policy "p"]\nMatch=a.service\n'),
    "Controller PressureHigh=99%": (fixture, drops, set(), ""),
    "Controller PressureLow=0%": (fixture, steps_up, [], ""),
    "Controller DropGain=90%": (thrash, lambda d: [x["now_usec"] for x in d if x["reason"] == "recovered"][:1], [1008000000], ""),
    "Controller Hold=60s": (fixture, steps_up, [], ""),
    "Controller Settle=30s": (fixture, lambda d: set(steps_up(d)), {"hugepages-64kB/enabled"}, ""),
    "Controller MaxChangesPerHour=1": (fixture, steps_up, [], ""),
    "Policy Match=web.slice/**": (fixture, drops, {BUILD}, '[Policy "p"]\nControlled=no\nMatch=nowhere\n'),
    "Policy Controlled=no": (fixture, drops, {BUILD}, POLICY),
    "Policy Weight=10000": (beside_a_large_one, large, [], '[Policy "p"]\nMatch=b.service\n'),
    "Policy MinSize=64K": (thrash, lambda d: large(d, 64), [], '[Policy "p"]\nMatch=a.service\n'),
    "Policy MaxSize=64K": (fixture, lambda d: large(d)[:1], ["policy-limit"], POLICY),
    "Policy Protect=yes": (thrash, lambda d: "shielded" in [x["reason"] for x in d], True, '[Policy "p"]\nMatch=b.service\n'),
    "Policy MaxPtesNone=0": (fixture, first, ("khugepaged/max_ptes_none", "0", "policy-limit"), POLICY),
    "Policy PressureHigh=99%": (fixture, drops, {BUILD}, POLICY),
    "Policy PressureLow=0%": (fixture, lambda d: steps_up(d, WEB), [], POLICY),
    "Policy DropGain=90%": (thrash, lambda d: [x["now_usec"] for x in d if x["reason"] == "recovered"][:1], [1008000000],
                            '[Policy "p"]\nMatch=a.service\n'),
    "Policy Hold=60s": (fixture, lambda d: steps_up(d, WEB), [], POLICY),
    "Policy Settle=30s": (fixture, lambda d: set(steps_up(d, WEB)), {"hugepages-64kB/enabled"}, POLICY),
    "Policy MaxChangesPerHour=1": (fixture, lambda d: steps_up(d, WEB), ["hugepages-64kB/enabled"], POLICY),
}


# ---- on a fake tree: each starts mthpd and says what came of it

def base(config):
    """Without the test's own base: keys that it sets would hide those that are tried."""
    return "[Daemon]\nInterval=100ms\nLogLevel=debug\n" + config


def started(t, config, tree=None, own=True):
    t.start(tree, bus=False, config=config, base=base("") if own else "")
    return t


def wakes_often(t, config):
    """Five times within half of what five ticks of the default take."""
    started(t, config, own=False)
    goal, end = t.status()["counters"]["wakeups"] + 5, time.monotonic() + 2.5
    while time.monotonic() < end:
        if t.status()["counters"]["wakeups"] >= goal:
            return True
        time.sleep(0.05)
    return False


def foreign_is_seen(t, config):
    tree = t.tree(modes={64: "always"})
    started(t, config, tree)
    tree.set_knob("hugepages-64kB/enabled", "madvise")
    end = time.monotonic() + 4
    while time.monotonic() < end and not t.status()["counters"]["foreign_changes"]:
        time.sleep(0.1)
    return t.status()["counters"]["foreign_changes"]


def state(t, config):
    return started(t, config).status()["state"]


def words_of_debug(t, config):
    tree = t.tree()
    tree.group("web.service", limit=64 * MIB, current=MIB)
    started(t, config, tree, own=False)
    time.sleep(0.3)
    t.daemon.terminate()
    t.daemon.wait(10)
    return t.log()


def after_a_foreign_change(t, config):
    tree = t.tree(modes={64: "always"})
    t.thrash(tree.group("web.service", limit=64 * MIB))
    started(t, config, tree)
    wait(lambda: tree.size(64) == "never", "the drop")
    tree.set_knob("hugepages-64kB/enabled", "always")
    end = time.monotonic() + 4
    while time.monotonic() < end and tree.size(64) != "never":
        time.sleep(0.05)
    return tree.size(64)


def after_the_stop(t, config):
    tree = t.tree(modes={64: "always"})
    t.thrash(tree.group("web.service", limit=64 * MIB))
    started(t, config, tree)
    wait(lambda: tree.size(64) == "never", "the drop")
    t.daemon.terminate()
    t.daemon.wait(10)
    size = tree.size(64)
    run([t.mthpd, "--restore", "--root=" + tree.dir, "--runtime-dir=" + t.runtime])  # for the next tree
    return size


def listens(t, config):
    started(t, config.replace("HERE", t.dir))
    return os.path.exists(t.dir + "/metrics")


ON_A_TREE = {
    "Daemon Interval=100ms": (wakes_often, True, ""),
    "Daemon AuditInterval=1s": (foreign_is_seen, 1, ""),
    "Daemon DryRun=yes": (state, "dry-run", ""),
    "Daemon LogLevel=err": (words_of_debug, "", ""),
    "Limits ForeignChanges=reassert": (after_a_foreign_change, "never", "[Daemon]\nAuditInterval=1s\n"),
    "Limits RestoreOnExit=no": (after_the_stop, "never", ""),
    "Metrics Listen=HERE/metrics": (listens, True, ""),
}
ELSEWHERE = {"Daemon PsiWindow": "tests/vm/test_12_psi_window.py"}


def sections(section, line, further):
    """`further` with the line in its section; without it when line is empty."""
    head = '[Policy "p"]\n' if section == "Policy" else "[%s]\n" % section
    return further + head + (line + "\n" if line else "")


def tried(name, observe, expected, further):
    """With the line it is as expected; without it, all else the same, it is not."""
    section, line = name.split(" ", 1)
    with_it, without = (observe(sections(section, x, further)) for x in (line, ""))
    equal(with_it, expected, "with " + line)
    check(without != expected, "the same without %s: %s", line, without)


def test_keys_over_traces(t):
    """Each key that decides: its effect on a recorded day, and none without it."""
    for name, (trace, look, expected, further) in OVER_TRACES.items():
        tried(name, lambda config: look(trace(t, config)), expected, further)


def on_a_tree(name):
    def test(t):
        observe, expected, further = ON_A_TREE[name]

        def one(config):
            found = observe(t, config)
            t.rest()
            return found
        tried(name, one, expected, further)
    test.__name__ = "test_key_" + re.sub(r"\W+", "_", name.split("=")[0]).lower()
    test.__doc__ = "%s: its effect on a fake tree, and none without it." % name
    test.__module__ = __name__
    return test


for _name in ON_A_TREE:
    _test = on_a_tree(_name)
    globals()[_test.__name__] = _test


def test_all_keys_are_here(t):
    """No key of conf/mthpd.conf (which a unit test compares with the reader's table) is missing above, or unknown."""
    section, keys = None, set()
    with open(os.path.join(TOP, "conf", "mthpd.conf")) as f:
        for line in f:
            m = re.match(r"#?\[(\w+)", line)
            section = m.group(1) if m else section
            m = re.match(r"#(\w+)=", line)
            if m:
                keys.add("%s %s" % (section, m.group(1)))
    here = {name.split("=")[0] for name in list(OVER_TRACES) + list(ON_A_TREE)} | set(ELSEWHERE)
    equal(sorted(here), sorted(keys), "keys")
    for name, file in ELSEWHERE.items():
        with open(os.path.join(TOP, file)) as f:
            check(name.split()[1] + "=" in f.read(), "%s does not try %s=", file, name)
