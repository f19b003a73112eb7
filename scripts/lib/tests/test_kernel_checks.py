# SPDX-License-Identifier: GPL-2.0-or-later
"""What kernel-checks takes for a leak of Linux's own."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from qrdma import paths

LEAKS = paths.GUEST / "leaks-of-linux"
LINUX = """unreferenced object 0xffff8881119bbc00 (size 32):
  comm "flow-revoke-vfi", pid 84, jiffies 4294897837
  backtrace (crc f0ecda16):
    sg_alloc_table+0x24/0x170
    dma_buf_phys_vec_to_sgt+0x242/0xda0
    ib_umem_dmabuf_map_pages+0x1d8/0x880
"""
OURS = """unreferenced object 0xffff8881119bbd00 (size 64):
  comm "flow-revoke", pid 85, jiffies 4294897838
  backtrace (crc f0ecda17):
    __kmalloc_noprof+0x367/0x710
    qrdma_mr_alloc+0x40/0x100
"""


def unexplained(text: str) -> tuple[str, str]:
    """What kernel-checks prints of such a list, and its number of explained blocks."""
    script = (paths.GUEST / "kernel-checks").read_text()
    start = script.index("unexplained() {")
    function = script[start:script.index("\n}\n", start) + 3]
    with tempfile.TemporaryDirectory() as folder:
        function = function.replace("/qrdma/leaks-of-linux", str(LEAKS))
        function = function.replace("/tmp/explained", f"{folder}/explained")
        kmemleak = Path(folder, "kmemleak")
        kmemleak.write_text(text)
        output = subprocess.run(["sh", "-c", f'{function}\nunexplained "$1"', "sh", kmemleak],
                                capture_output=True, text=True, check=True).stdout
        return output, Path(folder, "explained").read_text().strip()


class LeaksOfLinux(unittest.TestCase):
    def test_nothing(self) -> None:
        self.assertEqual(unexplained(""), ("", "0"))

    def test_what_is_known_is_counted(self) -> None:
        self.assertEqual(unexplained(LINUX + LINUX), ("", "2"))

    def test_what_is_ours_is_shown(self) -> None:
        self.assertEqual(unexplained(LINUX + OURS + LINUX), (OURS, "2"))

    def test_no_line_can_hide_a_leak_of_a_driver(self) -> None:
        for line in LEAKS.read_text().splitlines():
            if line and not line.startswith("#"):
                with self.subTest(line):
                    self.assertRegex(line, r"^[a-z0-9_]+$")
                    self.assertNotRegex(line, r"^(ib|uverbs|qrdma|rdma)_|_ib_|ioctl|alloc$")


if __name__ == "__main__":
    unittest.main()
