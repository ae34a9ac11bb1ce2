# SPDX-License-Identifier: LGPL-2.1-or-later
"""The closed loop: which counters lead to which step, and which do not. Most
daemons here live ten times as fast, with the built-in configuration."""

import time

from faketree import MIB, THP
from harness import BASE_CONFIG, FAST, check, equal, seconds, wait

GIB = 1 << 30
# The built-in policy; only the audit comes more often.
DEFAULTS = "[Daemon]\nAuditInterval=10s\nLogLevel=debug\n"


def n(rate, s):
    return round(rate * s)


def ramp(t, duration, step, speed=FAST):
    """Calls step(part of the way 0..1, seconds since the last call); stays at 1. Returns when it is at 1."""
    state = {"at": 0.0}

    def move(s):
        state["at"] = min(duration, state["at"] + s)
        step(state["at"] / duration, s)
    t.drive(move, speed)
    return lambda: state["at"] >= duration


def size_writes(d):
    return d.writes("/hugepages-")


@seconds(3)
def test_khugepaged_bloat(t):
    """A01: khugepaged fills holes of a limited group: one write of 0 to max_ptes_none, none to any enabled."""
    tree = t.tree()
    g = tree.group("go.service", limit=GIB, current=700 * MIB, anon=690 * MIB, anon_thp=200 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    d.ticks(3)

    def step(part, s):
        g.current = (700 + round(290 * part)) * MIB
        g.stat.update(anon=(690 + round(290 * part)) * MIB, anon_thp=(200 + round(680 * part)) * MIB)
        if part < 1:
            tree.add_vmstat(thp_collapse_alloc=max(1, n(40, s)))
        g.step(some_usec=n(60000 * part, s))
    done = ramp(t, 6.0, step)
    wait(lambda: tree.knob("khugepaged/max_ptes_none") == "0", "max_ptes_none is lowered")
    wait(done, "the samples are through")
    d.ticks(10)
    equal([w.bytes for w in d.writes("max_ptes_none")], ["0"], "writes to max_ptes_none")
    equal(d.writes("/enabled"), [], "writes to any enabled")
    first = d.history()[-1]
    equal((first["old"], first["new"], first["reason"], first["cgroup"]), ("511", "0", "khugepaged-bloat", "go.service"),
          "old, new, reason, cgroup")


@seconds(3)
def test_fragmentation_is_no_shortage(t):
    """A02: compaction fails while memory is free: defrag is lowered and called so, sizes stay."""
    tree = t.tree(modes={64: "always"}, top="always")
    g = tree.group("web.service", limit=GIB, current=GIB // 5)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)

    def step(s):
        g.step(some_usec=n(180000, s), full_usec=n(20000, s), pgfault=n(3000, s))
        tree.add_vmstat(compact_stall=n(500, s), compact_fail=n(450, s), thp_fault_fallback=n(300, s))
    t.drive(step, FAST)
    wait(lambda: tree.knob("defrag") == "never", "defrag is lowered")
    d.ticks(10)
    equal({x["reason"] for x in d.history()}, {"fragmentation"}, "reasons")
    equal(size_writes(d) + d.writes("max_ptes_none"), [], "writes to sizes and max_ptes_none")
    equal(d.group("web.service")["state"], "run", "state of the group")
    check("fragmentation" in d.ctl("history").stdout, "history does not say fragmentation")


def test_report_of_a_group(t):
    """A05: anon 2008334336, anon_thp 1900000000, limit 2 GiB, current 2100000000: share and margin are told."""
    tree = t.tree()
    tree.group("keeper.service", limit=2147483648, current=2100000000, anon=2008334336, file=78925824,
               anon_thp=1900000000)
    d = t.daemon(tree)
    g = d.group("keeper.service")
    check(0.94 <= g["anon_thp_share"] <= 0.95, "share: %s", g["anon_thp_share"])
    equal(g["margin_bytes"], 2147483648 - 2100000000, "margin")
    equal((g["anon_bytes"], g["anon_thp_bytes"], g["current_bytes"]), (2008334336, 1900000000, 2100000000), "bytes")
    text = d.ctl("status").stdout
    check("keeper.service" in text and "45" in text, "mthpctl status: %s", text)


@seconds(3)
def test_slack_is_no_emergency(t):
    """A06: 2.3 GB charged that no list explains, PSI zero: reported, no action, no look at debugfs."""
    tree = t.tree()
    g = tree.group("go.service", limit=2556129280 + MIB, current=2556129280, anon=218734592, file=0, kernel=9000000,
                   inactive_anon=2554662912)
    tree.stat(2048, nr_anon_partially_mapped=1100)
    tree.write("sys/kernel/debug/split_huge_pages", "0\n")
    d = t.daemon(tree, log_reads=True)
    t.drive(lambda s: g.step(pgfault=n(100, s)))
    d.ticks(20)
    slack = d.group("go.service")["slack_bytes"]
    equal(slack, 2556129280 - 218734592 - 9000000, "slack")
    equal(d.writes(), [], "writes")
    equal([w for w in d.recorded() if "debug" in w.path], [], "accesses to debugfs")


def tiny(t):
    tree = t.tree(modes={64: "always", 2048: "inherit"})
    tree.group("pod")
    g = tree.group("pod/ctr", limit=15728640, current=int(14.9e6))
    return tree, g, t.daemon(tree, base=DEFAULTS, speed=FAST)


@seconds(3)
def test_tiny_limit(t):
    """A08: a 2 MB folio against a 15 MiB limit is a risk at zero PSI: that size alone is lowered."""
    tree, g, d = tiny(t)
    wait(lambda: tree.size(2048) == "never", "2048 kB is lowered")
    d.ticks(10)
    equal([w.path.split("/")[-2] for w in d.writes()], ["hugepages-2048kB"], "files that were written")


@seconds(3)
def test_tiny_limit_and_an_oom_kill(t):
    """A08: oom_kill 0 -> 1 in that group, PSI zeros: still only 2048 kB; the 64 kB file has no write."""
    tree, g, d = tiny(t)
    d.ticks(1)
    g.step(events={"oom_kill": 1})
    wait(lambda: tree.size(2048) == "never", "2048 kB is lowered")
    d.ticks(15)
    equal(d.writes("hugepages-64kB"), [], "writes to 64 kB")


@seconds(3)
def test_split_churn(t):
    """A10: most large folios are torn apart soon: madvise for the PMD size; not where they stay whole."""
    done = []
    for torn in (1900, 0):
        tree = t.tree(top="always")
        g = tree.group("jvm.service", limit=2 * GIB, current=GIB)
        d = t.daemon(tree, base=DEFAULTS, speed=FAST)

        def step(s, tree=tree, g=g, torn=torn):
            tree.stat(2048, anon_fault_alloc=n(2000, s), split_deferred=n(torn, s),
                      nr_anon_partially_mapped=n(torn, s))
            g.step(current=g.current + n(4 * MIB, s), pgfault=n(2000, s))
        t.drive(step, FAST)
        done.append((tree, d))
    (tree, d), (whole, control) = done
    wait(lambda: tree.size(2048) == "madvise", "2048 kB goes to madvise")
    equal(d.size(2048)["reason"], "split-churn", "reason")
    control.ticks(10)
    equal([x for x in control.history() if x["reason"] == "split-churn"], [], "the control's decisions")
    equal(whole.size(2048), "inherit", "2048 kB of the control")


@seconds(3)
def test_pmd_of_512_mib(t):
    """A11: 64K pages, 16 GiB limit with 280 MB left: 524288 kB is lowered; nothing speaks of 2 MiB or 511."""
    sizes = tuple(256 << k for k in range(12))
    tree = t.tree(sizes=sizes, pmd_kb=524288, ptes=8191, top="always", mem_kb=256 << 20, modes={524288: "inherit"})
    tree.group("tikv.service", limit=17179869184, current=int(16.9e9))
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    wait(lambda: tree.size(524288) == "never", "524288 kB is lowered")
    d.ticks(5)
    equal(d.status()["kernel"]["features"]["pmd_kb"], 524288, "pmd_kb")
    check(d.lines("hugepages-524288kB", "->"), "the log does not name the size")
    check(not d.lines("2048kB") and not d.lines("2 MiB") and not d.lines(" 511"), "the log speaks of 2 MiB")
    for w in d.writes("max_ptes_none"):
        check(0 <= int(w.bytes) <= 8191, "max_ptes_none: %s", w.bytes)


def test_tmpfs_with_its_own_huge(t):
    """A14: /run with huge=always is named as outside of our control, octal escapes decoded; shmem is not written."""
    tree = t.tree()
    tree.write("proc/self/mountinfo",
               "24 1 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
               "25 1 0:22 / /run rw,nosuid - tmpfs tmpfs rw,size=65288312k,huge=always\n"
               "26 1 0:23 / /mnt/a\\040b rw - tmpfs tmpfs rw,huge=within_size\n"
               "27 1 0:24 / /dev/shm rw - tmpfs tmpfs rw\n")
    tree.group("web.service", limit=2 * GIB, current=GIB, shmem_thp=536870912)
    d = t.daemon(tree)
    d.ticks(5)
    equal([(m["mount"], m["huge"]) for m in d.status()["tmpfs_own_huge"]],
          [("/run", "always"), ("/mnt/a b", "within_size")], "mounts")
    check("/run" in d.ctl("status").stdout, "mthpctl status does not name /run")
    equal(d.writes("shmem_enabled"), [], "writes to shmem_enabled")


def drop_and_recover(t, tree, back, pmd_kb=2048):
    """Pressure, then room; waits for max_ptes_none 0 and then `back`."""
    limit = 32 * pmd_kb * 1024
    g = tree.group("web.service", limit=limit)
    state = {"hot": False}
    t.drive(lambda s: g.hot(s) if state["hot"] else None, FAST)
    g.step(current=10 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    d.ticks(10)
    equal(d.writes("max_ptes_none"), [], "writes in ten quiet samples")
    g.step(current=limit - 4096)
    state["hot"] = True
    wait(lambda: tree.knob("khugepaged/max_ptes_none") == "0", "max_ptes_none is lowered")
    state["hot"] = False
    g.step(current=10 * MIB)
    wait(lambda: tree.knob("khugepaged/max_ptes_none") == back, "max_ptes_none is %s again" % back)
    return d


@seconds(4)
def test_intermediate_max_ptes_none(t):
    """A18: 409 at the start is the baseline: kept while quiet, 0 under pressure, 409 afterwards and at the end."""
    tree = t.tree(ptes=409)
    d = drop_and_recover(t, tree, "409")
    equal([w.bytes for w in d.writes("max_ptes_none")], ["0", "409"], "writes")
    equal(d.status()["khugepaged"]["max_ptes_none"]["baseline"], 409, "baseline in status")
    d.stop()
    equal(tree.read(THP + "/khugepaged/max_ptes_none"), "409", "the file after the stop")


@seconds(5)
def test_max_ptes_none_with_mthp_collapse(t):
    """A22: collapse_* stats, 64 kB on, max_ptes_none=256: one warning with both legal values, kept; writes are 0 or 511."""
    for pmd_kb, sizes, largest in ((2048, (16, 64, 2048), 511), (32768, (64, 256, 32768), 2047)):
        tree = t.tree(sizes=sizes, pmd_kb=pmd_kb, ptes=256, modes={64: "always"}, top="always")
        for name in ("collapse_alloc", "collapse_alloc_failed"):
            tree.write("%s/hugepages-64kB/stats/%s" % (THP, name), "0\n")
        d = drop_and_recover(t, tree, "256", pmd_kb)
        values = [w.bytes for w in d.writes("max_ptes_none")]
        check(set(values[:-1]) <= {"0", str(largest)} and values[-1] == "256", "writes: %s", values)
        warnings = d.lines("max_ptes_none=256")
        equal(len(warnings), 1, "warnings")
        check(" 0 " in warnings[0] and str(largest) in warnings[0], warnings[0])
        equal(d.features()["mthp_collapse"], True, "mthp_collapse")
        d.stop()
        equal(tree.read(THP + "/khugepaged/max_ptes_none"), "256", "the file after the stop")


@seconds(12)
def test_fallback_dominated(t):
    """A24: 64 kB succeeds in 20 of 1000 for six windows: that size alone goes; no attempts are no data; later a retry."""
    tree = t.tree(modes={64: "always", 2048: "always"}, top="always")
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    state = {"on": True}

    def step(s):
        if state["on"]:
            tree.stat(64, anon_fault_alloc=n(20, s), anon_fault_fallback=n(980, s))
            tree.stat(2048, anon_fault_alloc=n(900, s), anon_fault_fallback=n(100, s))
    t.drive(step, FAST, period=0.05)
    wait(lambda: tree.size(64) == "never", "64 kB goes")
    equal(d.size(64)["reason"], "fallback-dominated", "reason")
    state["on"] = False
    wait(lambda: tree.size(64) == "always", "64 kB is tried again")
    equal({w.path.split("/")[-2] for w in size_writes(d)}, {"hugepages-64kB"}, "sizes written")
    times = [x["realtime_usec"] / 1e6 * FAST for x in d.history() if x["knob"] == "hugepages-64kB/enabled"]
    check(len(times) == 2 and times[0] - times[1] > 30, "without any attempt it came back at %s", times)
    equal(tree.size(2048), "always", "2048 kB")


@seconds(4)
def test_swap_failures_are_told_apart(t):
    """A26: no swap, full, fragmented, limited by the group: four words; a size changes for the third only."""
    cases = (("none", 0, 0, "max", 1000), ("full", 1 << 20, 0, "max", 1000),
             ("fragmented", 1 << 20, 600 << 10, "max", 1000), ("cgroup-limit", 1 << 20, 600 << 10, "0", 0))
    daemons = []
    for word, total, free, swap_max, failures in cases:
        tree = t.tree(modes={64: "always"}, top="always", swap_kb=0)
        tree.meminfo(8 << 20, 4 << 20, total, free)
        g = tree.group("web.service", limit=GIB, current=GIB // 2)
        g.write("memory.swap.max", swap_max + "\n")
        d = t.daemon(tree, base=DEFAULTS, speed=FAST)

        def step(s, tree=tree, failures=failures):
            tree.stat(64, swpout=n(10, s), swpout_fallback=n(failures, s))
        if failures:
            t.drive(step, FAST)
        daemons.append((word, tree, d))
    for word, tree, d in daemons:
        wait(lambda d=d, word=word: d.group("web.service")["swap"] == word, "the word is " + word)
        if word == "fragmented":
            wait(lambda tree=tree: tree.size(64) == "never", "64 kB goes where swap is fragmented")
            equal(d.size(64)["reason"], "swap-fragmented", "reason")
    for word, tree, d in daemons:
        d.ticks(8)
        if word != "fragmented":
            equal(d.writes(), [], "writes with swap " + word)


@seconds(12)
def test_khugepaged_runaway(t):
    """A28: full scans +50/s, nothing collapsed: scan_sleep_millisecs is raised, never 0, and goes back afterwards."""
    tree = t.tree()
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    state = {"scans": 0.0, "on": True}

    def step(s):
        if state["on"]:
            state["scans"] += 50 * s
            tree.write(THP + "/khugepaged/full_scans", "%d\n" % state["scans"])
    t.drive(step, FAST)
    wait(lambda: tree.knob("khugepaged/scan_sleep_millisecs") != "10000", "the scan is slowed down")
    check(int(tree.knob("khugepaged/scan_sleep_millisecs")) > 10000, "it sleeps less than before")
    equal(d.status()["khugepaged"]["scan_sleep_millisecs"]["reason"], "khugepaged-runaway", "reason")
    state["on"] = False
    wait(lambda: tree.knob("khugepaged/scan_sleep_millisecs") == "10000", "it goes back")
    for w in d.writes():
        check("scan_sleep" in w.path and int(w.bytes) >= 10000, "write: %s", w)


@seconds(5)
def test_threshold_of_a_policy(t):
    """A29: avg10=0.30 but total grows 60 ms/s: a signal with a limit of 50 ms/s, none with 100 ms/s."""
    done = []
    for limit in ("50ms/s", "100ms/s"):
        tree = t.tree(modes={64: "always"})
        g = tree.group("db.slice", limit=4 * GIB, current=4 * GIB - MIB)
        tree.group("db.slice/a.service", limit=None, current=GIB)
        d = t.daemon(tree, '[Policy "db"]\nMatch=db.slice\nPressureHigh=%s\n' % limit,
                     base=BASE_CONFIG.replace("Interval=100ms", "Interval=500ms", 1))

        def step(s, g=g):
            g.step(some_usec=n(60000, s), events={"max": max(1, n(20, s))}, pgfault=n(3000, s),
                   workingset_refault_anon=n(500, s), pgmajfault=n(500, s))
        t.drive(step)
        done.append((tree, d))
    (tree, d), (quiet_tree, quiet) = done
    wait(lambda: tree.size(64) == "never", "db.slice gives a signal at 50 ms/s")
    equal(d.history()[-1]["cgroup"], "db.slice", "cgroup of the decision")
    equal(d.group("db.slice")["policy"], "db", "policy")
    quiet.ticks(6)
    equal(quiet.writes(), [], "writes at 100 ms/s")


@seconds(8)
def test_flapping_pressure(t):
    """A30: pressure on and off every 2 s for a minute, dwell 10 s: at most 6 changes per file, each with its record."""
    tree = t.tree()
    g = tree.group("redis.service", limit=64 * MIB, current=64 * MIB - 4096)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    state = {"at": 0.0}

    def step(s):
        state["at"] += s
        if int(state["at"] / 2) % 2 == 0:
            g.current = 64 * MIB - 4096
            g.hot(s)
        else:
            g.step(current=10 * MIB)
    t.drive(step, FAST)
    wait(lambda: state["at"] >= 60, "a minute passes")
    history = d.history()
    changes = {}
    for x in history:
        changes.setdefault(x["knob"], []).append(x)
        check(x["realtime_usec"] > 0 and x["old"] and x["new"] and x["reason"] and x["reason_text"], "record: %s", x)
    check(changes, "nothing was changed at all")
    for knob, list_ in changes.items():
        check(len(list_) <= 6, "%s was changed %d times", knob, len(list_))
        check(list_[-1]["cgroup"] == "redis.service", "no cgroup for %s", knob)
    check(len(d.writes()) <= len(history) + 1, "writes without a record: %s", d.writes())
    check(len(d.lines(" -> ")) >= len(history), "records in the log")
    text = d.ctl("history", "-n", "3").stdout
    check("redis.service" in text and "->" in text, "mthpctl history: %s", text)


def full_share(t, full, current):
    tree = t.tree(modes={64: "always"})
    g = tree.group("desk.service", limit=GIB, current=current)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    t.drive(lambda s: g.step(some_usec=n(full * 1.1e6, s), full_usec=n(full * 1e6, s), pgfault=n(500, s)), FAST)
    return tree, d


@seconds(3)
def test_full_with_room_is_no_strong_step(t):
    """C11: full 12 % for 10 s with half of the limit left: no size is lowered."""
    tree, d = full_share(t, 0.12, GIB // 2)
    d.ticks(12)
    equal(size_writes(d), [], "writes to sizes")


@seconds(3)
def test_full_without_room_is_a_strong_step(t):
    """C11: full 45 % and 4 % of the limit left: a strong step."""
    tree, d = full_share(t, 0.45, GIB - 40 * MIB)
    wait(lambda: tree.size(64) == "never", "64 kB is lowered")
    check(d.size(64)["reason"].startswith("drop-"), "reason: %s", d.size(64)["reason"])


@seconds(14)
def test_hysteresis(t):
    """C12: noise never, one spike never; sustained pressure once, no step while it falls, out when only noise is left."""
    tree = t.tree(modes={64: "always"})
    g = tree.group("git.service", limit=4 * GIB, current=4 * GIB - MIB)
    state = {"share": 0.004, "at": 0.0}

    def step(s):
        state["at"] += s
        share = state["share"]
        g.step(some_usec=n(share * 1e6, s), full_usec=n(share * 5e5, s), pgfault=n(1000, s),
               events={"max": max(1, n(40, s))} if share > 0.01 else None,
               workingset_refault_anon=n(1000, s) if share > 0.01 else 0)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    t.drive(step, FAST)
    d.ticks(50)
    equal(d.writes(), [], "writes in the noise")
    g.step(some_usec=600000)
    d.ticks(5)
    equal(d.writes(), [], "writes after one spike")
    state["share"] = 0.30
    wait(lambda: tree.size(64) == tree.size(2048) == "never", "it goes in")
    first = len(size_writes(d))
    state["share"] = 0.04
    d.ticks(10)
    equal(len(size_writes(d)), first, "writes to sizes while it falls")
    state["share"] = 0.004
    g.step(current=2 * GIB)
    start = state["at"]
    wait(lambda: tree.size(64) == "always", "it goes out")
    check(state["at"] - start < 120, "it took %.0f s", state["at"] - start)


@seconds(3)
def test_oom_kill(t):
    """Requirement 2: an OOM kill in a group that was quiet for long takes large folios away and freezes it."""
    tree = t.tree(modes={64: "always"})
    g = tree.group("a.service", limit=64 * MIB, current=40 * MIB)
    other = tree.group("b.service", limit=GIB, current=40 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    d.ticks(15)
    g.step(events={"oom": 1, "oom_kill": 1})
    wait(lambda: tree.size(2048) == "never", "2048 kB is lowered")
    x = d.history()[-1]
    equal((x["reason"], x["cgroup"]), ("oom-kill", "a.service"), "reason and cgroup")
    equal(d.group("a.service")["state"], "frozen", "state")
    equal(d.group("a.service")["oom_kills"], 1, "oom_kills")
    equal(d.group(other.path)["state"], "run", "state of the other")
    text = d.explain("a.service")
    check("killed" in text, "explain: %s", text)


def test_oom_kill_before_the_start(t):
    """An OOM kill that is counted already when mthpd starts is history, no reason to act."""
    tree = t.tree()
    g = tree.group("a.service", limit=GIB, current=40 * MIB)
    g.step(events={"oom": 5, "oom_kill": 5, "max": 1000})
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    d.ticks(15)
    equal(d.writes(), [], "writes")


@seconds(3)
def test_tiny_swap_nearly_full(t):
    """C19: a small swap that is 96 % used, no swap traffic, PSI 0: no step; without swap nothing is NaN."""
    daemons = []
    for total, free in ((1048576, 40000), (0, 0)):
        tree = t.tree()
        tree.meminfo(8 << 20, 4 << 20, total, free)
        tree.group("a.service", limit=GIB, current=GIB // 2)
        daemons.append(t.daemon(tree, base=DEFAULTS, speed=FAST))
    for d in daemons:
        d.ticks(15)
        equal(d.writes(), [], "writes")
    raw = daemons[1].ctl("status", "--json").stdout
    check("NaN" not in raw and "nan" not in raw and "inf" not in raw.lower().replace("info", ""), "status: %s", raw)
    equal(daemons[1].status()["swap"]["state"], "none", "swap")


@seconds(4)
def test_the_right_cause(t):
    """C20: A 43 GB PSI 85 and B 12 MB PSI 86 with a tiny total: A is named, B is listed."""
    tree = t.tree(mem_kb=64 << 20)
    big = 43 * 10**9
    a = tree.group("build.service", limit=big + MIB, current=big)
    b = tree.group("resolved.service", current=12 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)

    def step(s):
        a.hot(s, some=0.85, full=0.6)
        b.step(some_usec=n(300, s), pgfault=n(10, s))
        b.write("memory.pressure", "some avg10=86.00 avg60=80.00 avg300=10.00 total=%d\n"
                "full avg10=80.00 avg60=70.00 avg300=10.00 total=%d\n" % (b.some, b.some // 2))
    t.drive(step, FAST)
    wait(lambda: tree.size(2048) == "never", "the drop")
    equal({x["cgroup"] for x in d.history()}, {"build.service"}, "causes")
    x = d.history()[-1]
    check(x["some"] > 0.3 and x["margin_bytes"] == MIB, "numbers of the decision: %s", x)
    check(d.group("resolved.service"), "B is not listed")
    check("build.service" in d.explain(), "explain does not name A")


@seconds(3)
def test_dying_cgroups(t):
    """D10: 25000 dying cgroups, some 20 %, few large folios: an annotation, no step of a size."""
    tree = t.tree(modes={64: "always"})
    tree.write("sys/fs/cgroup/cgroup.stat", "nr_descendants 120\nnr_dying_descendants 25000\n")
    g = tree.group("a.service", limit=4 * GIB, current=4 * GIB - MIB, anon=3 * GIB, anon_thp=30 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    t.drive(lambda s: g.step(some_usec=n(200000, s), full_usec=n(50000, s), pgfault=n(100, s)), FAST)
    d.ticks(12)
    equal(size_writes(d), [], "writes to sizes")
    check("dying" in d.explain(), "explain says nothing of dying cgroups: %s", d.explain())
    tree.write("sys/fs/cgroup/cgroup.stat", "nr_descendants 120\nnr_dying_descendants 10\n")
    wait(lambda: tree.size(64) == "never", "the same pressure counts once they are gone")


@seconds(4)
def test_protected_and_uncontrolled(t):
    """Policies: Controlled=no has no voice; a group at the same pressure without a policy has."""
    tree = t.tree()
    free = tree.group("batch.service", limit=64 * MIB, current=64 * MIB - 4096)
    d = t.daemon(tree, '[Policy "batch"]\nMatch=batch.service\nControlled=no\n', base=DEFAULTS, speed=FAST)
    t.drive(lambda s: free.hot(s), FAST)
    d.ticks(15)
    equal(d.writes(), [], "writes")
    g = d.group("batch.service")
    equal((g["state"], g["rung"], g["policy"]), ("watch-only", -1, "batch"), "state, rung, policy")
    d.reload("", base=DEFAULTS)
    wait(lambda: tree.size(2048) == "never", "without the policy it has a voice")


@seconds(3)
def test_max_size_of_a_policy(t):
    """Policies: MaxSize=64K of the only group keeps larger sizes off, and the reason says so."""
    tree = t.tree(modes={64: "always", 2048: "always"})
    g = tree.group("db.service", limit=GIB, current=GIB // 2)
    t.drive(lambda s: g.step(pgfault=n(1000, s)), FAST)
    d = t.daemon(tree, '[Policy "db"]\nMatch=db.service\nMaxSize=64K\n', base=DEFAULTS, speed=FAST)
    wait(lambda: tree.size(2048) == "never", "2048 kB is off")
    d.ticks(15)
    equal(tree.size(64), "always", "64 kB")
    equal(d.size(2048)["reason"], "policy-limit", "reason")


@seconds(8)
def test_recovery_and_relapse(t):
    """controller.md: after relief the sizes come back, and a relapse makes the next hold longer."""
    tree = t.tree()
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    state = {"hot": True}
    t.drive(lambda s: g.hot(s) if state["hot"] else None, FAST)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    gaps = []
    for _ in range(2):
        g.step(current=64 * MIB - 4096)
        state["hot"] = True
        wait(lambda: tree.size(2048) == "never", "the drop")
        state["hot"] = False
        g.step(current=10 * MIB)
        start = time.monotonic()
        wait(lambda: tree.size(2048) == "inherit", "the recovery")
        gaps.append((time.monotonic() - start) * FAST)
    check(gaps[0] >= 5, "the first recovery came after %.1f s, before the hold", gaps[0])
    check(gaps[1] > gaps[0] + 4, "the second hold is not longer: %s", gaps)


@seconds(4)
def test_sizes_between_the_rungs(t):
    """MaxSize= and MinSize= hold to the size on a stock kernel too, and the status says so."""
    for bound, thrashes in (("MaxSize=32K", False), ("MinSize=32K", True)):
        tree = t.tree(modes={16: "always", 32: "always", 64: "always", 2048: "never"})
        g = tree.group("db.service", limit=64 * MIB, current=10 * MIB)
        d = t.daemon(tree, '[Policy "db"]\nMatch=db.service\n%s\n' % bound)
        if thrashes:
            g.step(current=g.limit - 4096)
            t.drive(g.hot)
        wait(lambda: tree.size(64) == "never", "64K is off with " + bound)
        d.ticks(20)
        equal([tree.size(kb) for kb in (16, 32, 64)], ["always", "always", "never"], "sizes with " + bound)
        equal(d.group("db.service")["max_size_kb"], 32, "the largest in the status with " + bound)
        d.stop()


@seconds(8)
def test_raised_by_another(t):
    """Sizes that all were off at the start and that one group has raised go when they hurt another, and come back."""
    tree = t.tree(top="always", modes={2048: "never"})
    g = tree.group("a.service", limit=64 * MIB, current=10 * MIB)
    b = tree.group("b.service", limit=640 * MIB, current=10 * MIB)
    d = t.daemon(tree, base=DEFAULTS, speed=FAST)
    hot = []

    def step(s):
        b.fresh(s)
        if hot:
            g.hot(s)
    t.drive(step, FAST)
    sizes = (16, 32, 64)

    def all_are(word):
        return {tree.size(kb) for kb in sizes} == {word}
    wait(lambda: all_are("inherit"), "b has them raised")
    wait(lambda: d.group("a.service")["max_size_kb"] == 64, "a can have them too")
    g.step(current=g.limit - 4096)
    hot.append(True)
    wait(lambda: all_are("never"), "they are gone")
    equal(d.group("a.service")["state"], "drop", "a's state")
    hot.clear()
    g.step(current=10 * MIB)
    wait(lambda: all_are("inherit"), "they are back")
    wait(lambda: d.group("a.service")["reason"] in ("recovered", "start-values"), "a has recovered")
    g.step(current=g.limit - 4096)
    hot.append(True)
    wait(lambda: all_are("never"), "they are gone again")
    hot.clear()
    b.remove()
    g.step(current=10 * MIB)
    wait(lambda: d.group("a.service")["reason"] in ("recovered", "start-values"), "a has recovered: nobody asks for more")
    check(all_are("never"), "and nothing was raised for it")
