# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots the debug kernel for tests and prints their TAP. meson test calls this.

The whole run has a boot for each program, the short one (suite debug-kernel) a
boot for each machine. After its programs a boot unloads the driver and asks the
kernel what it has found. With --list or --list-whole it prints the names of the
tests, for meson.build.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from . import checks, command_vm_test, machine, trees
from .errors import Failure
from .guest import Program, Result, Session
from .vm_tests import TESTS, short_programs

CHECKS = Program("kernel-checks", "/qrdma/kernel-checks")
POINT = re.compile(r"(ok|not ok) \d+ (?:- )?(.*)")
SKIP = re.compile(r"1\.\.0\s*(#.*)")


@dataclass(frozen=True)
class Boot:
    """What one boot of the debug kernel runs, before the kernel is asked."""

    programs: list[Program]
    machine: machine.Machine
    load_card: bool = True


SHORT = {f"debug-{of.name}": Boot(short_programs(of), of)
         for of in (machine.PLAIN, machine.IOMMU)}
WHOLE = {f"debug-{name}": Boot([test.program], test.machine, test.load_card)
         for name, test in TESTS.items()}
BOOTS = SHORT | WHOLE


def combine(results: list[Result]) -> list[str]:
    """One TAP stream of what several programs printed, each point with its program's name."""
    lines = ["TAP version 13"]
    number = 0
    for result in results:
        for line in command_vm_test.tap(result):
            point, skip = POINT.match(line), SKIP.match(line)
            if point:
                number += 1
                lines.append(f"{point[1]} {number} - {result.program.name}: {point[2]}")
            elif skip:
                number += 1
                lines.append(f"ok {number} - {result.program.name} {skip[1]}")
            elif not line.startswith(("1..", "TAP version")):
                lines.append(line.replace("Bail out!", "# gave up:"))
    return [*lines, f"1..{number}"]


def main(arguments: list[str]) -> int:
    for option, boots in (("--list", SHORT), ("--list-whole", WHOLE)):
        if arguments == [option]:
            print("\n".join(boots))
            return 0
    if len(arguments) != 1 or arguments[0] not in BOOTS:
        print(f"Bail out! name one of: {' '.join(BOOTS)}")
        return 1
    name = arguments[0]
    boot = BOOTS[name]
    session = Session(f"test-{name}", boot.machine, trees.from_environment().with_debug_kernel(),
                      [*boot.programs, CHECKS], load_card=boot.load_card)
    try:
        results = session.run()
    except Failure as failure:
        print(f"Bail out! {failure.message}")
        return 1
    print("\n".join(combine(results)))
    for result in results:
        print(f"# {result.program.name} took {result.seconds:.0f} s")
    print(f"# logs: {session.output_log} {session.console_log} {session.qemu_log}")
    return 1 if any(checks.judge(result).problems for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
