# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/test: prepares what the tests need, and runs them through meson test."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import checks, paths, stages, tools, trees
from .errors import Failure, run_main
from .fuzz_targets import TARGETS
from .guest import Program, Result
from .locking import cache_lock
from .progress import Step

# What each suite needs to have been built.
SUITES = {
    "unit": ("tools", "rdma-core"),
    "fuzz": tuple(dict.fromkeys(target.stage for target in TARGETS.values())),
    "qtest": ("qemu",),
    "sanitize": ("qemu-sanitize",),
    "vm": ("qemu", "guest"),
    "debug-kernel": ("qemu", "guest-debug"),
    "debug-kernel-whole": ("qemu", "guest-debug"),
    "lint": ("kernel",),
}
EXPLANATIONS = {
    "unit": "the card's engine, natively and under sanitizers; the scripts",
    "fuzz": "each fuzz target for 30 s, after the inputs of repaired bugs",
    "qtest": "the card in QEMU, without a guest's kernel",
    "sanitize": "the same, with QEMU and the tests under sanitizers; leaks count",
    "vm": "a Linux guest with the driver: flows, stock programs, loading",
    "debug-kernel": "the flows in short on a kernel that checks itself",
    "debug-kernel-whole": "all of vm on that kernel, which takes long",
    "lint": "coding styles, sparse, licences",
}
# Suites that run only when they are named.
ON_DEMAND = ("debug-kernel-whole",)
# Suites that are asked for together: an option each.
GROUPS = {
    "sanitize": ("unit", "sanitize"),
    "debug-kernel": ("debug-kernel-whole",),
}


@dataclass
class Tally:
    """What the tests came to, a TAP point or a test without TAP counting one."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def native_build() -> Path:
    return paths.build() / "native"


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {name:18} {EXPLANATIONS[name]}" for name in SUITES)
    result = argparse.ArgumentParser(
        prog="scripts/test", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the tests with meson test, after building what they need.\n"
                    "The last line says how many passed, failed and were skipped; the exit "
                    "status is 0\nonly if none failed.",
        epilog=f"suites:\n{names}")
    result.add_argument("suites", nargs="*", metavar="SUITE",
                        help=f"which suites (default: all but {', '.join(ON_DEMAND)})")
    result.add_argument("--list", action="store_true", help="list the suites and leave")
    result.add_argument("--test", action="append", default=[], metavar="NAME",
                        help="only the tests of this name (may be given several times)")
    for name, suites in GROUPS.items():
        result.add_argument(f"--{name}", dest="groups", action="append_const", const=suites,
                            default=[],
                            help=f"the suite{'s' if suites[1:] else ''} "
                                 f"{' and '.join(suites)}")
    trees.add_options(result)
    return result


def chosen_suites(names: list[str]) -> list[str]:
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise Failure(f"unknown suite: {', '.join(unknown)}",
                      advice=f"the suites are: {', '.join(SUITES)}")
    return [suite for suite in SUITES
            if suite in names or (not names and suite not in ON_DEMAND)]


def suites_of(options: argparse.Namespace) -> list[str]:
    """What the words and the options of groups ask for together.

    Without any: all but those on demand.
    """
    return chosen_suites([*options.suites, *(suite for group in options.groups
                                             for suite in group)])


def prepare(environment: dict[str, str]) -> None:
    """Configures and builds the native part. meson's view of QEMU is renewed."""
    with Step("native", f"the engine and its tests, in {native_build()}") as step:
        known = ["--reconfigure"] if (native_build() / "build.ninja").exists() else []
        step.run([tools.meson(), "setup", *known, native_build(), paths.REPOSITORY],
                 environment=environment)
        step.run(["ninja", "-C", native_build()], environment=environment)


def run_tests(suites: list[str], names: list[str], environment: dict[str, str]) -> Path:
    """Runs meson test on the terminal; the file with its results."""
    results = native_build() / "meson-logs/testlog.json"
    results.unlink(missing_ok=True)
    command = [tools.meson(), "test", "-C", native_build(), "--no-rebuild", "--print-errorlogs",
               *(word for suite in suites for word in ("--suite", suite)), *names]
    subprocess.run(command, check=False, stdin=subprocess.DEVNULL,
                   env={**os.environ, **environment})
    if not results.exists():
        raise Failure("meson test ran nothing",
                      advice="see what it said above; scripts/test --list names the suites")
    return results


def tally(results: Path) -> Tally:
    """Adds up meson's results, one JSON object a line."""
    total = Tally()
    for line in results.read_text().splitlines():
        add(total, json.loads(line))
    return total


def add(total: Tally, test: dict) -> None:
    """Adds a test: by its TAP points when it printed some, else as one."""
    name = test["name"].split(" / ")[-1].removeprefix("qrdma:")
    output = (test.get("stdout") or "").splitlines()
    points = checks.judge(Result(Program(name, ""), output, status=0)).checks
    for point in points:
        if not point.passed:
            total.failed += 1
            total.failures.append(f"{name}: {point.description}")
        elif point.skipped:
            total.skipped += 1
            total.skips.append(f"{name}: {point.description}: {point.reason or 'no reason given'}")
        else:
            total.passed += 1
    failed_points = any(not point.passed for point in points)
    if test["result"] == "SKIP" and not points:
        total.skipped += 1
        total.skips.append(f"{name}: {' '.join(output[-1:]) or 'no reason given'}")
    elif test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and not failed_points:
        total.failed += 1
        total.failures.append(f"{name}: {test['result'].lower()}")
    elif test["result"] == "OK" and not points:
        total.passed += 1


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        for name in SUITES:
            print(f"{name:18} {EXPLANATIONS[name]}")
        return 0
    suites = suites_of(options)
    of = trees.from_options(options)
    environment = trees.to_environment(of)
    with cache_lock():
        needed = [stage for suite in suites for stage in SUITES[suite]]
        stages.build(["tools", *dict.fromkeys(needed)], of)
        prepare(environment)
        total = tally(run_tests(suites, options.test, environment))
    print()
    for skip in total.skips:
        print(f"skipped: {skip}")
    for failure in total.failures:
        print(f"failed: {failure}")
    print(total.line())
    sys.stdout.flush()
    return 0 if total.failed == 0 and total.passed > 0 else 1


if __name__ == "__main__":
    run_main(main)
