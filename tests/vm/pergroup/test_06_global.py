# SPDX-License-Identifier: LGPL-2.1-or-later
from pgtest import guest, is_gated, share
from vmtest import Claim, seeds

TITLE = "what stays global goes to the protected group; sizes are each group's own"

REACTION = 8  # seconds; filling the memory is three of them
SIZES = ("16", "32", "64")


def guests(long):
    cases = [("mthpd", "random", "yes"), ("mthpd", "fill", "yes"), ("nothing", "random", "yes"),
             ("mthpd", "random", "no"), ("mthpd", "fill", "no")]
    return [guest("t_global.sh", seed, 40, what, protected, pergroup, seed=seed,
                  key=f"{what}-{protected}-{pergroup}", weight=40)
            for seed in seeds(long) for what, protected, pergroup in cases]


def claims(run, lowered, pergroup="yes"):
    """@lowered: whether the group that is hurt gets its way with what is global."""
    hurt = run.stat("run", "random.group")
    begin = hurt.pressure_start()
    end = hurt.samples[-1]["t"]
    knobs = [k for k in run.lines("knobs") if k["t"] >= begin + REACTION]
    settled = hurt.between(begin + REACTION, end)
    fill = run.stat("run", "fill.group").between(begin + REACTION, end)
    modes = [{s["sizes"][kb]["mode"] for kb in SIZES} for s in settled]
    if pergroup == "no":
        wanted = {"never"} if lowered else {"madvise"}
        return [Claim(f"sizes at {min(wanted)}, share of the time from {REACTION} s on",
                      share(m == wanted for m in modes), "==", 1)]
    return [Claim(f"defrag below always, share of the time from {REACTION} s on",
                  share(k["defrag"] != "always" for k in knobs), "==", int(lowered)),
            Claim("khugepaged/defrag off, the same",
                  share(k["khugepaged"] == "0" for k in knobs), "==", int(lowered)),
            Claim("sizes at always for all, the same", share(m == {"always"} for m in modes),
                  "==", 1),
            Claim("large folios kept out of the hurt group, the same",
                  share(map(is_gated, settled)), "==", 1),
            Claim("size of the other group not limited",
                  share(s["thp_max_size"] == "max" for s in fill), "==", 1)]


def judge(test, runs):
    for key, lowered in (("random", True), ("fill", False)):
        for pergroup in ("yes", "no"):
            mine = [run for run in runs if run.guest.key == f"mthpd-{key}-{pergroup}"]
            test.claims([claims(run, lowered, pergroup) for run in mine],
                        prefix=f"Protect on {key}, PerGroup={pergroup}: ")
    alone = [run for run in runs if run.guest.key == "nothing-random-yes"]
    test.control("without mthpd", [claims(run, True) for run in alone])
    test.control("the outcome with the other group protected",
                 [claims(run, False) for run in runs if run.guest.key == "mthpd-random-yes"])
