# SPDX-License-Identifier: LGPL-2.1-or-later
"""The man pages: they render without a warning, and say all that there is: every key, option, verb, exit code,
reason, and every member of both interfaces, compared with what the running daemon tells of itself."""

import json
import os
import re
import socket
import subprocess
import xml.etree.ElementTree

from world import LOG, LOG_PATH, MANAGER, MIB, NAME, PATH, TOP, check, equal, run, tool

PAGES = ("mthpd.8", "mthpctl.1", "mthpd.conf.5", "org.mthpd1.5")


def source(page):
    return os.path.join(TOP, "daemon", "man", page)


def rendered(page):
    """The page as plain text with single blanks."""
    tool("man")
    done = run(["man", "-l", source(page)], env={**os.environ, "MANWIDTH": "500", "LC_ALL": "C", "MAN_KEEP_FORMATTING": "",
                                                "MANPAGER": "cat", "PAGER": "cat"})
    equal(done.returncode, 0, "man -l " + page)
    text = re.sub(r".\x08", "", done.stdout)
    check(len(text) > 2000, "%s: only %d characters", page, len(text))
    return re.sub(r"[ \t]+", " ", text)


def has(text, word, page):
    check(re.search(r"(?<![\w-])" + re.escape(word) + r"(?![\w-])", text), "%s does not mention %s", page, word)


def test_man_warnings(t):
    """man --warnings is silent."""
    tool("man")
    for page in PAGES:
        done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", source(page)], timeout=30,
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        equal((done.returncode, done.stderr), (0, ""), "man --warnings of " + page)


def test_mandoc_lint(t):
    """mandoc -Tlint is silent."""
    tool("mandoc")
    for page in PAGES:
        equal(run(["mandoc", "-Tlint", source(page)]).stdout, "", "mandoc -Tlint of " + page)


def test_conf_has_every_key(t):
    """Every key of the configuration with its section and default, as conf/mthpd.conf has them (a unit test
    compares that file with the reader's own table)."""
    page = rendered("mthpd.conf.5")
    section, keys = None, 0
    with open(os.path.join(TOP, "conf", "mthpd.conf")) as f:
        for line in f:
            m = re.match(r"#?\[(\w+)", line)
            section = m.group(1) if m else section
            m = re.match(r"#(\w+)=(.*)$", line)
            if not m:
                continue
            keys += 1
            heading = page.upper().find("[%s" % section.upper(), page.find("UNITS"))
            check(heading >= 0, "no section [%s]", section)
            at = page.find(m.group(1) + "=", heading)
            check(at >= 0, "%s= is not below [%s]", m.group(1), section)
            if m.group(2) and section != "Policy":
                check(page.startswith(m.group(0)[1:], at), "default of %s", m.group(0))
    check(keys >= 32, "only %d keys in conf/mthpd.conf", keys)


def test_options_and_verbs(t):
    """Every option and verb of --help, every exit code, is in the page; no option of the page is unknown to --help."""
    for program, name in ((t.mthpd, "mthpd.8"), (t.mthpctl, "mthpctl.1")):
        page, text = rendered(name), run([program, "--help"]).stdout
        options = set(re.findall(r"(?<![\w-])(--[a-z-]+[a-z]|-[a-z])(?![\w-])", text))
        check(len(options) > 5, "options: %s", options)
        for option in sorted(options):
            has(page, option, name)
        listed = page[page.index("OPTIONS"):page.index("VERBS" if "VERBS" in page else "WHAT IS WRITTEN")]
        for option in set(re.findall(r"^ (--[a-z-]+[a-z]|-[a-z])", listed, re.M)):
            check(option in options, "%s: --help does not know %s", name, option)
        # Both say all exit codes.
        codes = re.findall(r"\b(\d+) ?(?:\(|,|\.|$)", text[text.index("Exit codes"):])
        exits = page[page.index("EXIT STATUS"):]
        for code in {c for c in codes if c in ("0", "1", "2", "65", "69", "77", "78")}:
            check(re.search(r"^ %s " % code, exits, re.M), "%s: exit code %s", name, code)
    page = rendered("mthpctl.1")
    verbs = re.findall(r"^  ([a-z][a-z-]*) ", run([t.mthpctl, "--help"]).stdout, re.M)
    check(len(verbs) >= 12, "verbs: %s", verbs)
    for verb in verbs:
        check(re.search(r"^ %s( |$)" % verb, page[page.index("VERBS"):], re.M), "mthpctl.1 has no verb %s", verb)


def test_every_reason(t):
    """Every reason word and its sentence."""
    page = rendered("mthpctl.1")
    with open(os.path.join(TOP, "lib", "reason.c")) as f:
        text = f.read()
    table = re.findall(r'\[REASON_\w+\]\s*=\s*\{\s*"([^"]+)",\s*((?:"[^"]*"\s*)+)\}', text)
    check(len(table) >= 40, "%d reasons", len(table))
    for word, sentence in table:
        sentence = "".join(re.findall(r'"([^"]*)"', sentence))
        has(page, word, "mthpctl.1")
        check(re.sub(r"\s+", " ", sentence[1:]) in re.sub(r"\s+", " ", page), "mthpctl.1: the sentence of %s", word)


