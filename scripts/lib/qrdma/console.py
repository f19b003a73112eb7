# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what a kernel says on its console when something is wrong."""

from __future__ import annotations

import re

# What the kernel prints for bugs that it finds in itself. A program that fails
# on purpose prints none of these.
PROBLEMS = re.compile(
    r"WARNING: |BUG: |kernel BUG at|Oops|Call Trace:|Kernel panic|KASAN|UBSAN|"
    r"possible recursive locking|possible circular locking|INFO: task .* blocked|"
    r"possible (irq|deadlock|memory allocation)|inconsistent lock state|suspicious RCU|"
    r"INFO: (lockdep is turned off|trying to register)|ODEBUG: |"
    r"INFO: rcu|general protection|kmemleak: (?!Kernel memory leak detector init)\D|DMAR: \[|DMAR: .*[Ff]ault|"
    r"DMA-API: (?!preallocated|debugging enabled|dma_debug_entry pool grown)|scheduling while atomic|sleeping function called|"
    r"refcount_t: |list_(add|del) corruption|Out of memory: Killed|nobody cared|"
    r"bad page|soft lockup|segfault at|invoked oom-killer|left.* leaked")
CONTEXT_LINES = 12
# Reports that are no fault of a driver's, up to the end of their traces.
# udmabuf, 7.3: maps segments for its own device, which has no limit but the default.
# A buffer that is registered forty times: the check of DMA mappings can count to seven,
# and guesses at a leak. Real ones are found when the driver goes.
KNOWN = re.compile(r"DMA-API: (misc udmabuf: mapping sg segment longer than device claims|"
                   r"exceeded 7 overlapping mappings of cacheline)")
END_OF_TRACE = "---[ end trace"
MARK = re.compile(r"qrdma session: (\S+) begins")


def problems(console: str) -> dict[str, list[str]]:
    """The problems found, with some lines of context, by the program that ran.

    What came before the first program is under the empty name.
    """
    found: dict[str, list[str]] = {}
    program = ""
    remaining = 0
    known = False
    for line in console.splitlines():
        mark = MARK.search(line)
        if mark:
            program, remaining = mark[1], 0
        if known or KNOWN.search(line):
            known = END_OF_TRACE not in line
            continue
        if PROBLEMS.search(line):
            remaining = max(remaining, CONTEXT_LINES)
        if remaining > 0:
            found.setdefault(program, []).append(line.rstrip())
            remaining -= 1
    return found
