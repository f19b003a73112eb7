# SPDX-License-Identifier: GPL-2.0-or-later
"""The report over a run: for people, and as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .checks import Value, Verdict
from .flows import Flow
from .guest import Result
from .progress import elapsed

# 2: audit, timeline and picture of each flow.
SCHEMA = 2
# Counts that can be added up over a flow's checks.
COUNTS = ("right", "refused", "wrong")
# Figures of which the short report gives the values that occurred, and how many of them.
HIGHLIGHTS = ("entries", "level", "leaves", "steps", "n", "x", "failed_step",
              "revoke_callbacks", "written_after", "same_index")
MOST_VALUES = 12


@dataclass(frozen=True)
class Outcome:
    """A flow that was run."""

    flow: Flow
    result: Result
    verdict: Verdict
    logs: list[Path]
    timeline: Path | None = None
    picture: Path | None = None

    def word(self) -> str:
        if self.verdict.skipped:
            return "skipped"
        return "held" if self.verdict.held else "FAILED"


def text(outcomes: list[Outcome], *, every_check: bool = False) -> str:
    """A block a flow: its line, the figures that occurred, then what went wrong.

    Checks that passed are only counted, unless every check is wanted.
    """
    lines: list[str] = []
    for outcome in outcomes:
        lines += ["", headline(outcome)]
        if shown := highlights(outcome.verdict):
            lines.append(f"{'':21} {shown}")
        if outcome.result.audit is not None:
            lines.append(f"{'':21} {outcome.result.audit.line()}")
        if outcome.picture is not None:
            lines.append(f"{'':21} picture: {outcome.picture}")
        elif outcome.timeline is not None and not outcome.flow.changes_keys:
            lines.append(f"{'':21} picture: none, since no key changes in this flow")
        for check in outcome.verdict.checks:
            if check.passed and not check.skipped and not every_check:
                continue
            mark = "-" if check.skipped else "+" if check.passed else "!"
            lines.append(f"    {mark} {check.description}{_reason(check.reason)}")
            if check.figures:
                lines.append(f"        {figures(check.figures)}")
        lines += [f"    ! {problem}" for problem in outcome.verdict.problems]
        lines += [f"      | {line}" for line in outcome.result.console]
        if outcome.verdict.skipped:
            lines.append(f"    - skipped: {outcome.verdict.skip_reason}")
        if outcome.verdict.problems:
            lines.append("      logs: " + " ".join(str(log) for log in outcome.logs))
    return "\n".join(lines[1:])


def headline(outcome: Outcome) -> str:
    """One line: the flow, its verdict, what it shows, its sums."""
    checks = [check for check in outcome.verdict.checks if not check.skipped]
    passed = sum(check.passed for check in checks)
    parts = [f"{passed} of {len(checks)} checks"]
    totals = sums(outcome.verdict)
    if totals:
        parts.append(", ".join(f"{name} {count}" for name, count in totals.items()))
    parts.append(elapsed(outcome.result.seconds))
    return (f"{outcome.word():8} {outcome.flow.name:12} {outcome.flow.shows}\n"
            f"         {'':12} {'; '.join(parts)}")


def sums(verdict: Verdict) -> dict[str, int]:
    """The accesses that the flow counted, by what became of them."""
    result: dict[str, int] = {}
    for name in COUNTS:
        values = [value for check in verdict.checks
                  if isinstance(value := check.figures.get(name), int)]
        if values:
            result[name] = sum(values)
    return result


def highlights(verdict: Verdict) -> str:
    """The values that the telling figures took over the flow's checks."""
    parts = []
    for name in HIGHLIGHTS:
        values = sorted({value for check in verdict.checks
                         if isinstance(value := check.figures.get(name), int)})
        if values:
            more = ", ..." if len(values) > MOST_VALUES else ""
            parts.append(f"{name} {', '.join(map(str, values[:MOST_VALUES]))}{more}")
    return "; ".join(parts)


def figures(values: dict[str, Value]) -> str:
    return "  ".join(f"{name} {value}" for name, value in values.items())


def _reason(reason: str) -> str:
    return f" ({reason})" if reason else ""


def verdict_line(outcomes: list[Outcome]) -> str:
    """The last line: what all of it amounts to."""
    failed = [outcome.flow.name for outcome in outcomes if outcome.verdict.problems]
    skipped = [outcome.flow.name for outcome in outcomes if outcome.verdict.skipped]
    if failed:
        return f"FAILED: {', '.join(failed)} did not hold"
    if skipped:
        return f"NOT SHOWN: {', '.join(skipped)} could not be run; the others held"
    wrong = [counts["wrong"] for outcome in outcomes if "wrong" in (counts := sums(outcome.verdict))]
    seen = "; no access saw wrong data" if wrong else ""
    asked = all(outcome.result.audit is not None for outcome in outcomes)
    audited = "the audit found nothing; " if asked else ""
    names = ", ".join(outcome.flow.name for outcome in outcomes)
    return f"HELD: {names}{seen}; {audited}the guest's console is clean"


def holds(outcomes: list[Outcome]) -> bool:
    return all(outcome.verdict.held for outcome in outcomes)


def as_json(outcomes: list[Outcome], versions: dict[str, str]) -> str:
    """The same for programs."""
    return json.dumps({
        "schema": SCHEMA,
        "held": holds(outcomes),
        "verdict": verdict_line(outcomes),
        "versions": versions,
        "flows": [_flow(outcome) for outcome in outcomes],
    }, indent=2) + "\n"


def _flow(outcome: Outcome) -> dict:
    return {
        "name": outcome.flow.name,
        "shows": outcome.flow.shows,
        "verdict": outcome.word().lower(),
        "seconds": round(outcome.result.seconds, 1),
        "sums": sums(outcome.verdict),
        "audit": outcome.result.audit.raw if outcome.result.audit is not None else None,
        "timeline": str(outcome.timeline) if outcome.timeline is not None else None,
        "picture": str(outcome.picture) if outcome.picture is not None else None,
        "checks": [{"description": check.description, "passed": check.passed,
                    "skipped": check.skipped, "reason": check.reason,
                    "figures": check.figures} for check in outcome.verdict.checks],
        "problems": outcome.verdict.problems,
        "console": outcome.result.console,
        "logs": [str(log) for log in outcome.logs],
    }
