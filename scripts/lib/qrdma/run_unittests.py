# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the unit tests of scripts/lib and prints TAP."""

from __future__ import annotations

import sys
import unittest

from tap.runner import TAPTestRunner

from .paths import SCRIPTS


def main() -> int:
    folder = SCRIPTS / "lib/tests"
    tests = unittest.defaultTestLoader.discover(str(folder), top_level_dir=str(folder))
    runner = TAPTestRunner(stream=sys.stderr)
    runner.set_stream(True)
    return 0 if runner.run(tests).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
