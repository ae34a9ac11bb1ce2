# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other programs and people at the same switches, and the way back: adopted
values, contests, holds, restore, restart, crash."""

import json
import os
import random
import signal
import time

from faketree import MIB, THP
from harness import BASE_CONFIG, FAST, check, equal, seconds, wait

GIB = 1 << 30
DEFAULTS = "[Daemon]\nAuditInterval=2s\nLogLevel=debug\n"
SLOW_AUDIT = BASE_CONFIG.replace("AuditInterval=1s", "AuditInterval=1h", 1)


class World:
    """A tree with one group that thrashes while `on`; the first drop writes 2048 kB and max_ptes_none."""

    def __init__(self, t, speed=1, **how):
        self.t = t
        self.tree = t.tree(**how)
        self.before = self.tree.all_knobs()
        self.g = self.tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
        self.on = True
        t.drive(lambda s: self.g.hot(s) if self.on else None, speed)

    def dropped(self):
        wait(lambda: self.tree.size(2048) == "never" and self.tree.knob("khugepaged/max_ptes_none") == "0", "the drop")

    def relax(self):
        self.on = False
        self.g.step(current=10 * MIB)

    def unchanged(self, what):
        equal({k: v for k, v in self.tree.all_knobs().items() if v != self.before.get(k)}, {}, what)


def contest(t, mode):
    """After our write somebody sets always every 3 s for a minute."""
    w = World(t, FAST)
    d = t.daemon(w.tree, "[Limits]\nForeignChanges=%s\n" % mode, base=DEFAULTS, speed=FAST)
    w.dropped()
    for _ in range(20):
        w.tree.set_knob("hugepages-2048kB/enabled", "always")
        time.sleep(3 / FAST)
    return w, d


@seconds(9)
def test_contest_reassert(t):
    """B13: reassert: our value at most three times more, then it is theirs; degraded names the file; the rest is steered."""
    w, d = contest(t, "reassert")
    again = [x for x in d.writes("hugepages-2048kB")][1:]
    check(1 <= len(again) <= 3, "re-assertions: %s", again)
    equal(w.tree.size(2048), "always", "the file in the end")
    status = d.status()
    equal(status["state"], "degraded", "state")
    check(any("hugepages-2048kB/enabled" in x for x in status["degraded"]), "degraded: %s", status["degraded"])
    check(status["counters"]["foreign_changes"] >= 4, "foreign_changes: %s", status["counters"])
    check(d.lines("hugepages-2048kB", "expected", "found"), "expected and found are not told")
    w.relax()
    wait(lambda: w.tree.knob("khugepaged/max_ptes_none") != "0", "other files are steered")
    d.stop()
    equal(w.tree.size(2048), "always", "the file after the stop")
    equal(w.tree.knob("khugepaged/max_ptes_none"), "511", "max_ptes_none after the stop")


@seconds(9)
def test_contest_adopt(t):
    """B13: adopt: their value is the baseline at once, and after the third time the file is theirs."""
    w, d = contest(t, "adopt")
    check(len(d.writes("hugepages-2048kB")) <= 4, "writes: %s", d.writes("hugepages-2048kB"))
    equal(w.tree.size(2048), "always", "the file in the end")
    equal(d.size(2048)["baseline"], "always", "baseline")
    d.stop()
    equal(w.tree.size(2048), "always", "the file after the stop")
    equal(w.tree.knob("khugepaged/max_ptes_none"), "511", "max_ptes_none after the stop")


@seconds(4)
def test_adopted_value_is_the_new_baseline(t):
    """B13, promise 3: a value set from outside while quiet is kept, restored to, and a step up goes no higher."""
    w = World(t)
    w.relax()
    d = t.daemon(w.tree)
    w.tree.set_knob("hugepages-2048kB/enabled", "always")
    wait(lambda: d.size(2048)["baseline"] == "always", "it is adopted")
    check(d.lines("hugepages-2048kB", "somebody else"), "it is not told")
    d.ticks(5)
    equal(d.writes(), [], "writes")
    d.stop()
    equal(w.tree.size(2048), "always", "the file after the stop")


@seconds(14)
def test_freeze_after_a_foreign_change(t):
    """B13: the loop freezes for a while after somebody else's change, and then goes on."""
    w = World(t, FAST)
    d = t.daemon(w.tree, base=DEFAULTS, speed=FAST)
    w.dropped()
    w.relax()
    w.tree.set_knob("hugepages-64kB/enabled", "madvise")
    wait(lambda: d.size(64)["baseline"] == "madvise", "it is adopted")
    wait(lambda: w.tree.size(2048) == "inherit", "the recovery comes all the same")
    d.stop()
    equal(w.tree.size(64), "madvise", "64 kB after the stop")


