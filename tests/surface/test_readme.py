# SPDX-License-Identifier: LGPL-2.1-or-later
"""What README.md and the EXAMPLES of the man pages tell people to type: what needs no guest is run as it stands, on a
fake tree; of the rest the target, the option or the file exists."""

import glob
import json
import os
import re
import shlex
import shutil
import subprocess
import xml.etree.ElementTree

from test_matrix import World, options_of
from world import TOP, check, equal, run, tool, wait

MAN = os.path.join(TOP, "daemon", "man")
SHOWN = os.path.join(TOP, "tests", "fixtures", "shown")
# Other people's programs that the texts name; they are not run.
OTHERS = ("apt-get", "systemctl", "journalctl", "varlinkctl")


def readme():
    with open(os.path.join(TOP, "README.md")) as f:
        return f.read()


def fenced():
    """Blocks of code."""
    return re.findall(r"^```\n(.*?)^```$", readme(), re.M | re.S)


def commands():
    """Whatever looks like a command in README.md: lines of blocks, and words in backticks."""
    found = []
    for block in fenced():
        lines = [re.split(r"\s{2,}#", line)[0].strip() for line in block.splitlines()]
        if all(re.match(r"(sudo |build/|make |apt-get |systemctl |mthpctl |mthpd |tests/)", line) for line in lines if line):
            found += [part for line in lines if line for part in line.split(" && ")]
    text = re.sub(r"^```\n.*?^```$", "", readme(), flags=re.M | re.S)
    found += [m.replace("\n", " ") for m in re.findall(r"`((?:make|mthpctl|mthpd|systemctl|build/mthp\w+) [^`]*)`", text)]
    return [re.sub(r"^sudo ", "", c) for c in found]


def examples(page):
    """The lines of EXAMPLES between .nf and .fi, as man shows them; lines that go on are joined."""
    with open(os.path.join(MAN, page)) as f:
        part = f.read().split(".SH EXAMPLES\n")[1].split(".SH ")[0]
    text = "\n".join(re.findall(r"\.nf\n(.*?)\n\.fi", part, re.S))
    return text.replace("\\e\n", "").replace("\\-", "-").splitlines()


class Shell:
    """mthpd and mthpctl under their own names, as on an installed system, but on the fake tree."""

    def __init__(self, w):
        self.w, self.t = w, w.t
        self.bin = self.t.dir + "/bin"
        os.mkdir(self.bin)
        self.script("mthpctl", 'exec %s --socket=%s "$@"' % (self.t.mthpctl, self.t.socket))
        self.script("mthpd", 'exec %s --root=%s "$@"' % (self.t.mthpd, self.t.fake.dir))
        # There is no systemd here; what the page wants of it is the process of a service.
        self.script("systemctl", 'test "$*" = "show --value -p MainPID db.service" && echo %d' % os.getpid())
        self.env = {**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], "DBUS_SYSTEM_BUS_ADDRESS": self.t.address}

    def script(self, name, body):
        with open(os.path.join(self.bin, name), "w") as f:
            f.write("#!/bin/sh\n%s\n" % body)
        os.chmod(os.path.join(self.bin, name), 0o755)

    def run(self, line, code=0):
        done = run(["sh", "-c", line], env=self.env, cwd=self.t.dir)
        equal(done.returncode, code, "exit code of: %s\n%s" % (line, done.stdout))
        return done.stdout

    def while_it_runs(self, line, condition, what):
        """Started, ended once the condition holds for its output, which is returned."""
        with open(self.t.dir + "/output", "w+") as f:
            p = self.t.spawn(["sh", "-c", "exec " + line], env=self.env, cwd=self.t.dir, stdout=f, stderr=subprocess.STDOUT)
            wait(lambda: condition(os.pread(f.fileno(), 1 << 20, 0).decode(errors="replace")) or p.poll() is not None, what)
            p.terminate()
            p.wait(10)
            f.seek(0)
            return f.read()


