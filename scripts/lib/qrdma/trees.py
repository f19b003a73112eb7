# SPDX-License-Identifier: GPL-2.0-or-later
"""Which QEMU and kernel trees a run builds: the fetched ones or the user's own."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from . import paths
from .errors import Failure


@dataclass(frozen=True)
class Trees:
    """Own trees; None means the fetched one.

    debug_kernel: the kernel that checks itself, and what is built for it.
    """

    qemu: Path | None = None
    kernel: Path | None = None
    debug_kernel: bool = False

    def with_debug_kernel(self) -> "Trees":
        return replace(self, debug_kernel=True)

    def kernel_flavour(self, name: str) -> str:
        """The name of something that there is one of for each flavour of the kernel."""
        return f"{name}-debug" if self.debug_kernel else name

    def qemu_build(self, name: str = "qemu") -> Path:
        """The folder with the work copy (source) and the build (build)."""
        return paths.build() / _folder(name, self.qemu)

    def kernel_build(self) -> Path:
        """The kernel's build folder (make's O=)."""
        return paths.build() / _folder(self.kernel_flavour("linux"), self.kernel)

    def modules_build(self) -> Path:
        return paths.build() / _folder(self.kernel_flavour("modules"), self.kernel)

    def guest_build(self) -> Path:
        """The guest's image; it holds modules, so it belongs to a kernel."""
        return paths.build() / _folder(self.kernel_flavour("guest"), self.kernel)


def _folder(name: str, own: Path | None) -> str:
    """Own trees have folders of their own, named by where the tree lies."""
    if own is None:
        return name
    return f"{name}-{hashlib.sha256(str(own).encode()).hexdigest()[:8]}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--qemu-tree", metavar="DIR", type=Path, default=_from("QRDMA_QEMU_TREE"),
                        help="build the card into this QEMU tree (10.0 to 10.2) instead of the "
                             "fetched one; the tree itself is not changed, a copy is")
    parser.add_argument("--kernel-tree", metavar="DIR", type=Path,
                        default=_from("QRDMA_KERNEL_TREE"),
                        help="use this Linux tree (7.3 or later) instead of the fetched one; "
                             "it is not changed, but must not have been built in place")


def _from(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def from_environment() -> Trees:
    """The trees that a calling script has chosen and checked, see to_environment()."""
    return Trees(_from("QRDMA_QEMU_TREE"), _from("QRDMA_KERNEL_TREE"))


def to_environment(trees: Trees) -> dict[str, str]:
    """The choice of trees for programs that are called."""
    return {name: str(path) for name, path in
            (("QRDMA_QEMU_TREE", trees.qemu), ("QRDMA_KERNEL_TREE", trees.kernel)) if path}


def from_options(options: argparse.Namespace) -> Trees:
    """The trees that the options name, checked."""
    qemu = options.qemu_tree.absolute() if options.qemu_tree else None
    kernel = options.kernel_tree.absolute() if options.kernel_tree else None
    if qemu is not None:
        check_qemu(qemu)
    if kernel is not None:
        check_kernel(kernel)
    return Trees(qemu, kernel)


def check_qemu(tree: Path) -> None:
    """Fails unless it is a QEMU tree of a version that the card fits into."""
    if not (tree / "hw/meson.build").is_file() or not (tree / "configure").is_file():
        raise Failure(f"not a QEMU source tree: {tree}",
                      advice="name the top folder of QEMU's source with --qemu-tree")
    try:
        version = (tree / "VERSION").read_text().strip()
    except OSError:
        version = ""
    if not re.match(r"10\.[012]\.\d+$", version):
        raise Failure(f"QEMU {version or 'of unknown version'} in {tree}: "
                      "the card is for 10.0 to 10.2")


def check_kernel(tree: Path) -> None:
    """Fails unless it is a clean Linux tree of a version that the driver fits."""
    try:
        makefile = (tree / "Makefile").read_text()
    except OSError:
        makefile = ""
    numbers = dict(re.findall(r"^(VERSION|PATCHLEVEL) = (\d+)$", makefile, re.MULTILINE))
    if len(numbers) != 2 or not (tree / "drivers/infiniband").is_dir():
        raise Failure(f"not a Linux source tree: {tree}",
                      advice="name the top folder of Linux's source with --kernel-tree")
    version = (int(numbers["VERSION"]), int(numbers["PATCHLEVEL"]))
    if version < (7, 3):
        raise Failure(f"Linux {version[0]}.{version[1]} in {tree}: the driver needs 7.3 or later")
    if (tree / ".config").exists() or (tree / "include/config").exists():
        raise Failure(f"the Linux tree {tree} has been built in place",
                      advice=f"make a clean copy of it, or run: make -C {tree} mrproper")
