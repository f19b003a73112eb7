# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the card's timeline: a file of trace events, and what it says of each key.

The file is the array form of the Trace Event Format, one record a line, as the
device property timeline=FILE writes it. Every line is checked: what is wrong is
told with its line, not drawn.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, NamedTuple

from .errors import Failure

CLASSES = ("absent", "old", "new", "torn", "widened", "stale")
# What a byte must never be.
WRONG = ("torn", "widened", "stale")
CATEGORIES = ("create", "destroy", "window", "change", "access", "finding", "cut")
SCOPES = ("g", "p", "t")


class Interval(NamedTuple):
    """Bytes of one class; end is the first byte behind them."""

    kind: str
    address: int
    end: int


class Access(NamedTuple):
    """Times in nanoseconds, as everywhere here."""

    begin: int
    end: int
    index: int
    qpn: int
    address: int
    length: int
    text: str

    @property
    def granted(self) -> bool:
        """"local read" was granted; "local read, refused: error 3" was not."""
        return "," not in self.text


class Mark(NamedTuple):
    """A create, destroy, finding or cut."""

    kind: str
    time: int
    index: int
    text: str


@dataclass(frozen=True)
class Change:
    """A part of a UMR or command that became visible; number is the UMR's."""

    time: int
    index: int
    number: int
    text: str
    intervals: tuple[Interval, ...]


@dataclass(frozen=True)
class Window:
    """From the first change until the region was settled; outcome says how it was then."""

    begin: int
    end: int
    index: int
    key: int
    address: int
    length: int
    outcome: str
    changes: list[Change] = field(default_factory=list)

    def wrong(self) -> set[str]:
        """The classes that occur and must not."""
        return {interval.kind for change in self.changes for interval in change.intervals
                if interval.kind in WRONG}


@dataclass
class Timeline:
    """A file's records. Not whole: its end is missing; cut: the limit was reached."""

    path: Path
    windows: list[Window] = field(default_factory=list)
    # Changes of what nobody could reach: they belong to no window.
    silent: list[Change] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    whole: bool = False
    cut: bool = False


class _Bad(Exception):
    """What is wrong with a record."""


def read(path: Path) -> Timeline:
    """The timeline in a file; Failure, with the line, if it is none."""
    result = Timeline(path)
    open_windows: dict[int, Window] = {}
    number = 0
    try:
        for number, record in _records(path, result):
            _add(result, open_windows, record)
    except _Bad as error:
        raise bad(path, number, str(error)) from None
    result.windows.sort(key=lambda window: (window.begin, window.end))
    result.silent.sort(key=lambda change: change.time)
    result.accesses.sort()
    result.marks.sort(key=lambda mark: mark.time)
    return result


def bad(path: Path, line: int, reason: str) -> Failure:
    return Failure(f"{path}, line {line}: {reason}",
                   advice="a timeline is what the device property timeline=FILE writes: "
                          "a JSON array of trace events, one a line")


