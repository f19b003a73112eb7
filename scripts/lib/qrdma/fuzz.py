# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs fuzz targets: regressions first, then new inputs for some time."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from . import fuzz_seeds, fuzz_targets, paths
from .errors import Failure, tail
from .fuzz_targets import Target
from .trees import Trees

STATISTIC = re.compile(r"^stat::(\w+):\s+(\d+)$", re.MULTILINE)
COVERED = re.compile(r"^#\d+\s+\w+\s+cov: (\d+) ft: (\d+) corp: (\d+)/", re.MULTILINE)
# Has the engine's targets print what the card does.
TRACE = {"QRDMA_FUZZ_TRACE": "1"}
# Where libFuzzer says that it has left an input that fails.
WRITTEN = re.compile(r"Test unit written to (\S+/(?:crash|leak|timeout|oom)-\w+)$", re.MULTILINE)
MEMORY_LIMIT_MB = 2048
TELLING = re.compile(r"ERROR: |SUMMARY: |runtime error: |^qrdma fuzz: |assertion failed")
FRAME = re.compile(r"^\s+#\d+ 0x\S+ in (\S+) .*?([\w.-]+\.[ch]:\d+(?::\d+)?)$")
MOST_TOLD = 24


@dataclass(frozen=True)
class Run:
    """What a run of a target's program came to."""

    status: int
    log: Path
    findings: list[Path] = field(default_factory=list)
    executions: int = 0
    per_second: int = 0
    edges: int = 0
    inputs: int = 0

    @property
    def passed(self) -> bool:
        return self.status == 0 and not self.findings

    def line(self) -> str:
        return (f"{self.executions} executions ({self.per_second} a second), {self.edges} edges, "
                f"{self.inputs} inputs kept")


def log_file(target: Target, what: str) -> Path:
    return paths.logs() / f"fuzz-{target.name}-{what}.log"


def command_to_reproduce(target: Target, file: Path) -> str:
    return f"scripts/fuzz {target.name} --reproduce {shlex.quote(str(file))}"


def regression_files(target: Target) -> list[Path]:
    if not target.regressions.is_dir():
        return []
    return sorted(path for path in target.regressions.iterdir() if path.is_file())


def replay(target: Target, of: Trees, files: list[Path], what: str,
           environment: dict[str, str] | None = None) -> Run:
    """Runs the target once for each of the files, and ends with the first that fails."""
    log = log_file(target, what)
    with log.open("w") as output:
        for file in files:
            status = _run(target, of, [*_limits(target), str(file)], output,
                          environment=environment)
            if status != 0:
                return Run(status, log, [file])
    return Run(0, log, executions=len(files), inputs=len(files))


def campaign(target: Target, of: Trees, seconds: int) -> Run:
    """Lets libFuzzer look for inputs that fail, beginning with what is known."""
    for folder in (target.corpus, target.findings):
        folder.mkdir(parents=True, exist_ok=True)
    log = log_file(target, "campaign")
    with log.open("w") as output:
        status = _run(target, of, [
            f"-max_total_time={seconds}", f"-max_len={target.max_length}",
            # Programs, not formats: long inputs are worth their time from the start.
            "-len_control=1", *_limits(target),
            "-print_final_stats=1", f"-artifact_prefix={target.findings}/",
            *([f"-dict={target.dictionary}"] if target.dictionary.exists() else []),
            str(target.corpus), *_seed_folders(target)], output)
    return _judge(status, log)


def _judge(status: int, log: Path) -> Run:
    text = log.read_text(errors="replace")
    numbers = {name: int(value) for name, value in STATISTIC.findall(text)}
    covered = COVERED.findall(text)
    edges, _, inputs = map(int, covered[-1]) if covered else (0, 0, 0)
    findings = list(dict.fromkeys(map(Path, WRITTEN.findall(text))))
    return Run(status, log, findings, numbers.get("number_of_executed_units", 0),
               numbers.get("average_exec_per_sec", 0), edges, inputs)


def _seed_folders(target: Target) -> list[str]:
    fuzz_seeds.make(target.seeds, target.made_seeds)
    return [str(folder) for folder in (target.made_seeds, target.regressions) if folder.is_dir()]


def _limits(target: Target) -> list[str]:
    return [f"-timeout={target.deadline}", f"-rss_limit_mb={MEMORY_LIMIT_MB}",
            f"-malloc_limit_mb={target.largest_block}"]


