# SPDX-License-Identifier: LGPL-2.1-or-later
"""Configuration: files, faults, reload."""

import os
import signal

from faketree import MIB
from harness import BASE_CONFIG, check, equal, seconds, wait

GIB = 1 << 30


def check_config(t, text, name="x.conf"):
    tree = t.tree()
    tree.write(name, text)
    done = t.run("--check-config", "--config=" + tree.path(name))
    return done, tree.path(name)


def test_good_configuration(t):
    """--check-config of a good file: 0 and not a word; the shipped files as well."""
    done, _ = check_config(t, '[Daemon]\nInterval=250ms\n[Policy "web"]\nMatch=system.slice/nginx*.service\nWeight=300\n')
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""), "answer")
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../conf")
    for where, _, files in os.walk(root):
        for f in files:
            if f.endswith(".conf"):
                done = t.run("--check-config", "--config=" + os.path.join(where, f))
                equal((done.returncode, done.stdout), (0, ""), "answer for " + f)


FAULTY = """[Daemon]
Intervall=1s
[Limits]
MaxMode=sometimes
[Controler]
[Controller]
PressureHigh=150%
Hold=10 parsecs
[Policy "x"]
Weight=0
"""


def test_faults(t):
    """--check-config: 78, each fault as FILE:LINE: message, all of them, the nearest known name for a typo."""
    done, path = check_config(t, FAULTY)
    equal(done.returncode, 78, "exit code")
    lines = done.stdout.splitlines()
    found = {}
    for line in lines:
        check(line.startswith(path + ":"), "no FILE:LINE: in %s", line)
        found[int(line[len(path) + 1:].split(":")[0])] = line
    for number, word in ((2, "Interval"), (4, "inherit"), (5, "Controller"), (7, "%"), (8, "duration"), (10, "10000")):
        check(word in found.get(number, ""), "line %d: %s in %s", number, word, lines)


def test_window_and_threshold(t):
    """C07: a threshold longer than its window and a window of 11 s are faults; 200 ms is not."""
    for text, code in (("[Controller]\nPressureHigh=3s/2s\n", 78), ("[Daemon]\nPsiWindow=11s\n", 78),
                       ("[Daemon]\nPsiWindow=200ms\n", 0), ("[Daemon]\nPsiWindow=0\n", 78)):
        done, _ = check_config(t, text)
        equal(done.returncode, code, "exit code for %r: %s" % (text, done.stdout))


def test_start_with_faults(t):
    """A faulty configuration starts nothing and writes nothing: 78, the faults on stderr."""
    tree = t.tree()
    tree.write("mthpd.conf", FAULTY)
    before = tree.all_knobs()
    done = t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run"), "--config=" + tree.path("mthpd.conf"))
    equal(done.returncode, 78, "exit code")
    check("mthpd.conf:2:" in done.stderr, done.stderr)
    check(not os.path.exists(tree.path("run")), "the runtime directory was made")
    equal(tree.all_knobs(), before, "files")


def test_configuration_that_is_not_there(t):
    """--config of a file that does not exist: 78, for --check-config and for a start."""
    for args in (["--check-config"], ["--root=" + t.tree().dir]):
        done = t.run("--config=/nonexistent.conf", *args)
        equal(done.returncode, 78, "exit code of %s" % args)
        check("/nonexistent.conf" in done.stdout + done.stderr, done.stdout + done.stderr)


def test_drop_ins(t):
    """systemd's rules: by file name over all directories, /etc over /run over /usr/lib, /dev/null masks."""
    tree = t.tree()
    good = "[Controller]\nPressureHigh=%d%%\n"
    tree.write("etc/mthpd/mthpd.conf", good % 20)
    tree.write("usr/lib/mthpd/mthpd.conf.d/50-a.conf", "[Daemon]\nNonsense=1\n")
    done = t.run("--check-config", "--root=" + tree.dir)
    equal(done.returncode, 78, "exit code with a faulty drop-in")
    check("50-a.conf:2:" in done.stdout, done.stdout)
    os.makedirs(tree.path("etc/mthpd/mthpd.conf.d"))
    os.symlink("/dev/null", tree.path("etc/mthpd/mthpd.conf.d/50-a.conf"))
    equal(t.run("--check-config", "--root=" + tree.dir).returncode, 0, "exit code with the mask")
    os.remove(tree.path("etc/mthpd/mthpd.conf.d/50-a.conf"))
    tree.write("run/mthpd/mthpd.conf.d/50-a.conf", good % 30)
    equal(t.run("--check-config", "--root=" + tree.dir).returncode, 0, "exit code with /run over /usr/lib")


