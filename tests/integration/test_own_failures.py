# SPDX-License-Identifier: LGPL-2.1-or-later
"""Groups' own files that cannot be written: told as they are, for the group that it
is, tried again where it may help, and the others are steered."""

from harness import check, equal, seconds, wait
from test_own import Pair

MAX_SIZE, MARGIN = "memory.thp.max_size", "memory.thp.margin"


SMALL = "[Policy \"%s\"]\nMatch=%s\nMaxSize=4K\n"
SCATTERED = SMALL % ("s", "scattered.service")


class Failing(Pair):
    """A pair whose scattered group wants single pages by its policy and does not get them."""

    def __init__(self, t, *rules, config=""):
        super().__init__(t, SCATTERED + config, rules=rules)

    def fails(self, *rules):
        self.daemon.rules(*rules)

    def own(self, group="scattered.service"):
        return self.daemon.group(group)["own"]

    def asked(self):
        """Small pages are wanted, and were tried."""
        wait(lambda: self.own()["max_size"]["wanted"] == "4096" and self.own()["max_size"]["error"],
             "small pages only are wanted, in vain")

    def tries(self, part="scattered.service/" + MAX_SIZE):
        return len(self.daemon.group_writes(part))

    def degraded(self, *words):
        return [x for x in self.daemon.status()["degraded"] if all(w in x for w in words)]

    def told(self, word):
        """Status, explain, verify and top say what stands, and why."""
        file = self.own()["max_size"]
        equal((file["actual"], file["wanted"], file["error"]), ("max", "4096", word), "max_size in the status")
        text = self.daemon.explain("scattered.service")
        check(MAX_SIZE + " is max, where 4096 is wanted" in text and "refused: " + word in text, "explain: %s", text)
        verify = self.daemon.ctl("verify")
        equal(verify.returncode, 1, "verify")
        check("wanted 4096, actual max (refused: %s (" % word in verify.stdout, "verify: %s", verify.stdout)
        check(self.degraded("scattered.service/" + MAX_SIZE, word), "degraded: %s", self.daemon.status()["degraded"])


@seconds(6)
def test_error_that_passes(t):
    """EIO twice: what stands is told, each audit tries again once, and then it stands."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write EIO")
    p.asked()
    p.told("EIO")
    tries = p.tries()
    p.daemon.ticks(25)
    check(1 <= p.tries() - tries <= 6, "%d tries in about two audits", p.tries() - tries)
    equal(len(p.daemon.lines("cannot be set to")), 1, "lines of the log")
    p.told("EIO")
    p.fails()
    wait(lambda: p.scattered.knob("max_size") == "4096", "written at a later audit")
    wait(lambda: not p.degraded(MAX_SIZE), "degraded no more")
    equal(p.own()["max_size"]["error"], None, "error")
    equal(p.daemon.ctl("verify").returncode, 0, "verify")
    p.daemon.stop()
    p.start_values()


@seconds(6)
def test_value_that_one_group_refuses(t):
    """EINVAL in one group: not tried again there, told once, and another group has that value."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write EINVAL",
                config=SMALL % ("o", "other.service"))
    p.asked()
    wait(lambda: p.tries() == 1, "one try")
    p.told("EINVAL")
    other = p.tree.group("other.service", limit=64 << 20, current=16 << 20)
    wait(lambda: other.knob("max_size") == "4096", "the other group has it")
    p.daemon.ticks(25)
    equal((p.tries(), len(p.daemon.lines("the kernel refuses"))), (1, 1), "tries and lines")
    equal(p.daemon.status()["state"], "degraded", "state")
    p.fails()
    p.daemon.reload(SCATTERED)
    wait(lambda: p.scattered.knob("max_size") == "4096", "tried again after a reload")
    wait(lambda: not p.degraded(MAX_SIZE), "degraded no more")


@seconds(6)
def test_value_that_the_kernel_refuses(t):
    """EINVAL in three groups is the kernel's: the fourth is not asked, and that is told."""
    p = Failing(t, "*/" + MAX_SIZE + " write EINVAL", config=SMALL % ("o", "o*.service"))
    others = [p.tree.group("o%d.service" % i, limit=64 << 20, current=16 << 20) for i in range(6)]
    wait(lambda: all(p.daemon.group(o.path) and p.own(o.path)["max_size"]["error"] == "EINVAL" for o in others),
         "known for all")
    equal(p.tries("/" + MAX_SIZE), 3, "tries")
    check(p.daemon.lines("as in 2 other groups"), "not told whose it is")
    p.opened()


