# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start-up: what is found on a machine, and how each part that is missing
degrades alone."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

from faketree import CG, MIB, THP
from harness import DEADLINE, FAST, NOBODY, check, equal, seconds, wait

GIB = 1 << 30


def hot_group(t, tree, path="web.service", speed=1):
    """A group that thrashes at its limit, until `on` is emptied."""
    g = tree.group(path, limit=64 * MIB, current=64 * MIB - 4096)
    on = [True]
    t.drive(lambda s: g.hot(s) if on else None, speed)
    return g, on


def test_legacy_kernel(t):
    """A03: no hugepages-* directories, no shrink_underused, no stats: the switch alone is steered."""
    tree = t.tree(legacy=True, top="always")
    for name in ("use_zero_page", "shmem_enabled", "hpage_pmd_size"):
        tree.remove(THP + "/" + name)
    for name in os.listdir(tree.path(THP + "/khugepaged")):
        if name != "max_ptes_none":
            tree.remove(THP + "/khugepaged/" + name)
    before = tree.all_knobs()
    equal(sorted(before), ["defrag", "enabled", "khugepaged/max_ptes_none"], "files of the tree")
    hot_group(t, tree)
    d = t.daemon(tree)
    features = d.features()
    equal((features["per_size"], features["shrink_underused"]), (False, False), "per_size, shrink_underused")
    check(d.lines("per-size", "no hugepages"), "the start does not say that sizes cannot be steered")
    wait(lambda: tree.knob("khugepaged/max_ptes_none") == "0", "max_ptes_none is written")
    wait(lambda: tree.knob("enabled") == "never", "the switch is lowered")
    d.stop()
    equal(tree.all_knobs(), before, "files after the stop")


def pmd_512m(t, **how):
    tree = t.tree(pmd_kb=524288, ptes=8191, mem_kb=6291456, top="always", **how)
    before = tree.all_knobs()
    d = t.daemon(tree)
    return tree, before, d


def test_pmd_large_against_the_machine_legacy(t):
    """A12: MemTotal 6291456 kB, PMD 512 MiB, enabled=[always], no sizes: madvise from the start, always at the end."""
    tree, before, d = pmd_512m(t, legacy=True)
    equal(tree.knob("enabled"), "madvise", "the switch after the start")
    check(d.lines("512 MiB"), "the log does not say why")
    equal(d.history()[-1]["reason"], "pmd-too-large", "reason of the decision")
    d.stop()
    equal(tree.all_knobs(), before, "files after the stop")


def test_pmd_large_against_the_machine(t):
    """A12: the same with sizes: only the PMD size is lowered, the others keep always."""
    sizes = tuple(64 << n for n in range(14))
    tree, before, d = pmd_512m(t, sizes=sizes, modes={64: "always", 524288: "inherit"})
    equal(tree.size(524288), "madvise", "512 MiB after the start")
    equal(tree.size(64), "always", "64 kB after the start")
    equal(len(d.writes()), 1, "number of writes")
    d.stop()
    equal(tree.all_knobs(), before, "files after the stop")


def test_pmd_large_but_always_was_asked_for(t):
    """A12: MaxMode=always is the explicit permission."""
    tree = t.tree(pmd_kb=524288, ptes=8191, mem_kb=6291456, top="always", legacy=True)
    d = t.daemon(tree, "[Limits]\nMaxMode=always\n")
    d.ticks(5)
    equal(d.writes(), [], "writes")


def test_effective_modes(t):
    """A16: status says what each size comes to, for anonymous memory and for shmem."""
    tree = t.tree(top="never", modes={64: "always", 2048: "inherit"})
    tree.set_knob("shmem_enabled", "always")
    tree.set_knob("hugepages-2048kB/shmem_enabled", "inherit")
    d = t.daemon(tree)
    big, small = d.size(2048), d.size(64)
    equal((big["effective"], big["shmem_effective"]), ("never", "always"), "2048 kB: anon, shmem")
    equal((small["effective"], small["shmem_effective"]), ("always", "never"), "64 kB: anon, shmem")
    khugepaged = d.status()["khugepaged"]
    for key in ("max_ptes_none", "defrag", "scan_sleep_millisecs", "pages_to_scan", "alloc_sleep_millisecs",
                "max_ptes_swap", "max_ptes_shared"):
        check(khugepaged[key] is not None, "khugepaged has no %s", key)
    text = d.ctl("status").stdout
    check("inherit" in text and "2M" in text, "mthpctl status: %s", text)


