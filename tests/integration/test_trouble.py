# SPDX-License-Identifier: LGPL-2.1-or-later
"""Files that cannot be steered, read or understood: each is named once, in the log and in `degraded`, the rest goes
on, and what is mended is steered again."""

import os

from faketree import CG, MIB, THP
from harness import check, equal, seconds, wait

S64 = "hugepages-64kB/enabled"
S2M = "hugepages-2048kB/enabled"
LISTED = "always inherit madvise [never]\n"


def hot(t, tree, path="web.service"):
    """A group that thrashes at its limit, until `on` is emptied."""
    g = tree.group(path, limit=64 * MIB, current=64 * MIB - 4096)
    on = [True]
    t.drive(lambda s: g.hot(s) if on else None)
    return g, on


def degraded(d, *words):
    return [x for x in d.status()["degraded"] if all(w in x for w in words)]


def starts(t, tree):
    """A start that is to fail."""
    return t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run"))


@seconds(4)
def test_one_file_read_only(t):
    """One switch that cannot be written is named, and its wish is shown; the others are steered; a reload tries again."""
    tree = t.tree(modes={64: "always", 2048: "always"})
    hot(t, tree)
    d = t.daemon(tree, rules=["*/%s open-write EROFS" % S64])
    wait(lambda: tree.size(2048) == "never" and d.size(64)["wanted"] == "never", "the other size is lowered")
    wait(lambda: [x for x in d.history() if x["knob"] == S64], "the wish is remembered")
    status = d.status()
    equal(status["degraded"], [S64 + " cannot be written (Read-only file system): it stays as it is"], "degraded")
    features = status["kernel"]["features"]
    equal((features["writable"], features["files_denied"]), (True, 1), "writable, files_denied")
    equal(len(d.lines(S64, "cannot be written")), 1, "warnings")
    equal(len(d.lines("sysfs is mounted")), 0, "words about all of sysfs")
    check(d.lines("writable", "but not 1 of "), "the capability does not say so")
    equal((d.size(64)["wanted"], d.size(64)["actual"]), ("never", "always"), "64 kB: wanted, actual")
    check({x["outcome"] for x in d.history() if x["knob"] == S64} == {"read-only"}, "history: %s", d.history())
    done = d.ctl("verify")
    check(done.returncode == 1 and S64 in done.stdout and "this file cannot be written" in done.stdout, done.stdout)
    check(S2M not in done.stdout, done.stdout)
    d.rules()
    d.reload("")
    wait(lambda: tree.size(64) == "never", "it is written after the reload")
    equal(d.status()["degraded"], [], "degraded later")
    check(d.lines(S64 + " can be steered again"), "the log does not say that it can be written")
    equal(d.features()["files_denied"], 0, "files_denied later")
    d.stop()
    equal((tree.size(64), tree.size(2048)), ("always", "always"), "values after the stop")


@seconds(4)
def test_one_file_after_the_other(t):
    """The kernel itself refuses each write: each file is tried once, and then one sentence stands for all."""
    tree = t.tree(modes={64: "always"})
    hot(t, tree)
    d = t.daemon(tree, rules=["*/transparent_hugepage/* write EPERM"])
    wait(lambda: degraded(d, "hugepages-2048kB/enabled cannot be written"), "one file is named")
    d.ticks(20)
    tried = [w.path for w in d.writes()]
    equal(sorted(tried), sorted(set(tried)), "attempts")
    check(len(tried) > 1, "only %s was tried", tried)
    equal(len(degraded(d, "cannot be written (Operation not permitted)")), len(tried), "files named in degraded")
    equal(d.status()["counters"]["writes"], 0, "writes")


def test_nothing_usable(t):
    """Not one choice file is understood: exit code 69, and one sentence with a file and what stood in it."""
    tree = t.tree()
    for where, _, names in os.walk(tree.path(THP)):
        for name in names:
            if name in ("enabled", "shmem_enabled", "defrag"):
                with open(os.path.join(where, name), "wb") as f:
                    f.write(b"gar\x1b[2Jbage\n")
    done = starts(t, tree)
    equal(done.returncode, 69, "exit code")
    equal(len(done.stderr.splitlines()), 1, "lines of " + done.stderr)
    check('/enabled is not understood (it holds "gar?[2Jbage")' in done.stderr and "not one switch" in done.stderr,
          done.stderr)


