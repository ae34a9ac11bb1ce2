# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the integration tests share: the real mthpd and mthpctl on a fake tree,
their log, the record of their writes, a varlink client, and waiting for a
condition instead of for a time. A test is a function test_*(t) with t a Trial;
whatever it started is stopped and removed at its end."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import faketree

NOBODY = 65534
# Waiting ends here; the machine may be busy with other things.
DEADLINE = 30.0
# A second of the daemon's life takes a tenth of a second in a fast daemon.
FAST = 10
BASE_CONFIG = """
[Daemon]
Interval=100ms
AuditInterval=1s
LogLevel=debug
[Controller]
Hold=1s..4s
Settle=100ms..1s
MaxChangesPerHour=3600
"""


def seconds(n):
    """How long a test takes; the long ones start first."""
    def mark(test):
        test.seconds = n
        return test
    return mark


class Failure(AssertionError):
    pass


def check(condition, message, *values):
    if not condition:
        raise Failure(message % values if values else message)


def equal(found, expected, what):
    if found != expected:
        raise Failure("%s: found %.400r, expected %.400r" % (what, found, expected))


def wait(condition, what, timeout=DEADLINE):
    """Returns the first true value of condition()."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure("waited %.0f s in vain until %s" % (timeout, what))
        time.sleep(0.03)


class VarlinkError(Exception):
    def __init__(self, error, parameters):
        super().__init__("%s %s" % (error, parameters))
        self.error, self.parameters = error, parameters


class Varlink:
    def __init__(self, path, timeout=DEADLINE):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.buffer = b""

    def send_raw(self, data):
        self.sock.sendall(data)

    def send(self, method, parameters=None, **more):
        message = {"method": method, **more}
        if parameters is not None:
            message["parameters"] = parameters
        self.send_raw(json.dumps(message).encode() + b"\0")

    def receive(self):
        while b"\0" not in self.buffer:
            data = self.sock.recv(65536)
            if not data:
                raise EOFError("the server closed the connection")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, parameters=None):
        self.send(method, parameters)
        reply = self.receive()
        if "error" in reply:
            raise VarlinkError(reply["error"], reply.get("parameters", {}))
        return reply["parameters"]

    def close(self):
        self.sock.close()


class Write:
    """One line of the errno shim's record."""

    def __init__(self, line):
        self.op, self.path, self.bytes, self.result = line.split("\t")

    def __repr__(self):
        return "%s %s %s %s" % (self.op, self.path, self.bytes, self.result)


