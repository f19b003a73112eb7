# SPDX-License-Identifier: GPL-2.0-or-later
"""The flows that scripts/run shows."""

from __future__ import annotations

from dataclasses import dataclass

from . import machine
from .guest import Program


@dataclass(frozen=True)
class Flow:
    """A guest program, the machine that it needs, and what it shows."""

    name: str
    shows: str
    machine: machine.Machine = machine.PLAIN
    timeout: int = 1800
    # Otherwise its timeline has accesses, and nothing to draw them on.
    changes_keys: bool = True

    def program(self) -> Program:
        return Program(self.name, f"/tests/flow-{self.name}", self.timeout)


FLOWS = {flow.name: flow for flow in (
    Flow("register", "user memory of every kind, at every level of the block list",
         changes_keys=False),
    Flow("page-size", "the page size of live dma-buf regions changes under traffic"),
    Flow("revoke", "dma-buf regions are revoked, idle and under traffic"),
    Flow("revoke-vfio", "a region over another device's memory is revoked by its reset",
         machine.IOMMU),
    Flow("recovery", "the card refuses updates; their queue recovers"),
)}
