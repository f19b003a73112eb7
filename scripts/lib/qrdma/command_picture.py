# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/picture: draws what became of a key, from a timeline file."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import files, picture
from .errors import run_main


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="scripts/picture",
        description="Draws the most telling change of a memory key in a timeline: iova against "
                    "virtual time, coloured by what each byte shows, accesses as dots. A "
                    "timeline is what the device property timeline=FILE writes, and "
                    "scripts/run --picture; Perfetto opens it as well.")
    result.add_argument("timeline", metavar="FILE.json", type=Path, help="the timeline")
    result.add_argument("-o", "--output", metavar="PNG", type=Path,
                        help="the picture (default: FILE.png)")
    result.add_argument("--key", metavar="N", type=lambda text: int(text, 0),
                        help="of the mkey with this index (key >> 8), not of the most telling")
    return result


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    target = options.output or options.timeline.with_suffix(".png")
    files.check_writable(target, "picture")
    scene = picture.from_file(options.timeline, target, options.timeline.stem,
                              options.key)
    print(picture.title(scene))
    print(f"picture: {target}")
    return 0


if __name__ == "__main__":
    run_main(main)
