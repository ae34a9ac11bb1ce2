# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups with files of their own (memory.thp.*, our kernel): each is steered by
itself, nobody decides for another, and everything is put back."""

import os
import re

from faketree import CG, MIB
from harness import check, equal, seconds, wait


class Pair:
    """Two groups at their limits: one uses its large folios whole, one here and there; a third is quiet."""

    def __init__(self, t, config="", **how):
        self.t = t
        self.tree = t.tree(memcg_thp=True)
        for kb in (16, 32, 64):
            self.tree.set_knob("hugepages-%dkB/enabled" % kb, "always")
        self.before = self.tree.all_knobs()
        self.dense = self.group("dense.service")
        self.scattered = self.group("scattered.service")
        self.quiet = self.tree.group("quiet.service", limit=64 * MIB, current=16 * MIB)
        self.on, self.young = True, 0.99
        t.drive(self.step)
        self.daemon = t.daemon(self.tree, config, **how)

    def group(self, path, **how):
        return self.tree.group(path, limit=64 * MIB, current=64 * MIB - 4096, **how)

    def step(self, s):
        with self.tree.lock:
            if self.on:
                self.move(s)

    def rest(self):
        """Nothing moves any more once this returns."""
        with self.tree.lock:
            self.on = False

    def move(self, s):
        def n(per_sec):
            return round(per_sec * s)

        self.dense.hot(s)
        self.dense.step(thp_events={"margin_swpin": n(400)}, pswpin=n(3000), pswpout=n(3000),
                        thp_reclaim_scanned=n(8000), thp_reclaim_young=n(8000 * self.young))
        self.scattered.hot(s)
        # Single pages, as the kernel's own gate has it: as many faults as pages.
        self.scattered.step(pgmajfault=n(2000), pswpin=n(3000), pswpout=n(3000), thp_reclaim_scanned=n(8000),
                            thp_reclaim_young=n(1600))

    def opened(self):
        wait(lambda: self.dense.knob("margin") == "0", "the gate of the dense group is open")

    def judged(self):
        wait(lambda: self.daemon.group("dense.service")["own"]["gate"] == "open", "the trial is over")

    def killed(self):
        # Without stalls an OOM kill takes the larger sizes only.
        wait(lambda: (self.daemon.group(self.scattered.path)["some"] or 0) > 0.3, "stalls are seen")
        self.scattered.step(events={"oom_kill": 1})
        wait(lambda: self.scattered.knob("max_size") == "4096", "small pages only after an OOM kill")

    def start_values(self, *groups):
        for g in groups or (self.dense, self.scattered, self.quiet):
            equal([g.knob(k) for k in ("max_size", "max_ptes_none", "margin")], ["max", "inherit", "inherit"], g.path)


@seconds(8)
def test_each_its_own(t):
    """Opposite wishes at the same time; the switches of all stand still; status, explain, history and verify tell."""
    p = Pair(t)
    p.opened()
    p.judged()
    p.killed()
    equal((p.dense.knob("max_size"), p.scattered.knob("margin")), ("max", "inherit"), "the other file of each")
    p.start_values(p.quiet)
    equal({k: v for k, v in p.tree.all_knobs().items() if "hugepages" in k and v != p.before[k]}, {}, "sizes of all")
    own = p.daemon.group("dense.service")["own"]
    equal((own["gate"], own["gate_reason"], own["margin"]["baseline"], own["margin"]["actual"]),
          ("open", "gate-open", "inherit", "0"), "dense group's own")
    check(own["density"] > 0.95 and own["counters"]["pswpin"] > 0, "density and counters: %s", own)
    own = p.daemon.group("scattered.service")["own"]
    equal((own["gate"], own["max_size"]["wanted"], own["max_size"]["reason"]), ("kernel", "4096", "oom-kill"),
          "scattered group's own")
    check(0.1 < own["density"] < 0.3, "density: %s", own)
    text = p.daemon.explain("dense.service")
    check("memory.thp.margin is 0 instead of inherit" in text and "% of the large folios" in text, text)
    told = [(d["cgroup"], d["knob"], d["new"]) for d in p.daemon.history()]
    check(("dense.service", "memory.thp.margin", "0") in told, "history: %s", told)
    check(("scattered.service", "memory.thp.max_size", "4096") in told, "history: %s", told)
    equal(p.daemon.ctl("verify").returncode, 0, "verify")
    p.dense.set_knob("margin", "7")
    done = p.daemon.ctl("verify")
    if done.returncode == 0:  # a tick was faster: it took the value over
        equal(p.daemon.group("dense.service")["own"]["margin"]["baseline"], "7", "adopted")
    else:
        check(done.returncode == 1 and "dense.service/memory.thp.margin" in done.stdout, "verify: %s", done.stdout)


@seconds(8)
def test_access_changes(t):
    """Little of the folios is used any more: the gate is shut again within a few ticks."""
    p = Pair(t)
    p.opened()
    p.judged()
    p.young = 0.15
    wait(lambda: p.dense.knob("margin") == "inherit", "the gate is shut")
    equal(p.daemon.group("dense.service")["own"]["gate_reason"], "gate-shut", "reason")


@seconds(8)
def test_stop_and_crash(t):
    """SIGTERM puts all back; so does --restore after kill -9, once; and a new start knows the first one's values."""
    p = Pair(t)
    p.opened()
    p.killed()
    p.daemon.stop()
    p.start_values()
    p.daemon.start()
    p.opened()
    p.killed()
    p.daemon.kill()
    equal(p.dense.knob("margin"), "0", "margin after the crash")
    done = t.restore(p.daemon)
    equal(done.returncode, 0, done.stderr)
    check("dense.service/memory.thp.margin" in done.stdout, done.stdout)
    p.start_values()
    check("nothing to put back" in t.restore(p.daemon).stdout, "the second time")
    p.daemon.start()
    p.opened()
    p.daemon.kill()
    p.rest()
    p.dense.step(current=8 * MIB)
    p.daemon.start()
    wait(lambda: p.dense.knob("margin") == "inherit", "what the crash left behind is put right")


