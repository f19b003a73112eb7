# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds QEMU with the card in it, and the qtests' executables."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import fetch, overlay, paths, stamps, tools
from .errors import Failure
from .progress import Step
from .trees import Trees, check_qemu

CARD_FOLDER = "hw/rdma-dev"
QTEST_FOLDER = "tests/qtest/rdma-dev"

# How the two folders are hooked into QEMU's build. docs say the same by hand.
HOOKS = {
    "hw/meson.build": overlay.append("subdir('rdma-dev')"),
    "hw/Kconfig": overlay.append("source rdma-dev/Kconfig"),
    "tests/qtest/meson.build": overlay.append("subdir('rdma-dev')"),
    # Read before the trace code is generated, unlike hw/meson.build.
    "stubs/meson.build": overlay.append(f"trace_events_subdirs += ['{CARD_FOLDER}']"),
}

FIRMWARE = ("/usr/share/seabios", "/usr/share/qemu", "/usr/lib/ipxe/qemu")

CONFIGURE = [
    "--target-list=x86_64-softmmu", "--without-default-features", "--enable-fdt=system",
    "--enable-tcg", "--enable-kvm", "--disable-docs", "--disable-install-blobs",
    "--enable-werror", "--disable-download",
    # Firmware is the host's packages'; QEMU's source package has none.
    "--firmwarepath=" + ":".join(FIRMWARE),
]



@dataclass(frozen=True)
class Flavour:
    """A way to build it, in a folder of its own."""

    name: str
    configure: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    programs: tuple[str, ...] = ("qemu-system-x86_64",)


PLAIN = Flavour("qemu")
# One build serves the qtests under the sanitizers and QEMU's own fuzzer.
SANITIZE = Flavour(
    "qemu-sanitize",
    ["--enable-fuzzing", "--enable-asan", "--enable-ubsan",
     # QEMU's own code is not without warnings of clang. Ours is built with -Werror by the other.
     "--disable-werror",
     # Reports of misbehaviour end the process: a test that causes one fails.
     "--extra-cflags=-fno-sanitize-recover=undefined -fno-omit-frame-pointer"],
    {"CC": "clang", "CXX": "clang++"},
    ("qemu-system-x86_64", "qemu-fuzz-x86_64"))


def binary(trees: Trees, flavour: Flavour = PLAIN) -> Path:
    return trees.qemu_build(flavour.name) / "build/qemu-system-x86_64"


def fuzzer(trees: Trees) -> Path:
    """QEMU's own, with the card in it."""
    return trees.qemu_build(SANITIZE.name) / "build/qemu-fuzz-x86_64"


def source(trees: Trees) -> Path:
    """The pristine tree."""
    folder = trees.qemu or fetch.QEMU.folder()
    if folder is None:
        raise Failure("QEMU's source has not been fetched", advice="run scripts/build fetch")
    return folder


def configure_options(flavour: Flavour) -> list[str]:
    return [*CONFIGURE, *flavour.configure]


def stage_key(trees: Trees, flavour: Flavour = PLAIN) -> str | None:
    """What the build depends on; None for an own tree, which may change any time."""
    if trees.qemu is not None:
        return None
    return stamps.key("qemu 2", str(source(trees)), *configure_options(flavour),
                      files=[paths.CARD, paths.QTESTS])


def build(trees: Trees, flavour: Flavour = PLAIN) -> None:
    check_qemu(source(trees))
    folder = trees.qemu_build(flavour.name)
    with Step(flavour.name, f"QEMU with the card, in {folder}") as step:
        copy_sources(trees, folder)
        configured = stamps.key("qemu-configure", *configure_options(flavour))
        if not stamps.is_current(folder.name + "-configure", configured) \
                or not (folder / "build/build.ninja").exists():
            configure(folder, flavour, step)
            stamps.record(folder.name + "-configure", configured)
        link_firmware(folder / "build")
        ninja = ["ninja", "-C", folder / "build"]
        step.run([*ninja, "build.ninja"])
        step.run([*ninja, *flavour.programs, *qtests(trees, flavour)])


def copy_sources(trees: Trees, folder: Path) -> None:
    """Brings the work copy up to date: QEMU's own files, the hooks, our folders."""
    target = folder / "source"
    overlay.mirror(source(trees), target, edits=HOOKS, keep=(CARD_FOLDER, QTEST_FOLDER),
                   skip=("build",))
    overlay.mirror(paths.CARD, target / CARD_FOLDER)
    overlay.mirror(paths.QTESTS, target / QTEST_FOLDER)


def configure(folder: Path, flavour: Flavour, step: Step) -> None:
    (folder / "build").mkdir(parents=True, exist_ok=True)
    step.run([folder / "source/configure", f"--python={tools.python()}",
              *configure_options(flavour)],
             directory=folder / "build", environment=flavour.environment)


def link_firmware(build_folder: Path) -> None:
    """A QEMU that runs in its build folder looks for its firmware below qemu-bundle."""
    for firmware in FIRMWARE:
        link = build_folder / "qemu-bundle" / firmware.lstrip("/")
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(firmware)


def qtests(trees: Trees, flavour: Flavour = PLAIN) -> list[str]:
    """The qtest executables that our folder defines, relative to the build folder."""
    folder = trees.qemu_build(flavour.name)
    result = subprocess.run(
        [folder / "build/pyvenv/bin/meson", "introspect", "--targets", folder / "build"],
        capture_output=True, text=True, check=False)
    try:
        targets = json.loads(result.stdout)
    except json.JSONDecodeError as error:
        raise Failure(f"meson cannot list QEMU's targets: {result.stderr.strip()}") from error
    ours = str(folder / "source" / QTEST_FOLDER)
    return sorted(os.path.relpath(target["filename"][0], folder / "build")
                  for target in targets
                  if target["type"] == "executable" and target["defined_in"].startswith(ours))