def test_shmem_force_and_deny(t):
    """A16: force and deny of the top level reach the sizes as in mm/shmem.c."""
    tree = t.tree()
    tree.set_knob("hugepages-2048kB/shmem_enabled", "inherit")
    tree.set_knob("hugepages-64kB/shmem_enabled", "always")
    d = t.daemon(tree)
    for top, inherits, own in (("force", "always", "never"), ("deny", "never", "never")):
        tree.set_knob("shmem_enabled", top)
        equal((d.size(2048)["shmem_effective"], d.size(64)["shmem_effective"]), (inherits, own),
              "2048 kB, 64 kB under " + top)


@seconds(8)
def test_boot_never_quiet(t):
    """A33: transparent_hugepage=never, quiet: 50 cycles, reload and SIGTERM write neither always nor madvise."""
    tree = t.tree(top="never")
    tree.write("proc/cmdline", "root=/dev/sda1 transparent_hugepage=never quiet\n")
    tree.group("web.service", limit=GIB, current=100 * MIB)
    d = t.daemon(tree)
    d.ticks(25)
    d.reload("[Controller]\nPressureHigh=20%\n")
    d.ticks(25)
    d.stop()
    equal([w for w in d.writes() if w.bytes != "-"], [], "writes")


@seconds(8)
def test_boot_never_busy(t):
    """A33: the same with MaxMode=always, fresh memory faulted in and then pressure: still nothing is raised."""
    tree = t.tree(top="never")
    tree.write("proc/cmdline", "transparent_hugepage=never\n")
    g = tree.group("web.service", limit=GIB, current=100 * MIB)
    d = t.daemon(tree, "[Limits]\nMaxMode=always\n", speed=FAST)
    hot = []
    t.drive(lambda s: g.hot(s) if hot else g.fresh(s), FAST)
    d.ticks(30)
    hot.append(1)
    d.ticks(20)
    d.reload("[Limits]\nMaxMode=always\n")
    d.stop()
    bad = [w for w in d.writes() if w.bytes in ("always", "madvise", "inherit")]
    equal(bad, [], "writes that raise")


def test_boot_never_puts_back_what_was_found(t):
    """A33, design 4: a size found at always under boot never is lowered under pressure and put back, no more."""
    tree = t.tree(top="never", modes={64: "always"})
    tree.write("proc/cmdline", "transparent_hugepage=never\n")
    g, on = hot_group(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "never", "64 kB is lowered")
    on.clear()
    g.step(current=10 * MIB)
    wait(lambda: tree.size(64) == "always", "64 kB is put back")
    d.stop()
    raised = {(w.path.split("/")[-2], w.bytes) for w in d.writes() if w.bytes in ("always", "madvise", "inherit")}
    check(raised <= {("hugepages-64kB", "always"), ("hugepages-2048kB", "inherit")}, "writes that raise: %s", raised)


def test_ceiling_is_the_top_level(t):
    """A34: top level madvise, 64kB=[never], much fresh memory: at most what the top level grants."""
    tree = t.tree()
    g = tree.group("web.service", limit=GIB, current=100 * MIB)
    t.drive(g.fresh)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) != "never", "64 kB is raised")
    equal(tree.size(64), "inherit", "64 kB")
    equal(d.size(64)["effective"], "madvise", "effective mode of 64 kB")
    bad = [w for w in d.writes() if w.bytes == "always"]
    equal(bad, [], "writes of always")
    tree.set_knob("enabled", "always")
    wait(lambda: d.lines("top-level switch is always"), "the change of the top level is told")
    d.stop()
    equal(tree.size(64), "never", "64 kB after the stop")


def test_long_quiet_raises_nothing(t):
    """A34: a long quiet period is no reason to raise anything."""
    tree = t.tree()
    tree.group("web.service", limit=GIB, current=100 * MIB)
    d = t.daemon(tree, speed=FAST)
    d.ticks(40)
    equal(d.writes(), [], "writes")


