# SPDX-License-Identifier: LGPL-2.1-or-later
"""The varlink socket and mthpctl: shapes, errors, rights, limits."""

import json
import os
import socket
import time

from faketree import MIB
from harness import NOBODY, Varlink, VarlinkError, check, equal, seconds, wait

GIB = 1 << 30
NUMBER, OPTIONAL = (int, float), type(None)

STATUS = {"version": str, "state": str, "degraded": list, "kernel": dict, "sizes": list, "khugepaged": dict,
          "cgroups": list, "counters": dict}
SIZE = {"size_kb": int, "baseline": (str, OPTIONAL), "actual": (str, OPTIONAL), "effective": (str, OPTIONAL),
        "wanted": (str, OPTIONAL), "reason": str}
CGROUP = {"path": str, "id": int, "policy": (str, OPTIONAL), "state": str, "rung": int, "max_size_kb": (int, OPTIONAL),
          "max_size_wanted_kb": (int, OPTIONAL),
          "some": (float, OPTIONAL), "full": (float, OPTIONAL), "margin_bytes": (int, OPTIONAL), "reason": str,
          "reason_text": str}
COUNTERS = ("decisions", "writes", "write_errors", "foreign_changes", "cgroups_seen", "wakeups", "cpu_usec")
STATES = ("active", "dry-run", "held", "degraded", "off")
GROUP_STATES = ("run", "probe", "settle", "measure", "drop", "frozen", "watch-only", "no-effect")


def shape(found, wanted, what):
    for key, kind in wanted.items():
        check(key in found, "%s has no %s", what, key)
        check(isinstance(found[key], kind) and not isinstance(found[key], bool), "%s: %s is %r", what, key, found[key])


def test_status_shape(t):
    """design 3: every key of GetStatus with its type; shares 0..1, rung -1 where uncontrolled, absent is null."""
    tree = t.tree()
    tree.group("system.slice")
    tree.group("system.slice/web.service", limit=GIB, current=100 * MIB)
    tree.group("system.slice/free.service", current=100 * MIB)
    tree.group("off.service", limit=GIB)
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    t.drive(g.hot)
    d = t.daemon(tree, '[Policy "off"]\nMatch=off.service\nControlled=no\n')
    wait(lambda: tree.size(2048) == "never", "the drop")
    status = d.status()
    shape(status, STATUS, "status")
    check(status["state"] in STATES, "state: %s", status["state"])
    shape(status["kernel"], {"release": str, "features": dict}, "kernel")
    equal(status["kernel"]["release"], "6.12.0-fake", "release")
    for s in status["sizes"]:
        shape(s, SIZE, "size")
    equal([s["size_kb"] for s in status["sizes"] if s["actual"]], [16 << k for k in range(8)], "sizes")
    shape(status["khugepaged"]["max_ptes_none"], {"baseline": int, "actual": int, "wanted": int}, "max_ptes_none")
    shape(status["counters"], dict.fromkeys(COUNTERS, int), "counters")
    groups = {g["path"]: g for g in status["cgroups"]}
    for path, g in groups.items():
        shape(g, CGROUP, path)
        check(not path.startswith("/"), "leading slash: %s", path)
        check(g["state"] in GROUP_STATES, "state of %s: %s", path, g["state"])
        check(all(c.islower() or c == "-" for c in g["reason"]), "reason: %s", g["reason"])
        for key in ("some", "full"):
            check(g[key] is None or 0 <= g[key] <= 1, "%s of %s: %s", key, path, g[key])
    equal(groups["web.service"]["state"], "drop", "state of the group under pressure")
    for key in ("some", "full"):
        check(groups["web.service"][key] is not None, "the group under pressure has no %s", key)
    web = groups["system.slice/web.service"]
    equal(web["id"], os.stat(tree.path("sys/fs/cgroup/system.slice/web.service")).st_ino, "id is the inode")
    equal((web["state"], web["margin_bytes"]), ("run", GIB - 100 * MIB), "state, margin")
    equal(groups["system.slice/free.service"]["margin_bytes"], None, "margin without a limit")
    equal((groups["off.service"]["rung"], groups["off.service"]["max_size_kb"]), (-1, None), "rung, max_size_kb")
    check("system.slice" not in groups, "a slice is listed")


