# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/vm: a shell in the guest, on this terminal."""

from __future__ import annotations

import argparse
import subprocess

from . import audit, machine, stages, trees
from .errors import run_main
from .locking import cache_lock


HOW_TO_ASK = f"""The card's audit watches every key. Ctrl-A C changes to QEMU's monitor and back:
  qom-get {audit.CARD} audit-report
  qom-set {audit.CARD} audit-clear true
  qom-get {audit.CARD} faults"""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="scripts/vm", usage="scripts/vm [options] [QEMU arguments]",
        description="Boots a Linux guest with the card and gives a shell in it on this "
                    "terminal, with the driver loaded. What is not an option below goes to "
                    "QEMU as it is. 'exit' in the guest or Ctrl-A X ends it.",
        allow_abbrev=False)
    result.add_argument("--iommu", action="store_true",
                        help="the card behind an IOMMU, next to a device that exports memory")
    result.add_argument("--no-driver", action="store_true",
                        help="leave loading the driver to you (load_card)")
    trees.add_options(result)
    return result


def main(arguments: list[str]) -> int:
    options, qemu_arguments = parser().parse_known_args(arguments)
    if "--" in qemu_arguments:
        qemu_arguments.remove("--")
    of = trees.from_options(options)
    with cache_lock():
        stages.build(stages.EVERYTHING, of)
    # From here on the cache is only read: several guests may run at a time.
    command = machine.qemu_command(
        machine.IOMMU if options.iommu else machine.PLAIN, of,
        more_kernel_arguments=("quiet",) if options.no_driver else ("quiet", "qrdma_load=1"))
    command += ["-serial", "mon:stdio", *qemu_arguments]
    print(HOW_TO_ASK, flush=True)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    run_main(main)