def test_top_level_lowered(t):
    """A34: after the top level goes to never, sizes that mthpd raised do not stay above it."""
    tree = t.tree()
    g = tree.group("web.service", limit=GIB, current=100 * MIB)
    t.drive(g.fresh)
    d = t.daemon(tree, "[Limits]\nMaxMode=madvise\n")
    wait(lambda: tree.size(64) == "madvise", "64 kB is raised")
    tree.set_knob("enabled", "never")
    # MaxMode=madvise is the administrator's word for what a step up may write:
    # what the top level no longer grants has to go all the same.
    wait(lambda: tree.size(64) == "never", "64 kB is taken back")
    d.ticks(10)
    equal(tree.size(64), "never", "64 kB later")


def test_choice_files(t):
    """B01: one form per size; zero or two brackets are never written, the others are understood."""
    texts = {16: "always [madvise] never\n", 32: "[always] inherit madvise never",
             64: "always inherit madvise [never] \n", 128: "always madvise never",
             256: "[always] [madvise] never", 512: "", 1024: "a" * 4096}
    tree = t.tree()
    for kb, text in texts.items():
        tree.write("%s/hugepages-%dkB/enabled" % (THP, kb), text)
    hot_group(t, tree)
    d = t.daemon(tree)
    found = {s["size_kb"]: s["actual"] for s in d.status()["sizes"]}
    wait(lambda: tree.size(32) == "never" and tree.size(16) == "never", "both sizes are lowered")
    equal([found[kb] for kb in (128, 256, 512, 1024)], [None] * 4, "values that cannot be understood")
    for kb in (128, 256, 512, 1024):
        equal(d.writes("hugepages-%dkB/" % kb), [], "writes to %d kB" % kb)
        equal(len(d.lines("hugepages-%dkB" % kb, "is not understood")), 1, "warnings about %d kB" % kb)
    equal(sorted(x.split(" ")[0] for x in d.status()["degraded"]),
          sorted("hugepages-%dkB/enabled" % kb for kb in (128, 256, 512, 1024)), "files in degraded")
    d.stop()
    for kb, text in texts.items():
        with open(tree.path("%s/hugepages-%dkB/enabled" % (THP, kb))) as f:
            if kb >= 128:
                equal(f.read(), text, "text of %d kB after the stop" % kb)
    equal((tree.size(16), tree.size(32), tree.size(64)), ("madvise", "always", "never"), "values after the stop")


def fragmented(tree, s):
    tree.add_vmstat(compact_stall=round(500 * s), compact_fail=round(450 * s), thp_fault_fallback=round(300 * s))


def test_defrag_without_the_word(t):
    """B02: the file does not list defer+madvise or defer: the nearest weaker word that it lists."""
    tree = t.tree()
    tree.write(THP + "/defrag", "always [madvise] never\n")
    d = t.daemon(tree)
    t.drive(lambda s: fragmented(tree, s))
    wait(lambda: tree.knob("defrag") == "never", "defrag is lowered")
    equal({w.bytes for w in d.writes("/defrag")}, {"never"}, "words that were written")


@seconds(10)
def test_refused_value_is_tried_once(t):
    """B02: the kernel refuses a word that it lists: one attempt and one warning in 100 cycles."""
    tree = t.tree(defrag="defer+madvise")
    d = t.daemon(tree, rules=["*/transparent_hugepage/defrag write EINVAL"])
    t.drive(lambda s: fragmented(tree, s))
    wait(lambda: d.writes("/defrag"), "defrag is tried")
    d.ticks(100)
    equal(len([w for w in d.writes("/defrag")]), 1, "attempts")
    equal(len(d.lines("defrag", "refuses")), 1, "warnings")
    check(d.status()["counters"]["write_errors"] >= 1, "the error is not counted")


def test_no_thp_in_this_kernel(t):
    """B05: no transparent_hugepage directory: exit code 69 and one line, at once."""
    tree = t.tree()
    shutil.rmtree(tree.path(THP))
    start = time.monotonic()
    done = t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run"))
    equal(done.returncode, 69, "exit code")
    check(time.monotonic() - start < 5, "it took %.1f s", time.monotonic() - start)
    equal(len(done.stderr.splitlines()), 1, "lines of " + done.stderr)
    check("transparent huge pages" in done.stderr and "CONFIG_TRANSPARENT_HUGEPAGE" in done.stderr, done.stderr)


