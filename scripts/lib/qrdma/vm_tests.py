# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that are run in the guest as tests, on which kernel and how.

Each is run on the stock kernel (suite vm) and, in the long run, on the debug
kernel; a few only on the latter. Those that have a short form are what the suite
debug-kernel is made of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import machine
from .flows import FLOWS
from .guest import Program


@dataclass(frozen=True)
class VmTest:
    """What is run in which machine, with the driver loaded before or not.

    debug_only: it needs what only the debug kernel has, or tells nothing elsewhere.
    short: its command in the suite debug-kernel; empty if it is not in there.
    """

    program: Program
    machine: machine.Machine = machine.PLAIN
    load_card: bool = True
    debug_only: bool = False
    short: str = ""


def _test(name: str, command: str, *, makes_findings: bool = False,
          **more) -> tuple[str, VmTest]:
    return name, VmTest(Program(name, command, 3600, makes_findings), **more)


# Flows by one telling case each.
SHORT_FLOWS = {"register": "1537-entries", "page-size": "8MiB", "revoke": "idle",
               "revoke-vfio": "", "recovery": "moved-back"}

TESTS: dict[str, VmTest] = {
    f"flow-{flow.name}": VmTest(flow.program(), flow.machine, short=" ".join(
        (flow.program().command, SHORT_FLOWS[flow.name])).rstrip())
    for flow in FLOWS.values()
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
    _test("isolation", "/tests/test-isolation"),
    _test("rings", "/tests/test-rings"),
    _test("allocation-failures", "/tests/test-allocation-failures",
          short="/tests/test-allocation-failures pinned move page-fault pinned-revoke"),
    # The card says it has done what it has not: stale bytes, keys taken again.
    _test("faults-commands", "/tests/test-faults-commands", makes_findings=True),
    _test("faults-updates", "/tests/test-faults-updates", makes_findings=True),
    _test("faults-events", "/tests/test-faults-events"),
    _test("fatal", "/tests/test-fatal"),
    # What the audit finds there, the program has it forget before it ends.
    _test("wrong-order", "/tests/test-wrong-order"),
    _test("churn", "/tests/test-churn", short="/tests/test-churn 10"),
    _test("pin-race", "/tests/test-pin-race"),
    _test("killed", "/tests/test-killed", short="/tests/test-killed 5"),
    # The host moves the machine, takes the card out and puts another in.
    _test("migration", "/tests/test-migration"),
    _test("taken-away", "/tests/test-taken-away", short="/tests/test-taken-away"),
    # Whatever the driver does with an IOMMU between it and memory.
    _test("iommu-access", "/tests/test-access", machine=machine.IOMMU, debug_only=True),
    _test("iommu-verbs", "/tests/test-verbs", machine=machine.IOMMU, debug_only=True),
    _test("iommu-revoke", "/tests/flow-revoke", machine=machine.IOMMU, debug_only=True,
          short="/tests/flow-revoke idle"),
))

STOCK = {name: test for name, test in TESTS.items() if not test.debug_only}


def short_programs(of: machine.Machine) -> list[Program]:
    """What one boot of this machine runs in the suite debug-kernel."""
    return [replace(test.program, command=test.short) for test in TESTS.values()
            if test.short and test.machine == of]