def test_status_of_a_group_without_files(t):
    """design 3: what the kernel does not say is null, never 0."""
    tree = t.tree()
    g = tree.group("a.service", current=MIB)
    for name in ("memory.pressure", "memory.stat", "memory.max", "memory.high", "cpu.stat", "memory.events",
                 "memory.events.local"):
        g.unlink(name)
    d = t.daemon(tree)
    d.ticks(3)
    found = d.group("a.service")
    for key in ("some", "full", "anon_bytes", "anon_thp_share", "oom_kills"):
        equal(found[key], None, key)


def test_service_info(t):
    """org.varlink.service: GetInfo and GetInterfaceDescription, so that varlinkctl works unchanged."""
    d = t.daemon(t.tree())
    link = t.varlink(d)
    info = link.call("org.varlink.service.GetInfo")
    equal(sorted(info), ["interfaces", "product", "url", "vendor", "version"], "keys of GetInfo")
    check({"org.varlink.service", "org.mthpd1"} <= set(info["interfaces"]), "interfaces: %s", info["interfaces"])
    text = link.call("org.varlink.service.GetInterfaceDescription", {"interface": "org.mthpd1"})["description"]
    check(text.lstrip().split("interface ")[1].startswith("org.mthpd1"), text[:100])


def test_interface_is_complete(t):
    """design 5: every method of org.mthpd1 is described and answered."""
    d = t.daemon(t.tree())
    link = t.varlink(d)
    text = link.call("org.varlink.service.GetInterfaceDescription", {"interface": "org.mthpd1"})["description"]
    methods = ("GetStatus", "Explain", "History", "Features", "Verify", "Metrics", "Monitor", "Reload", "Hold", "Release",
               "Restore")
    equal([m for m in methods if "method %s(" % m not in text], [], "methods that are not described")


def test_metrics(t):
    """design 5: Metrics() gives Prometheus text: HELP and TYPE, one value a line, names of groups escaped."""
    tree = t.tree()
    tree.group('a"b\\c.service', limit=GIB, current=MIB)
    d = t.daemon(tree)
    text = d.call("Metrics")["text"]
    names = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            names.add(line.split()[2])
        elif line and not line.startswith("#"):
            name = line.split("{")[0].split()[0]
            check(name in names or name.rsplit("_", 1)[0] in names, "no TYPE for %s", line)
            float(line.rsplit(" ", 1)[1])
    check(any(n.startswith("mthpd_") for n in names), "names: %s", sorted(names)[:5])
    check('a\\"b\\\\c.service' in text, "the group's name is not escaped")
    equal(d.ctl("metrics").returncode, 0, "exit code of mthpctl metrics")


@seconds(4)
def test_monitor(t):
    """design 5: Monitor with more streams samples and decisions with continues; without more it is an error."""
    tree = t.tree()
    g = tree.group("web.service", limit=64 * MIB, current=10 * MIB)
    d = t.daemon(tree)
    link = t.varlink(d)
    try:
        link.call("org.mthpd1.Monitor", {"samples": True})
        check(False, "Monitor without more is answered")
    except VarlinkError:
        pass
    link.send("org.mthpd1.Monitor", {"samples": True}, more=True)
    seen = []
    g.step(current=64 * MIB - 4096)
    t.drive(lambda s: g.hot(s))
    while not any(m["parameters"].get("decision") for m in seen) and len(seen) < 500:
        message = link.receive()
        check("error" not in message, "error: %s", message)
        equal(message.get("continues"), True, "continues")
        seen.append(message)
    check(any(m["parameters"].get("sample") for m in seen), "no samples")
    decision = [m["parameters"]["decision"] for m in seen if m["parameters"].get("decision")][0]
    equal(decision["cgroup"], "web.service", "cgroup of the decision")


