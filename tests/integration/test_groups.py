# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cgroup tree: groups that come, go, are many, lack files, or have names
and numbers that nobody expects."""

import json
import os
import shutil
import time

from faketree import CG, MIB, THP
from harness import BASE_CONFIG, FAST, check, equal, seconds, wait

GIB = 1 << 30
SECOND = BASE_CONFIG.replace("Interval=100ms", "Interval=1s", 1)


def hot(t, g, speed=1):
    g.step(current=g.limit - 4096)
    return t.drive(lambda s: g.hot(s), speed)


def warnings(d):
    """Lines beyond the report of the start and the decisions."""
    text = d.log().splitlines()
    words = ("Linux ", "  ", "memory cannot be locked", "CAP_SYS_RESOURCE")
    return [x for x in text if not x.startswith(words) and " -> " not in x and "restored" not in x]


def light_group(tree, path):
    """A quiet group of few files, for trees with very many of them."""
    d = tree.path("%s/%s" % (CG, path))
    os.makedirs(d)
    for name, text in (("memory.current", "10485760\n"), ("memory.max", "max\n"), ("memory.stat", "anon 10485760\n"),
                       ("memory.pressure", tree.psi(0, 0)), ("memory.events.local", "high 0\nmax 0\noom_kill 0\n")):
        with open(d + "/" + name, "w") as f:
            f.write(text)


def test_dotted_names_and_reloads(t):
    """A group's name may begin with a dot; a group counts once, however often the configuration is read."""
    tree = t.tree()
    tree.group("user.slice/.hidden", limit=64 * MIB)
    tree.group(".top", limit=64 * MIB)
    tree.group("plain.service", limit=64 * MIB)
    d = t.daemon(tree)
    wait(lambda: d.group("user.slice/.hidden") and d.group(".top"), "they are seen")
    for _ in range(3):
        d.reload("")
    equal(d.status()["counters"]["cgroups_seen"], 3, "groups seen")


@seconds(6)
def test_bound_group_rests(t):
    """A group that a policy keeps in the loop is quiet for long, and nothing watches it: its pressure is seen all the same."""
    tree = t.tree()
    g = tree.group("web.service", limit=64 * MIB, current=10 * MIB)
    d = t.daemon(tree, '[Policy "web"]\nMatch=web.service\nProtect=yes\n', base=SECOND, speed=FAST, log_reads=True)

    def looks():
        return len([w for w in d.recorded() if w.op == "open" and w.path.endswith("web.service/memory.stat")])

    def rests():
        before = looks()
        d.ticks(10)  # the status of this wait looks at nothing that a sample is kept of
        return before and looks() == before
    wait(rests, "it is not looked at any more")
    hot(t, g, FAST)
    wait(lambda: tree.size(2048) == "never", "the drop")


@seconds(4)
def test_swap_comes_and_goes(t):
    """C15: no swap at the start, zram0 of 4 GB later, then gone: status follows, two lines in the log."""
    tree = t.tree(swap_kb=0)
    d = t.daemon(tree, speed=FAST)
    d.ticks(10)
    equal(d.status()["swap"]["state"], "none", "swap at the start")
    tree.meminfo(8 << 20, 4 << 20, 4 << 20, 4 << 20)
    wait(lambda: d.status()["swap"]["state"] == "room", "swap is seen")
    equal(d.status()["swap"]["size_kb"], 4 << 20, "size of swap")
    tree.meminfo(8 << 20, 4 << 20, 0, 0)
    wait(lambda: d.status()["swap"]["state"] == "none", "swap is gone")
    lines = d.lines("swap: ")
    equal(len(lines), 2, "lines: %s" % lines)


