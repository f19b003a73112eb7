#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks what docs/audit.md prints against the card's sources.

Its JSON can be read; the faults in it can be armed; properties, counters, findings,
targets, actions and trace events are those that there are, and all of them.
"""

from __future__ import annotations

import json
import re
import unittest
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parents[2]
CARD = ROOT / "hw-rdma-dev"
TEXT = (ROOT / "docs/audit.md").read_text()
HEADER = (CARD / "abi/qrdma_diagnostic.h").read_text()
INTERFACE = (CARD / "abi/qrdma_hw.h").read_text()
DEVICE = "".join(path.read_text() for path in sorted((CARD / "pci").glob("*.c")))

# Actions of all targets but DMA, and of commands and UMRs only.
QUEUED = {"delay", "drop", "duplicate", "swap", "fatal"}
WORK = {"late"}


def rows(first_cell: str) -> list[list[str]]:
    """Cells of the rows of the one table whose first cell is this."""
    lines = TEXT.splitlines()
    start = lines.index(next(line for line in lines if line.startswith(f"| {first_cell} |")))
    found = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def named(first_cell: str) -> set[str]:
    """What the first cells of a table name."""
    return {name for row in rows(first_cell) for name in names(row[0])}


def constants(pattern: str, text: str = HEADER) -> dict[str, int]:
    """Constants of the header that match, by their names as properties have them."""
    found = re.findall(rf"^(?:#define)?\s*{pattern}\s+(?:= )?(0x\w+|\d+)", text, re.MULTILINE)
    return {name.lower().replace("_", "-"): int(value.rstrip("u"), 0) for name, value in found}


def enumeration(name: str, prefix: str, text: str = HEADER) -> dict[str, int]:
    body = re.search(rf"^enum {name} \{{(.*?)^\}};", text, re.MULTILINE | re.DOTALL)
    assert body, name
    return constants(rf"{prefix}(\w+)", body[1])


TARGETS = enumeration("qrdma_fault_target", "QRDMA_FAULT_")
ACTIONS = enumeration("qrdma_fault_action", "QRDMA_FAULT_")


def json_texts() -> Iterator[Any]:
    """Every piece of JSON: in blocks of their own, and in the command lines."""
    for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL):
        yield json.loads(block)
    for argument in re.findall(r"-device '(\{.*?\})'", TEXT):
        yield json.loads(argument)


def fault_objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "target" in value:
            yield value
        for inner in value.values():
            yield from fault_objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from fault_objects(inner)


class PropertyTest(unittest.TestCase):
    def test_every_property_is_the_devices(self):
        there = set(re.findall(r'DEFINE_PROP_\w+\("([\w-]+)"', DEVICE))
        there |= set(re.findall(r'object_class_property_add\(class, "([\w-]+)"', DEVICE))
        used = named("property")
        for value in json_texts():
            if "driver" in value:
                used |= value.keys() - {"driver", "id"}
            elif "arguments" in value:
                used.add(value["arguments"]["property"])
        used |= set(re.findall(r"qom-[sg]et \S+ ([\w-]+)", TEXT))
        for options in re.findall(r"-device qrdma,([\w,=.-]+)", TEXT):
            used |= {option.partition("=")[0] for option in options.split(",")} - {"id"}
        self.assertGreater(len(used), 9)
        self.assertEqual(used - there, set())

    def test_trace_events(self):
        there = re.findall(r"^(qrdma_\w+)\(", (CARD / "trace-events").read_text(), re.MULTILINE)
        used = set(re.findall(r"`(qrdma_\w+)`", TEXT))
        self.assertEqual(used, {"qrdma_audit", "qrdma_audit_window", "qrdma_fault"})
        self.assertEqual(used - set(there), set())

    def test_registers(self):
        there = set(re.findall(r"\bQRDMA_\w+", HEADER + INTERFACE))
        for name, some in re.findall(r"`(QRDMA_\w+)(\*?)`", TEXT):
            with self.subTest(name):
                self.assertTrue(name in there or
                                some and any(other.startswith(name) for other in there))


class AuditTest(unittest.TestCase):
    COUNTERS = {name for name, offset in constants(r"QRDMA_REG_AUDIT_(\w+)").items()
                if offset >= 0x510}

    def test_counters_of_the_text(self):
        counters = {name for row in rows("finding") for name in names(row[1])}
        counters |= {"windows", "maps", "unwatched", "unjudged"}
        self.assertEqual(counters, self.COUNTERS)
        for name in self.COUNTERS:
            self.assertIn(f"`{name}`", TEXT)

    def test_counters_of_the_report(self):
        reports = [value["return"] for value in json_texts() if "return" in value]
        self.assertEqual([set(report["counters"]) for report in reports], [self.COUNTERS])
        self.assertEqual(set(re.findall(r'\{ "([\w-]+)", totals->', DEVICE)), self.COUNTERS)

    def test_findings(self):
        kinds = set(enumeration("qrdma_finding", "QRDMA_FINDING_")) - {"none"}
        self.assertEqual(named("finding"), kinds)

    def test_findings_of_the_report(self):
        for value in json_texts():
            for finding in value.get("return", {}).get("findings", ()):
                self.assertIn(finding["kind"], named("finding"))
                written = set(re.findall(r'\(v, "([\w-]+)", &?finding->', DEVICE))
                written |= {"kind"}
                self.assertEqual(set(finding), written)

    def test_limits(self):
        self.assertIn("QRDMA_AUDIT_MAX_ENTRIES (1u << 20)",
                      (CARD / "engine/audit.h").read_text())
        self.assertEqual(constants("QRDMA_(MAX_FINDINGS)"), {"max-findings": 256})
        self.assertEqual(constants("QRDMA_(MAX_FAULTS)"), {"max-faults": 16})
        self.assertEqual(re.findall(r"^#define QRDMA_TIMELINE_LIMIT +(\d+)$", DEVICE, re.MULTILINE),
                         ["1000000"])


class FaultTest(unittest.TestCase):
    MEMBERS = {name: (row[1] or None) for row in rows("member") for name in names(row[0])}

    def test_members(self):
        visited = set(re.findall(r'\bvisit_(?:choice|number|long_number)\(v, "([\w-]+)"', DEVICE))
        self.assertEqual(set(self.MEMBERS), visited)
        progress = set(re.findall(r'"(\w+)", &fault->(?:seen|hit)\b', DEVICE))
        self.assertEqual(progress, {"seen", "hit"})
        for name in progress:
            self.assertIn(f"`{name}`", TEXT)

    def test_names_of_targets_and_actions(self):
        given = {row[0]: set(names(row[2])) for row in rows("member")}
        self.assertEqual(given["`target`"], set(TARGETS))
        self.assertEqual(given["`action`"], set(ACTIONS))

    def test_faults_in_the_text_can_be_armed(self):
        faults = [fault for value in json_texts() for fault in fault_objects(value)]
        self.assertGreater(len(faults), 2)
        for fault in faults:
            with self.subTest(fault):
                self.assertEqual(fault.keys() - set(self.MEMBERS), set())
                self.assertIn(fault["target"], TARGETS)
                self.assertIn(fault["action"], self.actions_of(fault["target"]))
                if fault["target"] == "command" and "opcode" in fault:
                    self.assertIn(fault["opcode"], enumeration(
                        "qrdma_command_opcode", "QRDMA_CMD_", INTERFACE).values())
                if "status" in fault:
                    self.assertEqual(fault["action"], "fail")
                    self.assertIn(fault["status"], enumeration(
                        "qrdma_status", "QRDMA_STATUS_", INTERFACE).values())

    def test_every_target_and_action_has_a_row(self):
        described = {(target, action) for row in rows("target")
                     for target in self.targets_of(row[0]) for action in names(row[1])}
        expected = {(target, action) for target in TARGETS
                    for action in self.actions_of(target)}
        self.assertEqual(described, expected)

    @staticmethod
    def targets_of(cell: str) -> list[str]:
        if cell == "all but dma":
            return [target for target in TARGETS if not target.startswith("dma")]
        return cell.split(", ")

    @staticmethod
    def actions_of(target: str) -> set[str]:
        actions = {"fail"}
        if not target.startswith("dma"):
            actions |= QUEUED
        if target in ("command", "umr"):
            actions |= WORK
        return actions


if __name__ == "__main__":
    unittest.main()
