# SPDX-License-Identifier: GPL-2.0-or-later
"""Says whether a stage's inputs are those of its last success."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Iterable

from . import paths


def key(*parts: str, files: Iterable[Path] = ()) -> str:
    """A hash of the words given, and of names and contents below the paths given.

    A path that does not exist counts as such, so that its appearance shows.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    for path in files:
        digest.update(str(path).encode() + b"\0")
        for file in _files_below(path):
            digest.update(str(file.relative_to(path)).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files_below(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = []
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name != "__pycache__")
        found += [Path(folder) / name for name in sorted(files)
                  if (Path(folder) / name).is_file()]
    return found


def is_current(stage: str, value: str) -> bool:
    """Whether the stage last succeeded with this key."""
    try:
        return (paths.stamps() / stage).read_text().strip() == value
    except OSError:
        return False


def forget(stage: str) -> None:
    """To be called before a stage changes anything: from here on it is not done."""
    (paths.stamps() / stage).unlink(missing_ok=True)


def record(stage: str, value: str) -> None:
    """To be called when a stage has succeeded."""
    temporary = paths.stamps() / f".{stage}.new"
    temporary.write_text(value + "\n")
    temporary.rename(paths.stamps() / stage)