@seconds(20)
def test_quiet_groups_are_cheap(t):
    """C16: 500 quiet groups: once the start is over no memory.stat is read, and polling takes little CPU."""
    daemons = []
    for shim in (True, False):
        tree = t.tree()
        for k in range(500):
            light_group(tree, "g%03d.service" % k)
        daemons.append(t.daemon(tree, base=SECOND, shim=shim, log_reads=shim, speed=FAST if shim else 1))
    recorded, plain = daemons

    def passes(log):
        return len([w for w in log if w.path.endswith("/proc/vmstat") and w.op == "open"])

    def start_is_over():
        log = recorded.recorded()
        last = [k for k, w in enumerate(log) if w.path.endswith("memory.stat")]
        return last and passes(log[last[-1]:]) > 3
    # Each group is looked at once or twice at the start; a status would look as well.
    wait(start_is_over, "the first look at all groups is over")
    before = len(recorded.recorded())
    wait(lambda: passes(recorded.recorded()[before:]) >= 10, "ten more")
    seen = recorded.recorded()[before:]
    equal([w.path for w in seen if w.path.endswith("memory.stat")][:3], [], "reads of memory.stat")
    per_tick = len([w for w in seen if w.op == "open"]) / passes(seen)
    check(per_tick < 500 * 3 + 50, "%.0f files are opened in each tick", per_tick)

    start, used = time.monotonic(), plain.cpu_seconds()
    time.sleep(5)
    share = (plain.cpu_seconds() - used) / (time.monotonic() - start)
    # Without triggers, as here under --root, 500 groups are polled: two small files each.
    check(share < 0.02, "%.1f ms of CPU time a second", share * 1e3)


def test_few_files(t):
    """D03: only memory.current, memory.max and memory.stat: the sample is valid, swap is null, no warning."""
    tree = t.tree()
    g = tree.group("a.service", limit=GIB, current=100 * MIB)
    for name in os.listdir(tree.path(CG + "/a.service")):
        if name not in ("memory.current", "memory.max", "memory.stat", "cgroup.procs"):
            g.unlink(name)
    d = t.daemon(tree)
    d.ticks(20)
    found = d.group("a.service")
    equal((found["current_bytes"], found["limit_bytes"], found["margin_bytes"]), (100 * MIB, GIB, GIB - 100 * MIB),
          "current, limit, margin")
    equal((found["some"], found["full"], found["oom_kills"]), (None, None, None), "what is not there")
    equal(warnings(d), [], "warnings")


@seconds(4)
def test_controller_not_delegated(t):
    """D05: user.slice has memory.*, a hundred leaves below have not: user.slice speaks for them, no look at missing files."""
    tree = t.tree(modes={64: "always"})
    top = tree.group("user.slice", limit=4 * GIB, current=4 * GIB - MIB)
    for name in ("user.slice/a", "user.slice/a/b", "user.slice/a/b/c"):
        tree.group(name, memory=False)
    for k in range(100):
        tree.write("%s/user.slice/a/b/c/%03d/pids.current" % (CG, k), "1\n")
    d = t.daemon(tree, log_reads=True)
    d.ticks(10)
    missing = [w.path for w in d.recorded() if "user.slice/a/" in w.path and "/memory." in w.path]
    equal(missing[:3], [], "opens of files that are not there")
    check(len(warnings(d)) <= 1, "lines: %s", warnings(d)[:5])
    t.drive(lambda s: top.hot(s))
    wait(lambda: tree.size(64) == "never", "pressure of user.slice counts")
    equal(d.history()[-1]["cgroup"], "user.slice", "cause")


def test_vanishes_while_it_is_read(t):
    """D06: memory.stat says ENODEV, the next open ENOENT: no warning, the others are processed in the same cycle."""
    tree = t.tree()
    gone = tree.group("gone.service", limit=64 * MIB, current=64 * MIB - 4096)
    g = tree.group("web.service", limit=64 * MIB)
    t.drive(lambda s: gone.hot(s))
    d = t.daemon(tree, rules=["*/gone.service/memory.stat read ENODEV times 1", "*/gone.service/memory* open ENOENT"])
    hot(t, g)
    wait(lambda: tree.size(2048) == "never", "the other group is heard")
    equal({x["cgroup"] for x in d.history()}, {"web.service"}, "causes")
    equal(warnings(d), [], "warnings")
    gone_groups = [x for x in d.status()["cgroups"] if x["path"] == "gone.service" and x["margin_bytes"] is not None]
    equal(gone_groups, [], "numbers of the group that is gone")


def test_vanishes_after_it_was_listed(t):
    """D06: a directory entry that is gone when it is opened, and one that cannot be read at all."""
    tree = t.tree()
    tree.group("ghost.service", limit=GIB)
    tree.group("odd.slice")
    tree.group("odd.slice/x.service", limit=GIB)
    g = tree.group("web.service", limit=64 * MIB)
    d = t.daemon(tree, rules=["*/ghost.service/* open ENOENT", "*/odd.slice opendir ENODEV"])
    hot(t, g)
    wait(lambda: tree.size(2048) == "never", "the other group is heard")
    equal(warnings(d), [], "warnings")


