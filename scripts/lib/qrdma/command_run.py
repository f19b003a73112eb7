# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/run: boots the guest, runs the flows, reports."""

from __future__ import annotations

import argparse
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

from . import (build_kernel, build_qemu, build_rdma, checks, files, picture, report, stages,
               trees)
from .errors import Failure, run_main
from .flows import FLOWS, Flow
from .guest import SETUP, Observer, Result, Session
from .locking import cache_lock
from .machine import Machine
from .progress import elapsed


class Terminal(Observer):
    """Shows which flow runs, for how long, and how many checks it has made."""

    def __init__(self) -> None:
        self.terminal = sys.stdout.isatty()
        self.name = "boot"
        self.began = time.monotonic()
        self.points = 0

    def begins(self, name: str) -> None:
        self.name = "load the driver" if name == SETUP else name
        self.began = time.monotonic()
        self.points = 0
        if not self.terminal:
            print(f"[{self.name}] running", flush=True)

    def prints(self, name: str, line: str) -> None:
        if line.startswith(("ok ", "not ok ")):
            self.points += 1
            if not self.terminal:
                print(f"[{self.name}] {line}", flush=True)
        self.waits()

    def ends(self, result: Result) -> None:
        if self.terminal:
            sys.stdout.write("\r\033[K")
        if result.program.name != SETUP:
            print(f"[{result.program.name}] done after {elapsed(result.seconds)}", flush=True)
        self.name = "power off"
        self.began = time.monotonic()
        self.points = 0

    def waits(self) -> None:
        if self.terminal:
            made = f", {self.points} checks" if self.points else ""
            sys.stdout.write(f"\r\033[K[{self.name}] "
                             f"{elapsed(time.monotonic() - self.began)}{made}")
            sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {flow.name:12} {flow.shows}" for flow in FLOWS.values())
    result = argparse.ArgumentParser(
        prog="scripts/run", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Boots a Linux guest with the card, runs the flows in it and reports what "
                    "was seen.\nBefore that it installs, fetches and builds what is missing. "
                    "The exit status is 0\nonly if every flow held and the guest's console is "
                    "clean.",
        epilog=f"flows:\n{names}\n\nSources, builds and logs are kept in ~/.cache/qrdma, or in "
               "the folder that QRDMA_CACHE names.")
    result.add_argument("flows", nargs="*", metavar="FLOW", help="which flows (default: all)")
    result.add_argument("--list", action="store_true", help="list the flows and leave")
    result.add_argument("--json", metavar="FILE", type=Path,
                        help="write the report to FILE as JSON, too")
    result.add_argument("--verbose", action="store_true",
                        help="report every check with its figures, not only what failed")
    result.add_argument("--picture", metavar="DIR", type=Path,
                        help="write a picture a flow of what became of a key, DIR/FLOW.png, and "
                             "all that became of any, DIR/FLOW.json (Perfetto opens it); boots a "
                             "machine a flow")
    trees.add_options(result)
    return result


def chosen_flows(names: list[str]) -> list[Flow]:
    """The flows named, each once, in the order of the list; all when none is named."""
    unknown = [name for name in names if name not in FLOWS]
    if unknown:
        raise Failure(f"unknown flow: {', '.join(unknown)}",
                      advice=f"the flows are: {', '.join(FLOWS)}")
    return [flow for flow in FLOWS.values() if not names or flow.name in names]


def run_flows(flows: list[Flow], of: trees.Trees) -> list[report.Outcome]:
    """Boots each machine that the flows need once, and runs its flows in it."""
    outcomes: dict[str, report.Outcome] = {}
    for machine in dict.fromkeys(flow.machine for flow in flows):
        here = [flow for flow in flows if flow.machine == machine]
        for outcome in boot(f"run-{machine.name}", machine, here, of):
            outcomes[outcome.flow.name] = outcome
    return [outcomes[flow.name] for flow in flows]


def run_with_pictures(flows: list[Flow], folder: Path, of: trees.Trees) -> list[report.Outcome]:
    """Boots a machine for each flow, so that it has a timeline of its own, and draws it."""
    outcomes = []
    for flow in flows:
        file, png = folder / f"{flow.name}.json", folder / f"{flow.name}.png"
        for old in (file, png):
            old.unlink(missing_ok=True)
        outcome = boot(f"run-{flow.name}", flow.machine.with_timeline(file), [flow], of)[0]
        outcome = replace(outcome, timeline=file)
        try:
            if flow.changes_keys:
                picture.from_file(file, png, flow.name)
                outcome = replace(outcome, picture=png)
        except Failure as failure:
            outcome.verdict.problems.append(f"no picture: {failure.message}")
        outcomes.append(outcome)
    return outcomes


def boot(name: str, machine: Machine, flows: list[Flow], of: trees.Trees) -> list[report.Outcome]:
    """Boots a machine and runs flows in it."""
    session = Session(name, machine, of, [flow.program() for flow in flows], observer=Terminal())
    print(f"[boot] the {machine.name} machine (console: {session.console_log})", flush=True)
    return [report.Outcome(flow, result, checks.judge(result),
                           [session.output_log, session.console_log, session.qemu_log])
            for flow, result in zip(flows, session.run(), strict=True)]


def versions(of: trees.Trees) -> dict[str, str]:
    """What was built, for the JSON report."""
    release = of.kernel_build() / "include/config/kernel.release"
    rdma = re.sub("^rdma-core-", "", build_rdma.source().name)
    return {"qemu": (build_qemu.source(of) / "VERSION").read_text().strip(),
            "linux": release.read_text().strip(), "rdma-core": rdma,
            "linux-tree": str(build_kernel.source(of))}


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        for flow in FLOWS.values():
            print(f"{flow.name:12} {flow.shows}")
        return 0
    flows = chosen_flows(options.flows)
    of = trees.from_options(options)
    if options.json is not None:
        files.check_writable(options.json, "JSON file")
    if options.picture is not None:
        options.picture = options.picture.absolute()
        files.prepare_folder(options.picture, "picture")
    with cache_lock():
        stages.build(stages.EVERYTHING, of)
        outcomes = (run_flows(flows, of) if options.picture is None
                    else run_with_pictures(flows, options.picture, of))
    print()
    print(report.text(outcomes, every_check=options.verbose))
    print()
    print(report.verdict_line(outcomes))
    if options.json is not None:
        files.write(options.json, report.as_json(outcomes, versions(of)), "JSON file")
    return 0 if report.holds(outcomes) else 1


if __name__ == "__main__":
    run_main(main)
