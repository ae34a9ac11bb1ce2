# SPDX-License-Identifier: LGPL-2.1-or-later
"""Metrics over HTTP and varlink: the text, where it listens, and bad clients."""

import os
import re
import socket
import stat
import subprocess
import time

from world import DEADLINE, MIB, NOBODY, check, equal, run, tool, wait

NUMBER = re.compile(r"^[+-]?([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|NaN|Inf)$")
LINE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')


def parse(text):
    """{name: {labels: value}}; checks the format on the way."""
    kinds, helps, found, last = {}, set(), {}, None
    check(text.endswith("\n"), "no newline at the end")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            check(name not in helps and len(line.split(" ", 3)[3]) > 5, "HELP: %s", line)
            helps.add(name)
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            check(name not in kinds and name in helps and kind in ("gauge", "counter"), "TYPE: %s", line)
            check((kind == "counter") == name.endswith("_total"), "name of a %s: %s", kind, name)
            kinds[name] = kind
            continue
        m = LINE.match(line)
        check(m and NUMBER.match(m.group(4)), "line: %s", line)
        name, labels = m.group(1), m.group(3) or ""
        check(name in kinds, "no TYPE before %s", line)
        check(name == last or name not in found, "the lines of %s are apart", name)
        last = name
        at, pairs = 0, []
        while at < len(labels):
            pair = LABEL.match(labels, at)
            check(pair, "labels: %s", labels)
            pairs.append((pair.group(1), re.sub(r"\\(.)", lambda e: "\n" if e.group(1) == "n" else e.group(1), pair.group(2))))
            at = pair.end()
        key = tuple(pairs)
        check(key not in found.setdefault(name, {}), "twice: %s", line)
        found[name][key] = float(m.group(4))
    return found


def request(where, data, timeout=DEADLINE):
    s = socket.socket(socket.AF_UNIX if where[0] == "/" else socket.AF_INET)
    s.settimeout(timeout)
    s.connect(where if where[0] == "/" else ("127.0.0.1", int(where.rsplit(":", 1)[1])))
    try:
        s.sendall(data)
        answer = b""
        while True:
            more = s.recv(65536)
            if not more:
                return answer
            answer += more
    finally:
        s.close()


