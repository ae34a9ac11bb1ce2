# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each verb and option of mthpctl, each option of mthpd, each method of the socket, each member on the bus, used on the
real binaries for its effect. The lists come from --help, from the interface's own description and from introspection:
what is new there and not tried here fails."""

import itertools
import json
import os
import pty
import re
import signal
import socket
import subprocess
import xml.etree.ElementTree

from dbus import Error
from world import LOG, LOG_PATH, MANAGER, MIB, NAME, PATH, TOP, check, equal, run, wait

TRACE = os.path.join(TOP, "tests", "fixtures", "traces", "two-drops.ndjson")


def own_cgroup():
    """Of this process, as the kernel has it; None without version 2."""
    with open("/proc/self/cgroup") as f:
        return next((line[3:].strip().strip("/") for line in f if line.startswith("0::")), None)


DROPPED = ("hugepages-64kB/enabled", "hugepages-2048kB/enabled", "khugepaged/max_ptes_none")


class World:
    """mthpd after a real drop, with a bus."""

    def __init__(self, t):
        self.t, self.tree = t, t.tree(top="always", modes={64: "always"})
        for k in range(3):
            self.tree.group("g%d.service" % k, limit=64 * MIB, current=MIB)
        for path in ("a.slice/unit.service", "a.slice/twin.service", "b.slice/twin.service", "a.slice/g0.service"):
            self.tree.group(path, limit=64 * MIB, current=MIB)
        if own_cgroup() and ".." not in own_cgroup():
            self.tree.group(own_cgroup(), limit=64 * MIB, current=MIB)
        self.g = self.tree.group("web.service", limit=64 * MIB)
        t.thrash(self.g)
        t.start_both(self.tree)
        wait(lambda: [self.tree.knob(k) for k in DROPPED] == ["never", "never", "0"], "the drop")
        self.ctl, self.file = t.ctl, lambda name: os.path.join(t.dir, name)

    def says(self, *args, code=0):
        done = self.ctl(*args)
        equal(done.returncode, code, "exit code of mthpctl %s (%s)" % (" ".join(args), done.stdout))
        return done.stdout

    def json(self, *args, code=0):
        return json.loads(self.says("--json", *args, code=code))

    def write(self, name, text):
        with open(self.file(name), "w") as f:
            f.write(text)
        return self.file(name)

    def state(self):
        return self.t.status()["state"]


# ---- mthpctl

def in_a_terminal(command):
    """Its lines when standard output is a terminal."""
    master, slave = pty.openpty()
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave)
    os.close(slave)
    text = b""
    try:
        while True:
            text += os.read(master, 65536)
    except OSError:  # EIO: the other end is closed
        pass
    os.close(master)
    equal(p.wait(10), 0, "exit code")
    return text.decode().replace("\r", "").splitlines()


def verb_status(w):
    text = w.says("status")
    check("web.service" in text and "drop-" in text and "64K" in text, "status: %s", text)


def verb_top(w):
    text = w.says("top")
    check("web.service" in text and "never*" in text, "top: %s", text)


def verb_explain(w):
    text = w.says("explain", "web.service")
    check(text.startswith("web.service is in state drop: tasks stall") and re.search(r"\d+\.\d%", text), "explain: %s", text)
    check("\n64K: never is wanted instead of always: " in text and "\n2M: never is wanted instead of inherit" in text,
          "sizes: %s", text)
    lines = in_a_terminal([w.t.mthpctl, "--socket=" + w.t.socket, "explain", "web.service"])
    check(max(len(x) for x in lines) <= 80 and len(lines) > len(text.splitlines()), "in a terminal: %s", lines)
    equal(" ".join(lines[:2]).split()[:12], text.split()[:12], "the same words")
    check("mthpd is active" in w.says("explain"), "explain of the machine")
    check(w.says("explain", "unit.service").startswith("a.slice/unit.service is in state"), "explain of a unit")
    check(w.says("explain", "g0.service").startswith("g0.service is in state"), "explain of a path")
    check("several groups have this name: a.slice/twin.service, b.slice/twin.service" in w.says("explain", "twin.service", code=1),
          "explain of two units")


def verb_history(w):
    text = w.says("history")
    check("hugepages-64kB/enabled" in text and "always -> never" in text, "history: %s", text)


def verb_features(w):
    check(re.search(r"psi\w*\s+\S", w.says("features").lower()), "features: %s", w.says("features"))


def verb_verify(w):
    w.says("verify")
    w.says("hold", "for verify")
    modes = itertools.cycle(("madvise", "always"))

    def names_it():
        # An audit may be faster: it takes the value over, and all is well again.
        w.tree.set_knob("hugepages-128kB/enabled", next(modes))
        done = w.ctl("verify")
        return done.returncode == 1 and "hugepages-128kB/enabled" in done.stdout

    wait(names_it, "verify names the file")
    w.tree.set_knob("hugepages-128kB/enabled", "never")
    w.says("release")


def verb_check_config(w):
    check(":2: " in w.says("check-config", w.write("bad.conf", "[Daemon]\nIntervall=1s\n"), code=1), "no place")
    w.says("check-config", w.write("good.conf", "[Daemon]\nInterval=1s\n"))


def verb_reload(w):
    w.t.configure("[Daemon]\nDryRun=yes\n")
    w.says("reload")
    equal(w.state(), "dry-run", "state after the reload")
    w.t.configure("[Daemon]\nDryRnu=yes\n")
    check(re.search(r"mthpd\.conf:\d+: unknown key 'DryRnu'", w.says("reload", code=1)), "the fault and its place")
    equal(w.state(), "dry-run", "state after a faulty one")
    w.t.configure()
    w.says("reload")


def verb_hold(w):
    check(re.search(r"\d", w.says("hold", "a reason")), "no cookie")
    equal((w.state(), w.t.status()["hold"]), ("held", "a reason"), "state, reason")
    w.says("release")


def verb_release(w):
    w.says("hold")
    w.says("release")
    equal(w.state(), "active", "state")
    cookie = w.json("hold")["cookie"]
    w.says("release", str(cookie + 1), code=1)
    check("ended" in w.says("release", str(cookie)), "what release of a cookie says")
    equal(w.state(), "active", "state after its cookie")
    check("No hold" in w.says("release"), "what release says where nothing is held")


def verb_restore(w):
    w.says("restore")
    equal((w.tree.size(64), w.state()), ("always", "held"), "64 kB, state")
    w.says("release")


def verb_record(w):
    w.says("record", "-o", w.file("trace"), "--duration=1s")
    with open(w.file("trace")) as f:
        kinds = [json.loads(line)["kind"] for line in f]
    equal((kinds[0], kinds[-1]), ("header", "end"), "first and last line")
    check("tick" in kinds, "no tick in %s", kinds)


def verb_replay(w):
    w.says("replay", w.file("trace"))
    text = w.ctl("replay", TRACE).stdout
    check(re.search(r"\d+ decisions recorded, \d+ replayed", text) and "= hugepages-64kB/enabled always -> never" in text,
          "replay: %s", text)


def verb_plot(w):
    w.says("plot", TRACE, "-o", w.file("plot.svg"))
    check(xml.etree.ElementTree.parse(w.file("plot.svg")).getroot().tag.endswith("svg"), "no picture")


def verb_metrics(w):
    check('mthpd_state{state="active"} 1' in w.says("metrics"), "metrics: %.300s", w.says("metrics"))


VERBS = {name[5:].replace("_", "-"): f for name, f in globals().items() if name.startswith("verb_")}


def option_socket(w):
    check("not running" in run([w.t.mthpctl, "--socket=" + w.file("no"), "status"]).stdout, "another socket")


def option_n(w):
    equal(len(w.json("history", "-n", "1")["decisions"]), 1, "history -n 1")
    equal(w.says("history", "-n", "0"), "", "history of none")
    check("g2.service" in w.says("status", "-n", "9") and "g2.service" not in w.says("status", "-n", "1"), "status -n 1")


def option_pid(w):
    """The group of a process: this one's."""
    group, option = own_cgroup(), "--pid=%d" % os.getpid()
    if group and ".." in group:  # outside of this cgroup namespace
        w.says("explain", option, code=1)
    elif group:
        check(group in w.says("explain", option), "explain --pid: %s", w.says("explain", option))
    else:
        words = "in no cgroup of version 2" if group is None else "is in /: mthpd watches neither"
        check(words in w.says("explain", option, code=1), "explain --pid: %s", w.says("explain", option, code=1))