@seconds(6)
def test_group_that_denies(t):
    """EROFS on one group's files: that group is named, nobody says that no group can be steered."""
    p = Failing(t, "*/scattered.service/memory.thp.* open-write EROFS")
    p.asked()
    p.told("EROFS")
    p.opened()
    equal(p.degraded("cannot be steered") + p.degraded("the switches cannot be written"), [], "degraded for all")
    equal(p.daemon.features()["writable"], True, "writable")
    equal(len(p.daemon.lines("the group is not steered")), 1, "lines")
    p.daemon.ticks(25)
    told = [d["knob"] for d in p.daemon.history() if d["outcome"] == "read-only"]
    equal(told.count(MAX_SIZE), 1, "decisions that were not written")
    p.fails()
    wait(lambda: p.scattered.knob("max_size") == "4096", "written at a later audit")


@seconds(6)
def test_all_groups_deny(t):
    """EACCES on the files of all groups is the machine's, and said so; what stands is what is told."""
    p = Failing(t, "*/memory.thp.* open-write EACCES")
    p.asked()
    wait(lambda: p.degraded("memory groups cannot be steered: Permission denied"), "told for the machine")
    equal(p.own()["max_size"]["actual"], "max", "actual")
    wait(lambda: p.own("dense.service")["gate_wanted"] != "kernel", "the gate is wished open")
    equal(p.own("dense.service")["gate"], "kernel", "gate")
    p.fails()
    p.opened()
    wait(lambda: not p.degraded("cannot be steered"), "degraded no more")


@seconds(9)
def test_one_file_left_to_somebody(t):
    """Another program keeps changing max_size of a group: that file is left to it, the gate is steered on."""
    p = Pair(t, SMALL.replace("4K", "64K") % ("d", "dense.service"))
    p.opened()
    p.judged()

    def contest():
        if p.dense.knob("max_size") == "65536":
            p.dense.set_knob("max_size", "1048576")
        return [x for x in p.daemon.status()["degraded"] if "keeps changing dense.service/memory.thp.max_size" in x]

    wait(contest, "it is left to the other program")
    p.young = 0.1
    wait(lambda: p.dense.knob("margin") == "inherit", "the gate is shut")
    own = p.daemon.group("dense.service")["own"]
    equal((own["gate"], own["margin"]["wanted"], own["max_size"]["actual"]), ("kernel", "inherit", "1048576"), "own")


