# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the VM tests share: guests, their figures, and claims about them.

A test is a module test_NN_name.py with
    TITLE             one line: what is promised
    guests(long)      the guests it needs, as a list of Guest
    judge(test, runs) reads the files that the guests left and makes claims
run-tests boots the guests, several at a time, and asks the tests to judge.

A claim is one figure against one limit. test.claims() must hold; the same claims
about a run without mthpd, given to test.control(), must not.
"""
import glob
import json
import os
import statistics
import subprocess
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("MTHPD_BUILD", os.path.join(ROOT, "build"))
PRESSURE = 0.10  # share of a second that counts as pressure
LONG_SEEDS = 5
SCRIPTS = os.path.join(HERE, "guest")


def seeds(long):
    """The seeds that a test takes."""
    return range(1, LONG_SEEDS + 1 if long else 2)


class Guest:
    """One boot of guest/SCRIPT; what it leaves in /out comes back as a Run."""

    def __init__(self, script, *args, seed=1, key="", icount=True, mem="1500M", append="",
                 timeout=900, weight=30, kernel="6.12", scripts=SCRIPTS, add=()):
        self.script, self.args, self.seed, self.key = script, args, seed, key
        self.icount, self.mem, self.append = icount, mem, append
        self.kernel, self.scripts, self.add = kernel, scripts, add
        self.timeout, self.weight = timeout, weight

    def name(self):
        parts = [self.script[2:].removesuffix(".sh"), self.key, f"seed{self.seed}"]
        return "-".join(part for part in parts if part)

    def run(self, folder):
        """Boots, waits, unpacks. A guest that fails gives a Run that says so."""
        os.makedirs(folder, exist_ok=True)
        archive = os.path.join(folder, "out.tar")
        if os.path.exists(archive):
            os.unlink(archive)
        command = [os.path.join(HERE, "vmrun"), f"--mem={self.mem}", f"--seed={self.seed}",
                   f"--kernel={self.kernel}",
                   f"--timeout={self.timeout}", f"--get=/out.tar:{archive}"]
        command += [f"--add={path}" for path in (f"{BUILD}/mthpd", f"{BUILD}/mthpctl", *self.add)]
        command += [f"--add={SCRIPTS}/{name}:/{name}" for name in ("cases.sh", "t_lib.sh")]
        if self.scripts != SCRIPTS:  # a set's own library, if it has one
            command += [f"--add={path}:/{os.path.basename(path)}"
                        for path in sorted(glob.glob(f"{self.scripts}/*_lib.sh"))]
        command += ["--icount"] if self.icount else []
        command += [f"--append={self.append}"] if self.append else []
        command += [os.path.join(self.scripts, self.script), *map(str, self.args)]
        with open(os.path.join(folder, "console"), "w") as console:
            process = subprocess.Popen(command, stdout=console, stderr=subprocess.STDOUT)
            status, usage = os.wait4(process.pid, 0)[1:]
            process.returncode = os.waitstatus_to_exitcode(status)
        if os.path.exists(archive) and os.path.getsize(archive):
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
        return Run(self, folder, process.returncode, usage.ru_utime + usage.ru_stime)


class Run:
    """The files of one guest."""

    def __init__(self, guest, folder, status, cpu_sec):
        self.guest, self.folder, self.status, self.cpu_sec = guest, folder, status, cpu_sec

    def path(self, name):
        return os.path.join(self.folder, "out", name)

    def has(self, name):
        return os.path.exists(self.path(name))

    def text(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def json(self, name):
        return json.loads(self.text(name))

    def number(self, name):
        return float(self.text(name))

    def lines(self, name):
        """JSON lines; the last may be cut where its writer was killed."""
        return [json.loads(line) for line in self.text(name).splitlines() if line.endswith("}")]

    def work(self, name):
        return Work(self.lines(f"work-{name}"))

    def stat(self, name, group=None):
        samples = self.lines(f"stat-{name}")
        if group is not None:
            samples = [s for s in samples if s["cgroup"].endswith("/" + group)]
        return Samples(samples)

    def decisions(self, name):
        """Decisions in the order of time; `t` as in the samples. Empty without a daemon."""
        if not self.has(f"history-{name}"):
            return []
        offset = int(self.text("clock")) / 1e9
        found = self.json(f"history-{name}")["decisions"]
        for decision in found:
            decision["t"] = decision["realtime_usec"] / 1e6 - offset
        return sorted(found, key=lambda decision: decision["number"])

    def console_tail(self, count=15):
        with open(os.path.join(self.folder, "console"), errors="replace") as f:
            return f.read().splitlines()[-count:]


class Work:
    """The workload's own lines."""

    def __init__(self, lines):
        self.lines = lines

    def event(self, name, phase=0):
        return next((line for line in self.lines if line["event"] == name and
                     (name in ("start", "end") or line["phase"] == phase)), None)

    def finished(self):
        return self.event("end") is not None

    def whole(self):
        """Seconds of all the work, with populating; None = it did not end."""
        return self.event("end")["t"] - self.event("start")["t"] if self.finished() else None

    def elapsed(self, phase=0):
        """Seconds of the phase without populating; None = it did not end."""
        done = self.event("done", phase)
        return done and done["elapsed"]

    def total_at(self, when):
        """Touches of all phases until `when`, interpolated between two lines."""
        before = [line for line in self.lines if line["t"] <= when]
        after = [line for line in self.lines if line["t"] > when]
        if not before or not after:
            return before[-1]["total"] if before else 0
        a, b = before[-1], after[0]
        return a["total"] + (b["total"] - a["total"]) * (when - a["t"]) / (b["t"] - a["t"])

    def rate(self, start, end):
        return (self.total_at(end) - self.total_at(start)) / (end - start)


