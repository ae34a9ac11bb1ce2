# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest

TITLE = "PsiWindow= is the window of the kernel's triggers, and only a short one costs a kernel thread"
WINDOWS = {"default": (2000000, "==", 0), "4s": (4000000, "==", 0), "500ms": (500000, ">=", 1)}


def guests(long):
    return [Guest("t_psi_window.sh", icount=False, weight=10)]


def judge(test, runs):
    for run in runs:
        test.claims([[claim for window, (usec, relation, threads) in WINDOWS.items() for claim in (
            Claim(f"PsiWindow={window}: the triggers are granted", run.json(f"seen-{window}")["psi_triggers"], "==", "granted"),
            Claim(f"PsiWindow={window}: window of the triggers, in us", run.json(f"seen-{window}")["trigger_window_usec"],
                  "==", usec),
            Claim(f"PsiWindow={window}: kernel threads for triggers", int(run.text(f"threads-{window}")), relation, threads),
        )]])