@seconds(6)
def test_missing_device(t):
    """ENODEV from a group that lives: told once, and tried again at an audit only."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write ENODEV")
    p.asked()
    wait(lambda: p.own()["max_size"]["error"] == "ENODEV", "told in the status")
    tries = p.tries()
    p.daemon.ticks(25)
    check(1 <= p.tries() - tries <= 6, "%d tries in about two audits", p.tries() - tries)
    equal(len(p.daemon.lines("No such device")), 1, "lines of the log")
    p.told("ENODEV")


@seconds(5)
def test_gate_that_an_administrator_set(t):
    """A margin of his stands: that is the gate, and the wish is beside it."""
    p = Pair(t)
    p.daemon.stop()
    p.dense.set_knob("margin", "auto")
    p.scattered.set_knob("margin", "7")
    p.quiet.set_knob("margin", "0")
    p.daemon.start()
    wait(lambda: p.daemon.group("dense.service")["own"]["gate_wanted"] in ("trial", "open"), "the wish")
    gates = {g: p.daemon.group(g + ".service")["own"]["gate"] for g in ("dense", "scattered", "quiet")}
    equal(gates, {"dense": "kernel", "scattered": "fixed", "quiet": "open"}, "gates as they are")
    check("kernel, wants " in p.daemon.ctl("status").stdout, "status: %s", p.daemon.ctl("status").stdout)
    text = p.daemon.explain("dense.service")
    check("Its gate is kernel, where" in text and "an administrator chose, auto" in text, "explain: %s", text)
    check(p.daemon.group("dense.service")["reason"] not in ("gate-probe", "gate-open"), "a reason for what is not so")
    equal(p.daemon.ctl("verify").returncode, 0, "verify")


@seconds(5)
def test_gate_without_its_file(t):
    """No memory.thp.margin in a group: it has no gate of its own, whatever is wished."""
    p = Pair(t)
    p.daemon.stop()
    p.dense.unlink(MARGIN)
    p.daemon.start()
    wait(lambda: p.daemon.group("dense.service")["own"]["gate_wanted"] in ("trial", "open"), "the wish")
    equal(p.daemon.group("dense.service")["own"]["gate"], None, "gate")
    check(MARGIN + " is missing" in p.daemon.explain("dense.service"), "explain does not tell")
    p.killed()
    wait(lambda: p.scattered.knob("max_ptes_none") == "0", "a file is written")
    p.scattered.unlink("memory.thp.max_ptes_none")
    done = p.daemon.ctl("verify")
    equal(done.returncode, 1, "verify")
    check("max_ptes_none: wanted 0, actual - (the file is missing" in done.stdout, "verify: %s", done.stdout)


@seconds(5)
def test_audit_sees_files_that_are_not_ours(t):
    """Somebody sets a file that mthpd never wrote: the next audit tells, without a decision."""
    p = Pair(t)
    p.opened()
    p.dense.set_knob("max_ptes_none", "100")
    wait(lambda: p.daemon.status()["counters"]["foreign_changes"] == 1, "seen by an audit")
    check(p.daemon.lines("memory.thp.max_ptes_none", "holds 100 instead of inherit"), "no line in the log")
    own = p.daemon.group("dense.service")["own"]["max_ptes_none"]
    equal((own["baseline"], own["actual"]), ("100", "100"), "max_ptes_none")
    p.daemon.ticks(15)
    equal(p.daemon.status()["counters"]["foreign_changes"], 1, "counted once")
    p.daemon.stop()
    equal(p.dense.knob("max_ptes_none"), "100", "after the stop")


@seconds(6)
def test_what_could_not_be_put_back(t):
    """The write that gives a group its start value fails: a later audit does it."""
    p = Pair(t, SCATTERED)
    wait(lambda: p.scattered.knob("max_size") == "4096", "small pages only")
    p.daemon.rules("*/scattered.service/" + MAX_SIZE + " write EIO")
    p.daemon.reload("[Policy \"x\"]\nMatch=scattered.service\nControlled=no\n")
    check(p.daemon.lines("cannot be set to"), "the failure is told")
    equal(p.scattered.knob("max_size"), "4096", "left behind")
    p.daemon.rules()
    wait(lambda: p.scattered.knob("max_size") == "max", "given back")


@seconds(5)
def test_journal_that_a_crash_left_corrupt(t):
    """What is left in groups' files passes for start values then: said for the whole run, with the remedy."""
    p = Pair(t, SCATTERED)
    wait(lambda: p.scattered.knob("max_size") == "4096", "small pages only")
    p.daemon.kill()
    p.tree.write("run/baseline.json", "{")
    done = t.restore(p.daemon)
    check(done.returncode == 1 and "of groups' memory.thp.*" in done.stderr, "--restore: %s", done.stderr)
    p.daemon.start()
    p.daemon.ticks(25)
    told = [x for x in p.daemon.status()["degraded"] if "baseline.json is " in x and "reboot" in x]
    equal(len(told), 1, "degraded: %s" % p.daemon.status()["degraded"])
    p.daemon.stop()


@seconds(5)
def test_files_that_groups_do_not_have(t):
    """features, and degraded, say which of the files are there; without any there is one set of switches for all."""
    p = Pair(t)
    everything = sorted(["memory.thp.events", MAX_SIZE, "memory.thp.max_ptes_none", MARGIN])
    found = p.daemon.features()
    equal((found["memcg_thp"], sorted(found["memcg_thp_files"])), (True, everything), "features with all files")
    equal(p.daemon.status()["degraded"], [], "degraded")
    p.daemon.stop()
    groups = (p.dense, p.scattered, p.quiet)
    p.rest()
    for g in groups:
        g.thp_events = {}
        g.unlink("memory.thp.events")
    p.daemon.start()
    equal(sorted(p.daemon.features()["memcg_thp_files"]), everything[1:], "features without events")
    check([x for x in p.daemon.status()["degraded"] if "groups have no memory.thp.events" in x], "not degraded")
    p.daemon.stop()
    for g in groups:
        for name in everything[1:]:
            g.unlink(name)
    p.daemon.start()
    found = p.daemon.features()
    equal((found["memcg_thp"], found["memcg_thp_files"]), (False, []), "features without files")
    check([x for x in p.daemon.status()["degraded"] if "no memory.thp.* files" in x], "not degraded")


