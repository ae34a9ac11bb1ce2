# SPDX-License-Identifier: LGPL-2.1-or-later
"""D-Bus: every member of org.mthpd1.Manager and of LogControl1, rights, holds,
and the life of the connection."""

import json
import os
import time
import xml.etree.ElementTree

from dbus import Error, Stub
from world import (LOG, LOG_PATH, MANAGER, MIB, NAME, NOBODY, PATH, PROPERTIES, check, equal, wait)

MEMBERS = {
    "method": {"GetStatus": ("", "s"), "DumpByFileDescriptor": ("", "h"), "Explain": ("s", "s"), "History": ("u", "s"),
               "Verify": ("", "ba(sss)"), "Reload": ("", ""), "Hold": ("s", "u"), "Release": ("u", ""),
               "Restore": ("", "")},
    "property": {"Version": "s", "State": "s", "DegradedReasons": "as", "Sizes": "a(tsssss)", "Decisions": "t",
                 "Writes": "t", "WriteErrors": "t", "ForeignChanges": "t", "CgroupsSeen": "t", "Wakeups": "t",
                 "CPUUSec": "t"},
    "signal": {"Decision": "sssss", "DriftDetected": "sss"},
}
ANNOUNCED = {"State", "DegradedReasons", "Sizes"}


def introspect(t, path=PATH, interface=MANAGER):
    text = t.bus().call(NAME, path, "org.freedesktop.DBus.Introspectable", "Introspect")[0]
    root = xml.etree.ElementTree.fromstring(text)
    return [i for i in root.findall("interface") if i.get("name") == interface][0]


def signature(node, direction):
    return "".join(a.get("type") for a in node.findall("arg") if a.get("direction", "out") == direction)


def refused(call, *args):
    try:
        call(*args)
    except Error as error:
        return error.name
    return None


def thrash(tree, g, until, what, seconds=12):
    """A group that is over its limit, until a condition holds."""
    g.step(current=g.limit - 4096)
    end = time.monotonic() + seconds
    while not until():
        check(time.monotonic() < end, "no %s in %d s", what, seconds)
        g.hot(0.1)
        time.sleep(0.1)


def hurt_tree(t):
    tree = t.tree(top="always", modes={64: "always"})
    return tree, tree.group("web.service", limit=64 * MIB, current=8 * MIB)


def test_introspection(t):
    """Every member is there with its signature, and no other; only counters are silent."""
    t.start_both()
    found = introspect(t)
    methods = {m.get("name"): (signature(m, "in"), signature(m, "out")) for m in found.findall("method")}
    equal(methods, MEMBERS["method"], "methods")
    equal({p.get("name"): p.get("type") for p in found.findall("property")}, MEMBERS["property"], "properties")
    equal({s.get("name"): signature(s, "out") for s in found.findall("signal")}, MEMBERS["signal"], "signals")
    for p in found.findall("property"):
        kinds = [a.get("value") for a in p.findall("annotation") if a.get("name").endswith("EmitsChangedSignal")]
        name = p.get("name")
        expected = [] if name in ANNOUNCED else ["const"] if name == "Version" else ["false"]
        equal(kinds, expected, "annotation of " + name)


def test_properties(t):
    """Get and GetAll agree with the status."""
    tree = t.tree(top="always", modes={64: "always"})
    t.start_both(tree)
    m = t.manager()
    status, all_of_them = t.status(), m.all()
    equal(sorted(all_of_them), sorted(MEMBERS["property"]), "GetAll")
    equal(m.get("Version"), status["version"], "Version")
    equal(m.get("State"), status["state"], "State")
    equal(m.get("DegradedReasons"), status["degraded"], "DegradedReasons")
    expected = [(s["size_kb"],) + tuple(s[k] or "" for k in ("baseline", "actual", "effective", "wanted", "reason"))
                for s in status["sizes"]]
    equal(m.get("Sizes"), expected, "Sizes")
    equal(m.get("Decisions"), status["counters"]["decisions"], "Decisions")
    check(m.get("CPUUSec") > 0, "no CPU time")
    check(m.get("Wakeups") >= status["counters"]["wakeups"], "Wakeups")
    equal(m.get("CgroupsSeen"), status["counters"]["cgroups_seen"], "CgroupsSeen")
    for name in ("Writes", "WriteErrors", "ForeignChanges"):
        check(isinstance(m.get(name), int), "%s", name)
    equal(refused(m.set, "State", "s", "off"), "org.freedesktop.DBus.Error.PropertyReadOnly", "Set of State")