def test_errors(t):
    """design 5: errors carry what and why."""
    d = t.daemon(t.tree())
    cases = (("org.mthpd1.Nonsense", {}, "org.varlink.service.MethodNotFound"),
             ("org.nowhere.Method", {}, "org.varlink.service.InterfaceNotFound"),
             ("org.mthpd1.Explain", {"cgroup": "no/such.service"}, "org.mthpd1.NotFound"),
             ("org.mthpd1.Explain", {"cgroup": 7}, "org.varlink.service.InvalidParameter"),
             ("org.mthpd1.History", {"n": -1}, "org.varlink.service.InvalidParameter"),
             ("org.mthpd1.History", {"n": "x"}, "org.varlink.service.InvalidParameter"),
             ("org.mthpd1.Release", {"cookie": 99}, "org.mthpd1.NotFound"))
    link = t.varlink(d)
    for method, parameters, error in cases:
        try:
            link.call(method, parameters)
        except VarlinkError as found:
            equal(found.error, error, "error of %s %s" % (method, parameters))
            check(found.parameters, "no parameters with %s", error)
        else:
            check(False, "%s %s is answered", method, parameters)
    equal(link.call("org.mthpd1.History", {"n": 0})["decisions"], [], "History of none")
    equal(link.call("org.mthpd1.History", {"n": 10**12})["decisions"], [], "History of very many")


HOSTILE_BYTES = (b"\0", b"{}\0", b"[]\0", b"null\0", b'{"method":1}\0', b'{"method":"org.mthpd1.GetStatus"\0',
                 b"\xff\xfe\0", b'{"method":"\\u0000"}\0', b'{"method":"a"}{"method":"b"}\0', b"GET / HTTP/1.1\r\n\r\n\0",
                 b'{"method":"org.mthpd1.GetStatus","parameters":[]}\0', b"[" * 5000 + b"\0",
                 b'{"method":"' + b"x" * 60000 + b'"}\0')


def test_hostile_bytes(t):
    """Promise 5: no request crashes it, and others are answered."""
    d = t.daemon(t.tree())
    for data in HOSTILE_BYTES:
        link = t.varlink(d, timeout=5)
        try:
            link.send_raw(data)
            link.receive()
        except (OSError, EOFError, ValueError):
            pass
        check(d.status(), "no answer after %r", data[:40])
    link = t.varlink(d)
    try:
        link.send_raw(b"x" * (70 * 1024))
        while link.sock.recv(65536):
            pass
    except (ConnectionResetError, BrokenPipeError):
        pass
    check(d.status(), "no answer after the long request")


def test_many_clients(t):
    """design 5: 64 clients; further ones of the same user get an error or make room, the daemon goes on."""
    d = t.daemon(t.tree())
    links = [t.varlink(d, timeout=5) for _ in range(80)]
    answered = 0
    for link in links:
        try:
            link.call("org.mthpd1.Features")
            answered += 1
        except (VarlinkError, OSError, EOFError):
            pass
    check(answered >= 60, "%d of 80 are answered", answered)
    for link in links:
        link.close()

    def answers():
        try:
            return d.status()
        except (VarlinkError, EOFError, ConnectionError):
            return None  # the closed ones are not all noticed yet
    wait(answers, "it answers afterwards")
    check(d.descriptors() < 60, "%d descriptors are left open", d.descriptors())


def test_slow_client(t):
    """design 5: a client that never reads its answers is dropped, and nobody else waits."""
    tree = t.tree()
    for k in range(200):
        tree.group("g%03d.service" % k, limit=GIB)
    d = t.daemon(tree)
    slow = t.varlink(d)
    slow.sock.setblocking(False)
    request = json.dumps({"method": "org.mthpd1.GetStatus"}).encode() + b"\0"
    for _ in range(2000):
        try:
            slow.sock.send(request)
        except (BlockingIOError, OSError):
            break
    start = time.monotonic()
    for _ in range(5):
        d.features()
    check(time.monotonic() - start < 5, "others wait for %.1f s", time.monotonic() - start)