@seconds(5)
def test_never_above_the_start(t):
    """An administrator's own limits bound ours, and a margin of his is left alone."""
    p = Pair(t)
    p.daemon.stop()
    p.dense.set_knob("margin", "auto")
    p.scattered.set_knob("max_size", "8192")
    p.daemon.start()
    writes = len(p.daemon.group_writes("memory.thp.margin"))
    p.killed()
    p.daemon.ticks(10)
    equal(p.dense.knob("margin"), "auto", "margin")
    equal(len(p.daemon.group_writes("memory.thp.margin")), writes, "writes to margin")
    p.daemon.stop()
    equal(p.scattered.knob("max_size"), "8192", "max_size in the end")


@seconds(6)
def test_foreign_value_in_a_file_of_its_own(t):
    """Somebody sets a file that mthpd has not written: it is the start value before anything is written there."""
    p = Pair(t)
    wait(lambda: (p.daemon.group(p.scattered.path)["some"] or 0) > 0.3, "stalls are seen")
    p.scattered.set_knob("max_size", "8192")
    p.killed()
    equal(p.daemon.group("scattered.service")["own"]["max_size"]["baseline"], "8192", "baseline")
    told = [(d["old"], d["new"]) for d in p.daemon.history() if d["knob"] == "memory.thp.max_size"]
    equal(told, [("8192", "4096")], "what history says")
    equal(p.daemon.status()["counters"]["foreign_changes"], 1, "foreign changes")
    check(any("holds 8192 instead of max" in line for line in p.daemon.lines("memory.thp.max_size")), "no warning")
    p.daemon.stop()
    equal(p.scattered.knob("max_size"), "8192", "max_size after the stop")


@seconds(6)
def test_foreign_value(t):
    """Somebody sets a group's file that we wrote: adopted, and it is what the stop leaves."""
    p = Pair(t)
    p.killed()
    p.scattered.set_knob("max_size", "65536")
    wait(lambda: p.daemon.group("scattered.service")["own"]["max_size"]["baseline"] == "65536", "adopted")
    p.daemon.stop()
    equal(p.scattered.knob("max_size"), "65536", "max_size after the stop")
    check(any("changed by somebody else" in line for line in p.daemon.lines("memory.thp.max_size")), "no warning")