def test_readme_commands(t):
    """Each command of README.md: make's targets exist, mthpctl and mthpd are run, nothing else is named."""
    w = World(t)
    shell, seen = Shell(w), []
    with open(os.path.join(TOP, "Makefile")) as f:
        targets = set(re.findall(r"^([a-z-]+):", f.read(), re.M))
    os.symlink(os.path.join(TOP, "tests"), t.dir + "/tests")
    os.symlink(os.path.dirname(t.mthpctl), t.dir + "/build")
    for command in commands():
        words = command.split()
        program = os.path.basename(words[0])
        seen.append(program)
        if program == "make":
            check(set(words[1:]) <= targets, "no such target: %s", command)
        elif program == "install-deps":
            check(words[1] in open(os.path.join(TOP, words[0])).read().split("usage:")[1].split()[1], "%s", command)
        elif program == "mthpctl":
            line = re.sub(r"^build/", "", command).replace("CGROUP", "web.service").replace(
                "batch.slice/nightly.service", "web.service").replace("TRACE", "today.trace")
            shell.run(line + (" --duration=1s" if words[1] == "record" else ""))
            if words[1] in ("hold", "restore"):
                equal(w.state(), "held", "state after " + command)
                shell.run("mthpctl release")
            if words[1] == "plot":
                xml.etree.ElementTree.parse(t.dir + "/FILE.svg")
        elif program == "mthpd":
            check({x.split("=")[0] for x in words[1:]} <= options_of(t.mthpd), "no such option: %s", command)
        else:
            check(program in OTHERS, "README.md: %s", command)
    for program in ("make", "mthpctl", "mthpd", "apt-get", "install-deps"):
        check(program in seen, "README.md does not name %s any more", program)


def test_readme_says_what_exists(t):
    """Files, functions, verbs and reasons that README.md names are there; what it shows is what a real run printed."""
    text = readme()
    with open(os.path.join(TOP, "daemon", "man", "mthpctl.1")) as f:
        manual = f.read().replace("\\-", "-")
    for path in re.findall(r"`((?:lib|daemon|conf|systemd|tests|kernel-patches)/[\w./*-]*)`", text) + \
            re.findall(r"\]\(([^)]+)\)", text):
        check(glob.glob(os.path.join(TOP, path)), "no such file: %s", path)
    for function, path in re.findall(r"`(\w+)\(\)` in `([\w./-]+)`", text):
        with open(os.path.join(TOP, path)) as f:
            check(re.search(r"^\S.*\b%s\(" % function, f.read(), re.M), "no %s() in %s", function, path)
    for reason in re.findall(r"^\| `([a-z-]+)`", text, re.M):
        check(".I " + reason in manual.replace("\\-", "-"), "no such reason: %s", reason)
    # The lines of explain are folded there, as on a terminal.
    blocks = fenced() + [b.replace("\n  ", " ") for b in fenced()]
    for name in sorted(os.listdir(SHOWN)):
        with open(os.path.join(SHOWN, name)) as f:
            check(f.read() in blocks, "README.md does not show tests/fixtures/shown/%s as it is", name)


def bodies(path):
    """The functions of a file: name -> what they call."""
    with open(os.path.join(TOP, path)) as f:
        text = f.read()
    found = re.findall(r"^\w[^;{}#]*?\b(\w+)\([^;{}]*?\)\n\{\n(.*?)^\}", text, re.M | re.S)
    return {name: set(re.findall(r"\b(\w+)\(", body)) for name, body in found}


def reaches(functions, name, callee, seen=()):
    """True when @name calls @callee, itself or through functions of the same file."""
    calls = functions.get(name, set())
    return callee in calls or any(
        reaches(functions, c, callee, (*seen, name)) for c in calls if c in functions and c not in seen + (name,))


