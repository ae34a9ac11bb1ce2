# SPDX-License-Identifier: LGPL-2.1-or-later
from vmtest import Claim, Guest, enabled_sizes

TITLE = "page cache is not pressure: no step down while a file streams past the limit"
FILE_PAGES = 256 * 256


def guests(long):
    rate = 0 if long else 5000
    found = [Guest("t_stream.sh", seed, 120, rate, "mthpd", seed=seed, key="mthpd", weight=70)
             for seed in range(1, 6 if long else 2)]
    return found + [Guest("t_stream.sh", 1, 10, rate, what, key=what, weight=15)
                    for what in ("nothing", "never")]


def claims(run):
    stat, pressure = run.stat("run"), run.work("pressure")
    stream = run.work("stream")
    begin, end = stream.event("ready")["t"], stream.event("done")["t"]
    streaming = stat.between(begin, end)
    late = stat.between(pressure.event("phase")["t"], pressure.event("done")["t"])
    return [
        Claim("seconds in which a size was off while it streamed",
              sum(enabled_sizes(s) != [16, 32, 64] for s in streaming), "==", 0),
        Claim("sizes on at the end of the real pressure that followed",
              len(enabled_sizes(late[-1])), "==", 0),
        Claim("OOM kills", stat.oom_kills(), "==", 0),
    ]


def judge(test, runs):
    mthpd = [run for run in runs if run.guest.key == "mthpd"]
    for run in mthpd:
        stream, stat = run.work("stream"), run.stat("run")
        begin, end = stream.event("ready")["t"], stream.event("done")["t"]
        full = sum(s["current"] >= 0.95 * s["max"] for s in stat.between(begin + 20, end))
        test.claims([[
            Claim("seconds of streaming", end - begin, ">=", 120, "s"),
            Claim("times round the file", stream.event("done")["touches"] / FILE_PAGES, ">=", 4),
            Claim("share of the time at the limit", full / len(stat.between(begin + 20, end)),
                  ">=", 0.95),
            Claim("times that the limit was hit", stat.grown("events_max", begin, end), ">=", 1000),
        ]])
        test.note(f"pressure meanwhile {stat.grown('some_usec', begin, end) / 1e4 / (end - begin):.2f} %, "
                  f"swapped in {stat.grown('vm_pswpin', begin, end):.0f} pages")
    test.claims([claims(run) for run in mthpd])
    test.control("without mthpd", [claims(run) for run in runs if run.guest.key == "nothing"])
    test.control("always-never", [claims(run) for run in runs if run.guest.key == "never"])