def option_max_size(w):
    done = w.ctl("record", "-o", w.file("x"), "--max-size=4K")
    check(done.returncode == 2 and "1M" in done.stdout, "--max-size below its least: %s", done.stdout)
    w.says("record", "-o", w.file("x"), "--max-size=1M", "--duration=500ms")
    check(os.path.getsize(w.file("x")) <= MIB, "size")


def option_anonymize(w):
    w.says("record", "-o", w.file("y"), "--duration=500ms", "--anonymize")
    with open(w.file("y")) as f:
        text = f.read()
    check('"groups"' in text and "web.service" not in text, "the name is left")


def option_config(w):
    calm = w.write("calm.conf", "[Controller]\nPressureHigh=99%\nPressureLow=98%\n")
    summary = json.loads(w.ctl("--json", "replay", TRACE, "--config=" + calm).stdout)["summary"]
    check(summary["recorded"] > 0 and summary["equal"] == 0, "a calm policy decides the same: %s", summary)


CTL_OPTIONS = {
    "--socket": option_socket, "-n": option_n, "--pid": option_pid, "--max-size": option_max_size,
    "--anonymize": option_anonymize, "--config": option_config,
    "--json": lambda w: equal(w.json("verify"), {"ok": True, "differences": []}, "--json"),
    "-o": verb_plot, "--duration": verb_record,
    "--version": lambda w: check(re.fullmatch(r"mthpctl \d+\.\d+\n", w.says("--version")), "--version"),
    "--help": lambda w: check(w.says("--help").startswith("usage: mthpctl"), "--help"),
}