@seconds(6)
def test_recreated_group_starts_clean(t):
    """Under an old name a new group has its own values, and keeps them."""
    p = Pair(t)
    p.killed()
    p.scattered.remove()
    p.scattered = p.group("scattered.service")
    p.daemon.ticks(5)
    p.start_values(p.scattered)
    p.killed()
    p.daemon.stop()
    p.start_values(p.scattered)


@seconds(6)
def test_switched_off_by_reload(t):
    """PerGroup=no gives the groups' files back and steers the switches of all; yes takes it up again."""
    p = Pair(t)
    p.opened()
    p.killed()
    p.daemon.reload("[Limits]\nPerGroup=no\n")
    p.start_values()
    wait(lambda: p.tree.size(64) == "never", "the switches of all are steered")
    equal(p.daemon.group("dense.service")["own"], None, "own with PerGroup=no")
    p.daemon.reload("")
    p.opened()
    wait(lambda: p.tree.size(64) == "always", "the switches of all are back")


@seconds(6)
def test_crash_and_another_configuration(t):
    """What a crash left in a group that is not controlled any more is given back."""
    p = Pair(t)
    p.killed()
    p.daemon.kill()
    p.daemon.configure("[Policy \"x\"]\nMatch=scattered.service\nControlled=no\n")
    p.daemon.start()
    wait(lambda: p.scattered.knob("max_size") == "max", "given back")


@seconds(9)
def test_contest(t):
    """Somebody who sets a group's file again and again has it; that is told, and the rest is steered."""
    p = Pair(t, "[Limits]\nForeignChanges=reassert\n")
    p.killed()

    def theirs():
        if p.scattered.knob("max_size") == "4096":
            p.scattered.set_knob("max_size", "32768")
        return any("scattered.service/memory.thp.max_size" in x for x in p.daemon.status()["degraded"])

    wait(theirs, "left to them and told")
    equal(p.scattered.knob("max_size"), "32768", "max_size")
    p.opened()


@seconds(5)
def test_slices(t):
    """Only a policy that names it makes a slice a unit with files to write; its parts are left alone then."""
    p = Pair(t, "[Policy \"x\"]\nMatch=steered.slice\nMaxSize=16K\n[Policy \"y\"]\nMatch=plain.slice/*\nMaxSize=32K\n")
    names = {}
    for top in ("steered", "plain"):
        names[top] = p.tree.group(top + ".slice", limit=None, current=32 * MIB)
        names[top + "/a"] = p.tree.group(top + ".slice/a.service", limit=64 * MIB, current=32 * MIB)
    wait(lambda: names["steered"].knob("max_size") == "16384", "the slice that a policy names")
    wait(lambda: names["plain/a"].knob("max_size") == "32768", "the group that a policy names")
    p.start_values(names["steered/a"], names["plain"])


@seconds(15)
def test_more_groups_than_are_looked_at_together(t):
    """However many groups a policy binds, each gets its value: of the start, made later, and after a reload; and what a
    run before left in others is put back."""
    policy = "[Policy \"m\"]\nMatch=m*.service\nMaxSize=%s\n"
    p = Pair(t, "[Policy \"q\"]\nMatch=quiet.service\nMaxSize=4K\n")
    wait(lambda: p.quiet.knob("max_size") == "4096", "left behind by the first run")
    p.rest()
    p.daemon.kill()

    def more(n):
        return [p.tree.group("m%04d.service" % i, limit=64 * MIB, current=16 * MIB) for i in range(n, n + 520)]

    def have(value):
        wait(lambda: all(g.knob("max_size") == value for g in groups), "all %d have %s" % (len(groups), value), 40)

    groups = more(0)
    p.daemon.configure(policy % "4K")
    p.daemon.start()
    have("4096")
    wait(lambda: p.quiet.knob("max_size") == "max", "put back")
    groups += more(520)
    have("4096")
    p.daemon.reload(policy % "64K")
    have("65536")
    equal(p.daemon.ctl("verify").returncode, 0, "verify")