class Samples:
    """memcgstat's lines of one group."""

    def __init__(self, samples):
        self.samples = samples

    def pairs(self):
        return [(a, b) for a, b in zip(self.samples, self.samples[1:]) if b["t"] - a["t"] > 0.05]

    def pressure_start(self):
        """When the first two seconds in a row with `some` above 10 % began; None = never."""
        pressed = [(a["t"], (b["some_usec"] - a["some_usec"]) / 1e6 / (b["t"] - a["t"]) > PRESSURE)
                   for a, b in self.pairs()]
        for (t, first), (_, second) in zip(pressed, pressed[1:]):
            if first and second:
                return t
        return None

    def value_at(self, key, when):
        """A counter at `when`, interpolated."""
        last = self.samples[0]
        for sample in self.samples:
            if sample["t"] >= when and sample["t"] > last["t"]:
                share = (when - last["t"]) / (sample["t"] - last["t"])
                return last[key] + (sample[key] - last[key]) * max(0, share)
            last = sample
        return last[key]

    def grown(self, key, start, end):
        return self.value_at(key, end) - self.value_at(key, start)

    def oom_kills(self):
        return self.samples[-1]["events_oom_kill"]

    def between(self, start, end):
        return [s for s in self.samples if start <= s["t"] <= end]


def enabled_sizes(sample):
    return [int(kb) for kb, size in sample["sizes"].items() if size["mode"] != "never"]


def first_step_down(run, name):
    """When the first size was lowered; None = never."""
    rank = {"never": 0, "madvise": 1, "inherit": 2, "always": 2}
    for decision in run.decisions(name):
        if decision["knob"].startswith("hugepages-") and decision["outcome"] == "written" and \
                rank[decision["new"]] < rank[decision["old"]]:
            return decision["t"]
    return None


class Claim:
    """One figure and its limit; a figure that could not be taken is None and fails."""
    OPERATORS = {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b}

    def __init__(self, name, value, operator, limit, unit=""):
        self.name, self.value, self.operator = name, value, operator
        self.limit, self.unit = limit, unit

    def holds(self):
        return self.value is not None and self.OPERATORS[self.operator](self.value, self.limit)

    def bound(self):
        return f"{self.operator} {plain(self.limit)}{self.unit and ' ' + self.unit}"


def ratio(a, b):
    """None where a figure is missing."""
    return None if a is None or not b else a / b


def plain(value):
    if value is None:
        return "none"
    if isinstance(value, (str, bool)):
        return str(value)
    if float(value).is_integer():
        return str(int(value))
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def spread(values):
    if len(set(map(plain, values))) == 1:
        return plain(values[0])
    known = [value for value in values if value is not None]
    if len(known) < len(values) or any(isinstance(value, str) for value in known):
        return ", ".join(map(plain, values))
    return f"{plain(statistics.median(known))} ({plain(min(known))}..{plain(max(known))})"


class Test:
    """Collects what one test claims."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.output, self.failed = [], False
        self.passes = {}  # control -> whether it meets all the claims in every run

    def say(self, good, text):
        self.output.append(f"   {'ok  ' if good else 'FAIL'} {text}")
        self.failed |= not good

    def note(self, text):
        self.output.append(f"        {text}")

    def claims(self, groups, prefix=""):
        """Claims that must hold; one list per run, all with the same names."""
        for same in zip(*groups):
            values = [claim.value for claim in same]
            self.say(all(claim.holds() for claim in same),
                     f"{prefix + same[0].name:58} {spread(values):>22}   {same[0].bound()}"
                     f"   n={len(same)}")

    def control(self, label, groups, must_fail=True):
        """The same claims about a control: each run must break at least one."""
        broken = [[claim for claim in group if not claim.holds()] for group in groups]
        self.passes[label] = not all(broken)
        if broken and all(broken):
            first = broken[0][0]
            more = f" and {len(broken[0]) - 1} more" if len(broken[0]) > 1 else ""
            self.say(True, f"{label} fails: {first.name} "
                     f"{spread([group[0].value for group in broken])}, not {first.bound()}{more}"
                     f"   n={len(broken)}")
        elif must_fail:
            self.say(False, f"{label} passes, and must not")
        else:
            self.note(f"{label} passes this test alone")
