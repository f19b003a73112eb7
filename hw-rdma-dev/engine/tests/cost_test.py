#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts what audit and fault injection cost an access while they are not in use.

callgrind counts the instructions of access-cost, built with the engine as shipped
and with one whose paths of accesses know neither. Each case may cost 2 % more at
most. What the audit costs when it is switched on is printed, and has no limit.

Libraries do not count: what they do depends on where things are in memory.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT = 1.02
# What access-cost has counted: collect inside it, and write a file after each call.
FUNCTION = "measure"
TIMEOUT = 600  # seconds; one run takes a few, scale's a minute


def count(program: list[str], libraries: bool = False) -> dict[str, int]:
    """Instructions of each call of measure(), by the name printed, in their order.

    Lines that begin with # are no names. libraries: what they do counts as well.
    """
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind",
             "--compress-strings=no", f"--toggle-collect={FUNCTION}",
             f"--zero-before={FUNCTION}",
             f"--dump-after={FUNCTION}", f"--callgrind-out-file={folder}/out", *program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
            check=False)
        if result.returncode:
            raise RuntimeError(f"{program[0]}: status {result.returncode}\n{result.stdout}")
        names = [line for line in result.stdout.splitlines() if not line.startswith("#")]
        binary = None if libraries else Path(program[0]).resolve()
        return {name: cost(Path(folder) / f"out.{number}", binary)
                for number, name in enumerate(names, start=1)}


def cost(file: Path, binary: Path | None) -> int:
    """Instructions in callgrind's file that are the program's own; None: all.

    A line of costs follows each place; the one after calls= is the callee's.
    """
    total = 0
    is_own = is_callee = False
    for line in file.read_text().splitlines():
        if line.startswith("ob="):
            is_own = binary is None or Path(line.removeprefix("ob=")).resolve() == binary
        elif line.startswith("calls="):
            is_callee = True
        elif found := re.match(r"(?:[+-]?\d+|\*) (\d+)$", line):
            if is_own and not is_callee:
                total += int(found[1])
            is_callee = False
    if not total:
        raise RuntimeError(f"callgrind has counted nothing in {FUNCTION}()")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shipped", help="access-cost with the engine as shipped")
    parser.add_argument("without", help="access-cost with the engine without audit and faults")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("1..0 # SKIP valgrind is not installed")
        return 0
    without = count([arguments.without])
    shipped = count([arguments.shipped])
    audited = count([arguments.shipped, "--audit"])
    if not without or not without.keys() == shipped.keys() == audited.keys():
        raise RuntimeError("the programs have not counted the same cases")
    print(f"1..{len(without)}")
    failed = False
    for number, (name, least) in enumerate(without.items(), start=1):
        ratio = shipped[name] / least
        failed |= ratio > LIMIT
        print(f"# {name}: {least} instructions without, {shipped[name]} off: {ratio:.4f}; "
              f"{audited[name]} on: {audited[name] / least:.4f}")
        print(f"{'not ok' if ratio > LIMIT else 'ok'} {number} - {name}: {ratio:.4f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