@seconds(8)
def test_descriptor_limit(t):
    """D07: RLIMIT_NOFILE=64 with 500 groups: all are seen, at most 64 descriptors, one warning at most."""
    tree = t.tree()
    for k in range(499):
        light_group(tree, "g%03d.service" % k)
    g = tree.group("last.service", limit=64 * MIB)
    d = t.daemon(tree, wrapper=("prlimit", "--nofile=64:64", "--"), shim=False)
    equal(len(d.status()["cgroups"]), 500, "groups in status")
    hot(t, g)
    wait(lambda: tree.size(2048) == "never", "the last group is heard")
    check(d.descriptors() <= 64, "%d descriptors", d.descriptors())
    check(len([x for x in warnings(d) if "takes longer" not in x]) <= 1, "warnings: %s", warnings(d)[:5])


@seconds(5)
def test_inotify_limits(t):
    """D07: no inotify instance (EMFILE), or ENOSPC after 100 watches: one warning with the sysctl, new groups are seen."""
    for limit, sysctl in (("-1", "max_user_instances"), ("100", "max_user_watches")):
        tree = t.tree()
        for k in range(200):
            light_group(tree, "g%03d.slice" % k)
        d = t.daemon(tree, env={"MTHP_INOTIFY_WATCHES": limit})
        equal(len(d.lines(sysctl)), 1, "warnings that name %s: %s" % (sysctl, warnings(d)[:3]))
        for k in range(200):
            os.makedirs(tree.path("%s/g%03d.slice/plain" % (CG, k)))
        g = tree.group("g%03d.slice/new.service" % (150 if limit == "-1" else 0), limit=64 * MIB)
        hot(t, g)
        wait(lambda tree=tree: tree.size(2048) == "never", "a group made later is heard with " + sysctl)
        check(len(warnings(d)) <= 2, "warnings: %s", warnings(d)[:5])


@seconds(14)
def test_slow_reads(t):
    """D09: 200 groups whose memory.stat takes 5 ms each: ticks stay within the budget, it is told, hot ones come through."""
    tree = t.tree()
    groups = []
    for k in range(200):
        if k in (0, 100, 199):
            groups.append(tree.group("hot%03d.service" % k, limit=64 * MIB, current=64 * MIB - 4096))
        else:
            light_group(tree, "g%03d.service" % k)

    def step(s):
        for g in groups:
            g.hot(s)
    t.drive(step)
    d = t.daemon(tree, env={"MTHP_SLOW_STAT_USEC": "5000"}, base=SECOND)
    wait(lambda: any("longer" in x for x in d.status()["degraded"]), "the overload is told")
    longest = 0
    for _ in range(10):
        start = time.monotonic()
        d.call("Verify")
        longest = max(longest, time.monotonic() - start)
        time.sleep(0.1)
    # A second would be one pass over all; the rest is for a busy machine.
    check(longest < 1.2, "a question waits for %.1f s", longest)
    seen = set()

    def heard():
        seen.update(g.path for g in groups if d.group(g.path)["state"] == "drop")
        return len(seen) == len(groups)
    wait(heard, "every hot group is heard")
    check(len(d.lines("takes longer")) <= 3, "%d warnings about the overload", len(d.lines("takes longer")))


def test_events_of_two_levels(t):
    """D11: pod at its limit, victim in the container: the container is the victim, 3 kills in all, not 6."""
    tree = t.tree()
    pod = tree.group("pod", limit=64 * MIB, current=60 * MIB)
    ctr = tree.group("pod/ctr", limit=64 * MIB, current=60 * MIB)
    pod.save_events_local = ctr.save_events_local = False
    pod.write("memory.events.local", "max 0\noom 0\noom_kill 0\n")
    ctr.write("memory.events.local", "max 0\noom 0\noom_kill 0\n")
    d = t.daemon(tree)
    equal((d.group("pod")["state"], d.group("pod/ctr")["state"]), ("watch-only", "run"), "states at the start")
    d.ticks(3)
    pod.write("memory.events.local", "max 9\noom 3\noom_kill 0\n")
    ctr.write("memory.events.local", "max 0\noom 0\noom_kill 3\n")
    ctr.step(events={"oom_kill": 3})
    pod.step(events={"oom": 3, "oom_kill": 3})
    wait(lambda: d.history(), "a decision is made")
    equal((d.history()[-1]["cgroup"], d.history()[-1]["reason"]), ("pod/ctr", "oom-kill"), "victim, reason")
    equal(sum(g["oom_kills"] for g in d.status()["cgroups"]), 3, "kills over all groups")


