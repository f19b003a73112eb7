# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists the qtest executables for meson.build: NAME FILE a line; nothing before QEMU is built."""

from __future__ import annotations

from . import build_qemu, trees
from .errors import Failure


def main() -> None:
    of = trees.from_environment()
    folder = of.qemu_build() / "build"
    try:
        names = build_qemu.qtests(of) if (folder / "build.ninja").exists() else []
    except Failure:
        # A build folder that was left half-configured: it has none yet.
        names = []
    for name in names:
        file = folder / name
        if file.exists():
            print(file.name, file)


if __name__ == "__main__":
    main()
