# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources that qrdma builds from: which versions, and how they are unpacked.

Each is fetched once. It is unpacked under a temporary name and renamed when it
is whole; a file NAME.fetched then says which folder it is.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from . import paths
from .debian import Archive, newest_first, upstream
from .progress import Step


@dataclass(frozen=True)
class Source:
    """A source tree: its name, what it is for, and how to get it."""

    name: str
    explanation: str
    unpack: Callable[[Archive, Step, Path], Path]

    def folder(self) -> Path | None:
        """Where it lies, or None when it has not been fetched."""
        marker = paths.sources() / f"{self.name}.fetched"
        try:
            folder = paths.sources() / marker.read_text().strip()
        except OSError:
            return None
        return folder if folder.is_dir() else None

    def fetch(self, archive: Archive, step: Step) -> Path:
        """Downloads, verifies and unpacks it."""
        scratch = paths.sources() / f".{self.name}.new"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        unpacked = self.unpack(archive, step, scratch)
        target = paths.sources() / unpacked.name
        shutil.rmtree(target, ignore_errors=True)
        unpacked.rename(target)
        shutil.rmtree(scratch)
        marker = paths.sources() / f"{self.name}.fetched"
        marker.with_suffix(".new").write_text(target.name + "\n")
        marker.with_suffix(".new").rename(marker)
        return target


def choose(versions: list[str], preferred: str, least: tuple[int, ...]) -> str | None:
    """The newest version of the preferred line; else the oldest line from least on."""
    for version in newest_first(versions):
        if upstream(version).startswith(preferred):
            return version
    usable = [version for version in newest_first(versions)
              if number(upstream(version)) >= least and "rc" not in version]
    return usable[-1] if usable else None


def number(version: str) -> tuple[int, ...]:
    """10.0.13 as (10, 0, 13)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _unpack_qemu(archive: Archive, step: Step, folder: Path) -> Path:
    """QEMU with Debian's patches: the tarball alone does not configure."""
    versions = [version for version in archive.source_versions("qemu")
                if number(upstream(version)) < (10, 3)]
    version = choose(versions, "10.0.", (10, 0))
    if version is None:
        raise archive.not_found("source of QEMU 10.0")
    step.note(f"QEMU {version}")
    archive.fetch_source("qemu", version, folder)
    description = next(folder.glob("qemu_*.dsc"))
    target = folder / f"qemu-{upstream(version)}"
    step.run(["dpkg-source", "--no-check", "-x", description, target], directory=folder)
    return target


def _unpack_linux(archive: Archive, step: Step, folder: Path) -> Path:
    """Linux as Debian packs it: a binary package that holds a source archive."""
    names = [name for name in archive.package_names("linux-source-")
             if number(name) >= (7, 3)]
    versions = {version: name for name in names for version in archive.binary_versions(name)}
    version = choose(list(versions), "7.3.", (7, 3))
    if version is None:
        raise archive.not_found("source of Linux 7.3")
    package = versions[version]
    step.note(f"Linux {version}")
    deb = archive.fetch_binary(package, version, folder)
    step.run(["dpkg-deb", "-x", deb, folder / "deb"])
    tarball = next((folder / "deb/usr/src").glob("linux-source-*.tar.xz"))
    target = folder / package.replace("linux-source-", "linux-")
    target.mkdir()
    step.run(["tar", "-xf", tarball, "--strip-components=1", "-C", target])
    return target


def _unpack_rdma_core(archive: Archive, step: Step, folder: Path) -> Path:
    """rdma-core as its authors released it; Debian's patches are not needed."""
    version = choose(archive.source_versions("rdma-core"), "65.", (65,))
    if version is None:
        raise archive.not_found("source of rdma-core 65")
    step.note(f"rdma-core {version}")
    archive.fetch_source("rdma-core", version, folder, tar_only=True)
    tarball = next(path for path in folder.glob("rdma-core_*.orig.tar.*")
                   if path.suffix != ".asc")
    target = folder / f"rdma-core-{upstream(version)}"
    target.mkdir()
    step.run(["tar", "-xf", tarball, "--strip-components=1", "-C", target])
    return target


def _unpack_meson(archive: Archive, step: Step, folder: Path) -> Path:
    """meson is pure Python: its package works from any folder."""
    version = choose(archive.binary_versions("meson"), "1.7.", (1, 5))
    if version is None:
        raise archive.not_found("meson 1.5 or later")
    step.note(f"meson {version}")
    deb = archive.fetch_binary("meson", version, folder)
    target = folder / f"meson-{upstream(version)}"
    step.run(["dpkg-deb", "-x", deb, target])
    return target


QEMU = Source("qemu", "QEMU 10.0", _unpack_qemu)
LINUX = Source("linux", "Linux 7.3", _unpack_linux)
RDMA_CORE = Source("rdma-core", "rdma-core 65", _unpack_rdma_core)
MESON = Source("meson", "meson (QEMU needs 1.5 or later)", _unpack_meson)


def fetch_missing(wanted: list[Source]) -> None:
    """Fetches those that are not there yet."""
    missing = [source for source in wanted if source.folder() is None]
    if not missing:
        return
    names = ", ".join(source.explanation for source in missing)
    with Step("fetch", f"sources from Debian's archive: {names}") as step:
        archive = Archive(step)
        for source in missing:
            source.fetch(archive, step)