ORDERS = (("Reload", {}), ("Hold", {"reason": "x"}), ("Release", {"cookie": 1}), ("Restore", {}))

def answers_to_another_user(path, methods):
    """The error of each method, or "ok", as a child with another user's id sees them."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        found = {}
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            link = Varlink(path)
            for method in methods:
                link.send("org.mthpd1." + method)
                found[method] = link.receive().get("error", "ok")
        finally:
            os.write(writer, json.dumps(found).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as f:
        text = f.read()
    os.waitpid(child, 0)
    return json.loads(text)


def open_to_all(t, tree):
    """Lets another user reach the socket and the binaries."""
    os.chmod(tree.dir, 0o755)
    t.public_binaries()


def test_orders_of_another_user(t):
    """design 5: reading is for all, orders are for root alone, by SO_PEERCRED."""
    tree = t.tree()
    open_to_all(t, tree)
    d = t.daemon(tree)
    equal(os.stat(d.socket).st_mode & 0o777, 0o666, "mode of the socket")
    names = [m for m, _ in ORDERS] + ["GetStatus", "Features", "History", "Verify", "Explain"]
    answers = answers_to_another_user(d.socket, names)
    for method, _ in ORDERS:
        equal(answers[method], "org.varlink.service.PermissionDenied", method)
    for method in ("GetStatus", "Features", "History", "Verify", "Explain"):
        equal(answers[method], "ok", method)
    equal(d.status()["hold"], None, "a hold by another user")


def test_mthpctl_exit_codes(t):
    """mthpctl: 0, 1 (no), 2 (usage), 69 (nobody there), 77 (not permitted)."""
    tree = t.tree()
    open_to_all(t, tree)
    d = t.daemon(tree)
    equal(d.ctl("status").returncode, 0, "status")
    equal(d.ctl("explain", "no/such").returncode, 1, "explain of a group that is not there")
    for words in (["nonsense"], [], ["status", "extra"], ["history", "-n", "many"], ["--nonsense", "status"]):
        equal(d.ctl(*words).returncode, 2, "mthpctl %s" % words)
    for verb in ("reload", "hold", "release", "restore"):
        done = d.ctl(verb, user=NOBODY)
        equal(done.returncode, 77, "mthpctl %s of another user" % verb)
        check("root" in done.stderr, done.stderr)
    equal(d.ctl("verify", user=NOBODY).returncode, 0, "verify of another user")
    d.stop()
    done = d.ctl("status")
    equal(done.returncode, 69, "status with nobody there")
    check("not running" in done.stderr, done.stderr)


def test_json_of_mthpctl(t):
    """mthpctl --json status is the object of GetStatus."""
    tree = t.tree()
    tree.group("web.service", limit=GIB, current=MIB)
    d = t.daemon(tree)
    shape(json.loads(d.ctl("--json", "status").stdout), STATUS, "status")
    check("decisions" in json.loads(d.ctl("history", "--json").stdout), "history --json")
    check("per_size" in json.loads(d.ctl("features", "--json").stdout), "features --json")
    equal(json.loads(d.ctl("verify", "--json").stdout), {"ok": True, "differences": []}, "verify --json")


def test_stale_socket(t):
    """A socket that a crash left behind is replaced; the next start answers there."""
    d = t.daemon(t.tree())
    d.kill()
    check(os.path.exists(d.socket), "no socket is left")
    d.start()
    check(d.status(), "no answer")


def test_half_a_request(t):
    """A client that sends half a request and hangs keeps nobody waiting, and closing in the middle harms nothing."""
    d = t.daemon(t.tree())
    half = t.varlink(d)
    half.send_raw(b'{"method":"org.mthpd1.Get')
    check(d.status(), "no answer beside it")
    half.close()
    early = Varlink(d.socket)
    early.send("org.mthpd1.GetStatus")
    early.sock.shutdown(socket.SHUT_RD)
    early.close()
    check(d.status(), "no answer after it")
