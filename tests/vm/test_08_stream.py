# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, enabled_sizes, seeds

TITLE = "page cache is not pressure: no step down while a file streams past the limit"
FILE_PAGES = 256 * 256


def guests(long):
    return [Guest("t_stream.sh", seed, 120, 0 if long else 8000, seed=seed, weight=60)
            for seed in seeds(long)]


def streaming(run, what):
    """Begin and end of the streaming."""
    stream = run.work(f"stream-{what}")
    return stream.event("ready")["t"], stream.event("done")["t"]


def claims(run, what):
    stat, pressure = run.stat(what), run.work(f"pressure-{what}")
    late = stat.between(pressure.event("phase")["t"], pressure.event("done")["t"])
    return [
        Claim("seconds in which a size was off while it streamed",
              sum(enabled_sizes(s) != [16, 32, 64] for s in stat.between(*streaming(run, what))),
              "==", 0),
        Claim("sizes on at the end of the real pressure that followed",
              len(enabled_sizes(late[-1])), "==", 0),
        Claim("OOM kills", stat.oom_kills(), "==", 0),
    ]


def severity(run):
    """The test tests nothing unless the group is at its limit and stalls."""
    stat, stream = run.stat("mthpd"), run.work("stream-mthpd")
    begin, end = streaming(run, "mthpd")
    later = stat.between(begin + 20, end)
    pressed = sum((b["some_usec"] - a["some_usec"]) / 1e6 / (b["t"] - a["t"]) > 0.1
                  for a, b in stat.pairs() if begin <= a["t"] and b["t"] <= end)
    return [
        Claim("seconds of streaming", end - begin, ">=", 120, "s"),
        Claim("times round the file", stream.event("done")["touches"] / FILE_PAGES, ">=", 4),
        Claim("share of the time at the limit",
              sum(s["current"] >= 0.95 * s["max"] for s in later) / len(later), ">=", 0.95),
        Claim("times that the limit was hit", stat.grown("events_max", begin, end), ">=", 1000),
        Claim("seconds with pressure above 10 %", pressed, ">=", 60),
    ]


def judge(test, runs):
    test.claims([severity(run) for run in runs])
    test.claims([claims(run, "mthpd") for run in runs])
    test.note(f"swapped in meanwhile, pages: "
              f"{[round(run.stat('mthpd').grown('vm_pswpin', *streaming(run, 'mthpd'))) for run in runs]}")
    test.control("without mthpd", [claims(run, "nothing") for run in runs])
    test.control("always-never", [claims(run, "never") for run in runs])
