# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bad clients of the bus, and bad buses: a clear error, the daemon untouched, nobody waits."""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from dbus import Error, marshal
from world import LOG_PATH, MANAGER, NAME, NOBODY, PATH, PROPERTIES, check, equal, wait

ERRORS = "org.freedesktop.DBus.Error."


def error_of(bus, *call):
    try:
        bus.call(NAME, *call)
    except Error as error:
        return error.name
    return "no error"


def test_wrong_calls(t):
    """Unknown members, wrong signatures, other objects: an error of D-Bus each."""
    t.start_both()
    b = t.bus()
    for call, name in (
            ((PATH, MANAGER, "Nonsense"), "UnknownMethod"),
            ((PATH, "org.nowhere", "GetStatus"), "AccessDenied"),  # the shipped policy
            ((PATH, "org.freedesktop.DBus.Peer", "Nonsense"), "UnknownMethod"),
            (("/org/nowhere", MANAGER, "GetStatus"), "UnknownObject"),
            ((PATH, MANAGER, "Hold"), "InvalidArgs"),
            ((PATH, MANAGER, "Hold", "u", 7), "InvalidArgs"),
            ((PATH, MANAGER, "Hold", "ss", "a", "b"), "InvalidArgs"),
            ((PATH, MANAGER, "Release", "s", "1"), "InvalidArgs"),
            ((PATH, MANAGER, "History", "i", -1), "InvalidArgs"),
            ((PATH, MANAGER, "GetStatus", "s", "x"), "InvalidArgs"),
            ((PATH, MANAGER, "Hold", "s", "x" * 257), "InvalidArgs"),
            ((PATH, PROPERTIES, "Get", "ss", MANAGER, "Nonsense"), "UnknownProperty"),
            ((PATH, PROPERTIES, "Set", "ssv", MANAGER, "State", ("s", "off")), "PropertyReadOnly"),
            ((LOG_PATH, PROPERTIES, "Set", "ssv", "org.nowhere", "LogLevel", ("s", "err")), "UnknownProperty"),
            ((LOG_PATH, PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1", "LogLevel", ("as", ["err"])),
             "InvalidArgs")):
        equal(error_of(b, *call), ERRORS + name, "%s" % (call,))
    equal(b.call(NAME, PATH, MANAGER, "Hold", "s", "x" * 256)[0] > 0, True, "a reason of 256 bytes")
    t.unharmed()


def test_large_and_strange_strings(t):
    """A megabyte, terminal codes, a path with dots: no group, no crash, no growth."""
    t.start_both()
    b = t.bus()
    before = t.rss_kb()
    for text in ("x" * (1 << 20), "\x1b[2J\n", "../../etc", "/", "a//b", "\N{SNOWMAN}", "%s%n%s"):
        equal(error_of(b, PATH, MANAGER, "Explain", "s", text), "org.mthpd1.NotFound", "Explain of %.20r" % text)
    b.call(NAME, PATH, MANAGER, "Hold", "s", "\x1b[31m%n\n")
    check("\x1b" not in t.log(), "the log holds a terminal code")
    t.unharmed()
    t.grown(before, 8192)


def test_invalid_utf8_on_the_bus(t):
    """The bus itself throws out whoever sends it; the daemon never sees it."""
    t.start_both()
    b = t.bus()
    try:
        b.call(NAME, PATH, MANAGER, "Explain", "s", b"\xff\xfe")
        check(False, "invalid UTF-8 is answered")
    except (Error, OSError, EOFError):
        pass
    t.unharmed()


def test_group_name_is_not_utf8(t):
    """A cgroup's name of any bytes reaches every surface as valid text."""
    tree = t.tree()
    os.makedirs(os.fsencode(tree.path("sys/fs/cgroup")) + b"/bad\xff\x1b[2J.service")
    tree.group("ok.service", limit=1 << 30)
    base = os.fsencode(tree.path("sys/fs/cgroup"))
    for name in os.listdir(base + b"/ok.service"):
        with open(base + b"/ok.service/" + name, "rb") as f, open(base + b"/bad\xff\x1b[2J.service/" + name, "wb") as g:
            g.write(f.read())
    t.start_both(tree)
    m = t.manager()
    check("bad\\\\xff" in m("GetStatus")[0], "the name is not escaped in the status")
    m("DumpByFileDescriptor")
    text = t.varlink("Metrics")["text"]
    check('bad\\\\xff\\\\x1b[2J.service"' in text and "\x1b" not in text, "the name is not escaped in the metrics")
    asked = m("Explain", "s", "bad\\xff\x1b[2J.service")[0]
    check("bad\\xff" in asked.splitlines()[0], "it cannot be asked for as it is shown: %r", asked)
    equal(error_of(t.bus(), PATH, MANAGER, "Explain", "s", "bad\\xfe"), "org.mthpd1.NotFound", "Explain of another")
    shown = t.ctl("top").stdout
    check("xff" in shown and "\x1b" not in shown, "mthpctl top: %r", shown)
    t.unharmed()


def test_flood_of_calls(t):
    """A thousand calls at once, and a client that reads nothing: others are answered, memory is bounded."""
    t.start_both()
    flood = t.bus()
    flood.sock.settimeout(0.5)
    before = t.rss_kb()
    try:
        for _ in range(1000):
            flood.send(NAME, PATH, MANAGER, "GetStatus")
    except OSError:
        pass
    t.unharmed()
    start = time.monotonic()
    equal(t.manager().get("State"), "active", "State for another client")
    check(time.monotonic() - start < 10, "another client waits for %.1f s", time.monotonic() - start)
    t.grown(before, 32768)


def test_orders_and_holds_are_bounded(t):
    """64 holds; orders beyond 16 at once may be refused; all end with their client."""
    t.start_both()
    b = t.bus()
    stands = 0
    for _ in range(70):
        try:
            b.call(NAME, PATH, MANAGER, "Hold", "s", "x")
            stands += 1
        except Error as error:
            equal(error.name, ERRORS + "LimitsExceeded", "error of one too many")
    equal(stands, 64, "holds")
    serials = [b.send(NAME, PATH, MANAGER, "Release", "u", 999) for _ in range(200)]
    names = set()
    for serial in serials:
        try:
            b.answer(serial)
        except Error as error:
            names.add(error.name)
    check(names <= {"org.mthpd1.NotFound", ERRORS + "LimitsExceeded"}, "errors: %s", names)
    b.close()
    wait(lambda: t.status()["state"] == "active", "all holds end")


def test_client_leaves_at_once(t):
    """Orders whose sender has gone before it was looked up: no hold stays behind."""
    t.start_both()
    for _ in range(30):
        b = t.bus()
        b.send(NAME, PATH, MANAGER, "Hold", "s", "x")
        b.close()
    time.sleep(0.5)
    equal(t.status()["state"], "active", "state")
    t.unharmed()


def test_orders_without_an_interface(t):
    """D-Bus lets a call leave the interface out; the right is asked for all the same."""
    t.start_both()
    script = ("import sys; sys.path.insert(0, %r)\n"
              "import dbus, os\n"
              "os.setgroups([]); os.setgid(%d); os.setuid(%d)\n"
              "b = dbus.Bus(%r, 10)\n"
              "for m in (('Hold', 's', 'x'), ('Restore',), ('Reload',), ('Release', 'u', 1)):\n"
              "    try:\n"
              "        b.call('org.mthpd1', '/org/mthpd1', None, *m); print(m[0], 'done')\n"
              "    except dbus.Error as e: print(m[0], e.name)\n") % (
                  os.path.dirname(os.path.abspath(__file__)), NOBODY, NOBODY, t.bus_socket)
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=20)
    equal(len(done.stdout.split("\n")), 5, "lines")
    check("done" not in done.stdout, "%s", done.stdout)
    t.unharmed()


