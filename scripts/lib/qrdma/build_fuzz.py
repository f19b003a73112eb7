# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the engine's fuzz targets with clang: to find bugs, and to count lines."""

from __future__ import annotations

from pathlib import Path

from . import paths, tools
from .progress import Step

# GLib's own allocator would hide from the sanitizers what becomes of its blocks.
# A small quarantine: a card of each input is large, and new pages are dear.
ENVIRONMENT = {
    "G_SLICE": "always-malloc",
    "ASAN_OPTIONS": "quarantine_size_mb=4:thread_local_quarantine_size_kb=64",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def build_folder() -> Path:
    return paths.build() / "fuzz"


def coverage_folder() -> Path:
    return paths.build() / "fuzz-coverage"


def program(target: str) -> Path:
    return build_folder() / f"hw-rdma-dev/engine/fuzz/fuzz-{target}"


def coverage_program(target: str) -> Path:
    return coverage_folder() / f"hw-rdma-dev/engine/fuzz/fuzz-{target}"


def build() -> None:
    """With AddressSanitizer and UBSan."""
    _build("fuzz", "the engine's fuzz targets", build_folder(), "sanitizers")


def build_coverage() -> None:
    """With counters of lines instead."""
    _build("fuzz-coverage", "the engine's fuzz targets, counting lines", coverage_folder(),
           "coverage")


def _build(name: str, explanation: str, folder: Path, kind: str) -> None:
    with Step(name, f"{explanation}, in {folder}") as step:
        known = ["--reconfigure"] if (folder / "build.ninja").exists() else []
        # What clang warns of differs from one to the next; gcc's warnings are errors elsewhere.
        step.run([tools.meson(), "setup", *known, f"-Dfuzz={kind}", "-Dwerror=false",
                  f"-Db_sanitize={'address,undefined' if kind == 'sanitizers' else 'none'}",
                  folder, paths.REPOSITORY],
                 environment={"CC": "clang"})
        step.run(["ninja", "-C", folder])