def test_one_usable(t):
    """With one size that is understood it runs, and says how many there are."""
    tree = t.tree()
    sizes = [s for s in os.listdir(tree.path(THP)) if s.startswith("hugepages-") and
             os.path.exists(tree.path("%s/%s/enabled" % (THP, s)))]
    for s in sizes:
        if s != "hugepages-64kB":
            tree.write("%s/%s/enabled" % (THP, s), "garbage\n")
    tree.set_knob(S64, "always")
    hot(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "never", "the one size is lowered")
    equal(d.features()["sizes_usable"], 1, "sizes_usable")
    check(d.lines("per-size", "only 1 of %d switches" % len(sizes)), "the capability does not say so")
    for s in sizes:
        expected = 0 if s == "hugepages-64kB" else 1
        equal(len(d.lines(s + "/enabled", "is not understood")), expected, "warnings about " + s)
        equal(len(degraded(d, s + "/enabled", "is not understood")), expected, "degraded because of " + s)


TROUBLES = {
    16: (None, "cannot be read (Is a directory)"),
    32: ("always [frobnicate] never\n", "holds a word that mthpd does not know"),
    64: ("[always] inherit madvise\n", 'does not list "never"'),
    128: ("garbage\n", "is not understood"),
}


def spoil(tree, kb):
    name = "%s/hugepages-%dkB/enabled" % (THP, kb)
    text = TROUBLES[kb][0]
    if text is not None:
        tree.write(name, text)
        return
    tree.remove(name)
    os.makedirs(tree.path(name))


def mend(tree, kb, text):
    name = "%s/hugepages-%dkB/enabled" % (THP, kb)
    if os.path.isdir(tree.path(name)):
        tree.remove(name)
    tree.write(name, text)


