# SPDX-License-Identifier: GPL-2.0-or-later
"""How a session's output is taken apart, and what a session's end means."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from qrdma import audit, machine, trees
from qrdma.guest import SETUP, Program, Result, Session


class SessionEnds(unittest.TestCase):
    """A stand-in for QEMU prints what a guest would; the rest is real."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.dict(os.environ, {"QRDMA_CACHE": folder.name})
        patch.start()
        self.addCleanup(patch.stop)
        (self.folder / "logs").mkdir()

    def session(self, *lines: str, status: int = 0, programs: tuple[str, ...] = ("a",),
                console: str = "", timeout: int = 60, stay: bool = False) -> Session:
        session = Session("test", machine.PLAIN, trees.Trees(),
                          [Program(name, "true", timeout) for name in programs], load_card=False)
        text = "\n".join(line.replace("@", session.word) for line in lines)
        script = (f"import sys, time; sys.stdout.write({text!r} + chr(10)); sys.stdout.flush();"
                  f"open({str(session.console_log)!r}, 'w').write({console!r});"
                  f"time.sleep({600 if stay else 0}); sys.exit({status})")
        session._initramfs = lambda: self.folder / "none"  # type: ignore[method-assign]
        session._command = lambda _: [sys.executable, "-c", script]  # type: ignore[method-assign]
        session.ask_audit = self.answer  # type: ignore[method-assign]
        return session

    def answer(self, result: Result) -> None:
        self.asked = [*getattr(self, "asked", []), result.program.name]

    def test_output_and_status(self) -> None:
        result = self.session("", "@ begin a", "ok 1", "@ end a 3").run()[0]
        self.assertEqual((result.output, result.status, result.trouble), (["ok 1"], 3, None))

    def test_mark_of_another_word_is_output(self) -> None:
        result = self.session("@ begin a", "deadbeef end a 0", "@ end a 0").run()[0]
        self.assertEqual(result.output, ["deadbeef end a 0"])

    def test_program_that_never_ran(self) -> None:
        results = self.session("@ begin a", "@ end a 0", programs=("a", "b")).run()
        self.assertIsNone(results[0].trouble)
        self.assertIn("powered off before", results[1].trouble or "")

    def test_guest_that_stops_in_a_program(self) -> None:
        result = self.session("@ begin a", "ok 1").run()[0]
        self.assertIsNone(result.status)
        self.assertEqual(result.trouble, "the guest stopped during a")

    def test_qemu_that_fails_at_the_end(self) -> None:
        result = self.session("@ begin a", "@ end a 0", status=1).run()[0]
        self.assertEqual(result.trouble, "QEMU ended with status 1")

    def test_program_that_does_not_end(self) -> None:
        result = self.session("@ begin a", timeout=1, stay=True).run()[0]
        self.assertEqual(result.trouble, "a did not end within 1 seconds")

    def test_audit_is_asked_once_a_program_but_not_for_the_setup(self) -> None:
        session = self.session(f"@ begin {SETUP}", f"@ end {SETUP} 0", "@ begin a", "@ end a 0",
                               "@ begin b", "@ end b 1", programs=("a", "b"))
        session.run()
        self.assertEqual(self.asked, ["a", "b"])

    def test_audit_is_asked_about_a_program_that_hangs(self) -> None:
        self.session("@ begin a", timeout=1, stay=True).run()
        self.assertEqual(self.asked, ["a"])

    def test_qemu_that_does_not_answer(self) -> None:
        session = self.session("@ begin a", "@ end a 0")
        del session.ask_audit
        with mock.patch.object(audit, "ask", side_effect=audit.AuditError("audit: not there")):
            result = session.run()[0]
        self.assertEqual((result.audit, result.audit_trouble), (None, "audit: not there"))

    def test_console_problem_is_the_program_s(self) -> None:
        console = "x qrdma session: b begins\nWARNING: CPU: 0\n"
        results = self.session("@ begin a", "@ end a 0", "@ begin b", "@ end b 0",
                               programs=("a", "b"), console=console).run()
        self.assertEqual([bool(result.console) for result in results], [False, True])

    def test_driver_that_does_not_load(self) -> None:
        session = self.session(f"@ begin {SETUP}", "no card", f"@ end {SETUP} 1")
        session.load_card = True
        self.assertIn("no card", session.run()[0].trouble or "")


class Script(unittest.TestCase):
    def test_shell_runs_it(self) -> None:
        """The script, in a shell of this host, gives back statuses and both streams."""
        session = Session("test", machine.PLAIN, trees.Trees(),
                          [Program("a", "echo out; echo err >&2; cat; exit 3"),
                           Program("b", "echo 'it is'")], load_card=False)
        script = session.script().replace(". /qrdma/functions", ":").replace("/dev/kmsg",
                                                                             "/dev/null")
        output = subprocess.run(["sh", "-c", script], text=True, check=True, input="\n\n",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        lines = [line.replace(session.word, "@") for line in output.splitlines() if line]
        self.assertEqual(lines, ["@ begin a", "out", "err", "@ end a 3",
                                 "@ begin b", "it is", "@ end b 0"])


    def test_it_goes_no_further_without_the_host(self) -> None:
        session = Session("test", machine.PLAIN, trees.Trees(),
                          [Program("a", "true"), Program("b", "true")], load_card=False)
        script = session.script().replace(". /qrdma/functions", ":").replace("/dev/kmsg",
                                                                             "/dev/null")
        result = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("begin b", result.stdout)


class Machines(unittest.TestCase):
    def test_only_the_iommu_machine_has_the_exporting_device(self) -> None:
        self.assertNotIn("ivshmem", " ".join(machine.PLAIN.arguments()))
        self.assertIn("ivshmem-plain", " ".join(machine.IOMMU.arguments()))

    def test_emulation_where_there_is_no_kvm(self) -> None:
        with mock.patch.object(machine, "have_kvm", return_value=False):
            self.assertEqual(machine.accelerator(True)[:2], ["-accel", "tcg"])
        with mock.patch.object(machine, "have_kvm", return_value=True):
            self.assertEqual(machine.accelerator(False)[:2], ["-accel", "kvm"])


if __name__ == "__main__":
    unittest.main()