class Daemon:
    """mthpd on a fake tree. `rules` are those of the errno shim; the switches
    behave as in sysfs unless sysfs=False."""

    def __init__(self, trial, tree, config="", args=(), rules=(), sysfs=True, log_reads=False,
                 env=None, speed=1, shim=True, base=BASE_CONFIG, wrapper=(), user=None, ready=True,
                 stdin=subprocess.DEVNULL):
        self.trial, self.tree, self.speed = trial, tree, speed
        self.runtime = tree.path("run")
        self.socket = self.runtime + "/org.mthpd1"
        self.config = tree.path("mthpd.conf")
        self.log_file = tree.path("log")
        self.record = tree.path("record")
        self.rules_file = tree.path("rules")
        self.sysfs = sysfs
        self.rules(*rules)
        self.configure(config, base)
        self.env = {k: v for k, v in os.environ.items() if k not in
                    ("NOTIFY_SOCKET", "JOURNAL_STREAM", "INVOCATION_ID", "WATCHDOG_USEC", "WATCHDOG_PID")}
        # The sanitizers' library cannot be the first one here.
        self.env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")
        preload = [trial.preload]  # hands on to the shim
        if shim:
            preload.append(trial.build + "/errno-shim.so")
            self.env.update(MTHP_SHIM_RULES=self.rules_file, MTHP_SHIM_LOG=self.record)
            if log_reads:
                self.env["MTHP_SHIM_LOG_ALL"] = "1"
        if speed != 1:
            self.env["MTHP_CLOCK_SPEED"] = str(speed)
        self.env.update(env or {})
        self.env["LD_PRELOAD"] = " ".join(preload)
        self.command = list(wrapper) + [
            trial.mthpd, "--no-bus", "--root=" + tree.dir, "--runtime-dir=" + self.runtime,
            "--config=" + self.config] + list(args)
        self.user, self.stdin = user, stdin
        self.process = None
        self.start(ready)

    def start(self, ready=True):
        with open(self.log_file, "ab") as log:
            extra = {"user": self.user, "group": self.user, "extra_groups": []} if self.user else {}
            self.process = subprocess.Popen(self.command, env=self.env, stdin=self.stdin,
                                            stdout=log, stderr=log, **extra)
        if ready:
            self.wait_ready()

    def wait_ready(self):
        def answers():
            if self.process.poll() is not None:
                raise Failure("mthpd ended at start with code %d" % self.process.returncode)
            try:
                return self.status()
            except (OSError, EOFError):
                return None
        wait(answers, "mthpd answers")

    def rules(self, *rules):
        """Replaces the shim's rules while the daemon runs; earlier lines speak first."""
        text = "".join(r + "\n" for r in rules)
        if self.sysfs:
            text += "*/transparent_hugepage/* write sysfs\n*/memory.thp.* write cgroup\n"
        with open(self.rules_file + ".new", "w") as f:
            f.write(text)
        os.rename(self.rules_file + ".new", self.rules_file)

    def configure(self, text, base=BASE_CONFIG):
        with open(self.config, "w") as f:
            f.write(base + text)

    # ---- asking

    def call(self, method, parameters=None):
        for tries in range(5, -1, -1):
            link = Varlink(self.socket)
            try:
                return link.call("org.mthpd1." + method, parameters)
            except (EOFError, ConnectionError):
                # A fast daemon's limits on slow clients are as fast.
                if self.speed == 1 or not tries or self.process.poll() is not None:
                    raise
            finally:
                link.close()

    def status(self):
        return self.call("GetStatus")["status"]

    def history(self, n=500):
        return self.call("History", {"n": n})["decisions"]

    def features(self):
        return self.call("Features")["features"]

    def explain(self, cgroup=None):
        return self.call("Explain", {"cgroup": cgroup})["text"]

    def group(self, path):
        for g in self.status()["cgroups"]:
            if g["path"] == path:
                return g
        return None

    def size(self, kb):
        for s in self.status()["sizes"]:
            if s["size_kb"] == kb:
                return s
        return None

    def ctl(self, *args, user=None):
        extra = {"user": user, "group": user, "extra_groups": []} if user else {}
        return subprocess.run([self.trial.mthpctl, "--socket=" + self.socket] + list(args),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=60, **extra)

    def log(self):
        with open(self.log_file, errors="replace") as f:
            return f.read()

    def lines(self, *words):
        """Lines of the log that hold all the words."""
        return [x for x in self.log().splitlines() if all(w in x for w in words)]

    def recorded(self):
        try:
            with open(self.record, errors="replace") as f:
                whole = f.read().rpartition("\n")[0]  # the last line may be half written
            return [Write(x) for x in whole.splitlines()]
        except FileNotFoundError:
            return []

    def writes(self, part=""):
        """Writes to the switches, refused ones too; `part` narrows the path."""
        return [w for w in self.recorded() if w.op == "write" and faketree.THP in w.path and part in w.path]

    def group_writes(self, part=""):
        """Writes to memory.thp.* of groups, refused ones too; `part` narrows the path."""
        return [w for w in self.recorded() if w.op == "write" and "/memory.thp." in w.path and part in w.path]

    def ticks(self, n, timeout=60):
        """Waits until the daemon woke up n more times."""
        goal = self.status()["counters"]["wakeups"] + n
        wait(lambda: self.status()["counters"]["wakeups"] >= goal, "%d more ticks" % n, timeout)

    def cpu_seconds(self):
        try:
            with open("/proc/%d/schedstat" % self.process.pid) as f:
                return int(f.read().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    # ---- ending

    def signal(self, number):
        self.process.send_signal(number)

    def wait_end(self, code=None, timeout=DEADLINE):
        try:
            found = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Failure("mthpd does not end") from None
        if code is not None:
            equal(found, code, "exit code")
        return found

    def stop(self, code=0):
        self.signal(signal.SIGTERM)
        self.wait_end(code)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def reload(self, text, base=BASE_CONFIG):
        """SIGHUP with another configuration; returns when it was taken or refused."""
        before = len(self.lines("reloaded"))
        self.configure(text, base)
        self.signal(signal.SIGHUP)
        wait(lambda: len(self.lines("reloaded")) > before, "the reload is done")


class Drive(threading.Thread):
    """Calls step(seconds since the last call) every few milliseconds, as a kernel's counters move."""

    def __init__(self, step, speed, period):
        super().__init__(daemon=True)
        self.step, self.speed, self.period = step, speed, period
        self.ended, self.error = threading.Event(), None

    def run(self):
        last = time.monotonic()
        try:
            while not self.ended.wait(self.period):
                now = time.monotonic()
                self.step((now - last) * self.speed)
                last = now
        except Exception as error:  # told by end()
            self.error = error

    def end(self):
        self.ended.set()
        self.join()
        if self.error:
            raise self.error


class Trial:
    def __init__(self, build, preload):
        self.build, self.preload = build, preload
        self.mthpd, self.mthpctl = build + "/mthpd", build + "/mthpctl"
        self.trees, self.daemons, self.drives, self.sockets = [], [], [], []
        self.directories = []
        self.cpu_seconds = 0.0

    def tree(self, **how):
        tree = faketree.Tree(**how)
        self.trees.append(tree)
        return tree

    def daemon(self, tree, config="", **how):
        d = Daemon.__new__(Daemon)
        self.daemons.append(d)
        d.process = None
        d.__init__(self, tree, config, **how)
        return d

    def drive(self, step, speed=1, period=0.025):
        drive = Drive(step, speed, period)
        self.drives.append(drive)
        drive.start()
        return drive

    def public_binaries(self):
        """Copies of mthpd and mthpctl that another user reaches: a checkout may be private."""
        directory = tempfile.mkdtemp(prefix="mthpd-bin-")
        self.directories.append(directory)
        os.chmod(directory, 0o755)
        # Not by this process: a child that another thread forks meanwhile would hold the copy open
        # for writing, and it could not be started (ETXTBSY).
        subprocess.run(["cp", "--"] + [self.build + "/" + name for name in ("mthpd", "mthpctl")] + [directory],
                       check=True)
        self.mthpd, self.mthpctl = directory + "/mthpd", directory + "/mthpctl"

    def run(self, *args, env=None, timeout=60, user=None):
        """mthpd for one answer: a finished process with its text."""
        return subprocess.run([self.mthpd] + list(args), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout, user=user,
                              env={**os.environ, **(env or {})})

    def varlink(self, daemon, timeout=DEADLINE):
        link = Varlink(daemon.socket, timeout)
        self.sockets.append(link)
        return link

    def restore(self, daemon, *args):
        """mthpd --restore after a daemon, with its shim; a finished process."""
        return self.run("--root=" + daemon.tree.dir, "--runtime-dir=" + daemon.runtime,
                        "--config=" + daemon.config, *(args or ("--restore",)), env=daemon.env)

    def evidence(self):
        """The end of each daemon's log, for a failed test."""
        text = ""
        for d in self.daemons:
            try:
                text += "".join("    | %s\n" % x for x in d.log().splitlines()[-25:])
            except (OSError, AttributeError):
                pass
        return text

    def close(self):
        error = None
        for drive in self.drives:
            try:
                drive.end()
            except Exception as e:
                error = e
        for link in self.sockets:
            link.close()
        for d in self.daemons:
            if d.process:
                self.cpu_seconds += d.cpu_seconds()
                d.kill()
                log = d.log()
                if "Sanitizer" in log or "runtime error" in log or "errno-shim:" in log:
                    error = Failure("the sanitizer or the shim complains in the log:\n" + log[-4000:])
        for tree in self.trees:
            tree.close()
        for directory in self.directories:
            shutil.rmtree(directory)
        if error:
            raise error