def test_questions(t):
    """GetStatus, Explain, History, Verify, DumpByFileDescriptor."""
    tree = t.tree()
    tree.group("system.slice/web.service", limit=64 * MIB, current=MIB)
    t.start_both(tree)
    b = t.bus()
    m = t.manager(b)
    status = json.loads(m("GetStatus")[0])
    equal(sorted(status), sorted(t.status()), "members of the status")
    check("web.service" in m("Explain", "s", "system.slice/web.service")[0], "Explain of a group")
    check("mthpd is active" in m("Explain", "s", "")[0], "Explain of the whole")
    equal(refused(m, "Explain", "s", "no/such"), "org.mthpd1.NotFound", "Explain of nothing")
    equal(json.loads(m("History", "u", 0xffffffff)[0]), {"decisions": []}, "History")
    equal(m("Verify"), [True, []], "Verify")
    m("DumpByFileDescriptor")
    fd = b.fds[-1]
    with os.fdopen(os.dup(fd)) as f:
        dump = json.load(f)
    equal(sorted(dump), ["decisions", "differences", "explain", "status"], "members of the dump")
    try:
        os.write(fd, b"x")
    except OSError:
        pass
    else:
        check(False, "the dump can be written")


def test_verify_names_the_difference(t):
    """Verify says which file, what was wanted and what is there."""
    tree = t.tree(modes={64: "always"})
    t.start_both(tree, "[Limits]\nForeignChanges=adopt\n")
    t.manager()("Hold", "s", "x")
    tree.set_knob("hugepages-64kB/enabled", "never")
    ok, differences = t.manager()("Verify")
    equal((ok, differences), (False, [("hugepages-64kB/enabled", "always", "never")]), "Verify")


def test_decision_and_sizes(t):
    """A decision is a signal and in History; Sizes is announced, once per change."""
    tree, g = hurt_tree(t)
    t.start_both(tree)
    b = t.bus()
    b.listen("type='signal',path='%s'" % PATH)
    thrash(tree, g, lambda: t.status()["counters"]["decisions"] > 0, "decision")
    d = b.signal("Decision")
    cgroup, knob, old, new, reason = d.body
    check(knob.endswith(("enabled", "defrag", "max_ptes_none")), "knob %s", knob)
    equal(cgroup, "web.service", "cgroup")
    check(reason.replace("-", "").isalpha(), "reason %s", reason)
    changed = b.signal("PropertiesChanged", want=lambda m: "Sizes" in m.body[1])
    equal(changed.body[0], MANAGER, "interface")
    check(not set(changed.body[1]) - ANNOUNCED, "announced: %s", sorted(changed.body[1]))
    size = [s for s in changed.body[1]["Sizes"] if s[0] == 64][0]
    equal((size[1], size[2]), ("always", tree.size(64)), "64K as announced")
    recorded = json.loads(t.manager()("History", "u", 100)[0])["decisions"]
    check([knob, old, new, reason] in [[r["knob"], r["old"], r["new"], r["reason"]] for r in recorded], "History")
    check(t.manager().get("Writes") > 0, "Writes")


def test_drift(t):
    """Somebody else's change is a signal, and the baseline in Sizes follows."""
    tree = t.tree(modes={64: "always"})
    t.start_both(tree)
    b = t.bus()
    b.listen("type='signal',path='%s'" % PATH)
    tree.set_knob("hugepages-64kB/enabled", "madvise")
    equal(b.signal("DriftDetected").body, ["hugepages-64kB/enabled", "always", "madvise"], "DriftDetected")
    changed = b.signal("PropertiesChanged").body[1]
    equal(list(changed), ["Sizes"], "properties that are announced")
    sizes = changed["Sizes"]
    equal([s[1:3] for s in sizes if s[0] == 64], [("madvise", "madvise")], "baseline and actual value")
    equal(t.manager().get("ForeignChanges"), 1, "ForeignChanges")


def test_quiet_bus(t):
    """While nothing changes nothing is sent."""
    t.start_both()
    b = t.bus()
    b.listen("type='signal',path='%s'" % PATH)
    time.sleep(2.5)
    b.sock.settimeout(0.2)
    try:
        m = b.signal("PropertiesChanged", 0.3)
    except TimeoutError:
        m = None
    equal(m, None, "a signal in steady state")