@seconds(5)
def test_troubles_at_the_start(t):
    """A directory, an unknown word, no `never`, garbage: each is told once and left; mended, each is steered."""
    tree = t.tree(modes={2048: "always"})
    for kb in TROUBLES:
        spoil(tree, kb)
    hot(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never", "the sound size is lowered")
    d.ticks(20)
    for kb, (_, words) in TROUBLES.items():
        equal(len(degraded(d, "hugepages-%dkB/enabled" % kb, words)), 1, "degraded because of %d kB" % kb)
        equal(len(d.lines("hugepages-%dkB/enabled" % kb, words)), 1, "warnings about %d kB" % kb)
        equal(d.writes("hugepages-%dkB" % kb), [], "writes to %d kB" % kb)
    equal(len(d.status()["degraded"]), len(TROUBLES), "degraded: %s" % d.status()["degraded"])
    for kb in TROUBLES:
        mend(tree, kb, LISTED.replace("always", "[always]").replace("[never]", "never"))
    for kb in TROUBLES:
        wait(lambda: tree.size(kb) == "never", "%d kB is steered" % kb)
    equal(d.status()["degraded"], [], "degraded later")
    d.stop()
    equal([tree.size(kb) for kb in TROUBLES], ["always"] * 4, "values after the stop: those that were found")


@seconds(5)
def test_troubles_while_it_runs(t):
    """The same at run time: nothing is written to them, and what is wanted is written once they are mended."""
    tree = t.tree(modes=dict.fromkeys(list(TROUBLES) + [2048], "always"))
    g, on = hot(t, tree)
    on.clear()
    d = t.daemon(tree)
    for kb in TROUBLES:
        spoil(tree, kb)
    for kb, (_, words) in TROUBLES.items():
        wait(lambda: degraded(d, "hugepages-%dkB/enabled" % kb, words), "%d kB is named" % kb)
    on.append(True)
    wait(lambda: tree.size(2048) == "never" and all(d.size(kb)["wanted"] == "never" for kb in TROUBLES), "a drop")
    d.ticks(20)
    for kb, (_, words) in TROUBLES.items():
        equal(d.writes("hugepages-%dkB" % kb), [], "writes to %d kB" % kb)
        equal(len(d.lines("hugepages-%dkB/enabled" % kb, words)), 1, "warnings about %d kB" % kb)
    done = d.ctl("verify")
    check(done.returncode == 1 and "hugepages-64kB/enabled" in done.stdout and "(not understood)" in done.stdout, done.stdout)
    for kb in TROUBLES:
        mend(tree, kb, "[always] inherit madvise never\n")
        wait(lambda: tree.size(kb) == "never", "%d kB is steered again" % kb)
    equal(d.status()["degraded"], [], "degraded later")
    d.stop()
    equal([tree.size(kb) for kb in TROUBLES], ["always"] * 4, "values after the stop")


def test_files_that_are_only_read(t):
    """The top level and shmem's switches are not steered, but status stands on them: they are named as well."""
    tree = t.tree()
    names = ("enabled", "shmem_enabled", "hugepages-64kB/shmem_enabled")
    sound = {name: tree.read(THP + "/" + name) for name in names}
    for name in names:
        tree.write(THP + "/" + name, "garbage\n")
    d = t.daemon(tree)
    equal(sorted(d.status()["degraded"]),
          sorted(name + ' is not understood (it holds "garbage"): it is left alone' for name in names), "degraded")
    for name in names:
        equal(len([x for x in d.lines("is not understood") if x.startswith(name + " ")]), 1, "warnings about " + name)
        tree.write(THP + "/" + name, sound[name] + "\n")
    wait(lambda: not d.status()["degraded"], "they are understood again")


@seconds(3)
def test_garbage_of_the_machine(t):
    """Garbage in /proc/pressure/memory, meminfo and vmstat: each is said once, and groups are served by their own files."""
    tree = t.tree(modes={64: "always"})
    names = {"proc/pressure/memory": "psi", "proc/meminfo": "meminfo", "proc/vmstat": "vmstat"}
    sound = {name: tree.read(name) for name in names}
    for name in names:
        tree.write(name, "gar bage\n")
    g, on = hot(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "never", "the group that thrashes is served")
    d.ticks(10)
    equal(d.features()["psi"], "not-understood", "psi")
    check(d.lines("  psi ", "/proc/pressure/memory is not understood"), "the capability does not say so")
    for name in names:
        equal(len(degraded(d, "/" + name, "not understood")), 1, "degraded because of " + name)
        equal(len([x for x in d.lines("/" + name, "not understood") if not x.startswith("  psi")]), 1, "warnings about " + name)
    on.clear()
    for name, text in sound.items():
        tree.write(name, text + "\n")
    wait(lambda: not degraded(d, "not understood"), "they are understood again")
    equal(d.features()["psi"], "present", "psi later")


@seconds(5)
def test_garbage_of_groups(t):
    """Garbage in groups' files: one warning with the first and how many, and none when it is mended."""
    tree = t.tree()
    files = ("memory.pressure", "memory.events", "memory.current", "memory.max")
    groups = [tree.group("g%d.service" % n, limit=640 * MIB, current=MIB) for n in range(9)]
    for n, g in enumerate(groups[:8]):
        g.write(files[n % 4], "gar bage\n")
    d = t.daemon(tree)
    wait(lambda: degraded(d, "of 7 other groups"), "all eight are counted")
    d.ticks(20)
    equal(len(degraded(d, "not understood")), 1, "degraded: %s" % d.status()["degraded"])
    equal(len(d.lines("not understood")), 1, "warnings")
    check(degraded(d, ".service is not understood")[0].startswith("memory."), "no file is named")
    for g in groups[1:8]:
        g.save()
    wait(lambda: degraded(d, "memory.pressure of g0.service", "the group is judged by the rest"), "one is left")
    groups[0].remove()
    wait(lambda: not degraded(d, "not understood"), "none is left")
    groups[4].write("memory.events", "max\n")
    wait(lambda: degraded(d, "memory.events of g4.service"), "one more")
    groups[4].save()
    wait(lambda: not degraded(d, "not understood"), "none is left again")


@seconds(3)
def test_no_cgroup_directory(t):
    """mountinfo lists cgroup2, the directory is not there: one sentence, and the machine is one group."""
    tree = t.tree()
    tree.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n")
    tree.remove(CG)
    d = t.daemon(tree)
    equal(d.features()["cgroup"], "unreachable", "cgroup")
    equal(d.status()["degraded"],
          ["cgroup: /sys/fs/cgroup cannot be opened (No such file or directory); the machine is treated as one group "
           "(mount cgroup2 there, and let mthpd see it)"], "degraded")
    equal(len(d.lines("cannot be opened")), 2, "the warning, and the capability")
    equal([g["path"] for g in d.status()["cgroups"]], [""], "groups")


def test_no_proc(t):
    """Nothing below /proc: that is said, not that the kernel lacks PSI, and no size is taken for too large."""
    tree = t.tree(top="always", modes={2048: "always"})
    tree.remove("proc")
    g = tree.group("web.service", limit=640 * MIB, current=MIB)
    d = t.daemon(tree)
    equal(d.features()["psi"], "no-proc", "psi")
    equal(d.status()["degraded"], ["psi: not known, /proc is not mounted; memory.events and counters are used instead "
                                   "(mount /proc)"], "degraded")
    equal(len(d.lines("CONFIG_PSI")) + len(d.lines("built without")), 0, "words about the kernel")
    d.ticks(5)
    equal(tree.size(2048), "always", "the PMD size")
    check(d.group("web.service"), "the group is not there")
    g.step(current=2 * MIB)