def options_of(program):
    return set(re.findall(r"(?<![\w-])(--[a-z-]+[a-z]|-[a-z])(?![\w-])", run([program, "--help"]).stdout))


def test_every_verb_and_option_of_mthpctl(t):
    """Verbs and options of --help are exactly those that are tried here."""
    w = World(t)
    text = w.says("--help")
    equal(sorted(VERBS), sorted(re.findall(r"^  ([a-z][a-z-]*) ", text, re.M)), "verbs")
    equal(sorted(CTL_OPTIONS), sorted(options_of(t.mthpctl) - {"--"}), "options")
    for tried in list(VERBS.values()) + list(CTL_OPTIONS.values()):
        tried(w)
        equal(w.state(), "active", "state after %s" % getattr(tried, "__name__", tried))


# ---- mthpd

def daemon(t, *args, tree=None, env=None):
    return run([t.mthpd] + (["--root=" + tree.dir] if tree else []) + list(args), env={**os.environ, **(env or {})})


def daemon_config(t):
    done = daemon(t, "--check-config", "--config=/nonexistent.conf")
    check(done.returncode == 78 and "/nonexistent.conf" in done.stdout, "%s", done.stdout)


def daemon_check_config(t):
    with open(t.dir + "/bad.conf", "w") as f:
        f.write("[Limits]\nSizes=17K\n")
    done = daemon(t, "--check-config", "--config=" + t.dir + "/bad.conf")
    check(done.returncode == 78 and "bad.conf:2: " in done.stdout, "%s", done.stdout)


def daemon_dry_run(t):
    tree = t.tree(modes={64: "always"})
    before = tree.all_knobs()
    t.thrash(tree.group("web.service", limit=64 * MIB))
    t.start(tree, args=["--dry-run"], bus=False)
    wait(lambda: t.status()["counters"]["decisions"], "a decision")
    equal((t.status()["state"], tree.all_knobs()), ("dry-run", before), "state, files")
    t.rest()


def daemon_no_bus(t):
    if not t.bus_daemon:
        t.start_bus()
    t.start(args=["--no-bus"])
    t.ctl("status")
    check("bus" not in t.log().split("--no-bus")[-1].lower(), "it speaks of the bus: %s", t.log())
    t.rest()


def killed(t):
    """A tree that a killed mthpd left behind."""
    tree = t.tree(modes={64: "always"})
    t.thrash(tree.group("web.service", limit=64 * MIB))
    t.start(tree, bus=False)
    wait(lambda: tree.size(64) == "never", "the drop")
    t.daemon.send_signal(signal.SIGKILL)
    t.daemon.wait()
    t.rest()
    return tree


def daemon_restore(t):
    """With and without =exit; also where the runtime directory is another one."""
    for option in ("--restore", "--restore=exit"):
        tree = killed(t)
        done = daemon(t, option, "--runtime-dir=" + t.dir + "/other", tree=tree)
        equal((done.returncode, "nothing to put back" in done.stdout), (0, option == "--restore"), "nothing to restore there")
        equal(tree.size(64), "never", "64 kB")
        equal(daemon(t, option, "--runtime-dir=" + t.runtime, tree=tree).returncode, 0, option)
        equal(tree.size(64), "always", "64 kB after " + option)


def daemon_replay(t):
    lines = daemon(t, "--replay=" + TRACE).stdout.splitlines()
    check(len(lines) > 5 and json.loads(lines[0])["reason"] == "drop-pressure", "--replay: %s", lines[:1])


