# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a fuzz target for a short time and prints TAP. meson test calls this.

scripts/test has built the target, and holds the cache's lock.
"""

from __future__ import annotations

import sys

from . import fuzz, trees
from .errors import Failure
from .fuzz_targets import TARGETS, Target

SECONDS = 30


def point(number: int, description: str, run: fuzz.Run, target: Target) -> bool:
    for line in [] if run.passed else fuzz.explain(target, run):
        print(f"# {line}")
    print(f"{'ok' if run.passed else 'not ok'} {number} - {description}", flush=True)
    return run.passed


def main(arguments: list[str]) -> int:
    target = TARGETS[arguments[0]]
    of = trees.from_environment()
    print("1..2", flush=True)
    try:
        known = fuzz.regression_files(target)
        passed = point(1, f"{len(known)} inputs of repaired bugs",
                       fuzz.replay(target, of, known, "regressions"), target)
        run = fuzz.campaign(target, of, SECONDS)
        print(f"# {run.line()}")
        passed &= point(2, f"new inputs for {SECONDS} s", run, target)
    except Failure as failure:
        print(f"Bail out! {failure.message}")
        return 1
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
