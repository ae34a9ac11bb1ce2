# SPDX-License-Identifier: LGPL-2.1-or-later
"""A fake root for mthpd --root: the THP directory, /proc files and a cgroup2
tree as plain files, in the shape of real kernels, with helpers that move the
counters as a kernel would. Used by the integration tests; touches nothing
outside its own directory."""

import os
import shutil
import tempfile
import threading

MIB = 1 << 20
# Thousands of small files: thirty times faster in memory than on a disk.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
THP = "sys/kernel/mm/transparent_hugepage"
CG = "sys/fs/cgroup"
SIZE_WORDS = ("always", "inherit", "madvise", "never")
# A group's own files on a kernel with our patches (kernel-patches/), as they are at first.
GROUP_KNOBS = {"memory.thp.max_size": "max", "memory.thp.max_ptes_none": "inherit",
               "memory.thp.margin": "inherit"}
THP_EVENTS = ("margin_anon", "margin_swpin", "margin_shmem", "margin_collapse", "swpout_split_avoided")
THP_STAT = ("pswpin", "pswpout", "thp_margin_fallback", "thp_size_limited", "thp_swpout_split_avoided",
            "thp_reclaim_scanned", "thp_reclaim_young")
SIZES_X86 = (16, 32, 64, 128, 256, 512, 1024, 2048)


def choice(words, selected):
    return " ".join("[%s]" % w if w == selected else w for w in words) + "\n"