def test_reading_order(t):
    """The path of a sample in README.md: each function is where it says, and the one above it calls it."""
    block = next(b for b in fenced() if b.startswith("tick()"))
    above = []
    steps = []
    for line in block.splitlines():
        indent, name, path, what = re.fullmatch(r"( *)(\w+)\(\) +(\S+) +(.*)", line).groups()
        functions = bodies(path)
        check(name in functions, "no %s() in %s", name, path)
        above = above[:len(indent) // 2]
        if above:
            check(reaches(bodies(above[-1][1]), above[-1][0], name), "%s() does not call %s()", above[-1][0], name)
        above.append((name, path))
        steps += re.findall(r"^\d", what)
    equal(steps, list("12345"), "numbered calls")


def test_examples_of_mthpctl(t):
    """EXAMPLES of mthpctl(1), as they stand but for ten minutes."""
    tool("jq")
    w = World(t)
    shell = Shell(w)
    explain, changed, record, plot = examples("mthpctl.1")
    group = next((x[3:].strip() for x in open("/proc/self/cgroup") if x.startswith("0::")), None)
    text = shell.run(explain, code=0 if group and group != "/" and ".." not in group else 1)
    check(str(os.getpid()) in text or (group or "?").strip("/") in text, "explain: %s", text)
    sizes = shell.run(changed)
    equal([json.loads(x)["size_kb"] for x in re.findall(r"^\{.*?^\}", sizes, re.M | re.S)], [64, 2048], "sizes that changed")
    check("--duration=10min" in record, "record: %s", record)
    shell.run(record.replace("10min", "1s"))
    with open(t.dir + "/today.trace") as f:
        check("web.service" not in f.read(), "the name is left")
    shell.run(plot)
    xml.etree.ElementTree.parse(t.dir + "/today.svg")


def test_examples_of_mthpd(t):
    """EXAMPLES of mthpd(8): a look without a write, and putting back after a crash."""
    dry, restore = examples("mthpd.8")
    w = World(t)
    shell = Shell(w)
    before = w.tree.all_knobs()
    check(" --runtime-dir=/tmp/mthpd" in dry, "%s", dry)
    own = t.dir + "/dry"
    # Another directory than the page's, which all tests would share.
    text = shell.while_it_runs(dry.replace("/tmp/mthpd", own), lambda text: "can do here" in text, "it starts")
    check("what mthpd can do here" in text, "dry run: %s", text)
    equal(w.tree.all_knobs(), before, "files")
    t.daemon.kill()
    t.daemon.wait()
    equal(w.tree.size(64), "never", "64 kB after the crash")
    shell.run(restore + " --runtime-dir=" + t.runtime)
    equal(w.tree.size(64), "always", "64 kB after --restore")


def test_examples_of_the_configuration(t):
    """EXAMPLES of mthpd.conf(5) are a configuration without faults, and match what they say."""
    with open(t.dir + "/example.conf", "w") as f:
        f.write("\n".join(examples("mthpd.conf.5")) + "\n")
    equal(run([t.mthpd, "--check-config", "--config=" + t.dir + "/example.conf"]).stdout, "", "faults")
    tree = t.tree()
    for path in ("system.slice/postgresql@14-main.service", "ci.slice/a/b.scope", "other.service"):
        tree.group(path, limit=1 << 30, current=1 << 20)
    with open(t.dir + "/example.conf") as f:
        t.start(tree, config=f.read(), bus=False)
    policies = {g["path"]: g["policy"] for g in t.status()["cgroups"]}
    equal(policies, {"system.slice/postgresql@14-main.service": "database", "ci.slice/a/b.scope": "builds",
                     "other.service": None}, "policies")


def test_examples_of_the_interfaces(t):
    """EXAMPLES of org.mthpd1(5), by the real busctl; varlinkctl where it is installed."""
    tool("busctl")
    w = World(t)
    shell = Shell(w)
    for line in examples("org.mthpd1.5"):
        words = shlex.split(line)
        if words[1] == "monitor":
            text = shell.while_it_runs(line, lambda text: "Monitoring" in text, "it listens")
            check("Monitoring" in text, "%s: %s", line, text)
        elif words[0] == "busctl":
            text = shell.run(line)
            check(words[1] != "call" or "mthpd is active" in text, "%s: %s", line, text)
        else:
            if shutil.which("varlinkctl"):  # systemd 255 and later
                check('"active"' in shell.run(line.replace(words[2], t.socket)), "%s", line)
            method = words[3].split(".")[-1]
            equal((words[:3], t.varlink(method, json.loads(words[4]))["status"]["state"]),
                  (["varlinkctl", "call", "/run/mthpd/org.mthpd1"], "active"), line)
    equal(t.busctl("get-property", "org.mthpd1", "/org/freedesktop/LogControl1", "org.freedesktop.LogControl1",
                   "LogLevel").stdout, 's "debug"\n', "LogLevel as set")