def test_stuck_bus(t):
    """The bus is stopped in the middle: the socket answers at once, the loop goes on, and the bus is used again."""
    t.start_both()
    b = t.bus()
    os.kill(t.bus_daemon.pid, signal.SIGSTOP)
    try:
        b.send(NAME, PATH, MANAGER, "Hold", "s", "x")
        wakeups = t.status()["counters"]["wakeups"]
        for _ in range(5):
            t.unharmed()
        wait(lambda: t.status()["counters"]["wakeups"] > wakeups, "it wakes up")
    finally:
        os.kill(t.bus_daemon.pid, signal.SIGCONT)
    equal(t.manager().get("Version"), t.status()["version"], "Version afterwards")


class FakeBus(threading.Thread):
    """Accepts, says what it is told to say, and hangs up or not."""

    def __init__(self, path, words, hang_up):
        super().__init__(daemon=True)
        self.words, self.hang_up, self.seen, self.kept = words, hang_up, 0, []
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen(5)
        self.start()

    def run(self):
        try:
            while True:
                c, _ = self.sock.accept()
                self.seen += 1
                c.settimeout(1)
                try:
                    c.recv(4096)
                    c.sendall(self.words)
                    c.recv(4096)
                except OSError:
                    pass
                if self.hang_up:
                    c.close()
                else:
                    self.kept.append(c)
        except OSError:
            pass

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        for c in self.kept:
            c.close()


OK = b"OK 0123456789abcdef0123456789abcdef\r\nAGREE_UNIX_FD\r\n"
BAD_BUSES = {
    "hangs up": (b"", True),
    "says nothing": (b"", False),
    "refuses": (b"REJECTED EXTERNAL\r\n", True),
    "no protocol": (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 50, True),
    "a long line": (b"x" * 200000, False),
    "zeros": (OK + b"\0" * 4096, False),
    "a huge header": (OK + struct.pack("<BBBBIII", ord("l"), 2, 0, 1, 0x7fffffff, 1, 0x7fffffff), False),
    "an answer that nobody asked for": (OK + marshal(2, 1, [(5, ("u", 4711)), (7, ("s", ":1.1"))], "s", ["x"]), False),
    "a wrong answer to Hello": (OK + marshal(2, 1, [(5, ("u", 1)), (7, ("s", "org.freedesktop.DBus"))], "u", [7]), False),
    "an error to Hello": (OK + marshal(3, 1, [(4, ("s", "a.b")), (5, ("u", 1)), (7, ("s", "org.freedesktop.DBus"))]), False),
    "half a message": (OK + marshal(4, 1, [(1, ("o", "/a")), (2, ("s", "a.b")), (3, ("s", "c"))])[:20], True),
}


def test_bad_buses(t):
    """Whatever the other end of the bus says, the daemon answers on its socket and tries again at its own pace."""
    t.start()
    for what, (words, hang_up) in BAD_BUSES.items():
        fake = FakeBus(t.bus_socket, words, hang_up)
        t.open.append(fake)
        end = time.monotonic() + 0.4
        while time.monotonic() < end:
            t.unharmed()
            time.sleep(0.1)
        check(fake.seen <= 3, "%s: %d tries in a moment", what, fake.seen)
        fake.close()
        t.open.remove(fake)
        os.unlink(t.bus_socket)
    t.unharmed()
    check(t.descriptors() < 40, "%d descriptors are open", t.descriptors())
    check(t.status()["counters"]["cpu_usec"] < 3e6, "%d us of CPU", t.status()["counters"]["cpu_usec"])