def daemon_root(t):
    done = daemon(t, "--root=" + t.dir + "/nothing", "--runtime-dir=" + t.dir + "/r")
    check(done.returncode == 69 and t.dir + "/nothing" in done.stdout, "%s", done.stdout)


DAEMON_OPTIONS = {
    "--config": daemon_config, "--check-config": daemon_check_config, "--dry-run": daemon_dry_run, "--no-bus": daemon_no_bus,
    "--restore": daemon_restore, "--replay": daemon_replay, "--root": daemon_root, "--runtime-dir": daemon_restore,
    "--version": lambda t: check(re.fullmatch(r"mthpd \d+\.\d+\n", daemon(t, "--version").stdout), "--version"),
    "--help": lambda t: check(daemon(t, "--help").stdout.startswith("usage: mthpd"), "--help"),
}


def test_every_option_of_mthpd(t):
    """Options of --help are exactly those that are tried here."""
    equal(sorted(DAEMON_OPTIONS), sorted(options_of(t.mthpd)), "options")
    for tried in dict.fromkeys(DAEMON_OPTIONS.values()):
        tried(t)


# ---- the socket

def stream(t, *methods):
    """The first reply to each, on one connection."""
    found = []
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(t.socket)
        data = b""
        for method, parameters, more in methods:
            s.sendall(json.dumps({"method": method, "parameters": parameters, "more": more}).encode() + b"\0")
            while b"\0" not in data:
                piece = s.recv(65536)
                check(piece, "%s: the connection ended", method)
                data += piece
            text, data = data.split(b"\0", 1)
            found.append(json.loads(text))
    return found


def method_explain(w):
    r = w.t.varlink("Explain", {"cgroup": "web.service"})
    check("web.service" in r["text"] and r["facts"]["path"] == "web.service", "Explain: %s", r)


def method_history(w):
    equal(len(w.t.varlink("History", {"n": 2})["decisions"]), 2, "decisions")


def method_monitor(w):
    reply, = stream(w.t, ("org.mthpd1.Monitor", {"samples": True}, True))
    equal((reply["continues"], reply["parameters"]["sample"]["kind"]), (True, "header"), "first reply")


def method_reload(w):
    w.t.configure("[Daemon]\nDryRun=yes\n")
    w.t.varlink("Reload")
    equal(w.state(), "dry-run", "state")
    w.t.configure()
    w.t.varlink("Reload")


def method_hold(w):
    check(w.t.varlink("Hold", {"reason": "x"})["cookie"] > 0, "no cookie")
    equal(w.t.status()["hold"], "x", "hold")


def method_release(w):
    w.t.varlink("Release")
    equal(w.state(), "active", "state")


def method_restore(w):
    w.t.varlink("Restore")
    equal((w.tree.size(64), w.state()), ("always", "held"), "64 kB, state")
    w.t.varlink("Release")


METHODS = {
    "GetStatus": lambda w: equal(w.t.varlink("GetStatus")["status"]["version"], w.says("--version").split()[1], "version"),
    "Explain": method_explain, "History": method_history,
    "Features": lambda w: equal(w.t.varlink("Features")["features"]["pmd_kb"], 2048, "pmd_kb"),
    "Verify": lambda w: equal(w.t.varlink("Verify"), {"ok": True, "differences": []}, "Verify"),
    "Metrics": lambda w: check('mthpd_state{state="active"} 1' in w.t.varlink("Metrics")["text"], "Metrics"),
    "Monitor": method_monitor, "Reload": method_reload, "Hold": method_hold, "Release": method_release,
    "Restore": method_restore,
}


def test_every_method_of_the_socket(t):
    """Methods of the description are exactly those that are tried here; org.varlink.service answers too."""
    w = World(t)
    service = "org.varlink.service."
    info, own, other = stream(t, (service + "GetInfo", {}, False),
                              (service + "GetInterfaceDescription", {"interface": "org.mthpd1"}, False),
                              (service + "GetInterfaceDescription", {"interface": "org.varlink.service"}, False))
    equal(info["parameters"]["interfaces"], ["org.varlink.service", "org.mthpd1"], "interfaces")
    methods = re.findall(r"^method (\w+)", own["parameters"]["description"], re.M)
    equal(sorted(METHODS), sorted(methods), "methods")
    equal(re.findall(r"^method (\w+)", other["parameters"]["description"], re.M), ["GetInfo", "GetInterfaceDescription"],
          "methods of every service")
    for name in methods:
        METHODS[name](w)


