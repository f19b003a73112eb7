# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a guest, runs programs in it one after the other, and brings back their output.

The programs go in as a shell script in an archive of its own behind the
initramfs; the kernel unpacks both. Their output comes back over a virtio port
that QEMU connects to its standard output, framed by lines with a random word.
After each program the guest waits for a line from the host, which asks the
card's audit first, so that findings belong to the program that caused them.
"""

from __future__ import annotations

import os
import re
import secrets
import selectors
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import audit, build_guest, console, machine, paths
from .monitor import Monitor
from .trees import Trees

BOOT_SECONDS = 300
POWER_OFF_SECONDS = 120
WATCHDOG_SECONDS = 300
# How many times longer all may take on the kernel that checks itself.
DEBUG_SLOWNESS = 5
SETUP = "(setup)"


@dataclass(frozen=True)
class Program:
    """A command line for the guest's shell, and how long it may take in seconds.

    One that makes findings has the card do wrong on purpose: it looks at what the
    audit finds by itself, and nobody else minds.
    """

    name: str
    command: str
    timeout: int = 900
    makes_findings: bool = False


@dataclass
class Result:
    """What a program printed and how it ended; status None: it did not end.

    audit is None, and audit_trouble says why, when the card could not be asked.
    """

    program: Program
    output: list[str] = field(default_factory=list)
    status: int | None = None
    seconds: float = 0.0
    console: list[str] = field(default_factory=list)
    trouble: str | None = None
    audit: audit.Report | None = None
    audit_trouble: str | None = None


class Observer:
    """Told what happens during a session; this one does nothing."""

    def begins(self, name: str) -> None: ...

    def prints(self, name: str, line: str) -> None: ...

    def ends(self, result: Result) -> None: ...

    def waits(self) -> None: ...


class Session:
    """One boot of a machine that runs programs."""

    def __init__(self, name: str, of: machine.Machine, trees: Trees, programs: list[Program],
                 *, load_card: bool = True, observer: Observer | None = None) -> None:
        self.name = name
        self.machine = of
        self.trees = trees
        self.programs = programs
        self.load_card = load_card
        self.observer = observer or Observer()
        self.slowness = DEBUG_SLOWNESS if trees.debug_kernel else 1
        self.word = secrets.token_hex(8)
        self.console_log = paths.logs() / f"vm-{name}-console.log"
        self.output_log = paths.logs() / f"vm-{name}-output.log"
        self.qemu_log = paths.logs() / f"vm-{name}-qemu.log"
        self.results = {program.name: Result(program) for program in programs}
        self.setup = Result(Program(SETUP, "load_card", BOOT_SECONDS))
        self.monitor: Monitor | None = None

    def run(self) -> list[Result]:
        """Runs the programs; every one has a result, whatever happens to the machine."""
        for log in (self.console_log, self.output_log, self.qemu_log):
            log.unlink(missing_ok=True)
        initramfs = self._initramfs()
        self.monitor = Monitor(self.trees)
        try:
            command = [*self._command(initramfs), *self.monitor.arguments()]
            with self.qemu_log.open("w") as errors:
                errors.write(f"$ {shlex.join(command)}\n")
                errors.flush()
                process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=errors,
                                           pass_fds=[self.monitor.descriptor()])
            self.monitor.started()
            trouble = self._follow(process)
        finally:
            self.monitor.close()
            initramfs.unlink(missing_ok=True)
        if trouble is None and process.returncode != 0:
            trouble = f"QEMU ended with status {process.returncode}"
        self._conclude(trouble)
        return list(self.results.values())

    def _follow(self, process: subprocess.Popen[bytes]) -> str | None:
        """Until QEMU has ended, by itself or by our hand. None, or what went wrong."""
        with process:
            try:
                return Reader(self, process).follow()
            finally:
                if process.poll() is None:
                    process.kill()

    def ask_audit(self, result: Result) -> None:
        """Gives the result what the card's audit saw since the last time."""
        assert self.monitor is not None
        try:
            result.audit = audit.ask(self.monitor)
        except audit.AuditError as error:
            result.audit_trouble = str(error)

    def script(self) -> str:
        """The session as the guest's shell reads it."""
        lines = [". /qrdma/functions",
                 f"export QRDMA_WATCHDOG={WATCHDOG_SECONDS * self.slowness}"]
        programs = self.programs
        if self.load_card:
            lines += self._frame(self.setup.program)
            # Without a card nothing else makes sense.
            lines.append('[ "$status" = 0 ] || exit 1')
        for program in programs:
            lines += self._frame(program)
        return "\n".join(lines) + "\n"

    def _frame(self, program: Program) -> list[str]:
        """Lines that run a program between its two marks."""
        name = shlex.quote(program.name)
        return [f"echo qrdma session: {name} begins >/dev/kmsg",
                f"echo; echo {self.word} begin {name}",
                f"( {program.command}\n) </dev/null",
                "status=$?",
                f"echo; echo {self.word} end {name} $status",
                # The host's word to go on.
                "read -r _ || exit 1"]

    def _initramfs(self) -> Path:
        """The guest's image followed by an archive with the session."""
        folder = self.trees.guest_build()
        session = folder / f"session-{self.word}"
        session.write_text(self.script())
        archive = build_guest.Archive()
        archive.folder("qrdma")
        archive.file("qrdma/session", session, 0o644)
        small = folder / f"session-{self.word}.cpio"
        archive.write(build_guest.generator(self.trees), small)
        whole = folder / f"session-{self.word}.initramfs"
        with whole.open("wb") as output:
            for part in (build_guest.image(self.trees), small):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, output)
                # An archive begins on a 4-byte boundary.
                output.write(bytes(-output.tell() % 4))
        for path in (session, small, small.with_suffix(".list")):
            path.unlink()
        return whole

    def _command(self, initramfs: Path) -> list[str]:
        # A machine does not outlive the program that watches it.
        return ["setpriv", "--pdeathsig", "KILL", "--",
                *machine.qemu_command(self.machine, self.trees, initramfs),
                "-serial", f"file:{self.console_log}",
                "-chardev", "stdio,id=output,signal=off",
                "-device", "virtio-serial-pci",
                "-device", "virtserialport,chardev=output,name=qrdma.output"]

    def _conclude(self, trouble: str | None) -> None:
        """Gives every result what the console and QEMU had to say about it."""
        try:
            text = self.console_log.read_text(errors="replace")
        except OSError:
            text = ""
        found = console.problems(text)
        general = found.get("", []) + found.get(SETUP, [])
        if self.load_card and self.setup.status not in (0, None):
            trouble = "the driver or the card did not start: " + " / ".join(self.setup.output[-3:])
        for name, result in self.results.items():
            result.console = general + found.get(name, [])
            if result.status is None:
                result.trouble = trouble or "the guest powered off before it was run"
        last = next(reversed(self.results.values()), None)
        if trouble is not None and last is not None and last.trouble is None:
            last.trouble = trouble