def test_nested_groups(t):
    """Unit of control: the lowest group with memory.current is steered, what is above it is watched."""
    tree = t.tree()
    for name in ("kubepods.slice", "kubepods.slice/pod1", "kubepods.slice/pod1/ctr", "kubepods.slice/pod1/ctr/inner"):
        g = tree.group(name, limit=64 * MIB, current=10 * MIB)
    d = t.daemon(tree)
    states = {x["path"]: x["state"] for x in d.status()["cgroups"]}
    equal(states.get("kubepods.slice/pod1/ctr/inner"), "run", "state of the lowest group: %s" % states)
    equal(states.get("kubepods.slice/pod1/ctr"), "watch-only", "state of the one above")
    drive = hot(t, g)
    wait(lambda: tree.size(2048) == "never", "its pressure is heard")
    drive.end()
    g.remove()
    wait(lambda: d.group("kubepods.slice/pod1/ctr")["state"] != "watch-only", "without children it is a unit again")


def test_nested_groups_made_later(t):
    """Unit of control: a group that gets a child with memory.current becomes a container, the child the unit."""
    tree = t.tree()
    tree.group("pod1", limit=64 * MIB, current=10 * MIB)
    d = t.daemon(tree)
    equal(d.group("pod1")["state"], "run", "state before")
    g = tree.group("pod1/ctr", limit=64 * MIB, current=10 * MIB)
    wait(lambda: d.group("pod1")["state"] == "watch-only", "the pod is watched only")
    wait(lambda: (d.group("pod1/ctr") or {}).get("state") == "run", "the container is the unit")
    hot(t, g)
    wait(lambda: tree.size(2048) == "never", "its pressure is heard")


def test_margin_of_the_ancestors(t):
    """Margin is the minimum over the ancestors: a limit two levels up is met."""
    tree = t.tree()
    tree.group("a.slice", limit=GIB, current=GIB - 3 * MIB)
    tree.group("a.slice/b.slice", limit=None, current=GIB - 3 * MIB)
    tree.group("a.slice/b.slice/c.service", limit=2 * GIB, current=500 * MIB)
    d = t.daemon(tree)
    g = d.group("a.slice/b.slice/c.service")
    equal((g["margin_bytes"], g["limit_bytes"]), (3 * MIB, GIB), "margin and limit")


def test_colons(t):
    """D13: a path with colons is one path, also in /proc/self/cgroup."""
    name = "system.slice/kubepods-burstable-pod72e25f20.slice:cri-containerd:d24f9cc"
    tree = t.tree()
    tree.group("system.slice")
    tree.group(name, limit=GIB)
    tree.write("proc/self/cgroup", "0::/%s\n" % name)
    d = t.daemon(tree)
    equal(d.group(name)["state"], "watch-only", "state of our own group")
    check(name in d.explain(name), "explain does not find it")
    equal(d.ctl("explain", name).returncode, 0, "mthpctl explain")


HOSTILE = ["app-gnome-firefox\\x2dw-96379.scope", "quote\"brace}{.service", "tab\there.service", "line\nfeed.service",
           "esc\x1b[31mred.service", "\u00fcml\u00e4ut.service", "[x].service", "-n.service", "%s%n.service", " .service"]


