# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists the qtest executables for meson.build: NAME FILE a line; nothing before QEMU is built.

--sanitize: those of the QEMU that is built with sanitizers.
"""

from __future__ import annotations

import sys

from . import build_qemu, trees
from .errors import Failure


def main() -> None:
    of = trees.from_environment()
    flavour = build_qemu.SANITIZE if "--sanitize" in sys.argv[1:] else build_qemu.PLAIN
    folder = of.qemu_build(flavour.name) / "build"
    try:
        names = build_qemu.qtests(of, flavour) if (folder / "build.ninja").exists() else []
    except Failure:
        # A build folder that was left half-configured: it has none yet.
        names = []
    for name in names:
        file = folder / name
        if file.exists():
            print(file.name, file)


if __name__ == "__main__":
    main()