class Reader:
    """Follows a session's output and its deadlines."""

    def __init__(self, session: Session, process: subprocess.Popen[bytes]) -> None:
        self.session = session
        self.process = process
        self.mark = re.compile(rf"{session.word} (begin|end) (\S+)(?: (\d+))?$")
        self.current: Result | None = None
        self.began = time.monotonic()
        self.deadline = self.began + BOOT_SECONDS * session.slowness
        self.what = "boot"

    def follow(self) -> str | None:
        """Reads until QEMU ends. None, or what went wrong."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        os.set_blocking(descriptor, False)
        pending = b""
        with selectors.DefaultSelector() as selector, \
                self.session.output_log.open("wb", buffering=0) as log:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    return self._late()
                if not selector.select(min(left, 1.0)):
                    self.session.observer.waits()
                    continue
                data = os.read(descriptor, 1 << 16)
                if not data:
                    self.process.wait(POWER_OFF_SECONDS * self.session.slowness)
                    return self._ended()
                log.write(data)
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._line(line.decode(errors="replace").rstrip("\r"))

    def _late(self) -> str:
        """The deadline has passed. What the audit saw may tell why."""
        if self.current is not None and self.current is not self.session.setup:
            self.session.ask_audit(self.current)
        return f"{self.what} did not end within {int(self.deadline - self.began)} seconds"

    def _ended(self) -> str | None:
        if self.current is not None:
            return f"the guest stopped during {self.current.program.name}"
        return None

    def _line(self, line: str) -> None:
        mark = self.mark.match(line)
        if mark is None:
            if self.current is not None and line:
                self.current.output.append(line)
                self.session.observer.prints(self.current.program.name, line)
            return
        if mark[1] == "begin":
            self._begin(mark[2])
        elif self.current is not None:
            self._end(self.current, int(mark[3]))

    def _begin(self, name: str) -> None:
        self.current = (self.session.setup if name == SETUP
                        else self.session.results[name])
        self.what = name
        self.began = time.monotonic()
        self.deadline = self.began + self.current.program.timeout * self.session.slowness
        self.session.observer.begins(name)

    def _end(self, result: Result, status: int) -> None:
        result.status = status
        result.seconds = time.monotonic() - self.began
        # What loading the driver came to is asked with the first program.
        if result is not self.session.setup:
            self.session.ask_audit(result)
        self._let_go_on()
        self.session.observer.ends(result)
        self.current = None
        self.what = "power-off"
        self.began = time.monotonic()
        self.deadline = self.began + POWER_OFF_SECONDS * self.session.slowness

    def _let_go_on(self) -> None:
        """The guest waits for a line before it goes on."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(b"\n")
        except BrokenPipeError:
            pass  # QEMU has ended, which is seen at once.
