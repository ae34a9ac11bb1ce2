# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of the surfaces share: the real mthpd on a fake tree, a bus of
its own, and clients for D-Bus (dbus.py), varlink, HTTP and a terminal. A test is
a function test_*(t) with t a Trial; whatever it started is stopped at its end."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import faketree  # noqa: E402
import harness  # noqa: E402
from harness import Failure, check, equal  # noqa: E402,F401
from dbus import Bus, Stub  # noqa: E402

MIB = 1 << 20
NOBODY = 65534
DEADLINE = 15.0
NAME, PATH, MANAGER = "org.mthpd1", "/org/mthpd1", "org.mthpd1.Manager"
LOG_PATH, LOG = "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1"
PROPERTIES = "org.freedesktop.DBus.Properties"
CONFIG = """[Daemon]
Interval=100ms
AuditInterval=1s
LogLevel=debug
[Controller]
Hold=1s..4s
Settle=100ms..1s
MaxChangesPerHour=3600
"""
BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
  </policy>
  <policy user="root">
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
  </policy>
  %s
</busconfig>
"""


class Missing(Exception):
    """A tool is not installed: the test was not run, and that is said."""


def wait(condition, what, timeout=DEADLINE):
    return harness.wait(condition, what, timeout)


def tool(name):
    found = shutil.which(name)
    if not found:
        raise Missing(name)
    return found


def run(command, timeout=20, **how):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=timeout, **how)


class Drive(threading.Thread):
    """Moves a group's counters as if it thrashed, until end()."""

    def __init__(self, group):
        super().__init__(daemon=True)
        self.group, self.ended = group, threading.Event()
        self.start()

    def run(self):
        last = time.monotonic()
        while not self.ended.wait(0.05):
            now = time.monotonic()
            self.group.hot(now - last)
            last = now

    def close(self):
        self.ended.set()
        self.join()


