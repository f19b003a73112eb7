# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a guest three times under -icount and compares what became of its keys.

The same seed has to give the same timeline, to the nanosecond of virtual time;
another one another. meson test calls this; it prints TAP.

Nothing in the guest may depend on the host, or no two runs are alike: emulated
instructions are the clock (a fixed shift, and no sleeping where the guest idles),
there is one processor, no random numbers but those of -seed, a clock that begins
at a fixed time, no network, and no port that the host could write to.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from . import build_guest, build_kernel, build_qemu, console, paths, timeline
from . import trees as trees_module
from .errors import Failure
from .trees import Trees

SECONDS = 600
PROGRAM = "/tests/flow-page-size 8MiB"
# Instructions take 2^5 ns: a packet is in flight for some hundreds of them.
ICOUNT = "shift=5,sleep=off"
CARD = "qrdma,id=card,bus=port-card,audit=on,packet-latency=20000,bandwidth=1G"
KERNEL = ("console=ttyS0", "panic=-1", "oops=panic", "loglevel=7", "no_timer_check", "nokaslr",
          "norandmaps", "quiet", f'qrdma_run="{PROGRAM}"')


@dataclass(frozen=True)
class Run:
    """One boot: its seed, and where its timeline and its logs are."""

    name: str
    seed: int

    @property
    def timeline(self) -> Path:
        return paths.logs() / f"vm-test-icount-{self.name}.json"

    @property
    def console_log(self) -> Path:
        return paths.logs() / f"vm-test-icount-{self.name}-console.log"

    @property
    def qemu_log(self) -> Path:
        return paths.logs() / f"vm-test-icount-{self.name}-qemu.log"

    def command(self, of: Trees) -> list[str]:
        card = f"{CARD},umr-order-seed={self.seed},timeline={str(self.timeline).replace(',', ',,')}"
        return ["setpriv", "--pdeathsig", "KILL", "--", str(build_qemu.binary(of)),
                "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
                "-machine", "q35", "-m", "1G", "-smp", "1",
                "-accel", "tcg,thread=single", "-cpu", "max,la57=off,rdrand=off,rdseed=off",
                "-icount", ICOUNT, "-seed", "1", "-rtc", "base=2026-01-01,clock=vm",
                "-device", "pcie-root-port,id=port-card,chassis=1", "-device", card,
                "-serial", f"file:{self.console_log}",
                "-kernel", str(build_kernel.image(of)), "-initrd", str(build_guest.image(of)),
                "-append", " ".join(KERNEL)]

    def boot(self, of: Trees) -> list[str]:
        """Runs it to its end; what went wrong."""
        for old in (self.timeline, self.console_log, self.qemu_log):
            old.unlink(missing_ok=True)
        command = self.command(of)
        with self.qemu_log.open("w") as log:
            log.write(f"$ {shlex.join(command)}\n")
            log.flush()
            try:
                status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        timeout=SECONDS, check=False).returncode
            except subprocess.TimeoutExpired:
                return [f"it did not end within {SECONDS} seconds"]
        if status != 0:
            return [f"QEMU ended with status {status}", *self.qemu_log.read_text().splitlines()[1:]]
        return console_problems(self.console_log.read_text(errors="replace"))

    def digest(self) -> str:
        return hashlib.sha256(self.timeline.read_bytes()).hexdigest()


def console_problems(text: str) -> list[str]:
    """What the guest's console says is wrong: the program prints there, too."""
    lines = text.splitlines()
    found = [line for lines in console.problems(text).values() for line in lines]
    found += [line for line in lines if line.startswith(("not ok ", "Bail out!"))]
    if "qrdma run: status 0" not in lines:
        found += ["the program did not succeed", *lines[-10:]]
    return found


def first_difference(one: Path, other: Path) -> list[str]:
    """The first records that differ, and where; empty if none does."""
    with one.open() as ones, other.open() as others:
        for number, (left, right) in enumerate(zip_longest(ones, others, fillvalue="(end)\n"), 1):
            if left != right:
                return [f"line {number} of {one} and {other}:", left.rstrip(), right.rstrip()]
    return []


def trace_problems(path: Path) -> list[str]:
    """What is missing in a trace that is to prove something."""
    content = timeline.read(path)
    found = [f"finding: {mark.text} at {mark.time} ns" for mark in content.marks
             if mark.kind == "finding"]
    if content.cut or not content.whole:
        found.append("the trace is not complete")
    if not any(window.changes for window in content.windows):
        found.append("the trace has no change")
    if not content.accesses:
        found.append("the trace has no access")
    return found


class Tap:
    """Prints points as they come."""

    def __init__(self) -> None:
        self.made = 0
        self.failed = 0

    def point(self, description: str, problems: list[str]) -> bool:
        self.made += 1
        self.failed += bool(problems)
        for problem in problems:
            print(f"# {problem}")
        print(f"{'not ok' if problems else 'ok'} {self.made} - {description}", flush=True)
        return not problems

    def end(self) -> int:
        print(f"1..{self.made}")
        return 1 if self.failed else 0


def test(of: Trees, tap: Tap) -> None:
    first, second, other = Run("first", 1), Run("second", 1), Run("other-seed", 2)
    for run in (first, second, other):
        if not tap.point(f"a guest under -icount {ICOUNT}, order seed {run.seed}: "
                         f"the program succeeds ({run.name})", run.boot(of)):
            return
    tap.point("the trace has changes under traffic and no findings",
              trace_problems(first.timeline))
    for run in (first, second, other):
        print(f"# {run.name}: seed {run.seed}, trace {run.digest()}")
    tap.point("the same seed gives the same trace",
              first_difference(first.timeline, second.timeline))
    tap.point("another seed of the order gives another trace",
              ["the traces are equal"] if first.digest() == other.digest() else [])


def main() -> int:
    tap = Tap()
    try:
        test(trees_module.from_environment(), tap)
    except Failure as failure:
        print(f"Bail out! {failure.message}")
        return 1
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