def _run(target: Target, of: Trees, arguments: list[str], output: IO[str],
         *, program: list[str] | None = None,
         environment: dict[str, str] | None = None) -> int:
    command = [*(program or target.command(of)), *arguments]
    output.write(f"$ {shlex.join(command)}\n")
    output.flush()
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **target.environment,
                                   **(environment or {})}).returncode
    except OSError as error:
        raise Failure(f"cannot run the fuzz target {target.name}: {error.strerror}: {command[0]}",
                      advice="scripts/fuzz builds it") from error


def explain(target: Target, run: Run) -> list[str]:
    """Why a run failed, and how to see it again."""
    told = [told for line in tail(run.log, 400) if (told := _telling(line))]
    lines = list(dict.fromkeys(told))[:MOST_TOLD]
    for finding in run.findings:
        lines += [f"finding: {finding}", f"reproduce: {command_to_reproduce(target, finding)}"]
    if not run.findings:
        lines.append(f"the program ended with status {run.status}, and left no input")
    return [*lines, f"log: {run.log}"]


def _telling(line: str) -> str | None:
    """The line of a log in short, if it says what went wrong or where in the card."""
    frame = FRAME.match(line)
    if frame:
        return f"    in {frame[1]} ({frame[2]})"
    return line if TELLING.search(line) else None


# ---------------------------------------------------------------- coverage


def coverage(targets: list[Target], of: Trees) -> str:
    """A table of the engine's files: what of them all known inputs reach."""
    counted = [target for target in targets if target.coverage_program is not None]
    if not counted:
        raise Failure("none of these targets can count lines",
                      advice="those of the engine can: " + ", ".join(
                          fuzz_targets.engine_targets()))
    folder = paths.cache() / "fuzz/coverage"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    programs = [str(target.coverage_program()) for target in counted
                if target.coverage_program is not None]
    for target, program in zip(counted, programs):
        _count(target, of, program, folder)
    merged = folder / "all.profdata"
    _tool(["llvm-profdata", "merge", "-o", str(merged), *map(str, folder.glob("*.profraw"))])
    objects = [word for program in programs[1:] for word in ("-object", program)]
    return coverage_table(json.loads(_tool([
        "llvm-cov", "export", "-summary-only", programs[0], *objects,
        f"-instr-profile={merged}"])))


def coverage_table(exported: dict) -> str:
    """From llvm-cov's JSON: the sources of the engine, least covered first."""
    files = {Path(file["filename"]): file["summary"] for file in exported["data"][0]["files"]}
    rows = [Row(path.name, *(Part(summary[kind]["covered"], summary[kind]["count"])
                             for kind in ("lines", "regions", "branches")))
            for path, summary in files.items()
            if path.suffix == ".c" and path.parent.name == "engine"]
    rows.sort(key=lambda row: (row.lines.share, row.name))
    total = Row("all", *(Part(sum(part.covered for part in parts),
                              sum(part.count for part in parts))
                         for parts in zip(*((row.lines, row.regions, row.branches)
                                            for row in rows))))
    head = f"{'file':20}{'lines':>18}{'regions':>18}{'branches':>18}"
    return "\n".join([head, *(row.text() for row in [*rows, total])]) + "\n"


@dataclass(frozen=True)
class Part:
    """So many of so many."""

    covered: int
    count: int

    @property
    def share(self) -> float:
        return self.covered / self.count if self.count else 1.0

    def text(self) -> str:
        return f"{100 * self.share:.1f} % of {self.count}"


@dataclass(frozen=True)
class Row:
    """A line of the table of coverage."""

    name: str
    lines: Part
    regions: Part
    branches: Part

    def text(self) -> str:
        parts = "".join(f"{part.text():>18}" for part in (self.lines, self.regions, self.branches))
        return f"{self.name:20}{parts}"


def _count(target: Target, of: Trees, program: str, folder: Path) -> None:
    """Runs every input that there is once."""
    target.corpus.mkdir(parents=True, exist_ok=True)
    log = log_file(target, "coverage")
    with log.open("w") as output:
        status = _run(target, of, ["-runs=0", *_limits(target), str(target.corpus),
                                   *_seed_folders(target)], output, program=[program],
                      environment={"LLVM_PROFILE_FILE": str(folder / f"{target.name}.profraw")})
    if status != 0:
        raise Failure(f"fuzz target {target.name}: an input of its corpus fails", log=log,
                      advice=f"scripts/fuzz {target.name} says which")


def _tool(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"cannot run {command[0]}: {error.strerror}",
                      advice="scripts/install installs it") from error
    if result.returncode != 0:
        raise Failure(f"{command[0]} failed: {result.stderr.strip()}")
    return result.stdout
