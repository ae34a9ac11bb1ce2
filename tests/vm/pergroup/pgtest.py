# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests on the patched kernel share: its image, guests, and rates.

A group's figures are touches per second of guest time, by the workload's own
count; what stood in its files is read from the sampler's lines, and when they were
written from writewatch, never from the daemon itself.
"""
import functools
import os
import subprocess

import vmtest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD_KERNEL = os.path.join(vmtest.ROOT, "kernel-patches", "build.sh")
SMALL = 8192  # below two pages: small pages only
TWICE = 0.02  # seconds between the two events of one write
# memory.thp.events is "modified" by the kernel's notifications.
FILES = ("memory.thp.max_size", "memory.thp.max_ptes_none", "memory.thp.margin")


@functools.cache
def kernel(*options):
    """The patched kernel (or, with --stock, the same without), built if it must be."""
    built = subprocess.run([BUILD_KERNEL, "6.12", *options], check=True, stdout=subprocess.PIPE,
                           text=True)
    return os.path.join(built.stdout.strip(), "vmlinuz")


def guest(script, *args, **options):
    options.setdefault("kernel", kernel())
    return vmtest.Guest(script, *args, scripts=os.path.join(HERE, "guest"), **options)


def begin(run, group):
    """When the workload of a group began."""
    return run.work(group).event("phase", 0)["t"]


def rate(run, group, start, end):
    """Touches per second from `start` to `end` seconds after the group began."""
    first = begin(run, group)
    return run.work(group).rate(first + start, first + end)


def allowed_bytes(sample):
    """The largest folio that a sample's max_size allows; None = no limit."""
    return None if sample["thp_max_size"] == "max" else int(sample["thp_max_size"])


def is_small(sample):
    size = allowed_bytes(sample)
    return size is not None and size < SMALL


def is_open(sample):
    """Large folios come in whatever the room."""
    return sample["thp_margin"] == "0" and not is_small(sample)


def is_gated(sample):
    """Large folios do not come in when the group is full."""
    return not is_open(sample)


def share(flags):
    flags = list(flags)
    return sum(flags) / len(flags) if flags else None


def writes_in(run, name, group):
    """[(t, file)] of what writewatch saw written to the group's memory.thp.* files.

    A shell's redirection, and every write that truncates, is seen twice."""
    found = []
    for line in run.lines(name):
        if line["event"] == "overflow":
            raise RuntimeError("writewatch lost events")
        folder, _, file = line.get("file", "").rpartition("/")
        if folder != f"/sys/fs/cgroup/{group}" or file not in FILES:
            continue
        if not any(file == known and line["t"] - t < TWICE for t, known in found):
            found.append((line["t"], file))
    return found


def writes(run, group):
    return writes_in(run, "writes", group)


def oom_kills(run, groups):
    return sum(run.stat("run", group).oom_kills() for group in groups)