def test_config_option_reads_its_own_drop_ins_only(t):
    """--config=FILE: that file and FILE.d/*.conf, nothing of /etc."""
    tree = t.tree()
    tree.write("etc/mthpd/mthpd.conf", "[Nonsense]\n")
    tree.write("my.conf", "[Daemon]\nInterval=1s\n")
    args = ("--check-config", "--root=" + tree.dir, "--config=" + tree.path("my.conf"))
    equal(t.run(*args).returncode, 0, "exit code")
    tree.write("my.conf.d/10-x.conf", "[Daemon]\nInterval=never\n")
    done = t.run(*args)
    equal(done.returncode, 78, "exit code with a faulty drop-in of its own")
    check("my.conf.d/10-x.conf:2:" in done.stdout, done.stdout)


@seconds(4)
def test_reload_good_and_bad(t):
    """SIGHUP: a good configuration is taken; of a faulty one nothing is, the old one stands whole, and it is told."""
    tree = t.tree()
    tree.group("web.service", limit=GIB, current=100 * MIB)
    policy = '[Policy "%s"]\nMatch=*.service\n'
    d = t.daemon(tree, policy % "first")
    equal(d.group("web.service")["policy"], "first", "policy at the start")
    d.reload(policy % "second")
    equal(d.group("web.service")["policy"], "second", "policy after the reload")
    d.reload("[Daemon]\nDryRun=yes\n" + policy % "third" + "Weight=none\n[Limits]\nRestoreOnExit=no\n")
    check(d.lines("mthpd.conf:", "whole number"), "the fault is not told with its place")
    status = d.status()
    equal(status["state"], "active", "state after the faulty reload")
    equal(d.group("web.service")["policy"], "second", "policy after the faulty reload")
    d.ticks(5)
    os.remove(d.config)
    d.signal(signal.SIGHUP)
    wait(lambda: len(d.lines("not reloaded")) == 2, "a missing file is a fault as well")
    equal(d.group("web.service")["policy"], "second", "policy without a file")
    d.stop()


@seconds(3)
def test_reload_by_mthpctl(t):
    """mthpctl reload: 0, or 1 with the reason when the configuration has faults."""
    d = t.daemon(t.tree())
    equal(d.ctl("reload").returncode, 0, "exit code")
    d.configure("[Daemon]\nInterval=0\n")
    done = d.ctl("reload")
    equal(done.returncode, 1, "exit code with faults")
    check("mthpd.conf:" in done.stderr and "Interval=0: out of range" in done.stderr, done.stderr)


@seconds(4)
def test_reload_many_times(t):
    """C07: ten reloads, good and bad in turn: the number of descriptors stays the same."""
    tree = t.tree()
    for k in range(20):
        tree.group("g%d.service" % k, limit=GIB)
    d = t.daemon(tree)
    d.ticks(2)
    before = d.descriptors()
    for k in range(10):
        d.reload("" if k % 2 else "[Nonsense]\n", BASE_CONFIG)
    d.ticks(2)
    wait(lambda: d.descriptors() <= before, "the descriptors are as many as before")


@seconds(4)
def test_sizes_narrowed_by_a_reload(t):
    """Sizes=: a size that is no longer named gets its start value back, and is not touched again."""
    tree = t.tree(modes={64: "always", 2048: "always"})
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    t.drive(lambda s: g.hot(s))
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "never" and tree.size(2048) == "never", "both are lowered")
    d.reload("[Limits]\nSizes=64K\n")
    wait(lambda: tree.size(2048) == "always", "2048 kB is given back")
    d.ticks(10)
    equal((tree.size(64), tree.size(2048)), ("never", "always"), "values later")
    equal(d.size(2048)["reason"], "not-managed", "reason")


@seconds(4)
def test_max_mode_lowered_by_a_reload(t):
    """MaxMode=madvise by a reload: a size that was raised above it comes down, promise 2."""
    tree = t.tree(top="always")
    g = tree.group("web.service", limit=GIB, current=100 * MIB)
    t.drive(g.fresh)
    d = t.daemon(tree)
    wait(lambda: tree.size(64) == "inherit", "64 kB is raised")
    d.reload("[Limits]\nMaxMode=madvise\n")
    wait(lambda: tree.size(64) in ("madvise", "never"), "64 kB comes down")


def test_max_ptes_none_of_the_configuration(t):
    """MaxPtesNone above what the machine has is a warning with the maximum here."""
    tree = t.tree()
    d = t.daemon(tree, "[Limits]\nMaxPtesNone=4000\n")
    equal(len(d.lines("MaxPtesNone=4000", "511")), 1, "warnings")
    d.ticks(5)
    equal(d.writes("max_ptes_none"), [], "writes")
