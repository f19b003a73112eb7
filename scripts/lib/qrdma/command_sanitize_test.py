# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a qtest executable of the QEMU that was built with sanitizers. meson test calls this.

Without a name it sees whether the sanitizers catch what they are there for: planted
errors in a small program, built by the same compiler and run in the same way.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from . import build_qemu, sanitizers, trees

PROGRAM = """
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void *volatile block;
static volatile int number;

int main(int count, char **words)
{
    number = INT_MAX;
    block = malloc(16);
    if (!strcmp(words[1], "overflow")) {
        ((volatile char *)block)[number - INT_MAX + 16] = 1;
    } else if (!strcmp(words[1], "undefined")) {
        number = number + count;
    }
    if (strcmp(words[1], "leak")) {
        free(block);
    }
    block = NULL;
    return 0;
}
"""


@dataclass(frozen=True)
class Planted:
    """An error, and what its report must say; none, and it must be silent."""

    name: str
    report: str | None


PLANTED = (
    Planted("nothing", None),
    Planted("overflow", "heap-buffer-overflow"),
    Planted("undefined", "signed integer overflow"),
    Planted("leak", "detected memory leaks"),
)


def caught(program: Path, planted: Planted) -> str | None:
    """What is wrong with how the program ended, if anything."""
    result = subprocess.run([program, planted.name], capture_output=True, text=True, check=False,
                            env={**os.environ, **sanitizers.environment()})
    expected = 0 if planted.report is None else sanitizers.EXIT_STATUS
    if result.returncode != expected:
        return f"status {result.returncode}, not {expected}: {result.stderr.strip()}"
    if planted.report is not None and planted.report not in result.stderr:
        return f"no word of {planted.report}: {result.stderr.strip()}"
    return None


def check_sanitizers() -> int:
    """TAP of the planted errors."""
    print(f"1..{len(PLANTED)}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "planted.c", Path(folder) / "planted"
        source.write_text(PROGRAM)
        # As in QEMU's build: no name of a flag differs from there.
        subprocess.run([build_qemu.SANITIZE.environment["CC"], "-g", "-O1",
                        "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
                        source, "-o", program], check=True)
        for number, planted in enumerate(PLANTED, 1):
            wrong = caught(program, planted)
            for line in (wrong or "").splitlines():
                print(f"# {line}")
            print(f"{'not ok' if wrong else 'ok'} {number} - planted: {planted.name}")
            failed += wrong is not None
    return 1 if failed else 0


def run_qtest(name: str) -> None:
    """Becomes the qtest, so that meson's deadline stops it and nothing else."""
    of = trees.from_environment()
    os.chdir(of.qemu_build(build_qemu.SANITIZE.name) / "build")
    program = f"{build_qemu.QTEST_FOLDER}/{name}"
    os.execve(program, [program, "--tap", "-k"],
              {**os.environ, **sanitizers.environment(),
               "QTEST_QEMU_BINARY": "./qemu-system-x86_64"})


def main(arguments: list[str]) -> int:
    if arguments:
        run_qtest(arguments[0])
    return check_sanitizers()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
