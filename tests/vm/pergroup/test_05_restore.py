# SPDX-License-Identifier: LGPL-2.1-or-later
from pgtest import guest, writes_in
from vmtest import Claim, seeds

TITLE = "the groups' files after SIGTERM, SIGINT, kill -9 and --restore; groups created anew"
DEFAULTS = "max inherit inherit"


def guests(long):
    return [guest("t_group_restore.sh", seed, 20 if long else 3, "mthpd", seed=seed, key="mthpd",
                  timeout=3600, weight=200) for seed in seeds(long)] + \
           [guest("t_group_restore.sh", 1, 0, "nothing", key="nothing", timeout=900)]


def differing(run, name):
    """Files that differ from the start."""
    if not run.has(name):
        return None
    return len(set(run.text(name).splitlines()) ^ set(run.text("before").splitlines())) // 2


def groups_differing(run, name):
    return len([line for line in set(run.text(name).splitlines()) -
                set(run.text("before").splitlines()) if "/memory.thp." in line])


def ends(run, names):
    found = [Claim("files of groups in the snapshot", len(
        [line for line in run.text("before").splitlines() if "/memory.thp." in line]), ">=", 12)]
    for end in names:
        found.append(Claim(f"{end}: files of groups that mthpd had changed",
                           groups_differing(run, f"during-{end}"), ">=", 2))
        found.append(Claim(f"{end}: files that differ afterwards", differing(run, f"after-{end}"),
                           "==", 0))
    return found


def lines(run, name):
    return len(run.text(name).splitlines()) if run.has(name) else 0


def values(run, name):
    return " ".join(run.text(name).split())


def child_size_kb(run):
    group = next(g for g in run.json("status-child.json")["cgroups"] if g["path"] == "pod/child")
    return group["max_size_kb"]


def claims(run):
    return ends(run, ("TERM", "INT", "killed")) + [
        Claim("kill -9 alone: files that differ (or the test tests nothing)",
              groups_differing(run, "left-killed"), ">=", 2),
        Claim("exit codes of SIGTERM, SIGINT, --restore",
              " ".join(run.text(f"status-{n}").strip() for n in ("TERM", "INT", "killed")),
              "==", "0 0 0"),
        Claim("killed at other moments: --restore failed", lines(run, "kill-failed"), "==", 0),
        Claim("killed at other moments: files differed", lines(run, "kill-differs"), "==", 0),
    ] + [Claim(f"created anew, {when}", values(run, f"anew-{name}"), "==", DEFAULTS)
         for name, when in (("live", "while mthpd runs"), ("stopped", "and mthpd stopped"),
                            ("dead", "after kill -9, then --restore"))] + [
        Claim("no policy: writes to the slice", len(writes_in(run, "writes-none", "work.slice")),
              "==", 0),
        Claim("no policy: writes to its service",
              len(writes_in(run, "writes-none", "work.slice/inner.service")), ">=", 1),
        Claim("slice named: writes to the slice",
              len(writes_in(run, "writes-slice", "work.slice")), ">=", 1),
        Claim("slice named: writes to its service",
              len(writes_in(run, "writes-slice", "work.slice/inner.service")), "==", 0),
        # A few are those of other groups' processes.
        Claim("64K folios with a parent at 32K", run.number("child-64k"), "<=", 16),
        Claim("32K folios there (or the test tests nothing)", run.number("child-32k"), ">=", 100),
        Claim("and its max_size in status", child_size_kb(run), "<=", 32, "KiB"),
        Claim("the parent's own max_size", values(run, "parent-max_size"), "==", "32768")]


def judge(test, runs):
    test.claims([claims(run) for run in runs if run.guest.key == "mthpd"])
    test.control("without mthpd", [ends(run, ("TERM",)) for run in runs
                                   if run.guest.key == "nothing"])
