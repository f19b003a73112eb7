# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots the guest for one test and prints its TAP. meson test calls this.

With --list it prints the names of the tests, for meson.build.

To what the program in the guest prints it adds points of its own: the program
ended well, the machine did, the kernel has nothing to complain about, and the
card's audit has no findings (but for programs that make some).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from . import checks, machine, trees
from .errors import Failure
from .flows import FLOWS
from .guest import Program, Result, Session


@dataclass(frozen=True)
class VmTest:
    """What is run in which machine, with the driver loaded before or not."""

    program: Program
    machine: machine.Machine = machine.PLAIN
    load_card: bool = True


def _test(name: str, command: str, *, makes_findings: bool = False,
          **more) -> tuple[str, VmTest]:
    return name, VmTest(Program(name, command, 3600, makes_findings), **more)


TESTS: dict[str, VmTest] = {
    f"flow-{flow.name}": VmTest(flow.program(), flow.machine) for flow in FLOWS.values()
} | dict((
    _test("pingpong", "/tests/vm-pingpong"),
    _test("load-unload", "/tests/test-load-unload", load_card=False),
    _test("load-unload-vfio", "/tests/test-load-unload 20 flow-revoke-vfio",
          machine=machine.IOMMU, load_card=False),
    _test("exporter", "/tests/test-exporter"),
    _test("memory", "/tests/test-memory"),
    _test("arguments", "/tests/test-arguments"),
    _test("access", "/tests/test-access"),
    _test("verbs", "/tests/test-verbs"),
    _test("threads", "/tests/test-threads"),
    _test("rings", "/tests/test-rings"),
    _test("allocation-failures", "/tests/test-allocation-failures"),
    # The card says it has done what it has not: stale bytes, keys taken again.
    _test("faults-commands", "/tests/test-faults-commands", makes_findings=True),
    _test("faults-updates", "/tests/test-faults-updates", makes_findings=True),
    _test("faults-events", "/tests/test-faults-events"),
    _test("fatal", "/tests/test-fatal"),
    # What the audit finds there, the program has it forget before it ends.
    _test("wrong-order", "/tests/test-wrong-order"),
    _test("isolation", "/tests/test-isolation"),
))


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
        print("\n".join(TESTS))
        return 0
    if len(arguments) != 1 or arguments[0] not in TESTS:
        print(f"Bail out! name one of: {' '.join(TESTS)}")
        return 1
    name = arguments[0]
    test = TESTS[name]
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
