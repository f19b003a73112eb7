# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs the guest's initramfs: a shell, libibverbs programs, modules, tests."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from . import build_kernel, build_rdma, paths, stamps
from .errors import Failure
from .progress import Step
from .trees import Trees

# Of the host: found where its packages put them.
HOST_PROGRAMS = ("/bin/ip", "/bin/rdma")
BUSYBOX = Path("/bin/busybox")

FOLDERS = ("dev", "proc", "sys", "tmp", "run", "root", "bin", "lib", "etc",
           "etc/libibverbs.d", "usr", "tests", "qrdma", "lib/libibverbs", "lib/modules")
LINKS = {"lib64": "lib", "sbin": "bin", "usr/bin": "../bin", "usr/sbin": "../bin",
         "usr/lib": "../lib", "lib/x86_64-linux-gnu": "."}


@dataclass
class Archive:
    """The contents of an initramfs, as gen_init_cpio's list."""

    folders: set[str] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def folder(self, name: str) -> None:
        if name not in self.folders:
            self.folders.add(name)
            self.lines.append(f"dir /{name} 755 0 0")

    def link(self, name: str, target: str) -> None:
        self.lines.append(f"slink /{name} {target} 777 0 0")

    def file(self, name: str, source: Path, mode: int = 0o755) -> None:
        """Adds a file; the first of a name wins."""
        if name not in self.names:
            self.names.add(name)
            self.lines.append(f"file /{name} {source} {mode:o} 0 0")

    def write(self, generator: Path, target: Path) -> None:
        """Packs it. Owners and times are fixed, so equal contents pack equally."""
        listing = target.with_suffix(".list")
        listing.write_text("\n".join(self.lines) + "\n")
        temporary = target.with_suffix(".new")
        with temporary.open("wb") as output:
            result = subprocess.run([generator, "-t", "0", listing], stdout=output,
                                    stderr=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            raise Failure(f"cannot pack {target.name}: {result.stderr.strip()}")
        temporary.rename(target)


def image(trees: Trees) -> Path:
    return trees.guest_build() / "initramfs.cpio"


def generator(trees: Trees) -> Path:
    """The kernel's own packer, built with it."""
    return trees.kernel_build() / "usr/gen_init_cpio"


def stage_key(trees: Trees) -> str | None:
    modules = build_kernel.modules_key(trees)
    if modules is None:
        return None
    return stamps.key("guest 1", modules, build_rdma.stage_key(), build_rdma.tests_key(),
                      files=[paths.GUEST, Path(__file__)])


def build(trees: Trees) -> None:
    with Step(trees.kernel_flavour("guest"),
              f"the guest's initramfs, in {trees.guest_build()}") as step:
        trees.guest_build().mkdir(parents=True, exist_ok=True)
        # What a session left that was killed.
        for left in trees.guest_build().glob("session-*"):
            left.unlink()
        archive = Archive()
        for name in FOLDERS:
            archive.folder(name)
        for name, target in LINKS.items():
            archive.link(name, target)
        add_base(archive)
        add_modules(archive, trees, step)
        add_programs(archive, trees, step)
        archive.write(generator(trees), image(trees))


def add_base(archive: Archive) -> None:
    """The shell and what /init reads."""
    archive.lines.append("nod /dev/console 600 0 0 c 5 1")
    archive.file("bin/busybox", BUSYBOX)
    applets = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True,
                             check=True).stdout.split()
    host = {Path(program).name for program in HOST_PROGRAMS if Path(program).exists()}
    for applet in applets:
        if applet not in host | {"busybox"}:
            archive.link(f"bin/{applet}", "busybox")
    archive.file("init", paths.GUEST / "init")
    archive.file("qrdma/functions", paths.GUEST / "functions", 0o644)
    archive.file("qrdma/kernel-checks", paths.GUEST / "kernel-checks")
    archive.file("qrdma/leaks-of-linux", paths.GUEST / "leaks-of-linux", 0o644)
    archive.file("qrdma/welcome", paths.GUEST / "welcome", 0o644)
    archive.file("etc/profile", paths.GUEST / "profile", 0o644)
    for name in ("passwd", "group", "hosts"):
        archive.file(f"etc/{name}", paths.GUEST / "etc" / name, 0o644)


def add_modules(archive: Archive, trees: Trees, step: Step) -> None:
    """The modules, with the index that modprobe reads."""
    release = (trees.kernel_build() / "include/config/kernel.release").read_text().strip()
    root = trees.guest_build() / "modules"
    shutil.rmtree(root, ignore_errors=True)
    folder = root / "lib/modules" / release
    folder.mkdir(parents=True)
    for module in build_kernel.modules(trees):
        shutil.copy2(module, folder / module.name)
    for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy2(trees.kernel_build() / index, folder / index)
    step.run(["depmod", "-b", root, release])
    archive.folder(f"lib/modules/{release}")
    for file in sorted(folder.iterdir()):
        archive.file(f"lib/modules/{release}/{file.name}", file, 0o644)


def add_programs(archive: Archive, trees: Trees, step: Step) -> None:
    """libibverbs programs, providers and tests, and the libraries of all of them."""
    rdma = build_rdma.build_folder()
    programs = {f"bin/{name}": rdma / "bin" / name for name in build_rdma.PROGRAMS}
    programs |= {f"bin/{Path(path).name}": Path(path) for path in HOST_PROGRAMS
                 if Path(path).exists()}
    programs |= {f"tests/{path.name}": path for path in build_rdma.test_programs()}
    providers = {f"lib/libibverbs/{path.name}": path
                 for name in ("qrdma", "rxe")
                 for path in sorted((rdma / "lib").glob(f"lib{name}-rdmav*.so"))}
    for name in ("qrdma", "rxe"):
        archive.file(f"etc/libibverbs.d/{name}.driver",
                     rdma / "providers" / name / f"{name}.driver", 0o644)
    stripped = trees.guest_build() / "stripped"
    shutil.rmtree(stripped, ignore_errors=True)
    for name, path in (programs | providers).items():
        archive.file(name, strip(path, stripped / name, step))
    for path in libraries([*programs.values(), *providers.values()], rdma / "lib"):
        name = f"lib/{path.name}"
        archive.file(name, strip(path, stripped / name, step))


def strip(source: Path, target: Path, step: Step) -> Path:
    """A copy without debug information: it is most of the size. Scripts stay as they are."""
    with source.open("rb") as file:
        is_program = file.read(4) == b"\x7fELF"
    if not is_program:
        return source
    target.parent.mkdir(parents=True, exist_ok=True)
    step.run(["objcopy", "--strip-debug", source.resolve(), target])
    return target


def libraries(programs: list[Path], folder: Path) -> list[Path]:
    """The shared libraries that the programs need, by the names they need them by."""
    found: dict[str, Path] = {}
    for program in programs:
        result = subprocess.run(["ldd", program], capture_output=True, text=True, check=False,
                                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C",
                                     "LD_LIBRARY_PATH": str(folder)})
        for path in needed(result.stdout, program):
            found[path.name] = path
    return [found[name] for name in sorted(found)]


def needed(listing: str, program: Path) -> list[Path]:
    """The files that ldd's output names; Failure when it misses one."""
    missing = re.findall(r"^\s*(\S+) => not found", listing, re.MULTILINE)
    if missing:
        raise Failure(f"{program} needs libraries that are not on this host: {', '.join(missing)}")
    return [Path(match) for match in
            re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listing, re.MULTILINE)]
