#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts what single steps cost beside few objects and beside many.

The step may grow as the logarithm of the number of objects grows, and no faster.
callgrind counts all instructions, libraries included: lists are theirs.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import subprocess
import sys

import cost_test

# mkeys, QPs, entries of a table: 4 KiB pages of 2 MiB and of 64 GiB.
FEW = (100, 16, 1 << 9)
MANY = (100_000, 4096, 1 << 24)
# A mkey's memory in the card; its table is the guest's.
MAX_BYTES_A_MKEY = 256


def allowed(name: str) -> float:
    """By how much the step may grow."""
    kind = 1 if "QP" in name else 2 if "region" in name else 0
    return math.log(MANY[kind]) / math.log(FEW[kind])


def bytes_a_mkey(program: str) -> float:
    """What the card's memory grows by with each mkey."""
    output = subprocess.run([program, *map(str, MANY)], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    sizes = {int(mkeys): int(size) for size, mkeys in
             re.findall(r"# memory: (\d+) bytes with (\d+) mkeys", output)}
    return (sizes[MANY[0]] - sizes[0]) / MANY[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="the scale program")
    program = parser.parse_args().program
    if not shutil.which("valgrind"):
        print("1..0 # SKIP valgrind is not installed")
        return 0
    few = cost_test.count([program, *map(str, FEW)], libraries=True)
    many = cost_test.count([program, *map(str, MANY)], libraries=True)
    if not few or few.keys() != many.keys():
        raise RuntimeError("the two runs have not counted the same steps")
    print(f"1..{len(few) + 1}")
    failed = False
    for number, (name, cost) in enumerate(few.items(), start=1):
        ratio = many[name] / cost
        bad = ratio > allowed(name)
        failed |= bad
        print(f"# {name}: {cost} instructions beside few, {many[name]} beside many")
        print(f"{'not ok' if bad else 'ok'} {number} - {name}: {ratio:.2f} times, "
              f"at most {allowed(name):.2f}")
    size = bytes_a_mkey(program)
    failed |= size > MAX_BYTES_A_MKEY
    print(f"{'not ok' if size > MAX_BYTES_A_MKEY else 'ok'} {len(few) + 1} - "
          f"memory of a mkey in the card: {size:.0f} bytes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
