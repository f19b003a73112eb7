# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes inputs for fuzz targets from descriptions that people can read.

A description, NAME.seed, has numbers separated by blanks, decimal or 0x.., each a
byte; u16:, u32: and u64: before one make it that wide, little-endian. What follows
a # is a comment. Other files are inputs as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from .errors import Failure

SUFFIX = ".seed"
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


def assemble(text: str, name: str = "seed") -> bytes:
    """The input that a description means."""
    result = bytearray()
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.partition("#")[0].split():
            try:
                result += _bytes(word)
            except (ValueError, OverflowError, KeyError):
                raise Failure(f"{name}, line {number}: not a number of its width: {word}",
                              advice="write 7, 0x7f, u16:500, u32: or u64: before a number"
                              ) from None
    return bytes(result)


def _bytes(word: str) -> bytes:
    width, colon, value = word.rpartition(":")
    return int(value, 0).to_bytes(WIDTHS[width if colon else "u8"], "little")


def make(source: Path, target: Path) -> None:
    """Fills target with the inputs of the folder source; nothing else stays in it."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(source.iterdir()) if source.is_dir() else []:
        if path.suffix == SUFFIX:
            (target / path.stem).write_bytes(assemble(path.read_text(), path.name))
        elif path.is_file():
            shutil.copyfile(path, target / path.name)
