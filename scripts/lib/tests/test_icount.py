# SPDX-License-Identifier: GPL-2.0-or-later
"""How runs under -icount are judged and compared."""

from __future__ import annotations

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import synthetic
from qrdma import command_icount_test as icount


class Judging(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_console_of_a_good_run(self) -> None:
        text = "[0.1] Linux\nok 1 - a\n1..1\nqrdma run: status 0\n[3.0] reboot: Power down\n"
        self.assertEqual(icount.console_problems(text), [])

    def test_console_of_bad_runs(self) -> None:
        good = "qrdma run: status 0\n"
        for text in ("", "qrdma run: status 1\n", good + "not ok 2 - b\n",
                     good + "WARNING: CPU: 0\n", good + "Bail out! no card\n"):
            with self.subTest(repr(text)):
                self.assertTrue(icount.console_problems(text))

    def test_first_difference_is_named(self) -> None:
        one, other = self.folder / "one", self.folder / "other"
        one.write_text("a\nb\nc\n")
        other.write_text("a\nx\ny\n")
        self.assertEqual(icount.first_difference(one, one), [])
        self.assertEqual(icount.first_difference(one, other),
                         [f"line 2 of {one} and {other}:", "b", "x"])
        other.write_text("a\nb\n")
        self.assertEqual(icount.first_difference(one, other)[1:], ["c", "(end)"])

    def test_trace_that_proves_nothing(self) -> None:
        path = self.folder / "x.json"
        self.assertEqual(icount.trace_problems(synthetic.five_steps().write(path)), [])
        self.assertEqual(icount.trace_problems(synthetic.Writer().write(path)),
                         ["the trace has no change", "the trace has no access"])
        self.assertEqual(icount.trace_problems(synthetic.wrong_order().write(path)),
                         ["finding: torn at 1000000 ns"])

    def test_points(self) -> None:
        tap = icount.Tap()
        with contextlib.redirect_stdout(io.StringIO()) as output:
            tap.point("good", [])
            tap.point("bad", ["why"])
            self.assertEqual(tap.end(), 1)
        self.assertEqual(output.getvalue(), "ok 1 - good\n# why\nnot ok 2 - bad\n1..2\n")


if __name__ == "__main__":
    unittest.main()
