# SPDX-License-Identifier: GPL-2.0-or-later
"""The Python that runs meson: the system's, with a meson that is new enough."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

from . import fetch, paths, stamps
from .errors import Failure
from .progress import Step

LEAST_MESON = (1, 5)
SYSTEM_PYTHON = Path("/usr/bin/python3")


@functools.cache
def system_meson_is_new_enough() -> bool:
    try:
        text = subprocess.run([SYSTEM_PYTHON, "-m", "mesonbuild.mesonmain", "--version"],
                              capture_output=True, text=True, check=False).stdout
    except OSError:
        return False
    found = re.match(r"(\d+)\.(\d+)", text)
    return found is not None and (int(found[1]), int(found[2])) >= LEAST_MESON


def sources() -> list[fetch.Source]:
    """meson's own source package, unless the system's meson will do."""
    return [] if system_meson_is_new_enough() else [fetch.MESON]


def python() -> Path:
    """The interpreter of the virtual environment that prepare() made."""
    return paths.cache() / "tools/python/bin/python3"


def meson() -> Path:
    return paths.cache() / "tools/python/bin/meson"


def prepare() -> None:
    """Makes a virtual environment in which python() finds meson.

    QEMU's configure nests its own environment in it and so inherits meson; it
    looks at the folder itself and not at .pth files, hence the links.
    """
    version = subprocess.run([SYSTEM_PYTHON, "-VV"], capture_output=True, text=True,
                             check=True).stdout
    meson_folder = fetch.MESON.folder() if sources() else None
    key = stamps.key("tools 2", version, str(meson_folder))
    if stamps.is_current("tools", key) and meson().exists():
        return
    with Step("tools", "a Python environment with meson") as step:
        stamps.forget("tools")
        target = paths.cache() / "tools/python"
        shutil.rmtree(target, ignore_errors=True)
        step.run([SYSTEM_PYTHON, "-m", "venv", "--system-site-packages", "--without-pip", target])
        if meson_folder is not None:
            _link_packages(meson_folder, target)
        meson().write_text(f"#!{python()}\nimport sys\nfrom mesonbuild.mesonmain import main\n"
                           "sys.exit(main())\n")
        meson().chmod(0o755)
        step.run([meson(), "--version"])
        stamps.record("tools", key)


def _link_packages(meson_folder: Path, target: Path) -> None:
    packages = meson_folder / "usr/lib/python3/dist-packages"
    destination = next(target.glob("lib/python3*/site-packages"), None)
    if destination is None or not packages.is_dir():
        raise Failure(f"no Python packages in {packages} or no place for them in {target}")
    for package in packages.iterdir():
        (destination / package.name).symlink_to(package)
