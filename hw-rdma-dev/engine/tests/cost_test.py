#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts what the audit costs an access while it is switched off.

callgrind counts the instructions of access-cost, built with the engine as shipped
and with an engine that has no audit. Each case may cost 2 % more at most. What the
audit costs when it is switched on is printed, and has no limit.
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
TIMEOUT = 300  # seconds; one run takes a few


def count(program: list[str]) -> dict[str, int]:
    """Instructions of each case of access-cost, by its name, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run(
            ["valgrind", "--quiet", "--tool=callgrind",
             f"--toggle-collect={FUNCTION}", f"--zero-before={FUNCTION}",
             f"--dump-after={FUNCTION}", f"--callgrind-out-file={folder}/out", *program],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT,
            check=False)
        if result.returncode:
            raise RuntimeError(f"{program[0]}: status {result.returncode}\n{result.stdout}")
        names = result.stdout.splitlines()
        return {name: read_total(Path(folder) / f"out.{number}")
                for number, name in enumerate(names, start=1)}


def read_total(file: Path) -> int:
    """The sum at the end of callgrind's file."""
    total = re.search(r"^totals: (\d+)$", file.read_text(), re.MULTILINE)
    if not total or total[1] == "0":
        raise RuntimeError(f"callgrind has counted nothing in {FUNCTION}()")
    return int(total[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shipped", help="access-cost with the engine as shipped")
    parser.add_argument("without", help="access-cost with the engine without audit")
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