def _records(path: Path, result: Timeline) -> Iterator[tuple[int, dict[str, Any]]]:
    """The file's records with their lines. Sets whether its end was there."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from _lines(path, file, result)
    except OSError as error:
        raise Failure(f"cannot read the timeline {path}: {error.strerror}") from error


def _lines(path: Path, file: Any, result: Timeline) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for number, line in enumerate(file, 1):
        text = line.strip()
        if number == 1:
            if text != "[":
                raise bad(path, 1, "it does not begin with '[' alone")
        elif result.whole and text:
            raise bad(path, number, "something follows the array's end")
        elif text == "]":
            result.whole = True
        elif text:
            try:
                record = json.loads(text.removesuffix(","))
            except json.JSONDecodeError as error:
                # A QEMU that was killed leaves a part of its last line.
                if not line.endswith("\n"):
                    return
                raise bad(path, number, f"not JSON: {error.msg} at column {error.colno}") from None
            try:
                check(record)
            except _Bad as error:
                raise bad(path, number, str(error)) from None
            yield number, record
    if number == 0:
        raise bad(path, 1, "the file is empty")


def check(record: Any) -> None:
    """Fails unless a viewer of trace events takes the record."""
    if not isinstance(record, dict):
        raise _Bad("not an object")
    _need(record, "name", str)
    _need(record, "pid", int)
    _need(record, "tid", int)
    phase = _need(record, "ph", str)
    if phase == "M":
        _need(_need(record, "args", dict), "name", str)
        return
    if _need(record, "ts", (int, float)) < 0:
        raise _Bad("'ts' is negative")
    if _need(record, "cat", str) not in CATEGORIES:
        raise _Bad(f"unknown category '{record['cat']}'")
    if phase == "X":
        if _need(record, "dur", (int, float)) < 0:
            raise _Bad("'dur' is negative")
    elif phase == "i":
        if _need(record, "s", str) not in SCOPES:
            raise _Bad(f"scope '{record['s']}' is none of {', '.join(SCOPES)}")
    else:
        raise _Bad(f"unknown phase '{phase}'")


def _need(record: dict[str, Any], name: str, kind: Any) -> Any:
    value = record.get(name)
    if value is None:
        raise _Bad(f"no '{name}'")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _Bad(f"'{name}' is {json.dumps(value)[:40]}")
    return value


def _number(arguments: dict[str, Any], name: str) -> int:
    """64-bit numbers come as strings, "0x...": JavaScript's are exact up to 2^53 only."""
    return _as_number(arguments.get(name), name)


def _as_number(value: Any, name: str) -> int:
    try:
        number = int(value, 0) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise _Bad(f"'{name}' is {json.dumps(value)[:40]}")
    return number


def _add(result: Timeline, open_windows: dict[int, Window], record: dict[str, Any]) -> None:
    if record["ph"] == "M":
        return
    category = record["cat"]
    begin = round(record["ts"] * 1000)
    end = begin + round(record.get("dur", 0) * 1000)
    index = record["tid"]
    if category == "cut":
        result.cut = True
        result.marks.append(Mark(category, begin, index, record["name"]))
        return
    arguments = _need(record, "args", dict)
    if category == "access":
        result.accesses.append(Access(
            begin, end, _number(arguments, "key") >> 8, index, _number(arguments, "address"),
            _number(arguments, "length"), sys.intern(record["name"])))
    elif category == "window":
        window = Window(begin, end, index, _number(arguments, "key"),
                        _number(arguments, "address"), _number(arguments, "length"),
                        record["name"].removeprefix("window: "))
        open_windows[index] = window
        result.windows.append(window)
    elif category == "change":
        # A window's changes follow it, with times that lie in it.
        change = Change(begin, index, _number(arguments, "change"), record["name"],
                        _intervals(arguments.get("intervals")))
        window = open_windows.get(index)
        if window is not None and window.begin <= begin <= window.end:
            window.changes.append(change)
        elif not change.intervals:
            result.silent.append(change)
        else:
            raise _Bad(f"a change of mkey {index} that is in no window before it")
    else:
        result.marks.append(Mark(category, begin, index, record["name"]))


def _intervals(value: Any) -> tuple[Interval, ...]:
    if not isinstance(value, list):
        raise _Bad("'intervals' is no list")
    result = []
    for item in value:
        if not isinstance(item, list) or len(item) != 3:
            raise _Bad(f"an interval is {json.dumps(item)[:40]}, not [class, address, length]")
        kind, address = item[0], _as_number(item[1], "address")
        if kind not in CLASSES:
            raise _Bad(f"unknown class {json.dumps(kind)[:40]} of an interval")
        if result and address < result[-1].end:
            raise _Bad("intervals overlap or are not sorted")
        result.append(Interval(sys.intern(kind), address, address + _as_number(item[2], "length")))
    return tuple(result)