# ---- the bus

def bus_hold(w, m):
    equal(w.state(), "active", "state before")
    cookie = m("Hold", "s", "bus")[0]
    equal(m.get("State"), "held", "State")
    return cookie


def bus_release(w, m):
    m("Release", "u", bus_hold(w, m))
    equal(m.get("State"), "active", "State")


def bus_reload(w, m):
    w.t.configure("[Daemon]\nDryRnu=yes\n")
    try:
        m("Reload")
        check(False, "a faulty configuration is taken")
    except Error as error:
        equal(error.name, "org.mthpd1.BadConfiguration", "error")
        check(re.search(r"mthpd\.conf:\d+: unknown key 'DryRnu'", str(error)), "error: %s", error)
    w.t.configure()
    m("Reload")


def bus_restore(w, m):
    m("Restore")
    equal((w.tree.size(64), m.get("State")), ("always", "held"), "64 kB, State")
    w.t.varlink("Release")


def bus_dump(w, m):
    m("DumpByFileDescriptor")
    with os.fdopen(os.dup(m.bus.fds[-1])) as f:
        check(json.load(f)["decisions"], "no decisions in the dump")


def counter(name, member):
    """At least what the status said before, and not nothing where something has happened."""
    def look(w, m):
        before = w.t.status()["counters"][member]
        check(m.get(name) >= before and (before > 0 or name in ("WriteErrors", "ForeignChanges")), "%s", name)
    return look


BUS = {
    "method GetStatus": lambda w, m: equal(json.loads(m("GetStatus")[0])["state"], "active", "state"),
    "method DumpByFileDescriptor": bus_dump,
    "method Explain": lambda w, m: check("web.service" in m("Explain", "s", "web.service")[0], "Explain"),
    "method History": lambda w, m: equal(len(json.loads(m("History", "u", 2)[0])["decisions"]), 2, "History"),
    "method Verify": lambda w, m: equal(m("Verify"), [True, []], "Verify"),
    "method Hold": lambda w, m: m("Release", "u", bus_hold(w, m)), "method Release": bus_release,
    "method Reload": bus_reload, "method Restore": bus_restore,
    "property Version": lambda w, m: equal(m.get("Version"), w.t.status()["version"], "Version"),
    "property State": lambda w, m: equal(m.get("State"), "active", "State"),
    "property DegradedReasons": lambda w, m: equal(m.get("DegradedReasons"), w.t.status()["degraded"], "DegradedReasons"),
    "property Sizes": lambda w, m: check((64, "always") in [s[:2] for s in m.get("Sizes")], "Sizes"),
    "property Decisions": counter("Decisions", "decisions"), "property Writes": counter("Writes", "writes"),
    "property WriteErrors": counter("WriteErrors", "write_errors"),
    "property ForeignChanges": counter("ForeignChanges", "foreign_changes"),
    "property CgroupsSeen": counter("CgroupsSeen", "cgroups_seen"), "property Wakeups": counter("Wakeups", "wakeups"),
    "property CPUUSec": counter("CPUUSec", "cpu_usec"),
}
# Listened for while the world drops, and somebody else writes.
SIGNALS = {"signal Decision", "signal DriftDetected"}


def test_every_member_on_the_bus(t):
    """Members of the introspection are exactly those that are tried here; both signals come."""
    t.start_bus()
    watcher = t.bus()
    watcher.listen("type='signal',path='%s'" % PATH)
    t.start_bus = lambda: None
    w = World(t)
    m = t.manager()
    text = t.bus().call(NAME, PATH, "org.freedesktop.DBus.Introspectable", "Introspect")[0]
    node = xml.etree.ElementTree.fromstring(text).find("interface[@name='%s']" % MANAGER)
    equal(sorted(set(BUS) | SIGNALS), sorted("%s %s" % (x.tag, x.get("name")) for x in node if x.tag != "annotation"), "members")
    equal(watcher.signal("Decision").body[0], "web.service", "cgroup of the first decision")
    for tried in BUS.values():
        tried(w, m)
    w.t.varlink("Hold")
    w.tree.set_knob("hugepages-128kB/enabled", "always")
    equal(watcher.signal("DriftDetected").body[0], "hugepages-128kB/enabled", "file of the drift")
    check(m.get("ForeignChanges") >= 1, "ForeignChanges")
    check(t.bus().call(NAME, LOG_PATH, "org.freedesktop.DBus.Properties", "Get", "ss", LOG, "LogLevel"), "LogControl1")