def keys_of(value, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            found.add(key)
            keys_of(inner, found)
    elif isinstance(value, list):
        for inner in value:
            keys_of(inner, found)
    return found


def test_json_is_documented(t):
    """Every member that mthpctl --json prints, after a real decision."""
    page = rendered("mthpctl.1")
    tree = t.tree(top="always", modes={64: "always"})
    g = tree.group("web.service", limit=64 * MIB, current=64 * MIB - 4096)
    t.start(tree, bus=False)
    for _ in range(100):
        if t.status()["counters"]["decisions"]:
            break
        g.hot(0.1)
    t.varlink("Hold", {"reason": "x"})
    tree.set_knob("hugepages-64kB/enabled", "madvise")
    for verb in ("status", "history", "features", "verify", "explain", "metrics", "hold", "release", "reload"):
        arguments = ["web.service"] if verb == "explain" else []
        done = t.ctl("--json", verb, *arguments)
        for key in sorted(keys_of(json.loads(done.stdout), set())):
            has(page, key, "mthpctl.1 (%s)" % verb)
    with open(t.dir + "/bad.conf", "w") as f:
        f.write("[Nonsense]\n")
    for key in keys_of(json.loads(t.ctl("--json", "check-config", t.dir + "/bad.conf").stdout), set()):
        has(page, key, "mthpctl.1 (check-config)")
    trace = t.dir + "/trace"
    done = t.ctl("--json", "record", "-o", trace, "--duration=1s")
    for key in keys_of(json.loads(done.stdout), set()):
        has(page, key, "mthpctl.1 (record)")
    replay = json.loads(run([t.mthpctl, "--json", "replay", trace]).stdout)
    for key in set(replay) | set(replay["summary"]):
        has(page, key, "mthpctl.1 (replay)")


def test_bus_page(t):
    """Every method, property, signal of the introspection, with its signature; every error that the source names."""
    page = rendered("org.mthpd1.5")
    t.start_both()
    for path, interface in ((PATH, MANAGER), (LOG_PATH, LOG)):
        text = t.bus().call(NAME, path, "org.freedesktop.DBus.Introspectable", "Introspect")[0]
        has(page, interface, "org.mthpd1.5")
        for node in xml.etree.ElementTree.fromstring(text).findall("interface[@name='%s']/*" % interface):
            name = node.get("name")
            has(page, name, "org.mthpd1.5")
            if interface == LOG:
                continue
            if node.tag == "property":
                check(re.search(r"\b%s\b[^\n]*\(%s\)" % (name, re.escape(node.get("type"))), page), "type of %s", name)
                continue
            arguments = {d: ", ".join("%s %s" % (a.get("type"), a.get("name")) for a in node.findall("arg")
                                      if a.get("direction", "out") == d) for d in ("in", "out")}
            line = "%s(%s)" % (name, arguments["out"] if node.tag == "signal" else arguments["in"])
            if node.tag == "method" and arguments["out"]:
                line += " -> (%s)" % arguments["out"]
            check(line in page, "org.mthpd1.5 does not have: %s", line)
    with open(os.path.join(TOP, "daemon", "bus-manager.c")) as f:
        for error in set(re.findall(r'"(org\.mthpd1\.[A-Z]\w+)"', f.read())) - {MANAGER}:
            has(page, error, "org.mthpd1.5")


def test_varlink_page(t):
    """Every method and error of the interface's description, as it stands there."""
    page = rendered("org.mthpd1.5")
    t.start(bus=False)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(t.socket)
        s.sendall(b'{"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"org.mthpd1"}}\0')
        data = b""
        while not data.endswith(b"\0"):
            data += s.recv(65536)
    text = json.loads(data[:-1])["parameters"]["description"]
    lines = re.findall(r"^(?:method|error) (.*)$", text, re.M)
    check(len(lines) >= 14, "members: %s", lines)
    for line in lines:
        check(line in page, "org.mthpd1.5 does not have: %s", line)
    check("org.varlink.service" in page, "org.varlink.service")


def test_catalog(t):
    """The journal's catalog has the daemon's MESSAGE_ID and names each field that it sends; the page has them too."""
    with open(os.path.join(TOP, "daemon", "engine-act.c")) as f:
        sent = f.read()
    with open(os.path.join(TOP, "systemd", "mthpd.catalog")) as f:
        catalog = f.read()
    page = rendered("mthpd.8")
    ids = re.findall(r"MESSAGE_ID=([0-9a-f]{32})", sent)
    equal(re.findall(r"^-- ([0-9a-f]{32})$", catalog, re.M), ids, "message ids of the catalog")
    has(page, ids[0], "mthpd.8")
    fields = re.findall(r'"(MTHPD_\w+)=', sent)
    check(len(fields) >= 7, "fields: %s", fields)
    equal(set(re.findall(r"@(MTHPD_\w+)@", catalog)), set(fields), "fields of the catalog")
    for field in fields:
        has(page, field, "mthpd.8")
