# SPDX-License-Identifier: GPL-2.0-or-later
"""Talks to a running QEMU over QMP, with the client of QEMU's own source tree."""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Coroutine

from . import build_qemu
from .errors import Failure
from .trees import Trees

ANSWER_SECONDS = 60.0


class MonitorError(Exception):
    """QEMU did not answer, or answered that it cannot."""


class Monitor:
    """One end of a pair of sockets; QEMU has the other, so no file is left behind.

    The connection is made with the first command.
    """

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._ours, self._theirs = socket.socketpair()
        self._runner = asyncio.Runner()
        self._qmp: ModuleType | None = None
        self._client: Any = None

    def arguments(self) -> list[str]:
        """What QEMU is to be told; it has to inherit descriptor()."""
        return ["-chardev", f"socket,id=monitor,fd={self.descriptor()}",
                "-mon", "chardev=monitor,mode=control"]

    def descriptor(self) -> int:
        return self._theirs.fileno()

    def started(self) -> None:
        """QEMU has its end. Now that it is the only one, its death is seen here."""
        self._theirs.close()

    def get(self, path: str, name: str) -> Any:
        """The value of a QOM property; MonitorError if there is none."""
        return self.execute("qom-get", {"path": path, "property": name})

    def set(self, path: str, name: str, value: object) -> None:
        self.execute("qom-set", {"path": path, "property": name, "value": value})

    def execute(self, command: str, arguments: dict[str, object]) -> Any:
        """What QEMU answers to a command; MonitorError if that is an error."""
        if self._client is None:
            self._connect()
        return self._run(self._client.execute(command, arguments))

    def close(self) -> None:
        """May be called at any time, and more than once."""
        if self._client is not None:
            try:
                self._run(self._client.disconnect())
            except MonitorError:
                pass  # QEMU went first.
            self._client = None
        self._runner.close()
        self._ours.close()
        self._theirs.close()

    def _connect(self) -> None:
        self._qmp = client_package(self._trees)
        self._client = self._qmp.QMPClient()
        self._run(self._client.connect(self._ours))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        assert self._qmp is not None
        try:
            return self._runner.run(asyncio.wait_for(work, ANSWER_SECONDS))
        except TimeoutError:
            raise MonitorError(f"QEMU did not answer within {ANSWER_SECONDS:.0f} seconds") from None
        except AssertionError:
            # The client's own, of a QEMU that ends as soon as it has said hello.
            raise MonitorError("QEMU has ended") from None
        except (self._qmp.QMPError, OSError, EOFError) as error:
            raise MonitorError(str(error) or type(error).__name__) from error


def client_package(trees: Trees) -> ModuleType:
    """qemu.qmp of the QEMU that is run: a folder in its tree, or a wheel in later ones."""
    python = build_qemu.source(trees) / "python"
    place = python if (python / "qemu/qmp").is_dir() else wheel(python / "wheels")
    if place is None:
        raise Failure(f"no Python package qemu.qmp in {python}",
                      advice="name a complete QEMU source tree")
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
    # It would complain on the terminal about a QEMU that ends; that is told otherwise.
    logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())
    return importlib.import_module("qemu.qmp")


def wheel(folder: Path) -> Path | None:
    """The newest wheel; Python imports from it as it is."""
    return max(folder.glob("qemu[._]qmp-*.whl"), default=None)
