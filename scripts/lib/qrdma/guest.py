# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a guest, runs programs in it one after the other, and brings back their output.

The programs go in as a shell script in an archive of its own behind the
initramfs; the kernel unpacks both. Their output comes back over a virtio port
that QEMU connects to its standard output, framed by lines with a random word.
After each program the guest waits for a line from the host, which asks the
card's audit first, so that findings belong to the program that caused them. A
program may have the host do something with the machine (host.py), and waits for a
line as well; a migration puts another QEMU in the place of the one that runs.
"""

from __future__ import annotations

import io
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

from . import audit, build_guest, console, host, machine, paths
from .monitor import Monitor
from .trees import Trees

BOOT_SECONDS = 300
POWER_OFF_SECONDS = 120
WATCHDOG_SECONDS = 300
# How many times longer all may take on the kernel that checks itself.
DEBUG_SLOWNESS = 5
SETUP = "(setup)"
WISH = re.compile(r"# host: (\S+)$")


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


@dataclass
class Vm:
    """A QEMU, and the connection to its monitor."""

    process: subprocess.Popen[bytes]
    monitor: Monitor

    def end(self) -> None:
        """Whether it has ended or not."""
        self.monitor.close()
        with self.process:
            if self.process.poll() is None:
                self.process.kill()


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
        # The one that runs, and for a moment the one that takes its place.
        self.vms: list[Vm] = []
        self.initramfs: Path | None = None

    @property
    def monitor(self) -> Monitor:
        """That of the machine that runs."""
        return self.vms[0].monitor

    def run(self) -> list[Result]:
        """Runs the programs; every one has a result, whatever happens to the machine."""
        for log in (self.console_log, self.output_log, self.qemu_log):
            log.unlink(missing_ok=True)
        self.initramfs = self._initramfs()
        try:
            self.vms.append(self.start())
            trouble = Reader(self).follow()
        finally:
            for vm in self.vms:
                vm.end()
            self.initramfs.unlink(missing_ok=True)
        self._conclude(trouble)
        return list(self.results.values())

    def start(self, *more: str) -> Vm:
        """One more QEMU with the machine, which the caller has to end or hand over."""
        assert self.initramfs is not None
        monitor = Monitor(self.trees)
        command = [*self._command(self.initramfs), *monitor.arguments(), *more]
        with self.qemu_log.open("a") as errors:
            errors.write(f"$ {shlex.join(command)}\n")
            errors.flush()
            process = subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=errors,
                                       pass_fds=[monitor.descriptor()])
        monitor.started()
        return Vm(process, monitor)

    def switch_over(self, target: Vm) -> None:
        """The machine has gone to another QEMU. What the old one has said comes first."""
        self.monitor.execute("quit", {})
        self.vms.append(target)

    def ask_audit(self, result: Result) -> None:
        """Gives the result what the card's audit saw since the last time."""
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
        # A comma ends an argument for QEMU; two are one.
        path = str(self.console_log).replace(",", ",,")
        # A machine does not outlive the program that watches it.
        return ["setpriv", "--pdeathsig", "KILL", "--",
                *machine.qemu_command(self.machine, self.trees, initramfs),
                "-chardev", f"file,id=console,path={path},append=on",
                "-serial", "chardev:console",
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

    def __init__(self, session: Session) -> None:
        self.session = session
        self.mark = re.compile(rf"{session.word} (begin|end) (\S+)(?: (\d+))?$")
        self.current: Result | None = None
        self.began = time.monotonic()
        self.deadline = self.began + BOOT_SECONDS * session.slowness
        self.what = "boot"
        # The line that has no end yet; it may come from another QEMU.
        self.pending = b""

    def follow(self) -> str | None:
        """Reads until QEMU ends, and all that took its place. None, or what went wrong."""
        with self.session.output_log.open("wb", buffering=0) as log:
            while True:
                trouble = self._follow_one(log)
                vm = self.session.vms[0]
                if trouble is None and vm.process.returncode != 0:
                    trouble = f"QEMU ended with status {vm.process.returncode}"
                if trouble is not None or len(self.session.vms) == 1:
                    return trouble or self._ended()
                self.session.vms.pop(0).end()
                self._tell("done")

    def _follow_one(self, log: io.FileIO) -> str | None:
        """Until the QEMU that runs has ended. None, or what went wrong."""
        process = self.session.vms[0].process
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        os.set_blocking(descriptor, False)
        with selectors.DefaultSelector() as selector:
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
                    process.wait(POWER_OFF_SECONDS * self.session.slowness)
                    return None
                log.write(data)
                *lines, self.pending = (self.pending + data).split(b"\n")
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
                self._wish(line)
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
        self._tell("go on")
        self.session.observer.ends(result)
        self.current = None
        self.what = "power-off"
        self.began = time.monotonic()
        self.deadline = self.began + POWER_OFF_SECONDS * self.session.slowness

    def _wish(self, line: str) -> None:
        """Does what the program asks of its host, and tells it."""
        wish = WISH.match(line)
        if wish is None:
            return
        answer = host.answer(self.session, wish[1])
        # After a migration the new machine is told, once the old one has ended.
        if len(self.session.vms) == 1:
            self._tell(answer)

    def _tell(self, line: str) -> None:
        """A line for the guest, which waits for one."""
        process = self.session.vms[0].process
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            pass  # QEMU has ended, which is seen at once.
