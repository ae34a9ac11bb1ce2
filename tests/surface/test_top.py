# SPDX-License-Identifier: LGPL-2.1-or-later
"""mthpctl top on a terminal of its own (a pty), read through a small model of one."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from world import MIB, check, equal, wait


class Terminal:
    """Runs a command and keeps what its screen shows. Knows the codes that top uses, and fails on others."""

    def __init__(self, t, command, columns=80, rows=24, term="xterm"):
        self.columns = self.rows = self.frames = 0
        self.master, slave = pty.openpty()
        self.slave = os.dup(slave)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own_terminal,
                                        env={**os.environ, "TERM": term})
        os.close(slave)
        t.processes.append(self.process)
        t.open.append(self)
        self.raw, self.cells, self.bold, self.at, self.other_screen = b"", {}, {}, (0, 0), False
        self.attribute, self.cursor = 0, True

    def resize(self, columns, rows):
        """Returns when a picture of the new size is there; what was on its way before may be larger."""
        self.columns, self.rows = max(self.columns, columns), max(self.rows, rows)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if self.frames:
            goal = self.frames + 3
            wait(lambda: (self.type("x"), self.feed(), self.frames > goal)[2], "it draws at %dx%d" % (columns, rows))
            self.cells = {}
        self.columns, self.rows = columns, rows

    def feed(self):
        while select.select([self.master], [], [], 0.05)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.raw += data
        self.interpret()

    def interpret(self):
        while self.raw:
            m = re.match(rb"\x1b\[([?]?)([0-9;]*)([a-zA-Z])", self.raw)
            if m:
                self.raw = self.raw[m.end():]
                self.obey(m.group(1) + m.group(2) + m.group(3))
            elif self.raw[0] == 0x1b:
                if len(self.raw) < 12:
                    return
                raise AssertionError("escape code %r" % self.raw[:12])
            else:
                c, self.raw = chr(self.raw[0]), self.raw[1:]
                row, column = self.at
                if c == "\r":
                    self.at = (row, 0)
                elif c == "\n":
                    self.at = (row + 1, column)
                else:
                    if self.other_screen:
                        check(column < self.columns, "row %d is longer than %d columns", row, self.columns)
                        check(row < self.rows, "more than %d rows", self.rows)
                    self.cells[self.at], self.bold[self.at] = c, self.attribute
                    self.at = (row, column + 1)

    def obey(self, code):
        row, column = self.at
        if code == b"H":
            self.at = (0, 0)
            self.frames += 1
        elif code == b"K":
            self.cells = {k: v for k, v in self.cells.items() if k[0] != row or k[1] < column}
        elif code == b"J":
            self.cells = {k: v for k, v in self.cells.items() if k[0] < row or (k[0] == row and k[1] < column)}
        elif code == b"2J":
            self.cells = {}
        elif code in (b"0m", b"1m", b"7m"):
            self.attribute = int(code[:-1])
        elif code in (b"?1049h", b"?1049l"):
            self.other_screen = code.endswith(b"h")
            self.cells, self.at = {}, (0, 0)
        elif code in (b"?25h", b"?25l"):
            self.cursor = code.endswith(b"h")
        else:
            raise AssertionError("escape code %r" % code)

    def lines(self):
        self.feed()
        return ["".join(self.cells.get((r, c), " ") for c in range(self.columns)).rstrip() for r in range(self.rows)]

    def type(self, text):
        os.write(self.master, text.encode())

    def settings(self):
        return termios.tcgetattr(self.slave)

    def close(self):
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)
        self.master = self.slave = -1


def world(t, groups=30):
    tree = t.tree(top="always", modes={64: "always"})
    g = tree.group("system.slice/web.service", limit=64 * MIB, current=10 * MIB)
    for k in range(groups):
        tree.group("user.slice/app-%02d.scope" % k, limit=1 << 30, current=(k + 1) * MIB)
    t.start(tree, bus=False)
    return tree, g


def top(t, *args, **how):
    return Terminal(t, [t.mthpctl, "--socket=" + t.socket, "top"] + list(args), **how)


def shows(term, *words):
    wait(lambda: all(any(w in line for line in term.lines()) for w in words), "the screen shows %s" % (words,))
    return term.lines()


def left_well(term, code=0):
    equal(term.process.wait(10), code, "exit code")
    term.feed()
    check(not term.other_screen and term.cursor, "the screen is not given back")
    equal(term.settings(), term.before, "settings of the terminal")


def test_screen(t):
    """80x24: title, sizes, one row per group with bars, margin, size and reason; nothing beyond the edges."""
    tree, g = world(t)
    g.step(current=64 * MIB - 4096)
    end = time.monotonic() + 10
    while tree.size(64) == "always" and time.monotonic() < end:
        g.hot(0.1)
        time.sleep(0.1)
    term = top(t)
    for _ in range(12):
        g.hot(0.1)
        time.sleep(0.1)
    lines = shows(term, "GROUP", "q quit")
    check("mthpd " in lines[0] and "active" in lines[0], "title: %s", lines[0])
    row = [x for x in lines if "web.service" in x][0]
    check(re.search(r"[#]+[.]* +\d+% [#]+[.]* +\d+% ", row), "bars: %s", row)
    check(re.search(r"(drop|near|oversized|recover)[-a-z]*$", row), "reason: %s", row)
    check(lines.index(row) == [n for n, x in enumerate(lines) if x.startswith("GROUP")][0] + 1, "the worst is not the first")
    mode = [x for x in lines if x.startswith("mode")][0]
    check("never*" in mode, "changed mode: %s", mode)
    check("1-" in lines[23] and "of 31" in lines[23], "last line: %s", lines[23])
    check(term.bold[(lines.index(row), 0)] == 1, "the row that hurts is not bold")
    check(term.other_screen and not term.cursor, "it does not use a screen of its own")
    term.type("q")
    left_well(term)


def test_keys(t):
    """s sorts, j k g G, arrows and pages scroll; other keys do nothing."""
    world(t)
    term = top(t)
    first = lambda: term.lines()[[n for n, x in enumerate(term.lines()) if x.startswith("GROUP")][0] + 1]
    shows(term, "sort: stall")
    for name in ("margin", "anon", "name", "stall", "margin", "anon"):
        term.type("s")
        shows(term, "sort: " + name)
    check("app-29" in first(), "first by memory: %s", first())
    for key, name in (("j", "app-28"), ("j", "app-27"), ("k", "app-28"), ("\x1b[B", "app-27"), ("\x1bOA", "app-28"),
                      ("k", "app-29"), ("k", "app-29"), ("G", None), ("g", "app-29"), ("\x1b[6~", None), ("\x1b[5~", "app-29"),
                      ("\x1b[999;999X", "app-29"), ("\x01\x02xyz", "app-29")):
        term.type(key)
        if name:
            wait(lambda n=name: n in first(), "%s is first after %r" % (name, key))
        else:
            wait(lambda: "app-29" not in first(), "it has moved after %r" % key)
    term.type("G")
    shows(term, "of 31", "31 of 31")
    term.type("Q")
    left_well(term)


def test_resize_and_small(t):
    """It follows the window, and never writes outside of it."""
    world(t)
    term = top(t)
    shows(term, "GROUP")
    for columns, rows in ((120, 40), (200, 10), (40, 8), (20, 4), (10, 2), (1, 1), (5, 30), (80, 24)):
        term.resize(columns, rows)
        wait(lambda: term.lines()[0].strip(), "a title at %dx%d" % (columns, rows))
    shows(term, "GROUP", "q quit")
    term.type("q")
    left_well(term)


def test_signals(t):
    """SIGINT and SIGTERM give the terminal back; SIGTSTP too, and SIGCONT takes it again."""
    world(t, 3)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        term = top(t)
        shows(term, "GROUP")
        term.process.send_signal(number)
        left_well(term)
    term = top(t)
    shows(term, "GROUP")
    term.process.send_signal(signal.SIGTSTP)
    wait(lambda: (term.feed(), not term.other_screen)[1], "it gives the screen back when stopped")
    equal(term.settings(), term.before, "settings while stopped")
    term.process.send_signal(signal.SIGCONT)
    shows(term, "GROUP")
    check(term.other_screen, "no screen of its own after SIGCONT")
    term.type("q")
    left_well(term)


def test_daemon_goes_and_comes(t):
    """Without an answer the screen says so and stays; with one it goes on."""
    world(t, 3)
    term = top(t)
    shows(term, "GROUP")
    t.daemon.terminate()
    t.daemon.wait(10)
    shows(term, "No answer from mthpd", "GROUP")
    t.start(t.fake, bus=False)
    wait(lambda: not any("No answer" in x for x in term.lines()), "the answer is back")
    term.type("q")
    left_well(term)


def test_terminal_goes_away(t):
    """The other end of the terminal is closed: it ends, and does not spin."""
    world(t, 3)
    term = top(t)
    shows(term, "GROUP")
    term.close()
    wait(lambda: term.process.poll() is not None, "it ends")


def test_without_a_terminal(t):
    """One picture without escape codes; a closed pipe, -n, --json, a dumb terminal, nobody there."""
    world(t)
    done = t.ctl("top")
    equal(done.returncode, 0, "exit code")
    check("\x1b" not in done.stdout and "GROUP" in done.stdout, "text: %r", done.stdout[:200])
    equal(len([x for x in done.stdout.splitlines() if ".s" in x]), 31, "rows")
    check(max(len(x) for x in done.stdout.splitlines()) <= 80, "a line is longer than 80 columns")
    done = t.ctl("top", "-n", "3")
    equal(len([x for x in done.stdout.splitlines() if ".s" in x]), 3, "rows with -n 3")
    check("and 28 more" in done.stdout, "%s", done.stdout)
    check('"cgroups"' in t.ctl("--json", "top").stdout, "--json top")
    p = subprocess.Popen([t.mthpctl, "--socket=" + t.socket, "top"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.close()
    check(p.wait(10) in (0, 1, -signal.SIGPIPE), "exit code with a closed pipe: %d", p.returncode)
    p.stderr.close()
    term = top(t, term="dumb")
    equal(term.process.wait(10), 0, "exit code on a dumb terminal")
    check(b"\x1b" not in os.read(term.master, 65536), "escape codes on a dumb terminal")
    t.daemon.terminate()
    t.daemon.wait(10)
    done = t.ctl("top")
    equal(done.returncode, 69, "nobody there")
