# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the TAP that a guest program printed, and judges the program by it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tap.parser import Parser

from .guest import Result

FIGURES = re.compile(r"^#\s*figures:\s*(.*)$")
Value = int | float | str


@dataclass(frozen=True)
class Check:
    """One test point, with the figures that were printed before it."""

    description: str
    passed: bool
    skipped: bool = False
    reason: str = ""
    figures: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """What a program's output amounts to. problems is empty if all is well."""

    checks: list[Check]
    problems: list[str]
    skip_reason: str = ""

    @property
    def skipped(self) -> bool:
        return bool(self.skip_reason) and not self.problems

    @property
    def held(self) -> bool:
        return not self.problems and not self.skip_reason


def parse_figures(text: str) -> dict[str, Value]:
    """key=value words; numbers become numbers, the rest stays text."""
    return {key: number(value) for key, separator, value in
            (word.partition("=") for word in text.split()) if separator}


def number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def judge(result: Result) -> Verdict:
    """The verdict over a program: its TAP, its status, console, machine and audit."""
    reader = _Reader()
    for line in result.output:
        reader.line(line)
    problems = reader.problems()
    if result.trouble is not None:
        problems.append(result.trouble)
    if result.status not in (0, None) and not problems:
        problems.append(f"the program ended with status {result.status}")
    if result.console:
        problems.append("the kernel reported a problem on its console")
    problems += audit_problems(result)
    return Verdict(reader.checks, problems, reader.skip_reason)


def audit_problems(result: Result) -> list[str]:
    """What the audit found, or why it could not be asked."""
    if result.audit_trouble is not None:
        return [result.audit_trouble]
    if result.audit is None or result.program.makes_findings:
        return []
    return result.audit.problems()


class _Reader:
    """Collects test points from TAP lines."""

    def __init__(self) -> None:
        self.parser = Parser()
        self.checks: list[Check] = []
        self.planned: int | None = None
        self.skip_reason = ""
        self.bail: str | None = None
        self.figures: dict[str, Value] = {}

    def line(self, text: str) -> None:
        figures = FIGURES.match(text)
        if figures:
            self.figures |= parse_figures(figures[1])
            return
        item = self.parser.parse_line(text)
        if item.category == "test":
            self._point(item)
        elif item.category == "plan":
            self.planned = item.expected_tests
            if item.directive.skip:
                self.skip_reason = item.directive.reason or "no reason given"
        elif item.category == "bail":
            self.bail = item.reason or "no reason given"

    def _point(self, item) -> None:
        description = item.description.removeprefix("- ").strip()
        self.checks.append(Check(description, item.ok or item.todo, bool(item.skip),
                                 item.directive.reason or "", self.figures))
        self.figures = {}

    def problems(self) -> list[str]:
        found = [f"failed: {check.description}" for check in self.checks if not check.passed]
        wrong = sum(value for check in self.checks
                    if isinstance(value := check.figures.get("wrong"), int))
        if wrong:
            found.append(f"{wrong} accesses saw wrong data")
        if self.bail is not None:
            found.append(f"gave up: {self.bail}")
        elif self.planned is None:
            found.append("stopped before its plan")
        elif self.planned != len(self.checks):
            found.append(f"planned {self.planned} checks, made {len(self.checks)}")
        return found
