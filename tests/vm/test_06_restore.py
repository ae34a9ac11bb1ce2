# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, seeds

TITLE = "after SIGTERM, SIGINT, kill -9 and --restore every file is byte-equal to its start"


def guests(long):
    return [Guest("t_restore.sh", seed, 20 if long else 4, "mthpd", seed=seed, icount=False,
                  key="mthpd", weight=60) for seed in seeds(long)] + \
           [Guest("t_restore.sh", 1, 0, "nothing", icount=False, key="nothing", weight=40)]


def differing(run, name):
    """Files that differ from the start."""
    if not run.has(name):
        return None
    return len(set(run.text(name).splitlines()) ^ set(run.text("before").splitlines())) // 2


def claims(run, ends):
    found = [Claim("files in the snapshot", len(run.text("before").splitlines()), ">=", 20)]
    for end in ends:
        found.append(Claim(f"{end}: files that mthpd had changed", differing(run, f"during-{end}"),
                           ">=", 3))
        found.append(Claim(f"{end}: files that differ afterwards", differing(run, f"after-{end}"),
                           "==", 0))
    return found


def lines(run, name):
    return len(run.text(name).splitlines()) if run.has(name) else 0


def judge(test, runs):
    mthpd = [run for run in runs if run.guest.key == "mthpd"]
    test.claims([claims(run, ("TERM", "INT", "killed", "foreign")) + [
        Claim("a crash, a restart, SIGTERM: files that differ", differing(run, "after-restarted"),
              "==", 0),
        Claim("kill -9 alone: files that differ (or the test tests nothing)",
              differing(run, "left-killed"), ">=", 3),
        Claim("a second --restore: files that differ", differing(run, "after-again"), "==", 0),
        Claim("exit codes of SIGTERM, SIGINT, --restore, --restore",
              " ".join(run.text(f"status-{n}").strip() for n in ("TERM", "INT", "killed", "again")),
              "==", "0 0 0 0"),
        Claim("a value set by somebody else after the crash",
              "left" if "[madvise]" in run.text("foreign") else "lost", "==", "left"),
        Claim("and named by --restore",
              "named" if "hugepages-32kB" in run.text("restore-foreign") else "silent",
              "==", "named"),
        Claim("killed at other moments: --restore failed", lines(run, "kill-failed"), "==", 0),
        Claim("killed at other moments: files differed", lines(run, "kill-differs"), "==", 0),
        Claim("baseline.json after --restore", run.text("baseline").strip(), "==", "gone"),
    ] for run in mthpd])
    test.control("without mthpd", [claims(run, ("TERM",)) for run in runs
                                   if run.guest.key == "nothing"])
