# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fuzz: feeds the card inputs that nobody would write, and keeps what breaks it."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import fuzz, stages, trees
from .errors import Failure, run_main
from .fuzz_targets import TARGETS, Target
from .locking import cache_lock
from .trees import Trees

SECONDS = 30


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {target.name:10} {target.explanation}" for target in TARGETS.values())
    result = argparse.ArgumentParser(
        prog="scripts/fuzz", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs fuzz targets, after building them. Inputs of repaired bugs come first. "
                    "The last line\nsays how many targets passed and failed.",
        epilog=f"targets:\n{names}\n\nCorpora and findings are kept in the cache, in "
               "fuzz/TARGET.")
    result.add_argument("target", nargs="?", metavar="TARGET", help="which one (default: all)")
    result.add_argument("seconds", nargs="?", metavar="SECONDS", type=seconds, default=None,
                        help=f"how long for each target (default: {SECONDS}; 0: only what is "
                        "known)")
    result.add_argument("--list", action="store_true", help="list the targets and leave")
    result.add_argument("--reproduce", metavar="FILE", type=Path,
                        help="run the target on this one input, and show what happens")
    result.add_argument("--coverage", action="store_true",
                        help="do not look for anything; say which lines of the engine the "
                        "corpora reach")
    trees.add_options(result)
    return result


def seconds(text: str) -> int:
    """A number of seconds, as argparse wants its types."""
    if not text.isdecimal() or int(text) > 7 * 24 * 3600:
        raise argparse.ArgumentTypeError(f"not a number of seconds from 0 to a week: {text}")
    return int(text)


def chosen_targets(name: str | None) -> list[Target]:
    if name is None:
        return list(TARGETS.values())
    if name not in TARGETS:
        raise Failure(f"unknown fuzz target: {name}",
                      advice=f"the targets are: {', '.join(TARGETS)}")
    return [TARGETS[name]]


def check(options: argparse.Namespace) -> None:
    """What argparse cannot say of the arguments."""
    if options.reproduce is not None:
        if options.target is None or options.coverage or options.seconds is not None:
            raise Failure("--reproduce wants a target and no more",
                          advice="scripts/fuzz TARGET --reproduce FILE")
        if not options.reproduce.is_file():
            raise Failure(f"no such file: {options.reproduce}",
                          advice="name the file of a finding")
    if options.coverage and options.seconds is not None:
        raise Failure("--coverage takes no seconds: it runs what is known, once")


def build(targets: list[Target], of: Trees, *, coverage: bool = False) -> None:
    wanted = [f"{target.stage}-coverage" if coverage and target.coverage_program is not None
              else target.stage for target in targets]
    stages.build(["tools", *dict.fromkeys(wanted)], of)


def reproduce(target: Target, of: Trees, file: Path) -> int:
    run = fuzz.replay(target, of, [file], "reproduce", fuzz.TRACE)
    print(run.log.read_text(errors="replace"), end="")
    print(f"{file}: {'nothing wrong' if run.passed else f'fails with status {run.status}'}")
    return 0 if run.passed else 1


def run_target(target: Target, of: Trees, duration: int) -> bool:
    """Regressions, then a campaign; says how it went."""
    known = fuzz.regression_files(target)
    runs = [fuzz.replay(target, of, known, "regressions")]
    if runs[0].passed:
        print(f"[{target.name}] {len(known)} inputs of repaired bugs: nothing wrong", flush=True)
        if duration:
            print(f"[{target.name}] looking for {duration} s "
                  f"(log: {fuzz.log_file(target, 'campaign')})", flush=True)
            runs.append(fuzz.campaign(target, of, duration))
            print(f"[{target.name}] {runs[-1].line()}", flush=True)
    for line in [] if runs[-1].passed else fuzz.explain(target, runs[-1]):
        print(f"[{target.name}] ! {line}", flush=True)
    return runs[-1].passed


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        for target in TARGETS.values():
            print(f"{target.name:10} {target.explanation}")
        return 0
    targets = chosen_targets(options.target)
    check(options)
    of = trees.from_options(options)
    with cache_lock():
        build(targets, of, coverage=options.coverage)
        if options.coverage:
            print(fuzz.coverage(targets, of), end="")
            return 0
        if options.reproduce is not None:
            return reproduce(targets[0], of, options.reproduce)
        duration = SECONDS if options.seconds is None else options.seconds
        passed = [run_target(target, of, duration) for target in targets]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed, 0 skipped")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    run_main(main)