def get(where, path="/metrics", method="GET"):
    """(code, headers, body)"""
    answer = request(where, ("%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % (method, path)).encode())
    head, body = answer.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}, body.decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % s.getsockname()[1]


def start(t, tree=None, where=None, bus=False):
    where = where or t.dir + "/metrics"
    t.start(tree, "[Metrics]\nListen=%s\n" % where, bus=bus)
    return where


def test_text(t):
    """What is in it: the machine, each size, each group; the same by HTTP, varlink and mthpctl."""
    tree = t.tree(modes={64: "always"}, top="always")
    tree.group("system.slice/web.service", limit=64 * MIB, current=10 * MIB)
    tree.stat(64, anon_fault_alloc=7, nr_anon=3, swpout=2)
    where = start(t, tree)
    code, headers, body = get(where)
    equal(code, 200, "code")
    equal(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8", "type")
    m = parse(body)
    equal(m["mthpd_state"][(("state", "active"),)], 1, "state")
    equal(m["mthpd_size_mode"][(("size_kb", "64"),)], 2, "mode of 64K")
    equal(m["mthpd_size_mode_info"][(("size_kb", "64"), ("kind", "actual"), ("mode", "always"))], 1, "word of 64K")
    equal(m["mthpd_size_anon_fault_alloc_total"][(("size_kb", "64"),)], 7, "anon_fault_alloc")
    equal(m["mthpd_size_anon_folios"][(("size_kb", "64"),)], 3, "nr_anon")
    equal(m["mthpd_khugepaged_max_ptes_none"][()], 511, "max_ptes_none")
    group = (("cgroup", "system.slice/web.service"),)
    equal(m["mthpd_cgroup_anon_bytes"][group], 10 * MIB, "anonymous memory")
    equal(m["mthpd_cgroup_margin_bytes"][group], 54 * MIB, "margin")
    equal(m["mthpd_cgroup_limit_bytes"][group], 64 * MIB, "limit")
    check(m["mthpd_cgroup_rung"][group] > 0, "rung")
    equal(m["mthpd_cgroup_changes_total"][group], 0, "changes")
    check("mthpd_cgroup_state_info" in m and "mthpd_build_info" in m, "info")
    # A quiet group has a share of stalls only while it is under observation.
    shares = {"mthpd_cgroup_pressure_some_ratio", "mthpd_cgroup_pressure_full_ratio"}
    names = set(m) - shares
    equal(set(parse(t.varlink("Metrics")["text"])) - shares, names, "names by varlink")
    equal(set(parse(t.ctl("metrics").stdout)) - shares, names, "names by mthpctl")
    check("mthpd_cgroup_stall_some_seconds_total" in m, "stalls")


def test_promtool(t):
    """promtool check metrics accepts it, with groups of any name."""
    tool("promtool")
    tree = t.tree()
    tree.group('a"b\\c\x07.service', limit=1 << 30, current=MIB)
    where = start(t, tree)
    with open(t.dir + "/text", "w") as f:
        f.write(get(where)[2])
    with open(t.dir + "/text") as f:
        done = subprocess.run(["promtool", "check", "metrics"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=30)
    equal((done.returncode, done.stdout), (0, ""), "promtool")


def test_decisions_are_counted(t):
    """Changes by reason and by group, as the history has them."""
    tree = t.tree(top="always", modes={64: "always"})
    g = tree.group("web.service", limit=64 * MIB, current=8 * MIB)
    where = start(t, tree)
    g.step(current=64 * MIB - 4096)
    end = time.monotonic() + 10
    while tree.size(64) == "always":
        check(time.monotonic() < end, "no drop")
        g.hot(0.1)
        time.sleep(0.1)
    m = parse(get(where)[2])
    history = t.varlink("History", {"n": 500})["decisions"]
    for reason in {d["reason"] for d in history}:
        equal(m["mthpd_switch_changes_total"][(("reason", reason),)], len([d for d in history if d["reason"] == reason]),
              "changes for " + reason)
    equal(m["mthpd_cgroup_changes_total"][(("cgroup", "web.service"),)],
          len([d for d in history if d["cgroup"] == "web.service"]), "changes by the group")
    check((("cgroup", "web.service"),) in m["mthpd_cgroup_pressure_some_ratio"], "no pressure")
    check(m["mthpd_cgroup_stall_some_seconds_total"][(("cgroup", "web.service"),)] > 0.1, "stalls")
    equal(m["mthpd_writes_total"][()], t.status()["counters"]["writes"], "writes")


def test_bounded_labels(t):
    """The 32 groups with the most anonymous memory; the rest is summed."""
    tree = t.tree()
    for k in range(100):
        tree.group("g%03d.service" % k, limit=1 << 30, current=(k + 1) * MIB)
    where = start(t, tree)
    m = parse(get(where)[2])
    groups = {dict(k)["cgroup"] for k in m["mthpd_cgroup_anon_bytes"]}
    equal(groups, {"g%03d.service" % k for k in range(68, 100)}, "groups")
    equal(m["mthpd_cgroups_rest"][()], 68, "groups in the rest")
    equal(m["mthpd_cgroups_rest_anon_bytes"][()], sum(range(1, 69)) * MIB, "their anonymous memory")
    equal(m["mthpd_cgroups_unread"][()], 0, "unread groups")
    check(max(len(v) for v in m.values()) <= 64, "lines of one name")


def test_escaped_labels(t):
    """Quotes, backslashes, newlines in a group's name come back as they were."""
    tree = t.tree()
    name = 'q"b\\n\nx.service'
    tree.group(name, limit=1 << 30, current=MIB)
    where = start(t, tree)
    check((("cgroup", name),) in parse(get(where)[2])["mthpd_cgroup_anon_bytes"], "the name")


def test_unix_socket(t):
    """Mode 0666, replaced when stale, removed at the end, another user may read."""
    where = start(t)
    equal(stat.S_IMODE(os.stat(where).st_mode), 0o666, "mode")
    done = run(["curl", "-sS", "--max-time", "10", "--unix-socket", where, "http://x/metrics"], user=NOBODY,
               group=NOBODY, extra_groups=[]) if tool("curl") else None
    equal(done.returncode, 0, "curl: %s" % done.stdout)
    parse(done.stdout)
    t.daemon.kill()
    t.daemon.wait()
    check(os.path.exists(where), "no stale socket")
    start(t, t.fake)
    equal(get(where)[0], 200, "after a crash")
    t.daemon.terminate()
    t.daemon.wait(10)
    check(not os.path.exists(where), "the socket is left")


def test_loopback_port(t):
    """127.0.0.1:PORT, and nowhere else."""
    where = free_port()
    start(t, where=where)
    parse(get(where)[2])
    port = int(where.split(":")[1])
    with open("/proc/net/tcp") as f:
        bound = [line.split()[1] for line in f if line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A"]
    equal(bound, ["0100007F:%04X" % port], "listening addresses")


def test_place_that_cannot_be_had(t):
    """Something else is there: degraded with the reason, the daemon works; a reload mends it."""
    where = t.dir + "/file"
    with open(where, "w") as f:
        f.write("mine")
    start(t, where=where)
    status = t.status()
    equal(status["state"], "degraded", "state")
    check(any("metrics" in x and where in x for x in status["degraded"]), "degraded: %s", status["degraded"])
    with open(where) as f:
        equal(f.read(), "mine", "the file")
    other = t.dir + "/other"
    t.configure("[Metrics]\nListen=%s\n" % other)
    t.varlink("Reload")
    wait(lambda: t.status()["state"] == "active", "the state is active again")
    equal(get(other)[0], 200, "at the new place")
    t.configure("")
    t.varlink("Reload")
    wait(lambda: not os.path.exists(other), "it listens no longer")


def test_other_requests(t):
    """Other paths, methods and bodies get an error of HTTP."""
    where = start(t)
    equal(get(where, "/")[0], 200, "the root")
    equal(get(where, "/metrics?x=1")[0], 200, "a query")
    equal(get(where, "/nonsense")[0], 404, "another path")
    equal(get(where, "/../metrics")[0], 404, "dots")
    code, headers, body = get(where, method="HEAD")
    equal((code, body), (200, ""), "HEAD")
    check(int(headers["content-length"]) > 1000, "length of HEAD: %s", headers)
    for method in ("POST", "PUT", "DELETE", "TRACE", "NONSENSE"):
        check(get(where, method=method)[0] in (400, 405, 501), "%s", method)
    answer = request(where, b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nConnection: close\r\n\r\n")
    check(answer.split()[1] in (b"413", b"501", b"405"), "a body: %r", answer[:60])


def test_bad_requests(t):
    """Garbage, huge headers, half a request, a client that never reads: nobody else waits."""
    where = start(t)
    for data in (b"\0" * 100, b"\xff\xfe\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                 b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n",
                 b"GET /%00%ff HTTP/1.1\r\n\r\n", b"\r\n" * 1000, b"GET http://[::1/ HTTP/1.1\r\n\r\n"):
        try:
            answer = request(where, data, 1)
            check(b"mthpd_state" not in answer or data.startswith(b"GET /metrics"), "%r is answered", data[:30])
        except (OSError, IndexError):
            pass
        t.unharmed()
    slow = []
    for _ in range(10):
        s = socket.socket(socket.AF_UNIX)
        s.connect(where)
        s.sendall(b"GET /metrics HTTP/1.1\r\n" * 1)
        slow.append(s)
    equal(get(where)[0], 200, "beside half requests")
    for s in slow:
        s.close()
    greedy = socket.socket(socket.AF_UNIX)
    greedy.connect(where)
    greedy.setblocking(False)
    before = t.rss_kb()
    try:
        for _ in range(5000):
            greedy.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    except OSError:
        pass
    start_time = time.monotonic()
    equal(get(where)[0], 200, "beside one that never reads")
    check(time.monotonic() - start_time < 5, "it takes %.1f s", time.monotonic() - start_time)
    t.grown(before, 32768)
    greedy.close()


ANSWERS = {
    "64 KiB and a byte of path": (b"GET /" + b"a" * 65537 + b" HTTP/1.1\r\n\r\n", b"400"),
    "64 KiB and a byte of header": (b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 65537 + b"\r\n\r\n", b"400"),
    "64 KiB and a byte of body": (b"POST /metrics HTTP/1.1\r\nContent-Length: 65537\r\n\r\n" + b"[" * 65537, b"413"),
    "invalid UTF-8": (b"GET /\xff\xfe HTTP/1.1\r\nConnection: close\r\n\r\n", b"404"),
    "no request": (b"\0\1\2\3\r\n\r\n", b"400"),
    "an unknown method": (b"NONSENSE / HTTP/1.1\r\n\r\n", b"501"),
    "a negative length": (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
    "a length that is no number": (b"POST / HTTP/1.1\r\nContent-Length: nan\r\n\r\n", b"400"),
    "no version": (b"GET /metrics\r\n\r\n", b"400"),
}


def test_bad_requests_have_a_code(t):
    """Each kind of bad request gets HTTP's own error, and nothing of the metrics."""
    where = start(t)
    for what, (data, code) in ANSWERS.items():
        try:
            answer = request(where, data, 5)
        except (ConnectionResetError, BrokenPipeError):
            # It does not read to the end what is too long; the answer may be lost with the rest.
            check("64 KiB" in what, "%s: the connection was reset", what)
            continue
        equal(answer.split()[1], code, what)
        check(b"mthpd_state" not in answer, "%s is answered", what)
        t.unharmed()
    equal(get(where)[0], 200, "afterwards")


def test_half_a_request_then_silence_by_http(t):
    """Half a request and then nothing: closed after ten seconds, others are answered meanwhile."""
    where = start(t)
    s = socket.socket(socket.AF_UNIX)
    t.open.append(s)
    s.settimeout(DEADLINE)
    s.connect(where)
    begin = time.monotonic()
    s.sendall(b"GET /metr")
    equal(get(where)[0], 200, "beside it")
    equal(s.recv(100), b"", "then the connection")
    check(9 < time.monotonic() - begin < 14, "closed after %.1f s", time.monotonic() - begin)


def test_connections_are_bounded(t):
    """One more than 16 pushes out the oldest; descriptors do not pile up."""
    where = start(t)
    before = t.descriptors()
    idle = []
    for _ in range(40):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(5)
        s.connect(where)
        idle.append(s)
    wait(lambda: t.descriptors() <= before + 17, "it keeps 16 connections: %d, %d at first" % (t.descriptors(), before))
    equal(idle[0].recv(10), b"", "the oldest")
    equal(get(where)[0], 200, "a new one")
    for s in idle:
        s.close()
    wait(lambda: t.descriptors() <= before, "all are closed")