def test_hold_ends_with_its_owner(t):
    """A bus hold freezes the switches, is announced, and ends when its client leaves; another's stays."""
    tree, g = hurt_tree(t)
    t.start_both(tree)
    watcher = t.bus()
    watcher.listen("type='signal',path='%s'" % PATH)
    first, second = t.bus(), t.bus()
    one = t.manager(first)("Hold", "s", "upgrade")[0]
    two = t.manager(second)("Hold", "s", "")[0]
    check(one > 0 and two > 0 and one != two, "cookies %s and %s", one, two)
    equal(watcher.signal("PropertiesChanged").body[1], {"State": "held"}, "what is announced")
    before = tree.all_knobs()
    g.step(current=g.limit - 4096)
    for _ in range(12):
        g.hot(0.1)
        time.sleep(0.1)
    equal(tree.all_knobs(), before, "files while held")
    first.close()
    time.sleep(0.3)
    equal(t.status()["state"], "held", "with the second client")
    check("no reason given" in t.status()["hold"], "reason: %s", t.status()["hold"])
    second.close()
    watcher.signal("PropertiesChanged", want=lambda m: m.body[1].get("State") == "active")
    thrash(tree, g, lambda: t.status()["counters"]["decisions"] > 0, "decision after the hold")


def test_release(t):
    """What was just ordered is seen by the next question, Release ends one hold; an unknown cookie is an error of its own; other clients of root may do it."""
    t.start_both()
    m = t.manager()
    for _ in range(20):
        equal(m.get("State"), "active", "State before")
        cookie = m("Hold", "s", "x")[0]
        equal(m.get("State"), "held", "State after Hold")
        m("Release", "u", cookie)
    cookie = m("Hold", "s", "x")[0]
    equal(refused(m, "Release", "u", cookie + 1), "org.mthpd1.NotFound", "another cookie")
    t.manager()("Release", "u", cookie)
    equal(t.status()["state"], "active", "state")
    equal(refused(m, "Release", "u", cookie), "org.mthpd1.NotFound", "the same again")


def test_hold_does_not_outlive_the_daemon(t):
    """A bus hold ends with the daemon; one of the socket lasts, beside it."""
    t.start_both()
    m = t.manager()
    m("Hold", "s", "x")
    t.daemon.terminate()
    equal(t.daemon.wait(10), 0, "exit code")
    t.start(t.fake)
    equal(t.status()["state"], "active", "after a restart")
    wait(lambda: t.bus().owner(NAME), "the name is back")
    t.manager(m.bus)("Hold", "s", "x")
    t.varlink("Hold", {"reason": "lasting"})
    equal(t.status()["hold"], "lasting", "both: the lasting one is told")
    m.bus.close()
    time.sleep(0.3)
    equal(t.status()["state"], "held", "the lasting hold")
    t.varlink("Release")
    equal(t.status()["state"], "active", "after its release")


def test_release_of_the_socket_leaves_bus_holds(t):
    """mthpctl release does not end a hold of the bus, and nothing moves meanwhile."""
    t.start_both()
    m = t.manager()
    m("Hold", "s", "mine")
    t.varlink("Hold", {"reason": "x"})
    equal(t.ctl("release").returncode, 0, "mthpctl release")
    check("mine" in t.status()["hold"], "hold: %s", t.status()["hold"])


def test_reload_and_restore(t):
    """Reload takes a good configuration and keeps the old one on a bad one; Restore puts back and holds."""
    tree, g = hurt_tree(t)
    t.start_both(tree)
    m = t.manager()
    start = tree.all_knobs()
    thrash(tree, g, lambda: tree.size(64) != "always", "drop")
    t.configure("[Daemon]\nDryRun=yes\n")
    m("Reload")
    equal(m.get("State"), "dry-run", "State")
    t.configure("[Daemon]\nDryRnu=yes\n")
    equal(refused(m, "Reload"), "org.mthpd1.BadConfiguration", "a bad configuration")
    equal(m.get("State"), "dry-run", "State after it")
    m("Restore")
    equal(m.get("State"), "held", "State after Restore")
    equal(tree.knob("hugepages-64kB/enabled"), "always", "64K")
    equal({k: tree.knob(k) for k in start if k.endswith("enabled")}["hugepages-64kB/enabled"], "always", "start value")


def test_rights(t):
    """Reading is for all, orders are for root: by the user whom the bus names."""
    t.start_both()
    call = ("call", NAME, PATH, MANAGER)
    for member in (("GetStatus",), ("Explain", "s", ""), ("History", "u", "3"), ("Verify",), ("DumpByFileDescriptor",)):
        done = t.busctl(*call, *member, user=NOBODY)
        equal(done.returncode, 0, "%s of another user: %s" % (member[0], done.stdout))
    equal(t.busctl("get-property", NAME, PATH, MANAGER, "State", user=NOBODY).stdout, 's "active"\n', "State")
    for member in (("Reload",), ("Hold", "s", "x"), ("Release", "u", "1"), ("Restore",)):
        done = t.busctl(*call, *member, user=NOBODY)
        check(done.returncode != 0 and "denied" in done.stdout.lower(), "%s: %s", member[0], done.stdout)
    done = t.busctl("set-property", NAME, LOG_PATH, LOG, "LogLevel", "s", "err", user=NOBODY)
    check(done.returncode != 0 and "denied" in done.stdout.lower(), "LogLevel: %s", done.stdout)
    equal(t.status()["state"], "active", "state afterwards")
    equal(t.manager().get("State"), "active", "and it goes on")


