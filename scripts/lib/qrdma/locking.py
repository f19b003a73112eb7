# SPDX-License-Identifier: GPL-2.0-or-later
"""One run at a time in a cache: two would build in the same folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import Iterator

from . import paths
from .errors import Failure


@contextlib.contextmanager
def cache_lock() -> Iterator[None]:
    """Holds the cache's lock, or fails at once naming the process that has it.

    The kernel drops the lock when its holder dies, so none is ever left over.
    """
    paths.prepare_cache()
    descriptor = os.open(paths.cache() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            raise Failure(f"another run (process {holder or 'unknown'}) uses the cache "
                          f"{paths.cache()}",
                          advice="wait for it, or name another cache with QRDMA_CACHE") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