def test_names(t):
    """D15: names as bytes: patterns match the on-disk form, JSON is valid, a terminal gets no control bytes."""
    tree = t.tree()
    for name in ("app.slice", "system-backup\\x2dprune.slice", "a.slice"):
        tree.group(name)
    for name in HOSTILE:
        tree.group("app.slice/" + name, limit=GIB, current=MIB)
    tree.group("system-backup\\x2dprune.slice/backup@minio.service", limit=GIB)
    tree.group("a.slice/a-b.slice")
    raw = os.fsencode(tree.path(CG)) + b"/app.slice/\xff\xfe.service"
    shutil.copytree(os.fsencode(tree.path(CG + "/app.slice/[x].service")), raw)
    d = t.daemon(tree, '[Policy "apps"]\nMatch=app.slice/app-*\\x2dw-*.scope\n'
                       '[Policy "inner"]\nMatch=**/a-b.slice\n[Policy "star"]\nMatch=*minio*\n')
    text = d.ctl("status", "--json").stdout
    check("app-gnome-firefox\\\\x2dw-96379.scope" in text, "no doubled backslash in %s", text[:300])
    groups = {g["path"]: g for g in json.loads(text)["cgroups"]}
    for name in HOSTILE:
        check("app.slice/" + name in groups, "%r is not in status: %s", name, sorted(groups))
    check(any("xff" in path for path in groups), "the name that is not UTF-8 is missing")
    equal(groups["app.slice/" + HOSTILE[0]]["policy"], "apps", "policy by the on-disk form")
    equal(groups["a.slice/a-b.slice"]["policy"], "inner", "policy by **/a-b.slice")
    equal(groups["system-backup\\x2dprune.slice/backup@minio.service"]["policy"], None, "* does not cross /")
    human = d.ctl("status", "-n", "100").stdout
    bad = [c for c in human if (ord(c) < 32 and c != "\n") or ord(c) == 127]
    equal(bad, [], "control bytes on the terminal")
    for name in HOSTILE:
        equal(d.ctl("explain", "--", "app.slice/" + name).returncode, 0, "explain of %r" % name)


@seconds(3)
def test_explain_where_a_name_is_not_utf8(t):
    """A group with a name of any bytes is to blame: explain answers all the same, for it and for others."""
    tree = t.tree(modes={64: "always"})
    bad = tree.group(os.fsdecode(b"bad\xff.service"), limit=64 * MIB, current=64 * MIB - 4096)
    tree.group("ok.service", limit=GIB)
    t.drive(bad.hot)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "never", "the group is hurt")
    for words in (("explain",), ("explain", "ok.service")):
        done = d.ctl(*words)
        equal(done.returncode, 0, "%s: %s" % (words, done.stdout + done.stderr))
        check("xff.service" in done.stdout, "%s: %s", words, done.stdout)