def test_log_level(t):
    """LogControl1: read, set, words of syslog, bad words; a reload takes the level of the file again."""
    t.start_both()
    log = Stub(t.bus(), NAME, LOG_PATH, LOG)
    equal(log.all(), {"LogLevel": "debug", "LogTarget": "console", "SyslogIdentifier": "mthpd"}, "properties")
    for word, level in (("err", "err"), ("notice", "info"), ("emerg", "err"), ("debug", "debug"), ("warning", "warning")):
        log.set("LogLevel", "s", word)
        equal(log.get("LogLevel"), level, "LogLevel after " + word)
    equal(refused(log.set, "LogLevel", "s", "loud"), "org.freedesktop.DBus.Error.InvalidArgs", "a bad word")
    equal(refused(log.set, "LogLevel", "u", 7), "org.freedesktop.DBus.Error.InvalidArgs", "a number")
    log.set("LogTarget", "s", "console")
    equal(refused(log.set, "LogTarget", "s", "syslog"), "org.freedesktop.DBus.Error.NotSupported", "another target")
    equal(refused(log.set, "SyslogIdentifier", "s", "x"), "org.freedesktop.DBus.Error.PropertyReadOnly", "a constant")
    t.manager()("Reload")
    equal(log.get("LogLevel"), "debug", "LogLevel after a reload")
    interface = introspect(t, LOG_PATH, LOG)
    equal({p.get("name"): p.get("access") for p in interface.findall("property")},
          {"LogLevel": "readwrite", "LogTarget": "readwrite", "SyslogIdentifier": "read"}, "introspection")


def test_bus_comes_late_and_goes(t):
    """No bus at start: one line, and it connects when one comes; holds end when it goes; it comes back."""
    t.start()
    time.sleep(0.3)
    equal(t.status()["state"], "active", "state without a bus")
    equal(len([x for x in t.log().splitlines() if "no message bus" in x]), 1, "lines about that")
    t.start_bus()
    wait(lambda: t.bus().owner(NAME), "the name is on the bus")
    m = t.manager()
    m("Hold", "s", "x")
    t.stop_bus()
    wait(lambda: t.status()["state"] == "active", "the hold ends with the bus")
    t.start_bus()
    wait(lambda: t.bus().owner(NAME), "the name is on the bus again")
    equal(t.manager().get("State"), "active", "State")
    check(t.descriptors() < 40, "%d descriptors", t.descriptors())


def test_no_bus_option(t):
    """--no-bus: it stays away; --root without an address too."""
    t.start_bus()
    t.start(args=["--no-bus"])
    time.sleep(0.5)
    check(not t.bus().owner(NAME), "the name is on the bus")
    t.daemon.terminate()
    t.daemon.wait(10)
    t.start(t.fake, bus=False)
    time.sleep(0.3)
    check("bus" not in t.log(), "log: %s", t.log())


def test_second_instance(t):
    """Another daemon waits for the name, says so, and gets it when the first has gone."""
    t.start_both()
    first = t.daemon
    t.runtime, t.socket, t.log_file = t.dir + "/run2", t.dir + "/run2/org.mthpd1", t.dir + "/log2"
    t.start()
    wait(lambda: "is taken on the message bus" in t.log(), "the second one says so")
    first.terminate()
    first.wait(10)
    wait(lambda: t.bus().owner(NAME), "the name has passed on")
    t.manager().get("State")


def test_name_refused(t):
    """A bus without the policy: one warning that names it, and the daemon works on."""
    t.start_bus(policy=False)
    t.start()
    wait(lambda: "policy installed" in t.log(), "the warning")
    t.unharmed()


def test_busctl_tree(t):
    """busctl introspect and tree show the object; get-property prints each property."""
    t.start_both()
    shown = t.busctl("introspect", NAME, PATH).stdout
    for kind in MEMBERS.values():
        for name in kind:
            check("." + name + " " in shown, "busctl introspect does not show %s", name)
    check(PATH in t.busctl("tree", NAME).stdout, "busctl tree")
    for name in MEMBERS["property"]:
        done = t.busctl("get-property", NAME, PATH, MANAGER, name)
        equal(done.returncode, 0, "%s: %s" % (name, done.stdout))
    check(PROPERTIES in shown, "no Properties")
