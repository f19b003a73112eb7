# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets: the one list of them.

A target is a libFuzzer program: a stage of the build makes it, a command runs it,
and libFuzzer's own arguments are put behind that command. Its folders are named
after it: inputs to begin with in seeds/NAME, those of repaired bugs in
regressions/NAME.

Run as a program it prints the names: of the engine's targets for the build of the
fuzzers (--engine), of all of them for the tests.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from . import build_fuzz, build_qemu, paths, sanitizers
from .trees import Trees

FUZZ = paths.CARD / "engine/fuzz"


@dataclass(frozen=True)
class Target:
    """How a target is built and run.

    stage is its stage in stages.py, command what comes before libFuzzer's
    arguments. coverage_program is the same target built to count lines, if there
    is such a thing. max_length is the longest input in bytes, deadline the
    seconds after which a single input counts as one that hangs, largest_block the
    most memory in MiB that the program may want at once.
    """

    name: str
    explanation: str
    stage: str
    command: Callable[[Trees], list[str]]
    environment: dict[str, str] = field(default_factory=dict)
    coverage_program: Callable[[], Path] | None = None
    max_length: int = 4096
    deadline: int = 20
    largest_block: int = 2048

    @property
    def seeds(self) -> Path:
        return FUZZ / "seeds" / self.name

    @property
    def made_seeds(self) -> Path:
        """Where what the descriptions of seeds mean is put."""
        return paths.cache() / "fuzz" / self.name / "seeds"

    @property
    def regressions(self) -> Path:
        return FUZZ / "regressions" / self.name

    @property
    def dictionary(self) -> Path:
        """Words that inputs are made of; need not be there."""
        return FUZZ / f"{self.name}.dict"

    @property
    def corpus(self) -> Path:
        """What earlier runs found worth keeping."""
        return paths.cache() / "fuzz" / self.name / "corpus"

    @property
    def findings(self) -> Path:
        return paths.cache() / "fuzz" / self.name / "findings"


def _engine(name: str, explanation: str) -> Target:
    return Target(name, explanation, "fuzz",
                  lambda _: [str(build_fuzz.program(name))],
                  environment=build_fuzz.ENVIRONMENT,
                  coverage_program=lambda: build_fuzz.coverage_program(name),
                  largest_block=64)


def _pci() -> Target:
    """QEMU's generic fuzzer: it maps the card's BARs, makes it bus master, and then does
    accesses to them and to its configuration space, moves the clock, and fills memory
    that the card is about to read."""
    return Target("pci", "the PCI device, by QEMU's generic fuzzer", build_qemu.SANITIZE.name,
                  lambda of: [str(build_qemu.fuzzer(of)), "--fuzz-target=generic-fuzz"],
                  environment={
                      **sanitizers.environment(),
                      "QEMU_FUZZ_ARGS": "-machine q35 -nodefaults "
                                        "-device qrdma,diagnostics=on,audit=on",
                      "QEMU_FUZZ_OBJECTS": "qrdma*",
                  })


TARGETS = {target.name: target for target in (
    _engine("command", "commands, well-formed and not, among doorbells and work"),
    _engine("wqe", "work requests of all queues, doorbells, memory that changes while it is read"),
    _engine("access", "tables and contexts, accesses at every level, changes, the audit"),
    _engine("registers", "registers and doorbells, at every offset and width"),
    _engine("migration", "the state of a card at work: saved, spoilt, loaded"),
    _pci(),
)}


def engine_targets() -> list[str]:
    return [target.name for target in TARGETS.values() if target.stage == "fuzz"]


if __name__ == "__main__":
    print("\n".join(engine_targets() if "--engine" in sys.argv[1:] else TARGETS))
