# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds rdma-core with our provider in it, and the guest's test programs."""

from __future__ import annotations

import os
from pathlib import Path

from . import fetch, overlay, paths, stamps
from .errors import Failure
from .progress import Step

PROVIDER = paths.GUEST_DRIVER / "provider"
TESTS = paths.GUEST_DRIVER / "tests"

# The interface between rdma-core and a provider is private to a release, so the
# provider is built inside the tree. The anchor is the neighbour in the list.
HOOK = {"CMakeLists.txt": overlay.insert_after("add_subdirectory(providers/siw)",
                                               "add_subdirectory(providers/qrdma)")}
PROVIDER_FOLDER = "providers/qrdma"
HEADERS = (paths.CARD / "abi/qrdma_hw.h", paths.GUEST_DRIVER / "kernel/uapi/qrdma-abi.h")

# The programs that users know; rxe's provider, as a peer to compare with.
TARGETS = ["ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_asyncwatch", "rping",
           "rxe-rdmav{abi}", "qrdma-rdmav{abi}"]
PROGRAMS = ["ibv_devices", "ibv_devinfo", "ibv_rc_pingpong", "ibv_asyncwatch", "rping"]


def folder() -> Path:
    """The folder with the work copy (source) and the build (build)."""
    return paths.build() / "rdma-core"


def build_folder() -> Path:
    return folder() / "build"


def source() -> Path:
    found = fetch.RDMA_CORE.folder()
    if found is None:
        raise Failure("rdma-core's source has not been fetched",
                      advice="run scripts/build fetch")
    return found


def stage_key() -> str:
    return stamps.key("rdma-core 1", str(source()), files=[PROVIDER, *HEADERS])


def build() -> None:
    with Step("rdma-core", f"libibverbs, its programs and our provider, in {folder()}") as step:
        copy_sources()
        if not (build_folder() / "build.ninja").exists():
            configure(step)
        abi = source().name.rsplit("-", 1)[-1].split(".")[0]
        step.run(["ninja", "-C", build_folder(), *(name.format(abi=abi) for name in TARGETS)])


def copy_sources() -> None:
    """Brings the work copy up to date: rdma-core's files, the hook, the provider."""
    target = folder() / "source"
    overlay.mirror(source(), target, edits=HOOK, keep=(PROVIDER_FOLDER,))
    provider = target / PROVIDER_FOLDER
    overlay.mirror(PROVIDER, provider, keep=tuple(header.name for header in HEADERS))
    for header in HEADERS:
        overlay.mirror_file(header, provider / header.name)


def configure(step: Step) -> None:
    """Paths are those of the guest; nothing is installed on the host."""
    step.run(["cmake", "-S", folder() / "source", "-B", build_folder(), "-GNinja",
              "-DNO_MAN_PAGES=1", "-DNO_PYVERBS=1", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
              "-DENABLE_WERROR=1", "-DPYTHON_EXECUTABLE=/usr/bin/python3",
              "-DCMAKE_INSTALL_PREFIX=/usr", "-DCMAKE_INSTALL_SYSCONFDIR=/etc",
              "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_INSTALL_RUNDIR=/run"])


def tests_folder() -> Path:
    """Where the guest's test programs are built."""
    return paths.build() / "guest-tests"


def tests_key() -> str:
    return stamps.key("guest-tests 1", stage_key(),
                      files=[TESTS, paths.CARD / "abi", paths.GUEST_DRIVER / "exporter"])


def build_tests() -> None:
    """Builds the guest's test programs against the libibverbs that was just built."""
    with Step("guest-tests", f"the guest's test programs, in {tests_folder()}") as step:
        tests_folder().mkdir(parents=True, exist_ok=True)
        step.run(["make", "-C", TESTS, f"-j{os.cpu_count()}", f"O={tests_folder()}",
                  f"RDMA_CORE={build_folder()}", "all"])


def test_programs() -> list[Path]:
    """The executables among what the build left."""
    if not tests_folder().is_dir():
        return []
    return [path for path in sorted(tests_folder().iterdir())
            if path.is_file() and os.access(path, os.X_OK) and path.suffix in ("", ".sh")]