class Trial:
    def __init__(self, build):
        self.build, self.mthpd, self.mthpctl = build, build + "/mthpd", build + "/mthpctl"
        # Others than root have to reach the sockets.
        self.dir = tempfile.mkdtemp(prefix="mthpd-surface-")
        os.chmod(self.dir, 0o755)
        self.processes, self.open, self.trees = [], [], []
        self.log_file = self.dir + "/log"
        self.bus_socket = self.dir + "/bus"
        self.address = "unix:path=" + self.bus_socket
        self.runtime = self.dir + "/run"
        self.socket = self.runtime + "/org.mthpd1"
        self.config = self.dir + "/mthpd.conf"
        self.daemon = self.bus_daemon = None

    # ---- starting

    def tree(self, **how):
        tree = faketree.Tree(**how)
        self.trees.append(tree)
        return tree

    def configure(self, text="", base=CONFIG):
        with open(self.config, "w") as f:
            f.write(base + text)

    def spawn(self, command, **how):
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, **how)
        self.processes.append(p)
        return p

    def start_bus(self, policy=True):
        """A message bus with the policy that is shipped."""
        tool("dbus-daemon")
        include = "<include>%s/systemd/dbus/org.mthpd1.conf</include>" % TOP if policy else ""
        with open(self.dir + "/bus.conf", "w") as f:
            f.write(BUS_CONFIG % (self.bus_socket, include))
        self.bus_daemon = self.spawn(["dbus-daemon", "--nofork", "--nopidfile", "--config-file=" + self.dir + "/bus.conf"],
                                     stderr=subprocess.DEVNULL)
        wait(lambda: self.listens(self.bus_socket), "the bus listens")

    @staticmethod
    def listens(path):
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(path) == 0

    def stop_bus(self):
        self.bus_daemon.kill()
        self.bus_daemon.wait()

    def start(self, tree=None, config="", args=(), bus=True, base=CONFIG, **env):
        """mthpd, until it answers."""
        self.fake = tree or self.tree()
        self.configure(config, base)
        clean = {k: v for k, v in os.environ.items()
                 if k not in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "INVOCATION_ID", "DBUS_SYSTEM_BUS_ADDRESS")}
        clean["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        if bus:
            clean["DBUS_SYSTEM_BUS_ADDRESS"] = self.address
        clean.update(env)
        with open(self.log_file, "ab") as log:
            self.daemon = self.spawn([self.mthpd, "--root=" + self.fake.dir, "--runtime-dir=" + self.runtime,
                                      "--config=" + self.config] + list(args), stdout=log, stderr=log, env=clean)
        wait(lambda: self.alive() and self.listens(self.socket), "mthpd listens")
        return self.fake

    def start_both(self, tree=None, config=""):
        self.start_bus()
        self.start(tree, config)
        wait(lambda: self.bus().owner(NAME), "the name is on the bus")

    def alive(self):
        if self.daemon.poll() is not None:
            raise Failure("mthpd ended with code %d" % self.daemon.returncode)
        return True

    # ---- asking

    def log(self):
        with open(self.log_file, errors="replace") as f:
            return f.read()

    def bus(self):
        """A connection of its own."""
        b = Bus(self.bus_socket, DEADLINE)
        self.open.append(b)
        return b

    def manager(self, bus=None):
        return Stub(bus or self.bus(), NAME, PATH, MANAGER)

    def busctl(self, *args, user=None):
        tool("busctl")
        extra = {"user": user, "group": user, "extra_groups": []} if user else {}
        return run(["busctl", "--address=" + self.address, "--timeout=10"] + list(args), **extra)

    def varlink(self, method, parameters=None):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(DEADLINE)
        s.connect(self.socket)
        s.sendall(json.dumps({"method": "org.mthpd1." + method, "parameters": parameters or {}}).encode() + b"\0")
        data = b""
        while not data.endswith(b"\0"):
            more = s.recv(1 << 16)
            if not more:
                raise EOFError(method)
            data += more
        s.close()
        reply = json.loads(data[:-1])
        check("error" not in reply, "%s: %s", method, reply)
        return reply["parameters"]

    def status(self):
        return self.varlink("GetStatus")["status"]

    def ctl(self, *args, **how):
        return run([self.mthpctl, "--socket=" + self.socket] + list(args), **how)

    def unharmed(self):
        """It lives and answers at once."""
        self.alive()
        before = time.monotonic()
        self.status()
        check(time.monotonic() - before < 5, "the answer took %.1f s", time.monotonic() - before)

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.daemon.pid))

    def grown(self, before, limit_kb):
        """Complains when resident memory grew by more than the limit; a sanitizer keeps what was freed."""
        with open(self.mthpd, "rb") as f:
            sanitized = b"__asan_init" in f.read()
        now = self.rss_kb()
        check(now < before + limit_kb * (16 if sanitized else 1), "it has grown from %d to %d KiB", before, now)

    def rss_kb(self):
        with open("/proc/%d/status" % self.daemon.pid) as f:
            return [int(line.split()[1]) for line in f if line.startswith("VmRSS:")][0]

    # ---- ending

    def thrash(self, group):
        """The group is over its limit from now on."""
        group.step(current=group.limit - 4096)
        self.open.append(Drive(group))

    def rest(self):
        """Ends what moves counters, and mthpd; another one may start."""
        for x in self.open:
            x.close()
        self.open = []
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            try:
                if self.daemon.wait(DEADLINE) != 0:
                    raise Failure("mthpd ended with code %d" % self.daemon.returncode)
            except subprocess.TimeoutExpired:
                raise Failure("mthpd does not end") from None

    def close(self):
        error = None
        try:
            self.rest()
        except Failure as failure:
            error = failure
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
        if os.path.exists(self.log_file):
            log = self.log()
            if "Sanitizer" in log or "runtime error" in log:
                error = Failure("a sanitizer complains:\n" + log[-4000:])
        for tree in self.trees:
            tree.close()
        shutil.rmtree(self.dir, ignore_errors=True)
        if error:
            raise error