def test_empty_thp_directory(t):
    """B05: the directory is there, with nothing to steer: 69 as well."""
    tree = t.tree()
    shutil.rmtree(tree.path(THP))
    os.makedirs(tree.path(THP))
    done = t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run"))
    equal(done.returncode, 69, "exit code")
    equal(len(done.stderr.splitlines()), 1, "lines of " + done.stderr)


READ_ONLY = ["*/transparent_hugepage/* open-write EROFS"]


@seconds(4)
def test_read_only_sysfs(t):
    """B06: every write says EROFS: observing, one warning, decisions as 'would write', no retry."""
    tree = t.tree()
    before = tree.all_knobs()
    hot_group(t, tree)
    d = t.daemon(tree, rules=READ_ONLY)
    wait(d.history, "a decision is made")
    d.ticks(20)
    status = d.status()
    equal(status["state"], "degraded", "state")
    check(any("written" in x for x in status["degraded"]), "degraded: %s", status["degraded"])
    equal(status["kernel"]["features"]["writable"], False, "writable")
    equal(len(d.lines("read-only", "mount")), 1, "warnings")
    equal({x["outcome"] for x in d.history()}, {"read-only"}, "outcomes")
    check(d.lines("would write") or d.lines("not written"), "the log does not say what would be written")
    opens = [w for w in d.recorded() if w.op == "open-write" and THP in w.path]
    check(len(opens) <= 2, "it goes on trying: %s", opens)
    equal(len(d.lines("INVOCATION")), 0, "words about systemd")
    d.stop()
    equal(tree.all_knobs(), before, "files after the stop")


def test_read_only_under_systemd(t):
    """B08: under systemd the EROFS message names the unit's hardening."""
    tree = t.tree()
    d = t.daemon(tree, rules=READ_ONLY, env={"INVOCATION_ID": "0123456789abcdef0123456789abcdef"})
    check(d.lines("read-only", "hardening"), "no word about the unit's hardening")


@seconds(4)
def test_becomes_read_only(t):
    """B06: remounted read-only after the start: EROFS at the first write is the one attempt, then observing."""
    tree = t.tree()
    g, on = hot_group(t, tree)
    on.clear()
    g.step(current=MIB)
    d = t.daemon(tree)
    d.rules(*READ_ONLY)
    g.step(current=64 * MIB - 4096)
    on.append(True)
    wait(d.history, "a decision is made")
    d.ticks(20)
    equal(len(d.lines("sysfs is mounted read-only")), 1, "warnings")
    attempts = [w for w in d.recorded() if w.op == "open-write" and THP in w.path]
    equal(len(attempts), 1, "attempts: %s" % attempts)
    equal(d.status()["state"], "degraded", "state")
    d.stop()


@seconds(4)
def test_full_run_directory(t):
    """The journal cannot be written: nothing is changed and the state says why; with room again it goes on by itself."""
    for memcg_thp in (False, True):
        full = ["*/baseline.json.new write ENOSPC"]
        tree = t.tree(memcg_thp=memcg_thp, modes={64: "always"})
        before = tree.all_knobs()
        hot_group(t, tree)
        other = tree.group("other.service", limit=GIB, current=MIB)
        d = t.daemon(tree, "[Policy \"x\"]\nMatch=other.service\nMaxSize=32K\n", rules=full)
        wait(lambda: any("No space left" in x for x in d.status()["degraded"]), "the state tells")
        d.ticks(20)
        equal((d.status()["state"], d.status()["counters"]["writes"]), ("degraded", 0), "state, writes")
        equal(tree.all_knobs(), before, "files")
        equal(len(d.lines("cannot be written (No space left")), 1, "lines in the log")
        d.rules()
        wait(lambda: d.status()["state"] == "active", "the state is active again")
        if memcg_thp:
            wait(lambda: other.knob("max_size") == "32768", "the group's own file is written")
        else:
            wait(lambda: tree.size(64) == "never", "the group that thrashes is served")
        d.stop()
        check({k: v.strip() for k, v in tree.all_knobs().items()} ==
              {k: v.strip() for k, v in before.items()}, "not as at start")


