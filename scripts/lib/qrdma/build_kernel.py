# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the guest's kernel and our modules for it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from . import fetch, paths, stamps
from .errors import Failure
from .progress import Step
from .trees import Trees, check_kernel

FRAGMENT = paths.GUEST / "kernel.config"
DEBUG_FRAGMENT = paths.GUEST / "kernel-debug.config"
MODULES = ("kernel", "exporter")


def image(trees: Trees) -> Path:
    return trees.kernel_build() / "arch/x86/boot/bzImage"


def source(trees: Trees) -> Path:
    folder = trees.kernel or fetch.LINUX.folder()
    if folder is None:
        raise Failure("Linux's source has not been fetched", advice="run scripts/build fetch")
    return folder


def fragments(trees: Trees) -> list[Path]:
    """The parts of the configuration, of which a later one adds to the earlier."""
    return [FRAGMENT, DEBUG_FRAGMENT] if trees.debug_kernel else [FRAGMENT]


def stage_key(trees: Trees) -> str | None:
    """None for an own tree, which may change at any time."""
    if trees.kernel is not None:
        return None
    return stamps.key("kernel 1", str(source(trees)), files=fragments(trees))


def build(trees: Trees) -> None:
    check_kernel(source(trees))
    folder = trees.kernel_build()
    folder.mkdir(parents=True, exist_ok=True)
    with Step(trees.kernel_flavour("kernel"), f"the guest's Linux, in {folder}") as step:
        make = ["make", "-C", source(trees), f"O={folder}"]
        whole = folder / "fragment.config"
        whole.write_text("".join(part.read_text() for part in fragments(trees)))
        step.run([*make, f"KCONFIG_ALLCONFIG={whole}", "allnoconfig"])
        for part in fragments(trees):
            check_configuration(part, folder / ".config")
        step.run([*make, f"-j{os.cpu_count()}", "bzImage", "modules"])


def check_configuration(fragment: Path, result: Path) -> None:
    """Fails naming every option that did not come out as the fragment asks.

    Kconfig drops an option whose dependencies are not met without a word. One that
    is to be off may also be absent.
    """
    have = set(result.read_text().splitlines())
    lost = [line for line in fragment.read_text().splitlines()
            if line.startswith("CONFIG_") and line not in have]
    off = re.compile(r"# (CONFIG_\w+) is not set")
    lost += [line for line in fragment.read_text().splitlines()
             if (match := off.fullmatch(line)) and any(
                 other.startswith(f"{match[1]}=") for other in have)]
    if lost:
        raise Failure(f"the kernel's configuration does not have: {', '.join(lost)}",
                      advice=f"see what these options depend on, and complete {fragment}")


def modules_key(trees: Trees) -> str | None:
    kernel = stage_key(trees)
    if kernel is None:
        return None
    return stamps.key("modules 1", kernel, files=[paths.CARD / "abi", *module_sources()])


def module_sources() -> list[Path]:
    """The folders of our modules that exist."""
    return [path for path in (paths.GUEST_DRIVER / name for name in MODULES)
            if (path / "Makefile").exists() or (path / "Kbuild").exists()]


def build_modules(trees: Trees) -> None:
    """Builds our modules; what the build makes goes to a folder of its own (MO=)."""
    with Step(trees.kernel_flavour("modules"), f"the guest's driver, in {trees.modules_build()}") as step:
        for module in module_sources():
            step.run(module_make(trees, module), advice="correct the module's source")


def module_make(trees: Trees, module: Path, *variables: str,
                kind: str = "") -> list[str | Path]:
    """The command that builds one module; warnings are errors.

    kind names a folder for builds of another kind, such as those under a checker.
    """
    output = trees.modules_build() / kind / module.name
    output.mkdir(parents=True, exist_ok=True)
    return ["make", "-C", trees.kernel_build(), f"M={module}", f"MO={output}",
            f"-j{os.cpu_count()}", "W=1", "KCFLAGS=-Werror", *variables, "modules"]


def module_products(trees: Trees) -> list[Path]:
    """What building our modules must have made."""
    return [trees.modules_build() / name for name in
            ("kernel/qrdma.ko", "exporter/qrdma_exporter.ko")]


def modules(trees: Trees) -> list[Path]:
    """The modules that were built: ours, and the kernel's own."""
    ours = [path for name in MODULES
            for path in sorted((trees.modules_build() / name).glob("*.ko"))]
    listing = (trees.kernel_build() / "modules.order").read_text().split()
    theirs = [trees.kernel_build() / Path(name).with_suffix(".ko") for name in listing]
    return ours + theirs
