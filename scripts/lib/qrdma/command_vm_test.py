# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots the guest for one test and prints its TAP. meson test calls this.

With --list it prints the names of the tests, for meson.build.

To what the program in the guest prints it adds points of its own: the program
ended well, the machine did, the kernel has nothing to complain about, and the
card's audit has no findings (but for programs that make some).
"""

from __future__ import annotations

import sys

from . import checks, trees
from .errors import Failure
from .guest import Result, Session
from .vm_tests import STOCK


def tap(result: Result) -> list[str]:
    """The program's own lines without its plan, our points, and a plan over both."""
    plan = [line for line in result.output if line.startswith("1..")]
    lines = [line for line in result.output if not line.startswith(("1..", "TAP version"))]
    if plan and "# SKIP" in plan[0].upper().replace("#SKIP", "# SKIP"):
        return [*lines, plan[0]]
    verdict = checks.judge(result)
    made = len(verdict.checks)
    lines = ["TAP version 13", *lines]
    for problem in verdict.problems:
        lines.append(f"# {problem}")
    for line in result.console:
        lines.append(f"# console: {line}")
    if result.audit is not None:
        lines.append(f"# {result.audit.line()}")
    ended = result.status is not None and result.trouble is None
    whole = not any(problem.startswith(("stopped", "planned", "gave up"))
                    for problem in verdict.problems)
    points = [
        (ended, "the machine ran the program to its end"),
        (result.status == 0 and whole, "the program succeeded and kept to its plan"),
        (not result.console, "the guest's console shows no problem"),
    ]
    if not result.program.makes_findings:
        points.append((result.audit is not None and not checks.audit_problems(result),
                       "the audit has no findings"))
    for number, (passed, text) in enumerate(points, made + 1):
        lines.append(f"{'ok' if passed else 'not ok'} {number} - {text}")
    lines.append(f"1..{made + len(points)}")
    return lines


def main(arguments: list[str]) -> int:
    if arguments == ["--list"]:
        print("\n".join(STOCK))
        return 0
    if len(arguments) != 1 or arguments[0] not in STOCK:
        print(f"Bail out! name one of: {' '.join(STOCK)}")
        return 1
    name = arguments[0]
    test = STOCK[name]
    session = Session(f"test-{name}", test.machine, trees.from_environment(), [test.program],
                      load_card=test.load_card)
    try:
        result = session.run()[0]
    except Failure as failure:
        print(f"Bail out! {failure.message}")
        return 1
    print("\n".join(line.replace("Bail out!", "# gave up:") for line in tap(result)))
    print(f"# logs: {session.output_log} {session.console_log} {session.qemu_log}")
    return 0 if checks.judge(result).problems == [] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
