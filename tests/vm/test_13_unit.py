# SPDX-License-Identifier: LGPL-2.1-or-later
import re

import vmtest
from vmtest import Claim, Guest

TITLE = "the watcher's unit tests of limits where nothing forbids them: inotify, descriptors, windows"
PROGRAM = "test_watch_limits"


def guests(long):
    # Ten thousand watches by the kernel's own reckoning take more than the usual memory.
    return [Guest("t_unit.sh", PROGRAM, icount=False, weight=10, mem="4000M",
                  add=[f"{vmtest.BUILD}/unit/{PROGRAM}"])]


def judge(test, runs):
    for run in runs:
        text = run.text(PROGRAM)
        ran = len(re.findall(r"^\[ RUN ", text, re.M))
        test.claims([[
            Claim(f"{PROGRAM}: exit code", int(run.text("code")), "==", 0),
            Claim("tests that ran", ran, ">=", 6),
            Claim("tests that passed, of them", len(re.findall(r"^\[ +OK \]", text, re.M)), "==", ran),
            Claim("inotify_limits passed", "[       OK ] inotify_limits" in text, "==", True),
        ]])
