# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines as the card writes them, made up: for the tests of what reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

BASE = 0x7f0000000000
PAGE = 4096
SIZE = 2048 * PAGE
KEY = 0x1204
INDEX = 0x12


class Writer:
    """Collects records; times are in nanoseconds."""

    def __init__(self, index: int = INDEX) -> None:
        self.key = index << 8 | 4
        self.index = index
        self.records: list[dict[str, Any]] = [
            {"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "mkeys"}}]

    def add(self, category: str, begin: int, name: str, end: int | None = None,
            **arguments: Any) -> None:
        access = category == "access"
        record: dict[str, Any] = {"name": name, "cat": category, "ph": "i", "s": "g",
                                  "ts": begin / 1000.0, "pid": 2 if access else 1,
                                  "tid": 9 if access else self.index,
                                  "args": {"key": self.key, "address": hex(BASE), "length": SIZE,
                                           "change": 0, **arguments}}
        if end is not None:
            del record["s"]
            record |= {"ph": "X", "dur": (end - begin) / 1000.0}
        self.records.append(record)

    def window(self, begin: int, end: int, outcome: str) -> None:
        self.add("window", begin, f"window: {outcome}", end, change=3)

    def change(self, time: int, number: int, text: str, *intervals: tuple[str, int, int]) -> None:
        """Intervals are in pages: class, first, count."""
        self.add("change", time, text, change=number, intervals=[
            [kind, hex(BASE + first * PAGE), count * PAGE] for kind, first, count in intervals])

    def access(self, begin: int, page: int, text: str = "remote read", length: int = 2000) -> None:
        self.add("access", begin, text, begin + length, address=hex(BASE + page * PAGE),
                 length=PAGE)

    def accesses(self, begin: int, end: int, count: int, text: str = "remote read") -> None:
        for number in range(count):
            self.access(begin + (end - begin) * number // count, number * 367 % 2040, text)

    def text(self) -> str:
        return "[\n" + ",\n".join(json.dumps(record) for record in self.records) + "\n]\n"

    def write(self, path: Path) -> Path:
        path.write_text(self.text())
        return path


def five_steps() -> Writer:
    """A region is invalidated, then its page size changes from 4 KiB to 2 MiB and back."""
    writer = Writer()
    writer.add("create", 1000, "create")
    writer.accesses(5_000, 900_000, 60)
    writer.window(1_000_000, 1_000_900, "empty")
    writer.change(1_000_000, 10, "entries 0..2047 absent", ("absent", 0, 2048))
    writer.accesses(1_002_000, 1_100_000, 2, "remote read, fault")
    writer.change(3_000_000, 11, "entries 0..7 absent")
    writer.change(3_020_000, 12, "page size 2^21 to 2^23")
    writer.change(3_040_000, 13, "entries 8..2047")
    writer.window(3_080_000, 3_140_000, "whole")
    writer.change(3_080_000, 14, "page size 2^23 to 2^12", ("new", 8, 2040))
    writer.change(3_130_000, 15, "entries 0..7", ("new", 0, 8))
    writer.accesses(3_090_000, 3_128_000, 4)
    writer.accesses(3_150_000, 4_000_000, 60)
    return writer


def wrong_order() -> Writer:
    """The page size first, then the entries: what was read as 4 KiB is read as 64 KiB."""
    writer = Writer()
    writer.accesses(5_000, 900_000, 30)
    writer.window(1_000_000, 1_100_000, "whole")
    writer.change(1_000_000, 7, "page size 2^12 to 2^16", ("old", 0, 1), ("torn", 1, 2047))
    writer.accesses(1_004_000, 1_080_000, 9)
    writer.change(1_050_000, 8, "entries 0..63", ("new", 0, 1024))
    writer.change(1_090_000, 8, "entries 64..127", ("new", 1024, 1024))
    writer.add("finding", 1_000_000, "torn", address=hex(BASE + PAGE), change=7)
    writer.accesses(1_120_000, 2_000_000, 30)
    return writer


def revocation() -> Writer:
    """A key is revoked under traffic."""
    writer = Writer()
    writer.accesses(5_000, 990_000, 50, "remote write")
    writer.window(1_000_000, 1_004_000, "empty")
    writer.change(1_000_000, 21, "free, rights, PD", ("absent", 0, 2048))
    writer.accesses(1_010_000, 1_500_000, 12, "remote write, refused: error 5")
    return writer
