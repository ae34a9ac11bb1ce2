# SPDX-License-Identifier: LGPL-2.1-or-later
"""mthpd --restore and the files of memory groups."""

import json
import os

from harness import check, equal

WEB, DB, GONE = "system.slice/web.service", "system.slice/db.service", "system.slice/gone.service"


def entry(tree, path, files, inode=None):
    inode = inode or os.stat(tree.path("sys/fs/cgroup/" + path)).st_ino
    return {"path": path, "id": inode, "files": [
        {"file": "memory.thp." + name, "baseline": base, "written": written, "old": old}
        for name, base, written, old in files]}


def journal(tree, groups):
    tree.write("run/baseline.json", json.dumps({
        "format": 1, "boot_id": "none", "root": os.path.realpath(tree.dir), "restore_on_exit": True,
        "hold": None, "files": [], "groups": groups}))


def restore(t, tree):
    return t.run("--root=" + tree.dir, "--runtime-dir=" + tree.path("run"), "--restore")


def test_restore_of_groups(t):
    """What mthpd wrote goes back, somebody else's value stays and is named, gone groups are no word worth."""
    tree = t.tree(memcg_thp=True)
    web, db = tree.group(WEB), tree.group(DB)
    web.set_knob("max_size", "65536")
    web.set_knob("margin", "0")
    db.set_knob("max_ptes_none", "100")  # somebody else's
    journal(tree, [entry(tree, WEB, [("max_size", "max", "65536", None), ("margin", "inherit", "64", "0")]),
                   entry(tree, DB, [("max_ptes_none", "inherit", "0", None)]),
                   entry(tree, GONE, [("max_size", "max", "65536", None)], inode=1 << 40)])
    answer = restore(t, tree)
    equal(answer.returncode, 0, "exit code")
    equal(answer.stderr, "", "complaints")
    equal(web.knob("max_size"), "max", "max_size")
    equal(web.knob("margin"), "inherit", "margin")
    equal(db.knob("max_ptes_none"), "100", "another's max_ptes_none")
    equal(sorted(answer.stdout.splitlines()), [
        DB + "/memory.thp.max_ptes_none: holds 100, set by somebody else: left",
        WEB + "/memory.thp.margin: 0 -> inherit, restored",
        WEB + "/memory.thp.max_size: 65536 -> max, restored"], "what is said")
    check(not os.path.exists(tree.path("run/baseline.json")), "the journal stays")
    check("nothing to put back" in restore(t, tree).stdout, "the second time")


def test_restore_of_a_group_that_was_created_anew(t):
    """The same name and even the same value, but another inode: not touched."""
    tree = t.tree(memcg_thp=True)
    web = tree.group(WEB)
    web.set_knob("max_size", "65536")
    journal(tree, [entry(tree, WEB, [("max_size", "max", "65536", None)], inode=1 << 40)])
    answer = restore(t, tree)
    equal((answer.returncode, answer.stderr), (0, ""), "the answer")
    check("nothing to put back" in answer.stdout, "the answer: %s", answer.stdout)
    equal(web.knob("max_size"), "65536", "max_size of the new group")


def test_start_after_a_crash_does_not_take_ours_for_the_baseline(t):
    """The journal outlives a second run; what that run leaves is restored."""
    tree = t.tree(memcg_thp=True)
    web = tree.group(WEB, current=1 << 20)
    web.set_knob("max_size", "65536")
    journal(tree, [entry(tree, WEB, [("max_size", "max", "65536", None)])])
    daemon = t.daemon(tree)
    daemon.ticks(2)
    daemon.kill()
    answer = restore(t, tree)
    equal(answer.returncode, 0, "exit code")
    equal(web.knob("max_size"), "max", "max_size")
