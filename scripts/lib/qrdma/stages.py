# SPDX-License-Identifier: GPL-2.0-or-later
"""The stages of a build: what each needs first, and when it is up to date."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

from . import (build_fuzz, build_guest, build_kernel, build_qemu, build_rdma, fetch, paths,
               stamps, tools)
from .trees import Trees

# Disk space in bytes, measured and rounded up.
SPACE_FOR_A_REBUILD = 300 << 20
SPACE_FOR_DEBUG_KERNEL = 4 << 30


@dataclass(frozen=True)
class Stage:
    """A stage. key gives None when only running it can tell (make and ninja know).

    products are the files without which it is not done, space what a first
    build takes on the disk.
    """

    name: str
    explanation: str
    needs: tuple[str, ...]
    build: Callable[[Trees], None]
    key: Callable[[Trees], str | None]
    products: Callable[[Trees], list[Path]]
    space: int = SPACE_FOR_A_REBUILD


def _fetch(trees: Trees) -> None:
    fetch.fetch_missing(_wanted(trees))


def _wanted(trees: Trees) -> list[fetch.Source]:
    """The sources that have to be fetched: not those that the user brings."""
    wanted = [*tools.sources(), fetch.RDMA_CORE]
    if trees.qemu is None:
        wanted.append(fetch.QEMU)
    if trees.kernel is None:
        wanted.append(fetch.LINUX)
    return wanted


def _always(_: Trees) -> None:
    """For stages that see by themselves, and silently, what there is to do."""
    return None


STAGES = {stage.name: stage for stage in (
    Stage("fetch", "sources from Debian's archive", (), _fetch, _always,
          lambda trees: [source.folder() or paths.sources() / source.name
                         for source in _wanted(trees)], 5 << 30),
    Stage("tools", "a Python environment with meson", ("fetch",),
          lambda _: tools.prepare(), _always, lambda _: []),
    Stage("kernel", "the guest's Linux", ("fetch",), build_kernel.build, build_kernel.stage_key,
          lambda trees: [build_kernel.image(trees), build_guest.generator(trees)], 2 << 30),
    Stage("qemu", "QEMU with the card, and the qtests", ("tools",), build_qemu.build,
          build_qemu.stage_key, lambda trees: [build_qemu.binary(trees)], 2 << 30),
    Stage("qemu-sanitize", "QEMU under ASan and UBSan, and its fuzzer", ("tools",),
          lambda trees: build_qemu.build(trees, build_qemu.SANITIZE),
          lambda trees: build_qemu.stage_key(trees, build_qemu.SANITIZE),
          lambda trees: [build_qemu.binary(trees, build_qemu.SANITIZE),
                         build_qemu.fuzzer(trees)], 4 << 30),
    Stage("fuzz", "the engine's fuzz targets", ("tools",),
          lambda _: build_fuzz.build(), _always, lambda _: [build_fuzz.build_folder()]),
    Stage("fuzz-coverage", "the engine's fuzz targets, counting lines", ("tools",),
          lambda _: build_fuzz.build_coverage(), _always,
          lambda _: [build_fuzz.coverage_folder()]),
    Stage("rdma-core", "libibverbs and the card's provider", ("fetch",),
          lambda _: build_rdma.build(), lambda _: build_rdma.stage_key(),
          lambda _: [build_rdma.build_folder() / "bin/ibv_devinfo"]),
    Stage("modules", "the guest's driver", ("kernel",), build_kernel.build_modules,
          build_kernel.modules_key, build_kernel.module_products),
    Stage("guest-tests", "the guest's test programs", ("rdma-core",),
          lambda _: build_rdma.build_tests(), lambda _: build_rdma.tests_key(), lambda _: []),
    Stage("guest", "the guest's initramfs", ("modules", "guest-tests"), build_guest.build,
          build_guest.stage_key, lambda trees: [build_guest.image(trees)]),
)}


def _for_debug_kernel(stage: Stage) -> Stage:
    """The same for the kernel that checks itself, in folders of its own."""
    return replace(
        stage, name=f"{stage.name}-debug",
        explanation=f"{stage.explanation}: the debug kernel's",
        needs=tuple(f"{need}-debug" if need in KERNEL_STAGES else need for need in stage.needs),
        build=lambda trees: stage.build(trees.with_debug_kernel()),
        key=lambda trees: stage.key(trees.with_debug_kernel()),
        products=lambda trees: stage.products(trees.with_debug_kernel()),
        space=SPACE_FOR_DEBUG_KERNEL if stage.name == "kernel" else stage.space)


# What there is one of for each flavour of the kernel.
KERNEL_STAGES = ("kernel", "modules", "guest")
STAGES |= {debug.name: debug for debug in
           (_for_debug_kernel(STAGES[name]) for name in KERNEL_STAGES)}

EVERYTHING = ("qemu", "guest")


def in_order(names: list[str] | tuple[str, ...]) -> list[Stage]:
    """The stages and what they need, each once, needs first."""
    ordered: list[Stage] = []

    def visit(name: str) -> None:
        stage = STAGES[name]
        for need in stage.needs:
            visit(need)
        if stage not in ordered:
            ordered.append(stage)

    for name in names:
        visit(name)
    return ordered


def build(names: list[str] | tuple[str, ...], trees: Trees) -> None:
    """Brings the stages up to date. The caller holds the cache's lock."""
    for stage in in_order(names):
        key = stage.key(trees)
        built = all(path.exists() for path in stage.products(trees))
        if key is not None and built and stamps.is_current(stage.name, key):
            continue
        paths.require_space(stage.space if not built else SPACE_FOR_A_REBUILD)
        if key is not None:
            stamps.forget(stage.name)
        stage.build(trees)
        if key is not None:
            stamps.record(stage.name, key)
