# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/build: builds what is out of date."""

from __future__ import annotations

import argparse

from . import stages, trees
from .errors import Failure, run_main
from .locking import cache_lock


def parser() -> argparse.ArgumentParser:
    names = "\n".join(f"  {stage.name:12} {stage.explanation}"
                      for stage in stages.STAGES.values())
    result = argparse.ArgumentParser(
        prog="scripts/build", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds what is out of date. scripts/run, scripts/test and scripts/vm "
                    "do this by themselves.",
        epilog=f"stages:\n{names}\n\nSources, builds and logs are kept in ~/.cache/qrdma, or in "
               "the folder that QRDMA_CACHE names.")
    result.add_argument("stages", nargs="*", metavar="STAGE",
                        help="what to build, with what it needs (default: everything)")
    result.add_argument("--list", action="store_true", help="list the stages")
    trees.add_options(result)
    return result


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.list:
        for stage in stages.STAGES.values():
            print(f"{stage.name:12} {stage.explanation}")
        return 0
    unknown = [name for name in options.stages if name not in stages.STAGES]
    if unknown:
        raise Failure(f"unknown stage: {', '.join(unknown)}",
                      advice=f"the stages are: {', '.join(stages.STAGES)}")
    chosen = trees.from_options(options)
    with cache_lock():
        stages.build(options.stages or stages.EVERYTHING, chosen)
    return 0


if __name__ == "__main__":
    run_main(main)