@seconds(3)
def test_foreign_value_is_left_by_the_stop(t):
    """Promise 3: a file that somebody changed since our write is left alone at the stop, and named."""
    w = World(t)
    d = t.daemon(w.tree, base=SLOW_AUDIT)
    w.dropped()
    w.tree.set_knob("hugepages-2048kB/enabled", "madvise")
    d.stop()
    equal(w.tree.size(2048), "madvise", "2048 kB after the stop")
    equal(w.tree.knob("khugepaged/max_ptes_none"), "511", "max_ptes_none after the stop")
    check(d.lines("hugepages-2048kB", "left"), "it is not named")


@seconds(3)
def test_stop_restores_byte_for_byte(t):
    """B11, promise 3: SIGTERM with RestoreOnExit=yes: every file is what it was, byte for byte."""
    w = World(t, modes={64: "always", 16: "madvise"})
    d = t.daemon(w.tree)
    w.dropped()
    wait(lambda: w.tree.size(64) == "never", "64 kB goes too")
    d.stop()
    w.unchanged("files that differ after the stop")
    check(not os.path.exists(d.runtime + "/baseline.json"), "the journal is still there")
    check(not os.path.exists(d.socket), "the socket is still there")


@seconds(4)
def test_keep_on_exit(t):
    """B11: RestoreOnExit=no: the values stay; --restore=exit obeys, the next start knows the baseline, --restore restores."""
    w = World(t)
    config = "[Limits]\nRestoreOnExit=no\n"
    d = t.daemon(w.tree, config)
    w.dropped()
    d.stop()
    equal(w.tree.size(2048), "never", "2048 kB after the stop")
    equal(t.restore(d, "--restore=exit").returncode, 0, "exit code of --restore=exit")
    equal(w.tree.size(2048), "never", "2048 kB after --restore=exit")
    d.start()
    size = d.size(2048)
    equal((size["baseline"], size["actual"]), ("inherit", "never"), "baseline and actual of the next start")
    d.stop()
    equal(t.restore(d).returncode, 0, "exit code of --restore")
    w.unchanged("files that differ after --restore")


@seconds(4)
def test_crash(t):
    """B11, promise 3: kill -9, then --restore: byte for byte; again: nothing to do; with =exit as well."""
    for argument in ("--restore", "--restore=exit"):
        w = World(t)
        d = t.daemon(w.tree)
        w.dropped()
        d.kill()
        equal(w.tree.size(2048), "never", "2048 kB after the crash")
        done = t.restore(d, argument)
        equal(done.returncode, 0, "exit code: " + done.stderr)
        check("hugepages-2048kB/enabled" in done.stdout and "restored" in done.stdout, done.stdout)
        w.unchanged("files that differ after " + argument)
        writes = len(d.writes())
        done = t.restore(d, argument)
        says = "nothing to put back in %s\n" % d.runtime if argument == "--restore" else ""
        equal((done.returncode, done.stdout), (0, says), "the second time")
        equal(len(d.writes()), writes, "writes of the second time")


@seconds(5)
def test_crash_and_restart(t):
    """B11: kill -9 and a new start: the first start's values are the baseline, and come back when the pressure ends."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.kill()
    w.relax()
    d.start()
    wait(lambda: w.tree.size(2048) == "inherit" and w.tree.knob("khugepaged/max_ptes_none") == "511",
         "what the crash left behind is put right")
    d.stop()
    w.unchanged("files that differ in the end")


@seconds(8)
def test_crash_at_any_moment(t):
    """Promise 3: killed a dozen times at random moments of a flapping load: --restore always brings the start back."""
    w = World(t, FAST, modes={64: "always"})
    chance = random.Random(7)
    config = "[Controller]\nHold=1s..2s\nSettle=100ms..1s\n"
    d = t.daemon(w.tree, config, base=DEFAULTS, speed=FAST)
    for k in range(12):
        w.on = k % 3 != 2
        w.g.step(current=64 * MIB - 4096 if w.on else 10 * MIB)
        time.sleep(chance.uniform(0.05, 0.4))
        d.kill()
        equal(t.restore(d).returncode, 0, "exit code")
        w.unchanged("files that differ after crash %d" % k)
        d.start(ready=False)
    d.kill()


@seconds(3)
def test_restore_leaves_foreign_values(t):
    """--restore leaves and names a value that somebody else set since the crash."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.kill()
    w.tree.set_knob("hugepages-2048kB/enabled", "madvise")
    done = t.restore(d)
    equal(done.returncode, 0, "exit code")
    check("hugepages-2048kB/enabled" in done.stdout and "left" in done.stdout, done.stdout)
    equal((w.tree.size(2048), w.tree.knob("khugepaged/max_ptes_none")), ("madvise", "511"), "values")
    check(not os.path.exists(d.runtime + "/baseline.json"), "the journal is still there")


