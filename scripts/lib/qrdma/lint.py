# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of style, address spaces, byte orders and licences. meson test calls this."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

from . import build_kernel, build_qemu, overlay, paths, trees

SKIPPED = 77  # meson's word for "this machine cannot"

# Rules that make sense only for patches to those trees: lists of maintainers
# and line counts of Kconfig help texts.
QEMU_OPTIONS = ["--no-tree", "--terse", "--no-summary", "-f"]
KERNEL_OPTIONS = ["--no-tree", "--terse", "--no-summary", "--show-types",
                  "--ignore", "FILE_PATH_CHANGES", "-f"]
SPDX = re.compile(r"SPDX-License-Identifier: ([^*\n]+)")
WITHOUT_SPDX = {"LICENSES", ".json", ".svg", "passwd", "group", "hosts", "trace-events"}


def files(folder: Path, *endings: str) -> list[Path]:
    """The files below a folder with one of the endings, sorted."""
    return sorted(path for path in folder.rglob("*") if path.suffix in endings and path.is_file())


def checkpatch(tree: Path, options: list[str], folder: Path, sources: list[Path]) -> int:
    """A tree's own checkpatch over files of a folder: no errors and no warnings."""
    script = tree / "scripts/checkpatch.pl"
    if not script.exists():
        print(f"no {script}")
        return SKIPPED
    failed = 0
    for source in sources:
        result = subprocess.run(["perl", script, *options, source.relative_to(folder)],
                                cwd=folder, capture_output=True, text=True, check=False)
        complaints = result.stdout.strip() or result.stderr.strip()
        if result.returncode != 0 or complaints:
            print(complaints)
            failed += 1
    print(f"{len(sources)} files, {failed} with complaints")
    return 1 if failed or not sources else 0


def checkpatch_qemu() -> int:
    """Over copies in the places that they have in QEMU: some rules depend on them."""
    folder = paths.build() / "lint"
    overlay.mirror(paths.CARD, folder / build_qemu.CARD_FOLDER, skip=("engine/tests", "engine/fuzz"))
    overlay.mirror(paths.CARD / "engine/tests", folder / "tests/unit/rdma-dev")
    overlay.mirror(paths.CARD / "engine/fuzz", folder / "tests/unit/rdma-dev-fuzz")
    overlay.mirror(paths.QTESTS, folder / build_qemu.QTEST_FOLDER)
    # The header that is shared with the kernel is in the kernel's style.
    kernel_style = folder / build_qemu.CARD_FOLDER / "abi"
    sources = [path for path in files(folder, ".c", ".h") if path.parent != kernel_style]
    return checkpatch(build_qemu.source(trees.from_environment()), QEMU_OPTIONS, folder, sources)


def checkpatch_kernel() -> int:
    sources = [path for name in build_kernel.MODULES
               for path in files(paths.GUEST_DRIVER / name, ".c", ".h")]
    return checkpatch(build_kernel.source(trees.from_environment()), KERNEL_OPTIONS,
                      paths.REPOSITORY, [*sources, *files(paths.CARD / "abi", ".h")])


def sparse() -> int:
    """Builds the modules under sparse; complaints about our files count."""
    of = trees.from_environment()
    failed = False
    for module in build_kernel.module_sources():
        command = build_kernel.module_make(of, module, "C=2", "CHECK=sparse", kind="sparse")
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        ours = [line for line in (result.stdout + result.stderr).splitlines()
                if re.search(r"\.[ch]:\d+:\d+: (warning|error):", line)
                and not line.startswith((str(build_kernel.source(of)), "/usr", "./include"))]
        if result.returncode != 0 and not ours:
            ours = (result.stdout + result.stderr).splitlines()[-20:]
        print("\n".join(ours) or f"{module.name}: clean")
        failed |= bool(ours)
    return 1 if failed else 0


def shell() -> int:
    """shellcheck over the shell scripts."""
    scripts = [path for path in tracked() if is_shell(path)]
    try:
        result = subprocess.run(["shellcheck", "--severity=warning", "-x", "-P", "SCRIPTDIR",
                                 *scripts],
                                cwd=paths.REPOSITORY, check=False)
    except FileNotFoundError:
        print("no shellcheck on this machine")
        return SKIPPED
    print(f"{len(scripts)} scripts")
    return result.returncode


def is_shell(path: Path) -> bool:
    with path.open("rb") as file:
        return bool(re.match(rb"#!.*\b(ba)?sh\b", file.readline()))


def license_headers() -> int:
    """Every file names its licence, and the licence's text is there."""
    failed = False
    for path in tracked():
        relative = path.relative_to(paths.REPOSITORY)
        if WITHOUT_SPDX & {relative.parts[0], path.suffix, path.name}:
            continue
        found = SPDX.search(path.read_text(errors="replace")[:4096])
        if found is None:
            if path.suffix in (".c", ".h", ".py", ".sh", ".build", ".S"):
                print(f"{relative}: no SPDX-License-Identifier")
                failed = True
            continue
        for name in re.findall(r"[A-Za-z0-9.-]{4,}", found[1].removesuffix("-->")):
            text = {"GPL-2.0": "GPL-2.0-only"}.get(name, name)
            if name != "WITH" and not (paths.REPOSITORY / f"LICENSES/{text}.txt").exists():
                print(f"{relative}: no text of the licence {name} in LICENSES")
                failed = True
    return 1 if failed else 0


def tracked() -> list[Path]:
    """The repository's files: git's list, or all there are in an archive of it."""
    result = subprocess.run(["git", "ls-files", "-z"], cwd=paths.REPOSITORY,
                            capture_output=True, text=True, check=False)
    if result.returncode == 0:
        found = [paths.REPOSITORY / name for name in result.stdout.split("\0") if name]
    else:
        found = sorted(paths.REPOSITORY.rglob("*"))
    return [path for path in found if path.is_file()]


LINTS: dict[str, Callable[[], int]] = {
    "checkpatch-qemu": checkpatch_qemu,
    "checkpatch-kernel": checkpatch_kernel,
    "sparse": sparse,
    "shell": shell,
    "license": license_headers,
}

if __name__ == "__main__":
    sys.exit(LINTS[sys.argv[1]]())