def test_limit_on_files(t):
    """RLIMIT_FSIZE: an error of that write, not the end of the daemon or of mthpctl."""
    tree = t.tree(modes={64: "always"})
    d = t.daemon(tree, shim=False)
    resource.prlimit(d.process.pid, resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    hot_group(t, tree)
    wait(lambda: any("File too large" in x for x in d.status()["degraded"]), "the state tells")
    done = subprocess.run(["sh", "-c", "ulimit -f 0; exec \"$0\" \"$@\"", t.mthpctl, "--socket=" + d.socket, "record",
                           "-o", tree.path("trace"), "--duration=1s"], stderr=subprocess.PIPE, text=True, timeout=60)
    equal(done.returncode, 1, "exit code of record")
    check("File too large" in done.stderr, done.stderr)
    d.stop()


@seconds(12)
def test_steady_state_writes_nothing(t):
    """B09, promise 1: a thousand cycles of a steady machine open no switch for writing."""
    tree = t.tree()
    tree.group("web.service", limit=GIB, current=100 * MIB)
    d = t.daemon(tree, speed=4 * FAST)
    d.ticks(1000)
    equal([w for w in d.recorded() if THP in w.path], [], "opens for writing and writes")
    d.stop()
    equal([w for w in d.recorded() if THP in w.path], [], "the same after the stop")


def test_one_change_one_write(t):
    """B09: one change of state is exactly one write per changed file, and then none."""
    tree = t.tree()
    hot_group(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never" and tree.knob("khugepaged/max_ptes_none") == "0", "the drop")
    d.ticks(20)
    paths = [w.path for w in d.writes()]
    equal(sorted(paths), sorted(set(paths)), "written files")
    equal([w.result for w in d.writes()], ["ok"] * len(paths), "results")


def test_first_writes_before_ready(t):
    """B14: what the start has to write is written before READY=1."""
    tree = t.tree(pmd_kb=524288, ptes=8191, mem_kb=6291456, top="always", legacy=True)
    name = tree.path("notify")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sock.bind(name)
    sock.settimeout(0.5)
    seen, values = [], []

    def listen():
        while not any("STOPPING=1" in x for x in seen):
            try:
                text = sock.recv(4096).decode()
            except socket.timeout:
                continue
            if "READY=1" in text:
                values.append(tree.knob("enabled"))
            seen.append(text)
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    d = t.daemon(tree, env={"NOTIFY_SOCKET": name})
    wait(lambda: values, "READY=1 comes")
    equal(values[0], "madvise", "the switch at READY=1")
    d.signal(signal.SIGHUP)
    wait(lambda: any("RELOADING=1" in x for x in seen) and len(values) == 2, "RELOADING=1, then READY=1")
    wait(lambda: any("WATCHDOG=1" in x for x in seen), "the watchdog is fed")
    d.stop()
    listener.join(DEADLINE)
    check(any("STATUS=" in x for x in seen), "no STATUS=")


def test_sizes_of_another_page_size(t):
    """B15: 64..32768 kB, junk beside them, Sizes=64K 2M pmd 1G: three are managed, one warning, limit 2047."""
    sizes = tuple(64 << n for n in range(10))
    tree = t.tree(sizes=sizes, pmd_kb=32768, ptes=2047, top="always", modes=dict.fromkeys(sizes, "always"))
    os.makedirs(tree.path(THP + "/hugepages-junk"))
    os.makedirs(tree.path(THP + "/hugepages-12kBx"))
    tree.write(THP + "/hugepages-96kB", "a file\n")
    hot_group(t, tree)
    d = t.daemon(tree, "[Limits]\nSizes=64K, 2M, pmd, 1G\n")
    managed = [s["size_kb"] for s in d.status()["sizes"] if s["wanted"] is not None]
    equal(managed, [64, 2048, 32768], "managed sizes")
    equal(len(d.lines("Sizes=")), 1, "warnings")
    check(d.lines("1048576K") or d.lines("1G"), "the warning does not name 1G")
    wait(lambda: [tree.size(kb) for kb in managed] == ["never"] * 3, "they are lowered")
    for kb in sizes:
        if kb not in managed:
            equal(d.writes("hugepages-%dkB/" % kb), [], "writes to %d kB" % kb)
    for w in d.writes("max_ptes_none"):
        check(0 <= int(w.bytes) <= 2047, "max_ptes_none: %s", w.bytes)


def psi_missing(t, tree, rules=()):
    """200 groups, one of which hits its limit; returns the daemon after a hundred cycles."""
    for n in range(200):
        tree.group("quiet-%03d.service" % n, limit=GIB, current=10 * MIB)
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    for group in tree.groups.values() if not rules else ():
        group.pressure_file = False
        group.unlink("memory.pressure")
    t.drive(lambda s: g.step(events={"high": round(60 * s) + 1, "max": round(60 * s) + 1}, pgfault=round(5000 * s),
                             workingset_refault_anon=round(3000 * s), pgmajfault=round(3000 * s)))
    return t.daemon(tree, rules=rules)


@seconds(18)
def test_psi_switched_off(t):
    """C01: every pressure file says EOPNOTSUPP, 200 groups, 100 cycles: one warning, events take over."""
    tree = t.tree()
    d = psi_missing(t, tree, ["*/memory.pressure read EOPNOTSUPP", "*/proc/pressure/memory read EOPNOTSUPP"])
    wait(lambda: tree.size(2048) == "never", "the drop by memory.events")
    d.ticks(100)
    equal(d.features()["psi"], "disabled", "psi")
    equal(len(d.lines("psi=1")) - len(d.lines("  psi ")), 1, "warnings")
    check(not d.lines("memory.pressure"), "words about each group: %s", d.lines("memory.pressure")[:3])
    equal(d.group("web.service")["some"], None, "some without PSI")
    line = d.lines("hugepages-2048kB/enabled: ", " -> never")[0]
    check("% " not in line and " refaults/s, margin 0.0 MiB)" in line, "the numbers that there are: %s", line)
    check(d.lines("psi-triggers", "no: there is no pressure to be told of"), "the row of psi-triggers")


@seconds(10)
def test_kernel_without_psi(t):
    """C03: no pressure file anywhere: the start goes well, and the hint is another one."""
    tree = t.tree()
    shutil.rmtree(tree.path("proc/pressure"))
    d = psi_missing(t, tree)
    wait(lambda: tree.size(2048) == "never", "the drop by memory.events")
    equal(d.features()["psi"], "absent", "psi")
    equal(len(d.lines("CONFIG_PSI")) - len(d.lines("  psi ")), 1, "warnings")
    check(not d.lines("psi=1"), "the hint for a kernel that has it switched off")


V1_MOUNTS = ("22 1 0:20 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n"
             "23 22 0:21 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n"
             "24 22 0:22 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n")


def host_mode(t, tree):
    """The machine is one group then: pressure of the host drops sizes."""
    state = {"some": 0, "refault": 0}

    def step(s):
        state["some"] += round(7e5 * s)
        tree.write("proc/pressure/memory", tree.psi(state["some"], state["some"] // 2))
        tree.add_vmstat(workingset_refault_anon=round(5000 * s), pgmajfault=round(5000 * s), pgfault=round(9000 * s),
                        allocstall_normal=round(60 * s))
    tree.meminfo(8 << 20, 20000, 1 << 20, 1 << 19)
    t.drive(step)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never", "pressure of the machine drops sizes")
    groups = d.status()["cgroups"]
    equal([g["path"] for g in groups], [""], "groups")
    return d


def test_hybrid_host(t):
    """D01: memory on v1, cgroup2 at /sys/fs/cgroup/unified: the host as one group, one warning with the option."""
    tree = t.tree()
    shutil.rmtree(tree.path(CG))
    tree.write("proc/self/mountinfo", V1_MOUNTS)
    tree.write(CG + "/unified/cgroup.controllers", "\n")
    tree.write(CG + "/unified/a.service/cgroup.procs", "")
    d = host_mode(t, tree)
    equal(d.features()["cgroup"], "hybrid", "cgroup")
    warnings = d.lines("systemd.unified_cgroup_hierarchy=1")
    equal(len(warnings) - len(d.lines("  cgroup ")), 1, "warnings")
    check(any("hybrid" in x for x in d.status()["degraded"]), "degraded does not say so")


def test_cgroup2_elsewhere(t):
    """D01: cgroup2 with the memory controller at /mnt/cg2: full mode there."""
    tree = t.tree()
    tree.write("proc/self/mountinfo", "30 1 0:25 / /mnt/cg2 rw - cgroup2 none rw\n")
    shutil.rmtree(tree.path(CG))
    os.makedirs(tree.path("mnt/cg2"))
    os.makedirs(tree.path("sys/fs"), exist_ok=True)
    os.symlink("../../mnt/cg2", tree.path(CG))
    tree.write("mnt/cg2/cgroup.controllers", "cpu memory\n")
    hot_group(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never", "the drop")
    equal(d.features()["cgroup"], "v2", "cgroup")
    check(d.lines("/mnt/cg2"), "the mount is not named")


def test_memory_controller_off(t):
    """D04: both boot options, controllers without memory: the host as one group, the option quoted."""
    tree = t.tree()
    tree.write("proc/cmdline", "cgroup_disable=memory root=/dev/mmcblk0p2 cgroup_enable=memory\n")
    tree.write(CG + "/cgroup.controllers", "cpuset cpu io pids\n")
    tree.write("proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t0\t1\t0\n")
    tree.group("a.service", memory=False)
    d = host_mode(t, tree)
    equal(d.features()["boot_option"], "cgroup_disable=memory", "boot option")
    check(any("cgroup_disable=memory" in x for x in d.status()["degraded"]), "degraded does not quote it")


def test_own_group_among_many_lines(t):
    """D24: twelve v1 lines and 0:: in the middle: only that one is our group."""
    lines = ["%d:c%d:/elsewhere" % (n, n) for n in range(12, 0, -1)]
    own = "user.slice/user-1000.slice/session-1.scope"
    lines.insert(6, "0::/" + own)
    for text, state in (("\n".join(lines) + "\n", "watch-only"), ("\n".join(lines[:6]) + "\n", "run"), ("", "run"),
                        ("0:\n", "run")):
        tree = t.tree()
        tree.write("proc/self/cgroup", text)
        tree.group("user.slice")
        tree.group("user.slice/user-1000.slice")
        tree.group(own)
        tree.group("elsewhere")
        d = t.daemon(tree)
        equal(d.group(own)["state"], state, "state of the group for %r" % text[:30])
        equal(d.group("elsewhere")["state"], "run", "state of the v1 path")


@seconds(4)
def test_own_group_is_no_cause(t):
    """D22: mthpd's own group with PSI some 90 % is not steered and never named as a cause."""
    tree = t.tree()
    hot_group(t, tree, "mthpd.service")
    d = t.daemon(tree)
    d.ticks(25)
    own = d.group("mthpd.service")
    equal((own["state"], own["rung"]), ("watch-only", -1), "state and rung")
    equal(d.writes(), [], "writes")


def test_without_privileges(t):
    """D22: an ordinary user with RLIMIT_MEMLOCK=0: it runs, says what it may not do, and writes nothing."""
    tree = t.tree()
    hot_group(t, tree)
    t.public_binaries()
    os.chmod(tree.dir, 0o755)
    os.makedirs(tree.path("run"))
    os.chown(tree.path("run"), NOBODY, NOBODY)
    for name in ("log", "record"):
        open(tree.path(name), "w").close()
        os.chown(tree.path(name), NOBODY, NOBODY)
    before = tree.all_knobs()
    d = t.daemon(tree, wrapper=("prlimit", "--memlock=0:0", "--"), user=NOBODY, shim=False)
    wait(d.history, "a decision is made")
    equal({x["outcome"] for x in d.history()}, {"read-only"}, "outcomes")
    equal(tree.all_knobs(), before, "files")
    check(d.lines("memory cannot be locked"), "no word about mlock at debug level")
    d.stop()


@seconds(8)
def test_memory_stays_the_same(t):
    """D22, promise 5: a hundred cycles of a stable tree do not make the daemon larger."""
    tree = t.tree()
    for n in range(50):
        tree.group("g%02d.service" % n, limit=GIB, current=10 * MIB)
    d = t.daemon(tree, speed=FAST)
    d.ticks(60)

    def resident():
        with open("/proc/%d/status" % d.process.pid) as f:
            return next(int(x.split()[1]) for x in f if x.startswith("VmData"))
    before = resident()
    d.ticks(100)
    # A hundred bytes a group and tick would come to half a megabyte.
    check(resident() - before < 256, "%d KiB more", resident() - before)


def test_second_instance(t):
    """A second mthpd with the same runtime directory ends with 1 and leaves the first one alone."""
    tree = t.tree()
    d = t.daemon(tree)
    done = t.run("--root=" + tree.dir, "--runtime-dir=" + d.runtime, "--config=" + d.config)
    equal(done.returncode, 1, "exit code")
    check("another mthpd" in done.stderr, done.stderr)
    check(d.status(), "the first one does not answer any more")
    d.stop()


def test_not_root(t):
    """An ordinary user is told that it takes root, once, and nothing is left behind."""
    tree = t.tree()
    t.public_binaries()
    os.chmod(tree.dir, 0o755)
    os.makedirs(tree.path("run"))
    done = t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run") + "/mthpd", user=NOBODY)
    equal((done.returncode, done.stderr.count("run as root")), (1, 1), done.stderr)
    equal(os.listdir(tree.path("run")), [], "files")


def test_command_line(t):
    """Exit codes of the command line: 2 for what cannot be understood, 0 for --help and --version."""
    for words, code, text in ((["--nonsense"], 2, "--help"), (["extra"], 2, "extra"), (["--restore=now"], 2, "exit"),
                              (["--config"], 2, "--help"), (["--version"], 0, "mthpd "), (["--help"], 0, "--root")):
        done = t.run(*words)
        equal(done.returncode, code, "exit code of %s" % words)
        check(text in done.stdout + done.stderr, "%s says: %s", words, done.stdout + done.stderr)


def test_full_output(t):
    """An answer that cannot be written is no success."""
    for words in ("--version", "--help"):
        with open("/dev/full", "w") as full:
            done = subprocess.run([t.mthpd, words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        equal(done.returncode, 1, "exit code of %s" % words)
        check("No space left" in done.stderr, done.stderr)


def test_root_that_is_not_there(t):
    """--root of a directory that does not exist: 69 with its name."""
    done = t.run("--root=/nonexistent-root", "--runtime-dir=" + t.tree().path("run"))
    equal(done.returncode, 69, "exit code")
    check("--root=/nonexistent-root cannot be opened" in done.stderr, done.stderr)


@seconds(4)
def test_dry_run(t):
    """--dry-run and DryRun=yes: decisions, and not one write, not even at the stop."""
    for args, config in ((["--dry-run"], ""), ([], "[Daemon]\nDryRun=yes\n")):
        tree = t.tree()
        hot_group(t, tree)
        before = tree.all_knobs()
        d = t.daemon(tree, config, args=args)
        wait(d.history, "a decision is made")
        equal(d.status()["state"], "dry-run", "state")
        equal({x["outcome"] for x in d.history()}, {"dry-run"}, "outcomes")
        d.ticks(10)
        equal(len({x["knob"] for x in d.history()}), len(d.history()), "decisions, one per file")
        d.stop()
        equal(d.writes(), [], "writes")
        equal(tree.all_knobs(), before, "files")


def test_min_free_kbytes_is_told(t):
    """B10: khugepaged starts and raises min_free_kbytes: one record with both numbers."""
    tree = t.tree(modes={2048: "inherit"})
    tree.write("proc/sys/vm/min_free_kbytes", "135168\n")
    g, on = hot_group(t, tree)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never", "the drop")
    tree.write("proc/sys/vm/min_free_kbytes", "225280\n")
    on.clear()
    g.step(current=10 * MIB)
    wait(lambda: tree.size(2048) == "inherit", "the recovery")
    wait(lambda: d.lines("min_free_kbytes"), "the side effect is told")
    lines = d.lines("min_free_kbytes")
    equal(len(lines), 1, "records")
    check("135168" in lines[0] and "225280" in lines[0], lines[0])
