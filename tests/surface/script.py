# SPDX-License-Identifier: LGPL-2.1-or-later
"""A trace written by hand for mthpd --replay: groups whose counters move as told,
second by second, so that a policy's effect shows in milliseconds and repeats."""

import json
import os
import subprocess

from world import TOP, equal

MIB = 1 << 20
SEC = 1000000
SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048)
WORDS = "always inherit madvise never"
SHMEM_WORDS = "always inherit within_size advise never"
SUMS = ("some_usec", "full_usec", "events_max", "local_max", "pgfault", "pgmajfault", "refault_anon", "pgscan", "pgsteal",
        "user_usec", "system_usec", "usage_usec", "pswpin", "pswpout", "thp_scanned", "thp_young", "margin_swpin")
OWN_FILES = {"memory.thp.max_size": "max", "memory.thp.max_ptes_none": "inherit", "memory.thp.margin": "inherit"}


def choice(words, value):
    return " ".join("[%s]" % w if w == value else w for w in words.split())


class Script:
    def __init__(self, modes=None, top="madvise", shmem="never", cpus=2, own=False):
        self.own = own  # the kernel of kernel-patches/: each group has files of its own
        self.modes = {kb: "never" for kb in SIZES}
        self.modes.update(modes or {64: "always", 2048: "inherit"})
        self.shmem, self.top, self.cpus = shmem, top, cpus
        self.now, self.groups, self.ticks = 1000 * SEC, {}, []
        self.host = {"compact_stall": 0, "compact_fail": 0, "thp_fault_fallback": 0}

    def group(self, path, limit_mb, anon_mb):
        self.groups[path] = {"id": 100 + len(self.groups), "limit": limit_mb * MIB, "anon": anon_mb * MIB,
                             "sums": dict.fromkeys(SUMS, 0)}

    def header(self):
        stands = {"hugepages-%dkB/enabled" % kb: self.modes[kb] for kb in SIZES}
        stands.update({"defrag": "madvise", "khugepaged/max_ptes_none": "511", "khugepaged/defrag": "1",
                       "khugepaged/scan_sleep_millisecs": "10000", "shrink_underused": "1"})
        if self.shmem != "never":
            stands.update({"hugepages-%dkB/shmem_enabled" % kb: self.shmem for kb in SIZES})
        tree = {"page_kb": 4, "pmd_kb": 2048, "per_size": True, "max_ptes_none": 511, "max_ptes_swap": 64,
                "max_ptes_shared": 256, "pages_to_scan": 4096, "scan_sleep_millisecs": 10000,
                "alloc_sleep_millisecs": 60000, "khugepaged_defrag": 1, "shrink_underused": 1, "full_scans": 0,
                "pages_collapsed": 0, "enabled": choice("always madvise never", self.top),
                "shmem_enabled": "always within_size advise [never] deny force",
                "defrag": "always defer defer+madvise [madvise] never",
                "sizes": [{"size_kb": kb, "enabled": choice(WORDS, self.modes[kb]),
                           "shmem_enabled": choice(SHMEM_WORDS, self.shmem)} for kb in SIZES]}
        return {"kind": "header", "format": "mthpd-trace", "version": 1, "mthpd": "0.1", "kernel": "6.12.0-script",
                "features": {}, "config": "", "tree": tree, "stands": stands, "cpus": self.cpus, "boot_never": False,
                "realtime_usec": 1700000000000000, "now_usec": self.now, "mem_total_kb": 8 << 20}

    def sample(self, g):
        full = g["sums"]
        return {"now_usec": self.now, "id": g["id"], "full_depth": True, "psi_errno": 0, "events_low": 0, "events_high": 0,
                "events_oom": 0, "events_oom_kill": 0, "current_bytes": g["anon"], "max_bytes": g["limit"],
                "high_bytes": "max", "limit_bytes": g["limit"], "margin_bytes": g["limit"] - g["anon"], "anon": g["anon"],
                "file": 0, "kernel": 0, "anon_thp": g["anon"] // 2, "swap_current_bytes": 0, "swap_max_bytes": "max",
                "thp_fault_alloc": 0, "thp_collapse_alloc": 0, **full}

    def run(self, seconds, host=None, **what):
        """So many ticks; what[group] says what happens to it in each second."""
        for _ in range(seconds):
            self.now += SEC
            for path, move in what.items():
                g = self.groups[path.replace("_", ".")]
                for key, n in move.items():
                    if key == "margin_mb":
                        g["anon"] = g["limit"] - n * MIB
                    else:
                        g["sums"][key] += n
            for key, n in (host or {}).items():
                self.host[key] += n
            self.ticks.append({
                "kind": "tick", "now_usec": self.now, "dying_cgroups": 0,
                "groups": [{"id": g["id"], "path": path, "sample": self.sample(g),
                            **({"own": {"base": OWN_FILES, "stands": OWN_FILES, "want": OWN_FILES}}
                               if self.own and not self.ticks else {})} for path, g in self.groups.items()],
                "host": {"now_usec": self.now, "psi_errno": 0, "some_usec": 0, "full_usec": 0, "mem_total_kb": 8 << 20,
                         "mem_available_kb": 4 << 20, "swap_total_kb": 1 << 20, "swap_free_kb": 1 << 20,
                         "pgfault": 0, "pgmajfault": 0, "pswpin": 0, "pswpout": 0, **self.host},
                "khugepaged": {"full_scans": 0, "pages_collapsed": 0},
                "sizes": [{"size_kb": kb} for kb in SIZES]})
        return self

    def decisions(self, t, config):
        """What mthpd --replay decides under this configuration."""
        path = os.path.join(t.dir, "script-%d" % len(os.listdir(t.dir)))
        with open(path, "w") as f:
            start = self.header()
            start["now_usec"] = self.ticks[0]["now_usec"] - SEC
            for line in [start] + self.ticks:
                f.write(json.dumps(line) + "\n")
        return replay(t, path, config)


def replay(t, trace, config):
    file = os.path.join(t.dir, "config-%d" % len(os.listdir(t.dir)))
    with open(file, "w") as f:
        f.write(config)
    done = subprocess.run([t.mthpd, "--replay=" + trace, "--config=" + file], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)
    equal((done.returncode, done.stderr), (0, ""), "mthpd --replay")
    return [json.loads(line) for line in done.stdout.splitlines()]


FIXTURE = os.path.join(TOP, "tests", "fixtures", "traces", "two-drops.ndjson")
# In a second: nothing; a group that thrashes; one that is calm and faults in memory that it already has room for.
IDLE = {"user_usec": 1000, "usage_usec": 1000}
CALM = {"pgfault": 800, "some_usec": 2000, "user_usec": 250000, "system_usec": 50000, "usage_usec": 300000, "margin_mb": 40}
HOT = {"some_usec": 700000, "full_usec": 400000, "events_max": 60, "local_max": 60, "pgfault": 4000, "pgmajfault": 1000,
       "refault_anon": 3000, "pgscan": 3000, "pgsteal": 3000, "user_usec": 300000, "system_usec": 500000,
       "usage_usec": 800000, "margin_mb": 0}
