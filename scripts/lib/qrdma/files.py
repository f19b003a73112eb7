# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that a user asks for: refused before the work, and never half written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import Failure


def check_writable(path: Path, what: str) -> None:
    """Fails before the work, not after it, when the file cannot be written."""
    existed = path.exists()
    try:
        with path.open("a"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise Failure(f"cannot write the {what} {path}: {error.strerror}",
                      advice="name a file in a folder that exists and can be written") from error


def prepare_folder(path: Path, what: str) -> None:
    """Makes the folder; fails when it cannot be made or written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise Failure(f"cannot write to the {what} folder {path}: {error.strerror}",
                      advice="name a folder that can be made and written") from error


def write(path: Path, content: str, what: str) -> None:
    """All of it or nothing of it. A device such as /dev/stdout is written to as it is."""
    try:
        if path.exists() and not path.is_file():
            path.write_text(content)
            return
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_text(content)
        temporary.replace(path)
    except OSError as error:
        raise Failure(f"cannot write the {what} {path}: {error.strerror}") from error
