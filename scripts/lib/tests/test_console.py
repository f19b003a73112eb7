# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel's console says is wrong."""

from __future__ import annotations

import unittest

from qrdma import console

# That there are leaks is for kernel-checks to judge, which knows some of Linux's own.
CLEAN = """[    0.1] Linux version 7.3.4
[    0.2] DMAR: Host address width 39
[    0.3] DMAR: IOMMU enabled
[    0.4] Warning: unremarkable
[    0.5] DMA-API: preallocated 65536 debug entries
[    0.5] DMA-API: debugging enabled by kernel config
[    0.6] kmemleak: Kernel memory leak detector initialized (mem pool available: 60000)
[    0.6] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)
[    0.7] kasan: KernelAddressSanitizer initialized (generic)
[    1.0] qrdma session: register begins
[    1.1] qrdma 0000:01:00.0: ready"""


class Problems(unittest.TestCase):
    def test_clean_console(self) -> None:
        self.assertEqual(console.problems(CLEAN), {})

    def test_every_kind_is_found(self) -> None:
        for line in ("WARNING: CPU: 1 PID: 5 at drivers/x.c:3 f+0x1/0x2", "BUG: unable to handle",
                     "Oops: 0002 [#1]", "Kernel panic - not syncing", "BUG: KASAN: use-after-free",
                     "WARNING: possible recursive locking detected",
                     "INFO: task a:5 blocked for more than 120 seconds.",
                     "DMAR: [DMA Write NO_PASID] Request device [01:00.0] fault addr 0x1000",
                     "BUG: sleeping function called from invalid context at mm/slab.h:1",
                     "refcount_t: underflow; use-after-free.", "a[7]: segfault at 0 ip 0",
                     "qrdma 0000:01:00.0: DMA-API: device driver has pending DMA allocations",
                     "DMA-API: debugging out of memory - disabling",
                     "kmemleak: Memory pool empty, consider increasing it",
                     "INFO: lockdep is turned off.", "INFO: trying to register non-static key.",
                     "ODEBUG: free active (active state 0) object",
                     "rcu: INFO: rcu_preempt self-detected stall on CPU"):
            with self.subTest(line):
                self.assertTrue(console.problems(f"[    2.0] {line}"))

    def test_what_is_known_ends_with_its_trace(self) -> None:
        trace = """
[    2.0] WARNING: kernel/dma/debug.c:1231 at debug_dma_map_sg+0x805/0xdc0
[    2.0] Call Trace:
[    2.1] ---[ end trace 0000000000000000 ]---
"""
        for report in ("DMA-API: misc udmabuf: mapping sg segment longer than device claims to",
                       "DMA-API: exceeded 7 overlapping mappings of cacheline 0x0000000004520000"):
            known = f"[    2.0] {report}{trace}"
            self.assertEqual(console.problems(f"{CLEAN}\n{known}"), {})
            for other in ("WARNING: CPU: 0",
                          "qrdma 0000:01:00.0: DMA-API: mapping sg segment longer"):
                with self.subTest(other):
                    self.assertEqual(console.problems(known + other), {"": [other]})

    def test_problem_belongs_to_the_program_that_ran(self) -> None:
        text = CLEAN + "\n[    2.0] WARNING: CPU: 0\n[    2.1] Call Trace:"
        self.assertEqual(list(console.problems(text)), ["register"])

    def test_context_ends_with_the_next_program(self) -> None:
        text = "WARNING: CPU: 0\n[3.0] qrdma session: revoke begins\n[3.1] fine"
        self.assertEqual(console.problems(text), {"": ["WARNING: CPU: 0"]})


if __name__ == "__main__":
    unittest.main()