def test_restore_while_it_runs(t):
    """--restore beside a living mthpd is refused with 1 and says what to do instead."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    done = t.restore(d)
    equal(done.returncode, 1, "exit code")
    check("mthpctl restore" in done.stderr, done.stderr)
    equal(w.tree.size(2048), "never", "2048 kB")


def test_restore_fails(t):
    """--restore that may not write: exit code 1, the file named, the journal kept; later it works."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.kill()
    d.rules("*/hugepages-2048kB/enabled write EROFS")
    done = t.restore(d)
    equal(done.returncode, 1, "exit code")
    check("hugepages-2048kB/enabled" in done.stderr, done.stderr)
    d.rules()
    equal(t.restore(d).returncode, 0, "exit code of the second try")
    w.unchanged("files that differ")


def bad_journals(good):
    other = dict(good, boot_id="00000000-0000-0000-0000-000000000000")
    elsewhere = json.loads(json.dumps(good))
    elsewhere["files"][0]["path"] = "../../../etc/passwd"
    return (json.dumps(good)[:-20], "", "not json", json.dumps(other), json.dumps(elsewhere), "[]", "\0" * 100)


@seconds(8)
def test_journals_that_cannot_be_used(t):
    """B11: truncated, empty, corrupt, of another boot, with a foreign path: ignored with one warning; what stands is the baseline; --restore fails but for another boot's."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.kill()
    w.relax()
    stands = w.tree.all_knobs()
    with open(d.runtime + "/baseline.json") as f:
        good = json.load(f)
    for text in bad_journals(good):
        for name in ("baseline.json", "baseline.json.ignored"):
            if os.path.exists(d.runtime + "/" + name):
                os.remove(d.runtime + "/" + name)
        with open(d.runtime + "/baseline.json", "w") as f:
            f.write(text)
        done = t.restore(d)
        equal(done.returncode, 0 if "00000000-0000" in text else 1, "exit code of --restore with %r" % text[:40])
        check("baseline.json" in done.stderr, "--restore says: %s", done.stderr)
        equal(w.tree.all_knobs(), stands, "files after --restore with %r" % text[:40])
        before = len(d.lines("ignored"))
        d.start()
        equal(len(d.lines("ignored")) - before, 1, "warnings about %r" % text[:40])
        equal(d.size(2048)["baseline"], "never", "baseline with %r" % text[:40])
        told = [x for x in d.status()["degraded"] if "counts as start values" in x and "reboot" in x]
        equal(len(told), 0 if "00000000-0000" in text else 1, "told in the status with %r" % text[:40])
        d.stop()
        equal(w.tree.all_knobs(), stands, "files with %r" % text[:40])


@seconds(5)
def test_reload_does_not_bounce(t):
    """B11: SIGHUP under pressure writes no start value."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.ticks(3)
    writes = len(d.writes())
    for k in range(3):
        d.reload("[Controller]\nPressureHigh=%d%%\n" % (9 + k))
    d.ticks(5)
    equal(d.writes()[writes:], [], "writes")
    equal(w.tree.size(2048), "never", "2048 kB")


@seconds(6)
def test_hold_over_a_restart(t):
    """design 4: a hold freezes the switches where they are, over restarts; release lets the loop go on."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    done = d.ctl("hold", "maintenance of the array")
    equal(done.returncode, 0, "exit code of hold: " + done.stderr)
    equal(d.status()["state"], "held", "state")
    check("maintenance of the array" in d.status()["hold"], "reason: %s", d.status()["hold"])
    w.relax()
    d.ticks(25)
    equal(w.tree.size(2048), "never", "2048 kB while held")
    d.stop()
    equal(w.tree.size(2048), "never", "2048 kB after the stop while held")
    d.start()
    equal(d.status()["state"], "held", "state after the restart")
    d.ticks(10)
    equal(w.tree.size(2048), "never", "2048 kB after the restart")
    equal(d.ctl("release").returncode, 0, "exit code of release")
    wait(lambda: w.tree.size(2048) == "inherit", "it goes on")
    check(d.status()["state"] in ("active", "degraded"), "state: %s", d.status()["state"])
    d.stop()
    w.unchanged("files that differ in the end")


@seconds(4)
def test_hold_before_any_decision(t):
    """design 4: held while quiet: pressure writes nothing."""
    w = World(t)
    w.relax()
    d = t.daemon(w.tree)
    equal(d.ctl("hold").returncode, 0, "exit code of hold")
    w.g.step(current=64 * MIB - 4096)
    w.on = True
    d.ticks(20)
    equal(d.writes(), [], "writes while held")


@seconds(4)
def test_restore_by_hand(t):
    """mthpctl restore: the start values at once, byte for byte, and a hold, although the pressure goes on."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    equal(d.ctl("restore").returncode, 0, "exit code")
    w.unchanged("files that differ")
    equal(d.status()["state"], "held", "state")
    d.ticks(15)
    w.unchanged("files that differ later")
    equal(d.ctl("verify").returncode, 0, "verify: what is wanted is what was restored")
    d.stop()
    w.unchanged("files that differ after the stop")


