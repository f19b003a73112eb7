# SPDX-License-Identifier: GPL-2.0-or-later
"""Where things are: the repository and the cache."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import Failure

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "scripts"
GUEST = SCRIPTS / "guest"
CARD = REPOSITORY / "hw-rdma-dev"
QTESTS = REPOSITORY / "tests-qtest"
GUEST_DRIVER = REPOSITORY / "guest-driver"


def cache() -> Path:
    """The folder of everything that can be made again.

    QRDMA_CACHE names it; otherwise it is qrdma in the user's cache folder.
    """
    named = os.environ.get("QRDMA_CACHE")
    if named:
        path = Path(named).expanduser()
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        path = Path(base).expanduser() / "qrdma"
    return path.absolute()


def sources() -> Path:
    return cache() / "sources"


def build() -> Path:
    return cache() / "build"


def logs() -> Path:
    return cache() / "logs"


def stamps() -> Path:
    return cache() / "stamps"


def prepare_cache() -> None:
    """Makes the cache's folders; fails clearly when it cannot be used."""
    for path in (cache(), REPOSITORY):
        if any(character.isspace() or character in ":'\"" for character in str(path)):
            raise Failure(f"the folder's name has a blank, a quote or a colon: {path}",
                          advice="make and QEMU's configure cannot take such names; move the "
                                 "repository, or name another cache with QRDMA_CACHE")
    for folder in (sources(), build(), logs(), stamps()):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Failure(f"cannot make the cache folder {folder}: {error.strerror}",
                          advice="name a folder that can be written with QRDMA_CACHE") from error
    if not os.access(cache(), os.W_OK):
        raise Failure(f"cannot write to the cache folder {cache()}",
                      advice="name a folder that can be written with QRDMA_CACHE")


def require_space(needed: int) -> None:
    """Fails when the cache's disk has fewer than needed bytes left."""
    free = shutil.disk_usage(cache()).free
    if free < needed:
        raise Failure(f"not enough disk space in {cache()}: {free >> 20} MiB free, "
                      f"{needed >> 20} MiB needed",
                      advice="free some, or name a folder on another disk with QRDMA_CACHE")
