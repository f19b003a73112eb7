# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest program prints, and the verdict over it."""

from __future__ import annotations

import unittest

from qrdma import checks
from qrdma.guest import Program, Result

GOOD = """TAP version 13
# figures: size=4096 entries=512 wrong=0 right=10 layout=scattered
ok 1 - 512 entries take one leaf
ok 2 - nothing to do # SKIP no huge pages
1..2"""


def judged(text: str, **more) -> checks.Verdict:
    more.setdefault("status", 0)
    return checks.judge(Result(Program("x", "x"), text.splitlines(), **more))


class Judge(unittest.TestCase):
    def test_good_output_holds(self) -> None:
        verdict = judged(GOOD)
        self.assertTrue(verdict.held)
        self.assertEqual(verdict.checks[0].description, "512 entries take one leaf")

    def test_figures_belong_to_the_next_point(self) -> None:
        verdict = judged(GOOD)
        self.assertEqual(verdict.checks[0].figures,
                         {"size": 4096, "entries": 512, "wrong": 0, "right": 10,
                          "layout": "scattered"})
        self.assertEqual(verdict.checks[1].figures, {})

    def test_skipped_point_has_its_reason(self) -> None:
        point = judged(GOOD).checks[1]
        self.assertTrue(point.skipped)
        self.assertEqual(point.reason, "no huge pages")

    def test_failed_point(self) -> None:
        verdict = judged("ok 1 - a\nnot ok 2 - b\n1..2", status=1)
        self.assertFalse(verdict.held)
        self.assertEqual(verdict.problems, ["failed: b"])

    def test_wrong_accesses_fail_even_if_the_point_is_ok(self) -> None:
        verdict = judged("# figures: wrong=2\nok 1 - a\n1..1")
        self.assertEqual(verdict.problems, ["2 accesses saw wrong data"])

    def test_missing_plan(self) -> None:
        self.assertEqual(judged("ok 1 - a").problems, ["stopped before its plan"])

    def test_plan_that_was_not_kept(self) -> None:
        self.assertEqual(judged("1..3\nok 1 - a").problems, ["planned 3 checks, made 1"])

    def test_no_output_at_all(self) -> None:
        self.assertFalse(judged("").held)

    def test_bail_out(self) -> None:
        self.assertEqual(judged("Bail out! no device", status=1).problems,
                         ["gave up: no device"])

    def test_status_counts_although_all_points_are_ok(self) -> None:
        self.assertEqual(judged("ok 1 - a\n1..1", status=3).problems,
                         ["the program ended with status 3"])

    def test_console_counts_although_all_points_are_ok(self) -> None:
        verdict = judged("ok 1 - a\n1..1", console=["WARNING: CPU: 0"])
        self.assertFalse(verdict.held)

    def test_machine_that_stopped(self) -> None:
        verdict = judged("ok 1 - a", status=None, trouble="x did not end within 5 seconds")
        self.assertIn("x did not end within 5 seconds", verdict.problems)

    def test_program_that_is_skipped_as_a_whole(self) -> None:
        verdict = judged("1..0 # SKIP no IOMMU")
        self.assertTrue(verdict.skipped)
        self.assertFalse(verdict.held)
        self.assertEqual(verdict.skip_reason, "no IOMMU")


class Figures(unittest.TestCase):
    def test_kinds(self) -> None:
        self.assertEqual(checks.parse_figures("a=1 b=1.5 c=4K d= word e=0x10"),
                         {"a": 1, "b": 1.5, "c": "4K", "d": "", "e": "0x10"})


if __name__ == "__main__":
    unittest.main()
