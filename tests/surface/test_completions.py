# SPDX-License-Identifier: LGPL-2.1-or-later
"""Completions of bash, zsh and fish, by the shells themselves; all of them know each verb and option of --help."""

import os
import pty
import re
import select
import subprocess
import tempfile
import time

from world import TOP, check, equal, run, tool

HERE = os.path.join(TOP, "systemd", "completions")
# Shells write there.
HOME = tempfile.TemporaryDirectory(prefix="mthpd-home-")
PER_VERB = {"status": ["-n"], "top": ["-n"], "history": ["-n"], "explain": ["--pid"], "replay": ["--config"],
            "plot": ["-o"], "record": ["-o", "--duration", "--max-size", "--anonymize"]}


def options_of(program):
    return sorted(set(re.findall(r"(?<![\w-])--[a-z-]+[a-z]", run([program, "--help"]).stdout)))


def verbs_of(t):
    return sorted(re.findall(r"^  ([a-z][a-z-]*) ", run([t.mthpctl, "--help"]).stdout, re.M))


def bash(program, *words, cwd="/"):
    """What bash offers for the last word."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _%s; '
              'printf "%%s\\n" "${COMPREPLY[@]}"' % program)
    done = run([tool("bash"), "--norc", "-c", script, "bash", "%s/bash/%s" % (HERE, program), program] + list(words), cwd=cwd)
    return sorted(x for x in done.stdout.split("\n") if x)


def fish(program, line, cwd="/"):
    done = run([tool("fish"), "--no-config", "-c", "source %s/fish/%s.fish; complete -C '%s'" % (HERE, program, line)], cwd=cwd,
               env={**os.environ, "HOME": HOME.name})
    check("error" not in done.stdout.lower().replace("write_errors", ""), "fish: %s", done.stdout)
    return sorted(x.split("\t")[0] for x in done.stdout.split("\n") if x)


def zsh(line, want, timeout=60):
    """Types a line and a tab into a real zsh; its screen until `want` shows."""
    shell, (master, slave) = tool("zsh"), pty.openpty()
    p = subprocess.Popen([shell, "-f", "-i"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                         env={"PATH": os.environ["PATH"], "TERM": "dumb", "HOME": HOME.name, "COLUMNS": "80", "LINES": "50"})
    os.close(slave)
    seen = ""

    def until(word, end):
        nonlocal seen
        while word not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536).decode(errors="replace")
        return word in seen

    try:
        end = time.monotonic() + timeout
        os.write(master, ("PS1=''; fpath=(%s/zsh $fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep; "
                          "zstyle ':completion:*' list-prompt ''; print rea''dy\n" % HERE).encode())
        check(until("ready", end), "zsh is not ready: %s", seen[-300:])
        seen = ""
        os.write(master, line.encode() + b"\t\t")
        found = until(want, end)
        return found, seen
    finally:
        p.kill()
        p.wait()
        os.close(master)


def test_bash_mthpctl(t):
    """Verbs, options before and after a verb, files, processes, groups; options with "=" in three words."""
    equal(bash("mthpctl", ""), verbs_of(t), "verbs")
    equal(bash("mthpctl", "hi"), ["history"], "hi")
    equal(bash("mthpctl", "--json", "re"), ["record", "release", "reload", "replay", "restore"], "re")
    equal(bash("mthpctl", "--socket", "=", "/x", "hi"), ["history"], "a verb behind --socket=/x")
    every = {x.rstrip("=") for x in bash("mthpctl", "-")}
    for verb, options in PER_VERB.items():
        found = {x.rstrip("=") for x in bash("mthpctl", verb, "-")}
        check(set(options) <= found, "%s: %s", verb, found)
        every |= found
    equal(sorted(x for x in every if x.startswith("--")), options_of(t.mthpctl), "options")
    with open(t.dir + "/a trace", "w"):
        pass
    equal(bash("mthpctl", "plot", "a", cwd=t.dir), ["a trace"], "a file with a blank")
    equal(bash("mthpctl", "replay", "--config", "=", "a", cwd=t.dir), ["a trace"], "a file behind --config=")
    check(str(os.getpid()) in bash("mthpctl", "explain", "--pid", "=", str(os.getpid())), "a process")
    equal(bash("mthpctl", "status", "-n", "1"), [], "a number")
    groups = [x for x in os.listdir("/sys/fs/cgroup") if os.path.isdir("/sys/fs/cgroup/" + x)]
    if groups:
        equal(len(bash("mthpctl", "explain", "")), len(groups), "groups")


def test_bash_mthpd(t):
    """Options and directories."""
    found = bash("mthpd", "-")
    equal(sorted({x.split("=")[0] for x in found}), options_of(t.mthpd), "options")
    check("--restore=exit" in found, "--restore=exit")
    equal(bash("mthpd", "--restore", "=", ""), ["exit"], "--restore=")
    os.mkdir(t.dir + "/sub")
    equal(bash("mthpd", "--root", "=", "s", cwd=t.dir), ["sub"], "--root=")


def test_bash_interactive(t):
    """In an interactive bash, by the tab key."""
    master, slave = pty.openpty()
    p = subprocess.Popen([tool("bash"), "--norc", "--noprofile", "-i"], stdin=slave, stdout=slave, stderr=slave,
                         start_new_session=True, env={"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": ""})
    os.close(slave)
    seen = b""
    try:
        os.write(master, b"source %s/bash/mthpctl\necho rea''dy\n" % HERE.encode())
        end = time.monotonic() + 10
        while b"ready" not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536)
        os.write(master, b"echo done: mthpctl; : mthpctl; mthpctl hist\t")
        while b"history" not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536)
        check(b"mthpctl history" in seen, "%r", seen[-200:])
    finally:
        p.kill()
        p.wait()
        os.close(master)


def test_fish(t):
    """The same of fish."""
    equal(fish("mthpctl", "mthpctl "), verbs_of(t), "verbs")
    equal(fish("mthpctl", "mthpctl hi"), ["history"], "hi")
    every = set(fish("mthpctl", "mthpctl --"))
    for verb, options in PER_VERB.items():
        found = set(fish("mthpctl", "mthpctl %s -" % verb))
        check(set(options) <= found, "%s: %s", verb, found)
        every |= {x for x in found if x.startswith("--")}
    equal(sorted(every), options_of(t.mthpctl), "options")
    equal(sorted({x.split("=")[0] for x in fish("mthpd", "mthpd --")}), options_of(t.mthpd), "options of mthpd")


def test_zsh(t):
    """A real zsh completes a verb, an option, an option of a verb."""
    for line, want in (("mthpctl hist", "history"), ("mthpctl --so", "--socket="), ("mthpctl record --anon", "--anonymize"),
                       ("mthpctl explain --p", "--pid="), ("mthpd --no-b", "--no-bus"), ("mthpd --runt", "--runtime-dir=")):
        found, seen = zsh(line, want)
        check(found, "%s: %r", line, seen[-200:])


def test_all_shells_know_all(t):
    """Each verb and option of --help is in each file."""
    for program in ("mthpd", "mthpctl"):
        words = options_of(getattr(t, program)) + (verbs_of(t) if program == "mthpctl" else [])
        for file in ("bash/" + program, "zsh/_" + program, "fish/%s.fish" % program):
            with open(os.path.join(HERE, file)) as f:
                text = f.read()
            for word in words:
                known = r"-l %s\b" % word[2:] if "fish" in file and word.startswith("--") else re.escape(word)
                check(re.search(known, text), "%s does not know %s", file, word)
