# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of source trees with our own folders and hook lines added.

A build never writes into a tree that was fetched or that belongs to the user:
it works on a copy in the cache. Files are only written when they differ, so
that make and ninja rebuild what changed and nothing else.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path
from typing import Callable, Mapping

from .errors import Failure

Edit = Callable[[bytes], bytes]

NOT_COPIED = {".git", "__pycache__", ".cache"}


def mirror(source: Path, target: Path, *, edits: Mapping[str, Edit] | None = None,
           keep: tuple[str, ...] = (), skip: tuple[str, ...] = ()) -> bool:
    """Makes target a copy of source; whether anything was changed.

    edits maps a relative file name to a function from its content to what the
    copy shall hold. keep names relative paths of the copy that are not the
    source's and stay; skip names relative paths of the source that are left
    out. What is in the copy and not in the source is removed.
    """
    edits = edits or {}
    changed = False
    target.mkdir(parents=True, exist_ok=True)
    # Times are kept in a first copy only: a file that changes later must be
    # newer than what was built from it, even if it comes from an old archive.
    keep_times = not any(target.iterdir())
    expected: set[str] = set()
    for folder, names, files in os.walk(source):
        base = os.path.relpath(folder, source)
        base = "" if base == "." else base + "/"
        names[:] = [name for name in names
                    if name not in NOT_COPIED and base + name not in skip]
        links = [name for name in names if os.path.islink(os.path.join(folder, name))]
        for name in names:
            if name not in links:
                if not (target / base / name).is_dir():
                    _remove(target / base / name)
                    (target / base / name).mkdir()
                expected.add(base + name)
        for name in files + links:
            relative = base + name
            if relative in skip:
                continue
            expected.add(relative)
            if relative in edits:
                changed |= _copy_edited(source / relative, target / relative, edits[relative])
            else:
                changed |= _copy_plain(source / relative, target / relative, keep_times)
    return _remove_others(target, expected, keep) or changed


def mirror_file(source: Path, target: Path) -> bool:
    """Makes one file a copy of another; whether it was changed."""
    return _copy_plain(source, target, keep_times=False)


def _copy_plain(source: Path, target: Path, keep_times: bool) -> bool:
    if source.is_symlink():
        if target.is_symlink() and os.readlink(source) == os.readlink(target):
            return False
        _remove(target)
        target.symlink_to(os.readlink(source))
        return True
    if _same(source, target):
        return False
    _remove(target)
    (shutil.copy2 if keep_times else shutil.copy)(source, target)
    return True


def _same(source: Path, target: Path) -> bool:
    """Same size and time mean the same content, as for make; else it is read."""
    try:
        have = target.lstat()
    except OSError:
        return False
    want = source.stat()
    if target.is_symlink() or have.st_size != want.st_size or have.st_mode != want.st_mode:
        return False
    return have.st_mtime_ns == want.st_mtime_ns or filecmp.cmp(source, target, shallow=False)


def _copy_edited(source: Path, target: Path, edit: Edit) -> bool:
    content = edit(source.read_bytes())
    if target.is_file() and not target.is_symlink() and target.read_bytes() == content:
        return False
    _remove(target)
    target.write_bytes(content)
    shutil.copymode(source, target)
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_others(target: Path, expected: set[str], keep: tuple[str, ...]) -> bool:
    changed = False
    for folder, names, files in os.walk(target):
        base = os.path.relpath(folder, target)
        base = "" if base == "." else base + "/"
        names[:] = [name for name in names if base + name not in keep]
        for name in list(names) + files:
            if base + name in expected or base + name in keep:
                continue
            if name in names:
                names.remove(name)
            _remove(target / base / name)
            changed = True
    return changed


def append(line: str) -> Edit:
    """An edit that adds a line at the end."""
    return lambda content: content.rstrip(b"\n") + b"\n\n" + line.encode() + b"\n"


def insert_after(anchor: str, line: str) -> Edit:
    """An edit that adds a line below the first one that holds anchor."""
    def edit(content: bytes) -> bytes:
        lines = content.decode().splitlines(keepends=True)
        for number, text in enumerate(lines):
            if anchor in text:
                lines.insert(number + 1, line + "\n")
                return "".join(lines).encode()
        raise Failure(f"found no place for our line: no line has {anchor!r}",
                      advice="is the source tree of another version?")
    return edit
