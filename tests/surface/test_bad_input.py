# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bad input on every surface: an error in that interface's own form that says what is wrong, and the daemon untouched.
The socket is here; the bus in test_hostile.py, HTTP in test_http.py, traces in tests/trace/run; the last tests here go
through the kinds that are left for the configuration and the command lines."""

import json
import os
import socket
import time

from world import MIB, TOP, check, equal, run, wait

LIMIT = 64 * 1024
SERVICE = "org.varlink.service."


def request(method, parameters=None, **more):
    return json.dumps({"method": method, "parameters": parameters or {}, **more}).encode()


def padded(size):
    text = request("org.mthpd1.Verify")
    return text[:-1] + b" " * (size - len(text)) + b"}"


class Client:
    def __init__(self, t, timeout=15):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(timeout)
        self.s.connect(t.socket)
        t.open.append(self)

    def close(self):
        self.s.close()

    def reply(self):
        """The next one, or None when the other end has closed."""
        data = b""
        while not data.endswith(b"\0"):
            try:
                piece = self.s.recv(65536)
            except ConnectionResetError:
                return None
            if not piece:
                return None
            data += piece
        return json.loads(data[:-1])

    def ask(self, data, end=b"\0"):
        self.s.sendall(data + end)
        return self.reply()


# What is sent, then the error's name, its parameter, and words of its reason.
BAD_REQUESTS = {
    "64 KiB and a byte": (padded(LIMIT + 1), "InvalidParameter", "request", "longer than 65536 bytes"),
    "deep JSON": (request("org.mthpd1.Verify")[:-2] + b'"a":' + b"[" * 3000 + b"]" * 3000 + b"}}", "InvalidParameter", "request",
                  "nested too deeply"),
    "deep and unfinished": (b"[" * 5000, "InvalidParameter", "request", "nested too deeply"),
    "invalid UTF-8": (b'{"method":"\xff"}', "InvalidParameter", "request", "UTF-8"),
    "invalid UTF-8 in a parameter": (b'{"method":"org.mthpd1.Explain","parameters":{"cgroup":"\xc3("}}', "InvalidParameter",
                                     "request", "UTF-8"),
    "a NUL in a string": (b'{"method":"org.mthpd1.Explain","parameters":{"cgroup":"a\\u0000b"}}', "InvalidParameter", "request",
                          "NUL"),
    "nothing": (b"", "InvalidParameter", "request", "ends too early"),
    "half an object": (b'{"method":', "InvalidParameter", "request", ""),
    "no object": (b"[]", "InvalidParameter", "request", ""),
    "NaN": (b'{"method":"org.mthpd1.History","parameters":{"n":NaN}}', "InvalidParameter", "request", ""),
    "a number beyond 64 bits": (b'{"method":"org.mthpd1.History","parameters":{"n":99999999999999999999}}', "InvalidParameter",
                                "request", "out of range"),
    "a key twice": (b'{"method":"org.mthpd1.Verify","method":"x"}', "InvalidParameter", "request", "twice"),
    "HTTP": (b"GET / HTTP/1.1\r\n\r\n", "InvalidParameter", "request", ""),
    "no method": (b"{}", "InvalidParameter", "method", ""),
    "a method that is a number": (b'{"method":7}', "InvalidParameter", "method", "full name"),
    "parameters that are a list": (b'{"method":"org.mthpd1.Verify","parameters":[]}', "InvalidParameter", "parameters", "object"),
    "more that is a number": (b'{"method":"org.mthpd1.Verify","more":7}', "InvalidParameter", "more", "true or false"),
    "an unknown method": (request("org.mthpd1.Nonsense"), "MethodNotFound", "method", ""),
    "an unknown interface": (request("org.nowhere.Verify"), "InterfaceNotFound", "interface", ""),
    "a parameter that nobody takes": (request("org.mthpd1.Verify", {"x": 1}), "InvalidParameter", "x", "no such parameter"),
    "a misspelt parameter": (request("org.mthpd1.Explain", {"group": "a"}), "InvalidParameter", "group", "no such parameter"),
    "Explain of a number": (request("org.mthpd1.Explain", {"cgroup": 7}), "InvalidParameter", "cgroup", "string"),
    "History of a string": (request("org.mthpd1.History", {"n": "3"}), "InvalidParameter", "n", "whole number"),
    "History of less than none": (request("org.mthpd1.History", {"n": -1}), "InvalidParameter", "n", "whole number"),
    "History of a half": (request("org.mthpd1.History", {"n": 1.5}), "InvalidParameter", "n", "whole number"),
    "Hold for a list": (request("org.mthpd1.Hold", {"reason": []}), "InvalidParameter", "reason", "string"),
    "Release of a string": (request("org.mthpd1.Release", {"cookie": "1"}), "InvalidParameter", "cookie", "whole number"),
    "Monitor of a number": (request("org.mthpd1.Monitor", {"samples": 1}, more=True), "InvalidParameter", "samples", "true or"),
    "Monitor without more": (request("org.mthpd1.Monitor"), "ExpectedMore", "method", ""),
}


def test_bad_requests(t):
    """Each kind of bad request: its error, its parameter, its reason; the daemon answers on, and has not grown."""
    t.start(bus=False)
    before, knobs = t.rss_kb(), t.fake.all_knobs()
    for what, (data, error, parameter, words) in BAD_REQUESTS.items():
        reply = Client(t).ask(data)
        equal(reply["error"], SERVICE + error, what)
        found = reply["parameters"]
        check(parameter in (found.get("parameter"), *found), "%s: %s", what, found)
        check(words in found.get("reason", ""), "%s: %s", what, found)
        t.unharmed()
    equal((t.status()["hold"], t.fake.all_knobs()), (None, knobs), "hold, files")
    t.grown(before, 4096)


def test_largest_request(t):
    """64 KiB are answered; one byte more, with or without its end, is not."""
    t.start(bus=False)
    equal(Client(t).ask(padded(LIMIT)), {"parameters": {"ok": True, "differences": []}}, "64 KiB")
    for end in (b"\0", b""):
        reply = Client(t).ask(padded(LIMIT + 1), end)
        check("longer than 65536" in reply["parameters"]["reason"], "65537 bytes: %s", reply)


def test_half_a_request_then_silence(t):
    """Whoever sends half a request is told so after ten seconds and dropped; others are answered meanwhile."""
    t.start(bus=False)
    half = Client(t)
    start = time.monotonic()
    half.s.sendall(b'{"method":"org.mthpd1.Ver')
    for _ in range(5):
        t.unharmed()
    reply = half.reply()
    check(9 < time.monotonic() - start < 14, "told after %.1f s", time.monotonic() - start)
    check("not finished in time" in reply["parameters"]["reason"], "%s", reply)
    equal(half.reply(), None, "then the connection")
    t.unharmed()


def test_one_client_too_many(t):
    """The 65th is told TooManyClients with the limit and closed; the 64 are served, and room is made again."""
    t.start(bus=False)
    clients = [Client(t) for _ in range(64)]
    equal(clients[63].ask(request("org.mthpd1.Verify"))["parameters"]["ok"], True, "the 64th")
    late = Client(t)
    equal(late.reply(), {"error": "org.mthpd1.TooManyClients", "parameters": {"limit": 64}}, "the 65th")
    equal(late.reply(), None, "then its connection")
    equal(clients[0].ask(request("org.mthpd1.Verify"))["parameters"]["ok"], True, "the first")
    for c in clients:
        c.close()

    def served():
        client = Client(t)
        try:
            return client.ask(request("org.mthpd1.Verify"))["parameters"].get("ok")
        except OSError:  # sent away before it asked
            return False
        finally:
            client.close()
    wait(served, "there is room")


BAD_FILES = {
    "binary": (b"\x7fELF\0\0\0" * 100, ""),
    "invalid UTF-8": (b"[Daemon]\nInterval=\xff\n", ":2: "),
    "invalid UTF-8 in a policy's name": (b'[Policy "\xff"]\nMatch=x\n', ":1: "),
    "a control character": (b"[Daemon]\n\x1b[2JInterval=1s\n", ":2: "),
    "a line of 64 KiB and a byte": (b"[Daemon]\nInterval=" + b"1" * (LIMIT + 1) + b"\n", ":2: "),
    "a file of more than 256 KiB": (b"# comment\n" * 30000, "256 KiB"),
    "half a section": (b"[Daemon", ":1: "),
    "a key before any section": (b"Interval=1s\n", ":1: "),
    "a key without a value's sign": (b"[Daemon]\nInterval\n", ":2: "),
    "an unknown key": (b"[Daemon]\nNonsense=1\n", ":2: unknown key"),
    "an unknown section": (b"[Nonsense]\n", ":1: unknown section"),
    "a wrong type": (b"[Daemon]\nDryRun=maybe\n", ":2: "),
    "NaN": (b"[Controller]\nPressureHigh=nan%\n", ":2: "),
    "a negative number": (b"[Controller]\nMaxChangesPerHour=-1\n", ":2: "),
    "a number beyond 64 bits": (b"[Controller]\nMaxChangesPerHour=99999999999999999999\n", ":2: "),
    "a policy without a pattern": (b'[Policy "x"]\nWeight=1\n', ""),
    "257 policies": (b"".join(b'[Policy "p%d"]\nMatch=a\n' % k for k in range(257)), ":513: "),
}


def test_bad_configurations(t):
    """Each kind of bad file: 78 and its place, by mthpd and by mthpctl alike; a running daemon keeps what it has."""
    t.start(bus=False)
    for what, (data, place) in BAD_FILES.items():
        with open(t.config, "wb") as f:
            f.write(data)
        done = run([t.mthpd, "--check-config", "--config=" + t.config])
        check(done.returncode == 78 and done.stdout.startswith(t.config + place if place[:1] == ":" else t.config) and
              place in done.stdout, "%s: %d, %.300s", what, done.returncode, done.stdout)
        check(done.stdout.isprintable() or all(x.isprintable() for x in done.stdout.splitlines()), "%s: %r", what, done.stdout)
        other = run([t.mthpctl, "check-config", t.config])
        equal((other.returncode, other.stdout), (1, done.stdout), "mthpctl check-config of " + what)
        equal(t.ctl("reload").returncode, 1, "reload of " + what)
        t.unharmed()
    equal(t.status()["state"], "active", "state")


def test_install_into_a_name_with_blanks(t):
    """make install and uninstall say at once that they can not, and leave nothing half done."""
    to = os.path.join(t.dir, "two words")
    for target in ("install", "uninstall"):
        for variable in ("DESTDIR", "PREFIX", "UNITDIR"):
            done = run(["make", "-C", TOP, target, "DESTDIR=" + os.path.join(t.dir, "x"), "%s=%s" % (variable, to)])
            equal(done.returncode, 2, "make %s: %s" % (target, done.stdout))
            check(variable + " has a blank" in done.stdout, "make %s says: %s", target, done.stdout)
    equal(sorted(name for name in os.listdir(t.dir) if name.startswith(("two", "x", "words"))), [], "what is left")


def test_bad_arguments(t):
    """Strange words on the command lines: exit code 2 or 1, one printable line, no crash."""
    t.start(bus=False)
    long = "x" * (LIMIT + 1)
    for code, *words in ((2, "nonsense"), (2, long), (2, "\x1b[2J"), (1, "explain", long), (1, "explain", "\x1b[2J"),
                         (2, "explain", b"\xff"), (2, "hold", b"\xff"), (2, "history", "-n", "-1"), (2, "history", "-n", "nan"),
                         (2, "history", "-n", "99999999999999999999"), (2, "release", "-1"), (2, "release", "1.5"),
                         (2, "explain", "--pid=-1"), (2, "record", "-o", "x", "--duration=nan"),
                         (2, "record", "-o", "x", "--duration=-1s"), (2, "record", "-o", "x", "--max-size=1"),
                         (2, "--socket=", "status"), (2, "explain", "--pid", ""), (2, "plot", "x", "-o", ""),
                         (69, "--socket=" + "/x" * 2000, "status")):
        done = t.ctl(*words)
        equal(done.returncode, code, "mthpctl %.60r: %.200s" % (words, done.stdout))
        check(done.stdout.count("\n") == 1 and done.stdout[:-1].isprintable(), "mthpctl %.60r: %.200r", words, done.stdout)
    for words in (("--root=", "--check-config"), ("--runtime-dir=", "--restore"), ("--config=", "--check-config"),
                  ("--replay", ""), ("--restore", "--replay=x"), ("--check-config", "--restore"), (long,), ("--nonsense",), ("--restore=maybe",), ("--config",), ("--replay",)):
        equal(run([t.mthpd] + list(words)).returncode, 2, "mthpd %.60s" % " ".join(words))
    check(MIB > len(run([t.mthpd, long]).stdout), "it repeats all of it")
    done = t.ctl("hold", "x" * 257)
    check(done.returncode == 1 and "at most 256 bytes" in done.stdout, "a long reason: %s", done.stdout)
    for typed, meant in (("statsu", "status"), ("hsitory", "history"), ("verfy", "verify"), ("check_config", "check-config")):
        check(t.ctl(typed).stdout.endswith("did you mean %s?\n" % meant), "%s: %s", typed, t.ctl(typed).stdout)
    with open(t.dir + "/no-trace", "w") as f:
        f.write("root:x:0:0\n")
    equal(len(t.ctl("replay", t.dir + "/no-trace").stdout.splitlines()), 1, "lines about what is no trace")
    t.unharmed()
    check(not os.path.exists("x"), "a file was made")