class Tree:
    def __init__(self, sizes=SIZES_X86, top="madvise", modes=None, legacy=False, pmd_kb=2048,
                 ptes=511, defrag="madvise", mem_kb=8 << 20, swap_kb=1 << 20, memcg_thp=False):
        """memcg_thp: a kernel with our patches; groups then have memory.thp.* as well."""
        self.dir = tempfile.mkdtemp(prefix="mthpd-tree-", dir=MEMORY)
        self.lock = threading.RLock()  # a test and its drives move the same counters
        self.gone = []  # directories that were removed
        self.memcg_thp = memcg_thp
        modes = dict(modes or {})
        if memcg_thp:
            self.write(THP + "/memcg_margin", "auto\n")
        self.write(THP + "/enabled", choice(("always", "madvise", "never"), top))
        self.write(THP + "/shmem_enabled", choice(
            ("always", "within_size", "advise", "never", "deny", "force"), "never"))
        self.write(THP + "/defrag", choice(
            ("always", "defer", "defer+madvise", "madvise", "never"), defrag))
        self.write(THP + "/hpage_pmd_size", "%d\n" % (pmd_kb * 1024))
        self.write(THP + "/use_zero_page", "1\n")
        for name, value in (("max_ptes_none", ptes), ("max_ptes_swap", 64), ("max_ptes_shared", 256),
                            ("pages_to_scan", 4096), ("scan_sleep_millisecs", 10000),
                            ("alloc_sleep_millisecs", 60000), ("defrag", 1), ("full_scans", 0),
                            ("pages_collapsed", 0)):
            self.write(THP + "/khugepaged/" + name, "%d\n" % value)
        if not legacy:
            self.write(THP + "/shrink_underused", "1\n")
            for kb in sizes:
                mode = modes.get(kb, "inherit" if kb == pmd_kb else "never")
                self.size_dir(kb, mode)
            self.write(THP + "/hugepages-8kB/shmem_enabled", choice(
                ("always", "inherit", "within_size", "advise", "never"), "never"))
        self.vmstat = dict.fromkeys((
            "pgfault", "pgmajfault", "pswpin", "pswpout", "compact_stall", "compact_fail",
            "thp_fault_alloc", "thp_fault_fallback", "thp_collapse_alloc", "thp_swpout_fallback",
            "workingset_refault_anon", "allocstall_normal"), 0)
        self.write("proc/sys/vm/min_free_kbytes", "67584\n")
        self.write("proc/sys/kernel/osrelease", "6.12.0-fake\n")
        self.write("proc/cmdline", "root=/dev/sda1 quiet\n")
        self.write("proc/self/mountinfo",
                   "24 1 0:21 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n")
        self.write("proc/self/cgroup", "0::/mthpd.service\n")
        self.write("proc/pressure/memory", self.psi(0, 0))
        self.meminfo(mem_kb, mem_kb // 2, swap_kb, swap_kb)
        self.save_vmstat()
        self.write(CG + "/cgroup.controllers", "cpuset cpu io memory pids\n")
        self.write(CG + "/cgroup.stat", "nr_descendants 3\nnr_dying_descendants 0\n")
        self.groups = {}

    def size_dir(self, kb, mode, stats=True):
        d = "%s/hugepages-%dkB" % (THP, kb)
        self.write(d + "/enabled", choice(SIZE_WORDS, mode))
        self.write(d + "/shmem_enabled", choice(
            ("always", "inherit", "within_size", "advise", "never"), "never"))
        if stats:
            ours = ("anon_fault_fallback_margin", "swpin", "swpin_fallback_margin", "swpout_split_avoided")
            for name in ("anon_fault_alloc", "anon_fault_fallback", "anon_fault_fallback_charge",
                         "swpout", "swpout_fallback", "split", "split_failed", "split_deferred",
                         "nr_anon", "nr_anon_partially_mapped") + (ours if self.memcg_thp else ()):
                self.write("%s/stats/%s" % (d, name), "0\n")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        p = self.path(name)
        with self.lock:
            os.makedirs(os.path.dirname(p), exist_ok=True)
            with open(p + ".new", "w") as f:
                f.write(text)
            os.rename(p + ".new", p)

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read().strip()

    def knob(self, name):
        """The selected word of a THP file: [bracketed], or the bare word that was written."""
        text = self.read(THP + "/" + name)
        for word in text.split():
            if word.startswith("["):
                return word[1:-1]
        return text

    def set_knob(self, name, value):
        """What another program's write would leave: the bracket moves, or the number changes."""
        text = self.read(THP + "/" + name)
        words = [w.strip("[]") for w in text.split()]
        self.write(THP + "/" + name, choice(words, value) if "[" in text else value + "\n")

    def size(self, kb):
        return self.knob("hugepages-%dkB/enabled" % kb)

    def all_knobs(self):
        """Every file below transparent_hugepage, byte for byte."""
        found = {}
        for where, _, files in os.walk(self.path(THP)):
            for f in files:
                with open(os.path.join(where, f), "rb") as text:
                    found[os.path.relpath(os.path.join(where, f), self.path(THP))] = text.read()
        return found

    def remove(self, name):
        p = self.path(name)
        shutil.rmtree(p) if os.path.isdir(p) else os.remove(p)

    def stat(self, kb, **add):
        for name, n in add.items():
            p = "%s/hugepages-%dkB/stats/%s" % (THP, kb, name)
            self.write(p, "%d\n" % (int(self.read(p)) + n))

    @staticmethod
    def psi(some_usec, full_usec):
        return ("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n"
                "full avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n" % (some_usec, full_usec))

    def meminfo(self, total, available, swap_total, swap_free):
        self.write("proc/meminfo", "MemTotal: %d kB\nMemFree: 1000 kB\nMemAvailable: %d kB\n"
                   "SwapTotal: %d kB\nSwapFree: %d kB\n" % (total, available, swap_total, swap_free))
        swaps = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
        if swap_total:
            swaps += "/dev/zram0 partition\t%d\t%d\t100\n" % (swap_total, swap_total - swap_free)
        self.write("proc/swaps", swaps)

    def save_vmstat(self):
        self.write("proc/vmstat", "".join("%s %d\n" % kv for kv in self.vmstat.items()))

    def add_vmstat(self, **add):
        with self.lock:
            for k, n in add.items():
                self.vmstat[k] += n
            self.save_vmstat()

    def group(self, path, limit=None, current=0, memory=True, thp=None, **stat):
        """thp: with memory.thp.* files or without; None: as the kernel of this tree."""
        thp = self.memcg_thp if thp is None else thp
        g = Group(self, path, limit, current, memory, memory and thp, stat)
        self.groups[path] = g
        return g

    def keep_number(self, directory):
        """A kernel never gives a new group the number of an old one; a file system does, unless somebody holds it."""
        self.gone.append(os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        if len(self.gone) > 64:
            os.close(self.gone.pop(0))

    def close(self):
        while self.gone:
            os.close(self.gone.pop())
        shutil.rmtree(self.dir, ignore_errors=True)


class Group:
    """A cgroup directory; step() moves its counters by one tick."""

    def __init__(self, tree, path, limit, current, memory, thp, stat):
        self.tree, self.path = tree, path
        self.limit, self.current = limit, current
        self.some = self.full = 0
        self.events = {"low": 0, "high": 0, "max": 0, "oom": 0, "oom_kill": 0, "oom_group_kill": 0}
        self.stat = {"anon": current, "file": 0, "kernel": 0, "anon_thp": current // 2, "inactive_anon": 0,
                     "inactive_file": 0, "file_dirty": 0, "file_writeback": 0, "pgfault": 0,
                     "pgmajfault": 0, "workingset_refault_anon": 0, "workingset_refault_file": 0,
                     "pgscan": 0, "pgsteal": 0, "thp_fault_alloc": 0, "thp_collapse_alloc": 0}
        self.thp_events = dict.fromkeys(THP_EVENTS if thp else (), 0)
        self.stat.update(dict.fromkeys(THP_STAT if thp else (), 0))
        self.stat.update(stat)
        self.cpu = {"usage_usec": 0, "user_usec": 0, "system_usec": 0}
        self.swap = 0
        self.pressure_file = self.save_events_local = True
        self.saved, self.gone = {}, False
        os.makedirs(tree.path("%s/%s" % (CG, path)), exist_ok=True)
        self.write("cgroup.procs", "")
        for name, value in GROUP_KNOBS.items() if thp else ():
            self.set_knob(name, value)
        if memory:
            self.save()

    def knob(self, name):
        """What memory.thp.<name> holds."""
        return self.tree.read("%s/%s/memory.thp.%s" % (CG, self.path, name.replace("memory.thp.", "")))

    def set_knob(self, name, value):
        """What another program's write to memory.thp.<name> would leave."""
        name = name.replace("memory.thp.", "")
        self.tree.write("%s/%s/memory.thp.%s" % (CG, self.path, name), value + "\n")

    def write(self, name, text):
        with self.tree.lock:
            if self.saved.get(name) != text:
                self.tree.write("%s/%s/%s" % (CG, self.path, name), text)
            self.saved[name] = text

    def save(self):
        def lines(d):
            return "".join("%s %d\n" % kv for kv in d.items())

        if self.pressure_file:
            self.write("memory.pressure", Tree.psi(self.some, self.full))
        self.write("memory.events", lines(self.events))
        if self.save_events_local:
            self.write("memory.events.local", lines(self.events))
        if self.thp_events:
            self.write("memory.thp.events", lines(self.thp_events))
            self.write("memory.thp.events.local", lines(self.thp_events))
        self.write("memory.stat", lines(self.stat))
        self.write("cpu.stat", lines(self.cpu))
        self.write("memory.max", "max\n" if self.limit is None else "%d\n" % self.limit)
        self.write("memory.high", "max\n")
        self.write("memory.low", "0\n")
        self.write("memory.min", "0\n")
        self.write("memory.swap.current", "%d\n" % self.swap)
        self.write("memory.swap.max", "max\n")
        self.write("memory.current", "%d\n" % self.current)

    def step(self, *args, **how):
        with self.tree.lock:
            if not self.gone:  # a drive may not know yet
                self.move(*args, **how)

    def move(self, some_usec=0, full_usec=0, current=None, swap=0, events=None, cpu=None, thp_events=None,
             **stat):
        self.some += some_usec
        self.full += full_usec
        self.swap += swap
        if current is not None:
            self.current = current
        for k, n in (events or {}).items():
            self.events[k] += n
        for k, n in (thp_events or {}).items():
            self.thp_events[k] += n
        for k, n in (cpu or {}).items():
            self.cpu[k] += n
        for k, n in stat.items():
            self.stat[k] = self.stat.get(k, 0) + n
        self.save()

    def hot(self, seconds, some=0.7, full=0.4, refaults=3000, hits=60, faults=3000):
        """Over-committed: so much happens in `seconds` of a group that thrashes at its
        limit, with three pages swapped in by each major fault."""
        def n(per_sec):
            return max(1, round(per_sec * seconds)) if per_sec else 0

        self.step(some_usec=n(some * 1e6), full_usec=n(full * 1e6), events={"max": n(hits)},
                  workingset_refault_anon=n(refaults), pgmajfault=n(refaults / 3), pgfault=n(faults + refaults / 3),
                  pgscan=n(refaults), pgsteal=n(refaults))

    def fresh(self, seconds, faults=5000):
        """Quiet, and much fresh memory is faulted in."""
        n = round(faults * seconds)
        self.step(pgfault=n, cpu={"user_usec": n * 50, "system_usec": n * 5})
        self.tree.add_vmstat(pgfault=n)

    def unlink(self, name):
        os.remove(self.tree.path("%s/%s/%s" % (CG, self.path, name)))

    def remove(self):
        directory = self.tree.path("%s/%s" % (CG, self.path))
        with self.tree.lock:
            self.gone = True
            self.tree.keep_number(directory)
            shutil.rmtree(directory, ignore_errors=True)
