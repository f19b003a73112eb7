# SPDX-License-Identifier: GPL-2.0-or-later
"""How programs built with ASan and UBSan are run, so that nothing they find is lost."""

from __future__ import annotations

from . import paths

# QEMU leaves with 1 after a wrong option, and some tests expect that: a report
# must not look like it.
EXIT_STATUS = 99

# Leaks that are QEMU's own, each with its reason.
SUPPRESSIONS = paths.SCRIPTS / "lib/leaks-of-qemu.txt"


def environment() -> dict[str, str]:
    """For a program and all that it starts: any report, a leak too, is its death."""
    return {
        "ASAN_OPTIONS": f"detect_leaks=1:exitcode={EXIT_STATUS}",
        "UBSAN_OPTIONS": f"halt_on_error=1:print_stacktrace=1:exitcode={EXIT_STATUS}",
        "LSAN_OPTIONS": f"suppressions={SUPPRESSIONS}:print_suppressions=0",
        # GLib's own allocator would hide what becomes of its blocks.
        "G_SLICE": "always-malloc",
    }


def suppressed() -> list[str]:
    """The functions below whose frames a leak is not reported."""
    lines = (line.partition("#")[0].strip() for line in SUPPRESSIONS.read_text().splitlines())
    return [line.removeprefix("leak:") for line in lines if line]
