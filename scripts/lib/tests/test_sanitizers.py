# SPDX-License-Identifier: GPL-2.0-or-later
"""The sanitizers' settings, and the options that choose suites."""

from __future__ import annotations

import re
import unittest

from qrdma import command_test, paths, sanitizers


class Suppressions(unittest.TestCase):
    def test_each_has_a_reason_above_it(self) -> None:
        lines = sanitizers.SUPPRESSIONS.read_text().splitlines()
        for above, line in zip(lines, lines[1:]):
            if line and not line.startswith("#"):
                with self.subTest(line):
                    self.assertRegex(line, r"^leak:\w+$")
                    self.assertRegex(above, r"^# .")

    def test_none_hides_the_card(self) -> None:
        sources = [path.read_text() for folder in (paths.CARD, paths.QTESTS)
                   for path in folder.rglob("*.c")]
        for name in sanitizers.suppressed():
            # LeakSanitizer looks for the word anywhere in a function's name.
            defined = re.compile(rf"^\w[^;(]*\w*{name}\w*\(", re.MULTILINE)
            with self.subTest(name):
                self.assertFalse(any(defined.search(text) for text in sources))
                self.assertNotIn(name, "qrdma")


class Environment(unittest.TestCase):
    def test_a_report_is_no_refusal_of_an_option(self) -> None:
        self.assertNotIn(sanitizers.EXIT_STATUS, (0, 1))
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            self.assertIn(f"exitcode={sanitizers.EXIT_STATUS}", sanitizers.environment()[name])


class Groups(unittest.TestCase):
    def test_an_option_is_its_suites(self) -> None:
        for name, suites in command_test.GROUPS.items():
            with self.subTest(name):
                options = command_test.parser().parse_args([f"--{name}"])
                self.assertEqual(command_test.suites_of(options), list(suites))

    def test_an_option_adds_to_what_is_named(self) -> None:
        options = command_test.parser().parse_args(["lint", "--sanitize"])
        self.assertEqual(command_test.suites_of(options), ["unit", "sanitize", "lint"])

    def test_no_word_means_all(self) -> None:
        options = command_test.parser().parse_args([])
        self.assertEqual(command_test.suites_of(options),
                         [suite for suite in command_test.SUITES
                          if suite not in command_test.ON_DEMAND])