@seconds(8)
def test_one_group_made_anew_is_one(t):
    """EINVAL in a group that is made three times is not the kernel's: another group has that value."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write EINVAL", config=SMALL % ("o", "other.service"))
    for i in range(3):
        wait(lambda: p.tries() == i + 1, "try %d" % (i + 1))
        if i < 2:
            with p.tree.lock:
                p.scattered.remove()
                p.scattered = p.group("scattered.service")
    other = p.tree.group("other.service", limit=64 << 20, current=16 << 20)
    wait(lambda: other.knob("max_size") == "4096", "the other group has it")
    equal(p.daemon.lines("other groups"), [], "said of others")


@seconds(6)
def test_size_that_could_not_be_written(t):
    """Status, explain and metrics tell the size that the group can have, the wish beside it."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write EIO")
    p.asked()

    def told(kb, text, shown, size):
        g = p.daemon.group("scattered.service")
        equal((g["max_size_kb"], g["max_size_wanted_kb"]), (kb, 0), "size and wish")
        check(text in p.daemon.explain("scattered.service"), "explain: %s", p.daemon.explain("scattered.service"))
        line = [x for x in p.daemon.ctl("status").stdout.splitlines() if x.startswith("scattered.service")]
        check(shown in line[0], "status: %s", line)
        line = 'mthpd_cgroup_largest_size_bytes{cgroup="scattered.service"} %d' % size
        check(line in p.daemon.ctl("metrics").stdout.splitlines(), "metrics: no %s", line)

    told(2048, "folios up to 2M, where no large folios are wished for.", " 2M, wants none ", 2 << 20)
    p.fails()
    wait(lambda: p.scattered.knob("max_size") == "4096", "written at a later audit")
    told(0, ": no large folios.", " none ", 0)


@seconds(4)
def test_somebody_else_sets_it(t):
    """A value that could not be written and stands by another hand is not told as missing any more."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " write EIO")
    p.asked()
    check(p.degraded("not written"), "degraded: %s", p.daemon.status()["degraded"])
    p.scattered.set_knob("max_size", "4096")
    wait(lambda: not p.degraded("not written"), "nothing is missing")
    equal(p.daemon.ctl("verify").returncode, 0, "verify")


@seconds(4)
def test_unreadable(t):
    """What cannot be read is not as wanted: verify says so, with the error; explain as well."""
    p = Failing(t)
    wait(lambda: p.scattered.knob("max_size") == "4096", "it is written")
    p.fails("*/scattered.service/memory.thp.* read EIO")
    verify = p.daemon.ctl("verify")
    equal(verify.returncode, 1, "verify")
    check("scattered.service/" + MAX_SIZE in verify.stdout and "cannot be read: Input/output error" in verify.stdout,
          "verify: %s", verify.stdout)
    check("Its own files cannot be read." in p.daemon.explain("scattered.service"), "explain")
    p.fails()
    equal(p.daemon.ctl("verify").returncode, 0, "verify, readable again")


@seconds(4)
def test_journal_full(t):
    """Without room for the journal nothing is written, and that is the reason that is told."""
    p = Failing(t, "*/baseline.json.new write ENOSPC")
    p.asked()
    text = p.daemon.explain("scattered.service")
    check("the journal of start values has no room for it" in text, "explain: %s", text)
    check("the journal of start values has no room for it" in p.daemon.ctl("verify").stdout, "verify")


@seconds(5)
def test_unreadable_at_the_first_look(t):
    """A group whose own files cannot be read has no say in the switches of all; the audit looks again."""
    p = Failing(t, "*/scattered.service/" + MAX_SIZE + " read EIO", config="MaxPtesNone=64\n")
    wait(lambda: p.degraded("scattered.service: its memory.thp.*", "Input/output error"), "it is told")
    p.daemon.ticks(12)
    equal(p.own(), None, "its own files in the status")
    equal([x for x in p.daemon.history() if x["cgroup"] == "scattered.service"], [], "decisions")
    p.fails()
    wait(lambda: p.scattered.knob("max_size") == "4096", "it is steered")
    wait(lambda: not p.degraded("its memory.thp.*"), "nothing is wrong any more")
    equal(len(p.daemon.lines("its memory.thp.* cannot be read")), 1, "lines of the log")