@seconds(4)
def test_parent_bounds(t):
    """The smallest max_size on the way up is what a group can have; status and explain say so."""
    p = Pair(t)
    parent = p.tree.group("narrow.slice", limit=None, current=32 * MIB)
    parent.set_knob("max_size", "32768")
    p.tree.group("narrow.slice/a.service", limit=64 * MIB, current=16 * MIB)
    wait(lambda: p.daemon.group("narrow.slice/a.service"), "the group is seen")
    equal(p.daemon.group("narrow.slice/a.service")["max_size_kb"], 32, "largest size")
    text = p.daemon.explain("narrow.slice/a.service")
    check("folios up to 32K." in text, "explain tells another size than status: %s", text)
    equal(p.daemon.group("dense.service")["max_size_kb"], 2048, "largest size without a parent")
    parent.set_knob("max_size", "4096")
    equal(p.daemon.group("narrow.slice/a.service")["max_size_kb"], 0, "largest size below single pages")
    shown = p.daemon.ctl("status").stdout
    check(" none " in shown and not re.search(r"r[1-9]\d* none", shown), "SIZE: %s", shown)


@seconds(4)
def test_dry_run(t):
    """DryRun=yes tells what it would do and writes nothing."""
    p = Pair(t, "[Daemon]\nDryRun=yes\n")
    wait(lambda: [d for d in p.daemon.history() if d["knob"] == "memory.thp.margin"], "a decision")
    p.start_values()
    equal(p.daemon.group_writes(), [], "writes")
    check(os.path.isdir(p.tree.path(CG + "/dense.service")), "the group is there")


@seconds(6)
def test_hold_over_a_reload(t):
    """Under a hold no configuration gives groups' files back; its end does."""
    for config in ("[Limits]\nPerGroup=no\n", "[Policy \"all\"]\nMatch=*.service\nControlled=no\n"):
        p = Pair(t)
        p.opened()
        p.killed()
        equal(p.daemon.ctl("hold").returncode, 0, "hold")
        p.daemon.reload(config)
        p.daemon.ticks(15)
        equal((p.dense.knob("margin"), p.scattered.knob("max_size")), ("0", "4096"), "under the hold: " + config)
        equal(p.daemon.ctl("release").returncode, 0, "release")
        p.start_values()
        p.daemon.stop()
        p.rest()


@seconds(5)
def test_restore_in_vain(t):
    """A start value that cannot be put back by `mthpctl restore` is told until a restore succeeds."""
    p = Pair(t)
    p.killed()
    p.daemon.rules("*/scattered.service/memory.thp.max_size write EIO")
    equal(p.daemon.ctl("restore").returncode, 1, "restore")
    check([x for x in p.daemon.status()["degraded"] if "could not be put back" in x], "not degraded")
    p.daemon.rules()
    equal(p.daemon.ctl("restore").returncode, 0, "restore again")
    p.start_values()
    check(not [x for x in p.daemon.status()["degraded"] if "could not be put back" in x], "still degraded")


@seconds(5)
def test_hold_while_it_calms_down(t):
    """A group that gets quiet under a hold keeps what is in its files until the release."""
    p = Pair(t)
    p.opened()
    equal(p.daemon.ctl("hold").returncode, 0, "hold")
    p.rest()
    p.dense.step(current=10 * MIB)
    p.scattered.step(current=10 * MIB)
    p.daemon.ticks(20)
    equal(p.dense.knob("margin"), "0", "margin under the hold")
    equal(p.daemon.ctl("release").returncode, 0, "release")
    wait(lambda: p.dense.knob("margin") == "inherit", "the start value comes back after the release")


@seconds(5)
def test_hold(t):
    """A hold freezes groups' files too; restore puts them back."""
    p = Pair(t)
    p.opened()
    equal(p.daemon.ctl("hold").returncode, 0, "hold")
    p.scattered.step(events={"oom_kill": 1})
    p.daemon.ticks(5)
    equal((p.dense.knob("margin"), p.scattered.knob("max_size")), ("0", "max"), "values under the hold")
    equal(p.daemon.ctl("restore").returncode, 0, "restore")
    p.start_values()
    p.daemon.ticks(5)
    p.start_values()


def given_back(p, group, file):
    return [(d["old"], d["new"]) for d in p.daemon.history()
            if (d["cgroup"], d["knob"], d["reason"]) == (group, "memory.thp." + file, "given-back")]