@seconds(3)
def test_verify(t):
    """verify: 0 and a sentence while all is as wanted, 1 and each difference named otherwise."""
    w = World(t)
    d = t.daemon(w.tree, base=SLOW_AUDIT)
    w.dropped()
    d.ticks(3)
    done = d.ctl("verify")
    equal(done.returncode, 0, "exit code: " + done.stdout)
    w.tree.set_knob("hugepages-2048kB/enabled", "madvise")
    done = d.ctl("verify")
    equal(done.returncode, 1, "exit code after a foreign change: " + done.stdout)
    check("hugepages-2048kB/enabled" in done.stdout and "madvise" in done.stdout and "never" in done.stdout, done.stdout)
    answer = json.loads(d.ctl("verify", "--json").stdout)
    equal((answer["ok"], len(answer["differences"])), (False, 1), "ok, differences")


@seconds(3)
def test_dry_run_by_reload(t):
    """What was written before a reload made it a dry run is put back by the stop."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.reload("[Daemon]\nDryRun=yes\n")
    d.stop()
    w.unchanged("files that differ")


def test_dry_run_and_restore(t):
    """A restore writes, a dry run does not: refused."""
    done = t.run("--dry-run", "--restore", "--runtime-dir=" + t.tree().path("run"))
    equal(done.returncode, 2, "exit code")
    check("do not go together" in done.stderr, done.stderr)


@seconds(3)
def test_journal_of_another_root(t):
    """The start values of one --root are not lost to a start with another, dry or not."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.kill()
    other = t.tree()
    for words in ((), ("--dry-run",)):
        done = t.run("--no-bus", "--root=" + other.dir, "--runtime-dir=" + d.runtime, *words)
        equal(done.returncode, 1, "exit code: " + done.stderr)
        check("another --root" in done.stderr and "--restore" in done.stderr, done.stderr)
    equal(t.restore(d).returncode, 0, "--restore")
    w.unchanged("files that differ")


def test_dry_run_leaves_nothing(t):
    """A dry run that had nothing to remember leaves no file for the next start to stumble over."""
    d = t.daemon(t.tree(), args=("--dry-run",))
    d.stop()
    check(not os.path.exists(d.runtime + "/baseline.json"), "a journal is left")


def test_sigint_is_a_stop(t):
    """Ctrl-C puts everything back, as SIGTERM does."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    d.signal(signal.SIGINT)
    d.wait_end(0)
    w.unchanged("files that differ")


def test_closed_terminal_is_a_stop(t):
    """At a terminal SIGHUP reloads, until the terminal is closed: then everything is put back."""
    w = World(t)
    ours, its = os.openpty()
    d = t.daemon(w.tree, wrapper=("setsid", "--ctty"), stdin=its)
    os.close(its)
    w.dropped()
    d.reload("")
    check(d.process.poll() is None, "a reload ended it")
    os.close(ours)  # the kernel tells the session's leader
    d.wait_end(0)
    w.unchanged("files that differ")


@seconds(3)
def test_impatient_stop(t):
    """Ctrl-C again and again until mthpd has ended: all is put back, and the exit code is 0."""
    w = World(t)
    d = t.daemon(w.tree)
    w.dropped()
    while d.process.poll() is None:
        d.signal(signal.SIGINT)
        d.signal(signal.SIGTERM)
        time.sleep(0.0002)
    d.wait_end(0)
    w.unchanged("files that differ")


def test_switch_appears_unparseable(t):
    """A file that turns into nonsense while mthpd runs is not written any more, and the stop leaves it."""
    w = World(t)
    d = t.daemon(w.tree, base=SLOW_AUDIT)
    w.dropped()
    w.tree.write(THP + "/hugepages-2048kB/enabled", "something else entirely\n")
    writes = len(d.writes("hugepages-2048kB"))
    w.relax()
    d.ticks(30)
    d.signal(signal.SIGTERM)
    d.wait_end()
    equal(d.writes("hugepages-2048kB")[writes:], [], "writes")