def numbers(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from numbers(v)
    elif isinstance(value, list):
        for v in value:
            yield from numbers(v)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def test_differences_saturate(t):
    """D18: current below file, current above max: 0, and nothing in status is negative or above 2^63."""
    tree = t.tree()
    tree.group("a.service", current=249856, anon=0, file=270336)
    tree.group("b.service", limit=100 * MIB, current=101 * MIB)
    d = t.daemon(tree)
    d.ticks(3)
    equal(d.group("a.service")["slack_bytes"], 0, "slack of a")
    equal(d.group("b.service")["margin_bytes"], 0, "margin of b")
    status = d.status()
    for g in status["cgroups"]:
        g.pop("rung")
    bad = [x for x in numbers(status) if x < 0 or x >= 1 << 63]
    equal(bad, [], "numbers out of range")


def test_sentinels(t):
    """D19: max, 2^63-4096 and u64 max are no limit; overflow, -1 and '' are invalid; blanks are not."""
    texts = ["max", "9223372036854771712", "18446744073709551615", "18446744073709551616", "-1", "", " 123\n", "12x"]
    tree = t.tree()
    for k, text in enumerate(texts):
        tree.group("g%d.service" % k, current=4096).write("memory.max", text)
    d = t.daemon(tree)
    d.ticks(3)
    found = [d.group("g%d.service" % k)["limit_bytes"] for k in range(len(texts))]
    equal(found, [None] * 6 + [123, None], "limits")
    equal([d.group("g%d.service" % k)["current_bytes"] for k in range(len(texts))], [4096] * len(texts),
          "current: one field that is invalid does not cost the sample")


@seconds(5)
def test_counters_go_backwards(t):
    """D21: memory.events max 500 -> 3, on the same inode and on a new one: delta 0, no drop; then it counts again."""
    tree = t.tree(modes={64: "always"})
    state = {"hits": 0, "group": tree.group("a.service", limit=GIB, current=500 * MIB)}

    def step(s):
        g = state["group"]
        g.step(some_usec=round(4e5 * s), workingset_refault_anon=round(1000 * s), pgmajfault=round(1000 * s),
               pgfault=round(2000 * s), events={"max": round(state["hits"] * s)})
    state["group"].step(events={"max": 500})
    d = t.daemon(tree, speed=FAST)
    t.drive(step, FAST)
    d.ticks(8)
    state["group"].events["max"] = 3
    d.ticks(8)
    equal(d.writes(), [], "writes after max went from 500 to 3")
    with tree.lock:
        old = d.group("a.service")["id"]
        # While it is open its inode number is not given to the next directory.
        held = os.open(tree.path(CG + "/a.service"), os.O_RDONLY)
        state["group"].remove()
        state["group"] = tree.group("a.service", limit=GIB, current=500 * MIB)
        state["group"].step(events={"max": 2})
    wait(lambda: (d.group("a.service") or {"id": old})["id"] != old, "the new group is seen")
    os.close(held)
    d.ticks(8)
    equal(d.writes(), [], "writes after the group was made anew")
    state["hits"] = 60
    wait(lambda: tree.size(64) == "never", "counting goes on")


def test_unknown_keys(t):
    """D25: unknown keys, any order, 120 more in memory.stat and no anon_thp: values right, share null, no warning."""
    tree = t.tree()
    g = tree.group("a.service", limit=GIB, current=100 * MIB)
    g.write("memory.events", "low 0\nsock_throttled 4\nhigh 2\nmax 1\noom 0\noom_kill 0\noom_group_kill 1\n")
    g.unlink("memory.events.local")
    g.write("memory.stat", "".join("key_%d %d\n" % (k, k) for k in range(120)) + "anon 52428800\nfile 1048576\n")
    d = t.daemon(tree)
    d.ticks(5)
    found = d.group("a.service")
    equal((found["anon_bytes"], found["anon_thp_bytes"], found["anon_thp_share"], found["oom_kills"]),
          (52428800, None, None, 0), "anon, anon_thp, share, kills")
    equal(warnings(d), [], "warnings")


@seconds(14)
def test_churn(t):
    """Promise 4: groups made and removed 500 times: no descriptor more, no group left, no warning."""
    tree = t.tree()
    tree.group("base.service", limit=GIB, current=MIB)
    d = t.daemon(tree)
    d.ticks(3)
    before = d.descriptors()
    for k in range(500):
        name = "run-%d.scope" % k
        light_group(tree, name)
        if k % 7 == 0:
            light_group(tree, name + "/inner")
        if k % 25 == 0:
            time.sleep(0.05)
        shutil.rmtree(tree.path(CG + "/" + name))
        if k % 100 == 0:
            d.status()
    d.ticks(5)
    wait(lambda: [g["path"] for g in d.status()["cgroups"]] == ["base.service"], "all are forgotten")
    wait(lambda: d.descriptors() <= before, "no more descriptors than before")
    equal(warnings(d), [], "warnings")
    d.stop()


@seconds(4)
def test_tree_is_deleted(t):
    """Promise 4: the whole cgroup tree, /proc and the switches vanish under it: it answers, and ends with 0."""
    tree = t.tree()
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    drive = hot(t, g)
    d = t.daemon(tree)
    wait(lambda: tree.size(2048) == "never", "the drop")
    drive.end()
    shutil.rmtree(tree.path(CG))
    d.ticks(10)
    equal(d.status()["cgroups"], [], "groups")
    shutil.rmtree(tree.path("proc"))
    shutil.rmtree(tree.path(THP))
    d.ticks(15)
    for verb in ("status", "features", "history", "explain", "verify"):
        check(d.ctl(verb).returncode in (0, 1), "mthpctl %s fails", verb)
    log = len(d.log())
    d.ticks(20)
    check(len(d.log()) - log < 500, "it goes on complaining: %s", d.log()[log:][:500])
    d.stop()


def test_symlinks_and_files_are_no_groups(t):
    """A link to a directory, a link in a circle and plain files in the tree are not groups."""
    tree = t.tree()
    tree.group("web.service", limit=GIB)
    os.symlink("web.service", tree.path(CG + "/link.service"))
    os.symlink(".", tree.path(CG + "/circle"))
    tree.write(CG + "/plain", "x\n")
    d = t.daemon(tree)
    d.ticks(3)
    equal([g["path"] for g in d.status()["cgroups"]], ["web.service"], "groups")


def test_deep_tree(t):
    """Limits: 80 levels: the rest below the limit is not looked at, said once."""
    tree = t.tree()
    path = "d"
    for _ in range(80):
        tree.group(path)
        path += "/d"
    d = t.daemon(tree)
    d.ticks(5)
    equal(len(d.lines("levels")), 1, "lines about the depth")
    d.stop()
