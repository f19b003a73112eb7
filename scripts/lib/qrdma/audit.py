# SPDX-License-Identifier: GPL-2.0-or-later
"""What the card's audit says: its counters, its findings, and what they amount to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .monitor import Monitor, MonitorError

CARD = "/machine/peripheral/card"

# Counters that are no fault, however large.
PROGRESS = ("windows", "maps")
# Faults; how many of what. What is not in this list is shown by its own name.
WORDS = {
    "windows": "windows", "maps": "intermediate maps",
    "torn-bytes": "torn bytes", "widened-bytes": "bytes with widened rights",
    "stale-bytes": "stale bytes", "torn-accesses": "accesses through a torn map",
    "revoked-accesses": "accesses after a revocation",
    "stray-accesses": "accesses to another place than the table's",
    "reused-indices": "keys reused before they were destroyed",
    "unwatched": "keys too large to be watched",
    "unjudged": "accesses or intervals that could not be judged",
}
# Shown together while all of them are zero.
BYTES = ("torn-bytes", "widened-bytes", "stale-bytes")
ACCESSES = ("torn-accesses", "revoked-accesses", "stray-accesses")
MOST_FINDINGS_SHOWN = 8


class AuditError(Exception):
    """The card has no audit, or what it answered is not a report."""


@dataclass(frozen=True)
class Place:
    """What a byte shows: a bus address and the rights to it. No rights: absent."""

    address: int
    rights: tuple[str, ...]

    def __str__(self) -> str:
        if not self.rights:
            return "absent"
        return f"{self.address:#x} {'+'.join(self.rights)}"

    @classmethod
    def parse(cls, value: Any) -> "Place":
        if value is None:
            return cls(0, ())
        return cls(number(value.get("address", 0)), tuple(map(str, value.get("rights", ()))))


@dataclass(frozen=True)
class Finding:
    """An interval of a key that showed what it must not, and the change that caused it."""

    kind: str
    key: int
    address: int
    length: int
    shown: Place
    old: Place
    new: Place
    change: int
    description: str
    time: int

    def __str__(self) -> str:
        cause = f" ({self.description})" if self.description else ""
        return (f"{self.kind}: key {self.key:#x}, {self.length} bytes at {self.address:#x}: "
                f"shown {self.shown}; old {self.old}; new {self.new}; "
                f"change {self.change}{cause} at {self.time} ns")

    @classmethod
    def parse(cls, value: Any) -> "Finding":
        return cls(str(value["kind"]), number(value["key"]), number(value["address"]),
                   number(value["length"]), *(Place.parse(value.get(name))
                                              for name in ("shown", "old", "new")),
                   number(value.get("change", 0)), str(value.get("description") or ""),
                   number(value.get("time", 0)))


@dataclass(frozen=True)
class Report:
    """What the audit saw since it was last cleared."""

    counters: dict[str, int]
    findings: list[Finding]
    raw: dict[str, Any]

    def line(self) -> str:
        """All of it in one line, as in "audit: 0 findings; 12 windows, ..."."""
        parts = [self._count(name) for name in PROGRESS]
        parts += self._together(BYTES, "torn, widened or stale bytes")
        parts += self._together(ACCESSES, "accesses to such, to revoked keys or astray")
        parts += [self._count(name) for name, value in self.counters.items()
                  if value and name not in (*PROGRESS, *BYTES, *ACCESSES)]
        found = f"{len(self.findings)} finding{'' if len(self.findings) == 1 else 's'}"
        return f"audit: {found}; " + ", ".join(parts)

    def problems(self) -> list[str]:
        """Empty if nothing was found, nothing overlooked and nothing left unjudged."""
        found = [f"audit: {self._count(name)}" for name, value in self.counters.items()
                 if value and name not in PROGRESS]
        found += [f"audit: {finding}" for finding in self.findings[:MOST_FINDINGS_SHOWN]]
        if len(self.findings) > MOST_FINDINGS_SHOWN:
            found.append(f"audit: {len(self.findings) - MOST_FINDINGS_SHOWN} more findings "
                         "(--json FILE has them all)")
        return found

    def _count(self, name: str) -> str:
        return f"{self.counters.get(name, 0)} {WORDS.get(name, name)}"

    def _together(self, names: tuple[str, ...], words: str) -> list[str]:
        present = [self._count(name) for name in names if self.counters.get(name)]
        return present or [f"0 {words}"]


def number(value: Any) -> int:
    """A number, or a string that holds one: JavaScript's are exact only up to 2^53."""
    return int(value, 0) if isinstance(value, str) else int(value)


def parse(value: Any) -> Report:
    """The property audit-report as QMP gives it; AuditError if it is none."""
    try:
        counters = {str(name): number(count) for name, count in value["counters"].items()}
        findings = [Finding.parse(finding) for finding in value["findings"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AuditError(f"the card's audit report cannot be read: "
                         f"{type(error).__name__}: {error}") from error
    missing = [name for name in WORDS if name not in counters]
    if missing:
        raise AuditError(f"the card's audit report lacks counters: {', '.join(missing)}")
    # QEMU's order is by hash.
    ordered = {name: counters[name] for name in [*WORDS, *(counters.keys() - WORDS.keys())]}
    return Report(ordered, findings, {**value, "counters": ordered})


def ask(monitor: Monitor) -> Report:
    """The report since the last time, which ends with it; AuditError if there is none."""
    try:
        value = monitor.get(CARD, "audit-report")
        monitor.set(CARD, "audit-clear", True)
    except MonitorError as error:
        raise AuditError(f"audit: not there: {error}") from error
    return parse(value)