@seconds(5)
def test_given_back_is_told(t):
    """What is put back because a group is not steered any more is a line of the log and of the history, once."""
    small = "[Policy \"s\"]\nMatch=scattered.service\nMaxSize=16K\n"
    for config in ("[Limits]\nPerGroup=no\n", "[Policy \"all\"]\nMatch=*.service\nControlled=no\n"):
        p = Pair(t, small)
        wait(lambda: p.scattered.knob("max_size") == "16384", "the policy's size")
        equal([d["reason"] for d in p.daemon.history() if d["cgroup"] == "scattered.service"], ["policy-limit"], "reasons")
        p.daemon.reload(config)
        wait(lambda: p.scattered.knob("max_size") == "max", "the start value")
        wait(lambda: given_back(p, "scattered.service", "max_size") == [("16384", "max")], "the history")
        p.daemon.ticks(15)
        equal(len(p.daemon.lines("memory.thp.max_size: 16384 -> max, given-back, scattered.service")), 1, "lines of the log")
        p.daemon.stop()
        p.rest()


@seconds(5)
def test_policy_goes(t):
    """A policy that is taken away: its bound goes, and the reason is not its own."""
    p = Pair(t, "[Policy \"s\"]\nMatch=scattered.service\nMaxSize=16K\n")
    wait(lambda: p.scattered.knob("max_size") == "16384", "the policy's size")
    p.daemon.reload("")
    wait(lambda: p.scattered.knob("max_size") == "max", "the start value")
    last = [d for d in p.daemon.history() if d["cgroup"] == "scattered.service"][0]
    equal((last["old"], last["new"], last["reason"]), ("16384", "max", "start-values"), "the decision")


@seconds(5)
def test_hold_of_a_run_before(t):
    """After a restart under a hold what stands is the hold's doing, and told so; so are start values put back under it."""
    p = Pair(t, "[Policy \"s\"]\nMatch=scattered.service\nMaxSize=16K\n")
    wait(lambda: p.scattered.knob("max_size") == "16384", "the policy's size")
    equal(p.daemon.ctl("hold").returncode, 0, "hold")
    p.daemon.kill()
    p.daemon.configure("")
    p.daemon.start()
    wait(lambda: p.daemon.group("scattered.service")["own"], "it is looked at")
    own = p.daemon.group("scattered.service")["own"]["max_size"]
    equal((own["actual"], own["wanted"], own["reason"]), ("16384", "max", "held"), "after the restart")
    equal(p.daemon.ctl("restore").returncode, 0, "restore")
    g = p.daemon.group("scattered.service")
    equal((g["own"]["max_size"]["actual"], g["own"]["max_size"]["reason"]), ("max", "start-values"), "restored")


@seconds(5)
def test_restored_under_a_policy(t):
    """Start values that were put back against a policy stand because of the hold."""
    p = Pair(t, "[Policy \"s\"]\nMatch=scattered.service\nMaxSize=16K\n")
    wait(lambda: p.scattered.knob("max_size") == "16384", "the policy's size")
    equal(p.daemon.ctl("restore").returncode, 0, "restore")
    g = p.daemon.group("scattered.service")
    own = g["own"]["max_size"]
    equal((own["actual"], own["wanted"], own["reason"], g["reason"]), ("max", "16384", "held", "held"), "restored")
    text = p.daemon.explain("scattered.service")
    check("max_size is max, where 16384 is wanted: a hold freezes all switches." in text, "explain: %s", text)


@seconds(5)
def test_slice_without_a_policy(t):
    """A slice that speaks for groups without memory files is steered by the switches of all; with a policy by its own."""
    for config, own in (("", False), ("[Policy \"u\"]\nMatch=user.slice\n", True)):
        tree = t.tree(modes={64: "always"}, memcg_thp=True)
        g = tree.group("user.slice", limit=64 * MIB, current=64 * MIB - 4096)
        os.makedirs(tree.path(CG + "/user.slice/plain.service"))
        t.drive(g.hot)
        d = t.daemon(tree, config)
        wait(lambda: (d.group("user.slice") or {}).get("some"), "it is looked at")
        g.step(events={"oom_kill": 1})
        wait(lambda: (g.knob("max_size") == "4096") == own and (tree.size(64) == "never") == (not own),
             "the one or the other")
        equal(d.group("user.slice")["own"] is not None, own, "own files in the status")
        d.stop()
