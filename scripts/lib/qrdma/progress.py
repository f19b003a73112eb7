# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a step's commands with their output in a log and a line on the terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Mapping, Sequence

from . import paths
from .errors import Failure

# "[12/345] ..." from ninja; make prints one line a file.
NINJA_COUNT = re.compile(r"^\[(\d+)/(\d+)\]")
REFRESH_SECONDS = 1.0
REFRESH_SECONDS_WITHOUT_TERMINAL = 30.0


class Step:
    """One visible step: its name, what it costs in time, and where its log is.

    As a context manager it prints a line when it starts and one when it ends;
    in between the last line is refreshed on a terminal, and repeated now and
    then where there is none, so that a log of the run shows life.
    """

    def __init__(self, name: str, explanation: str) -> None:
        self.name = name
        self.explanation = explanation
        self.log = paths.logs() / f"{name}.log"
        self.started = time.monotonic()
        self.counter = ""
        self.terminal = sys.stdout.isatty()
        self.done = threading.Event()
        self.reporter = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> "Step":
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("")
        print(f"[{self.name}] {self.explanation} (log: {self.log})", flush=True)
        self.reporter.start()
        return self

    def __exit__(self, kind: type | None, *_: object) -> None:
        self.done.set()
        self.reporter.join()
        outcome = "done" if kind is None else "failed"
        self._line(f"[{self.name}] {outcome} after {self._elapsed()}", last=True)

    def run(self, command: Sequence[str | Path], *, directory: Path | None = None,
            environment: Mapping[str, str] | None = None,
            advice: str | None = None) -> None:
        """Runs a command with its output in the log; Failure if it fails."""
        words = [str(word) for word in command]
        with self.log.open("a") as log:
            log.write(f"$ {' '.join(words)}\n")
            log.flush()
            try:
                process = subprocess.Popen(
                    words, cwd=directory, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    env={**os.environ, **(environment or {})},
                    text=True, errors="replace")
            except OSError as error:
                raise Failure(f"step {self.name}: cannot run {words[0]}: {error.strerror}",
                              advice=advice) from error
            status = self._follow(process, log)
        if status != 0:
            raise Failure(f"step {self.name}: {Path(words[0]).name} failed (status {status})",
                          log=self.log, advice=advice or self._advice())

    def note(self, text: str) -> None:
        """A line for the terminal and the log."""
        with self.log.open("a") as log:
            log.write(text + "\n")
        self._line(f"[{self.name}] {text}", last=True)

    def _follow(self, process: subprocess.Popen[str], log) -> int:
        assert process.stdout is not None
        lines = 0
        try:
            for line in process.stdout:
                log.write(line)
                log.flush()
                lines += 1
                count = NINJA_COUNT.match(line)
                self.counter = f"{count[1]} of {count[2]}" if count else f"{lines} lines"
            return process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise

    def _advice(self) -> str:
        return ("read the log; when the cause is gone, the same command continues "
                "where this one stopped")

    def _elapsed(self) -> str:
        return elapsed(time.monotonic() - self.started)

    def _report(self) -> None:
        interval = REFRESH_SECONDS if self.terminal else REFRESH_SECONDS_WITHOUT_TERMINAL
        while not self.done.wait(interval):
            counter = f", {self.counter}" if self.counter else ""
            self._line(f"[{self.name}] {self._elapsed()}{counter}", last=False)

    def _line(self, text: str, *, last: bool) -> None:
        if self.terminal:
            sys.stdout.write("\r\033[K" + text + ("\n" if last else ""))
        else:
            sys.stdout.write(text + "\n")
        sys.stdout.flush()


def elapsed(seconds: float) -> str:
    """Minutes and seconds, as in 3:07."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
