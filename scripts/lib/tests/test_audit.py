# SPDX-License-Identifier: GPL-2.0-or-later
"""What the card's audit answers, in words; and the monitor that it is asked through."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from qrdma import audit, build_qemu, monitor, trees
from qrdma.errors import Failure

FINDING = {
    "kind": "torn", "key": 0x1204, "address": 0x7f0000000000, "length": 8192,
    "shown": {"address": 0x10a000, "rights": ["read", "write"]},
    "old": {"address": 0x20b000, "rights": ["read"]}, "new": {"address": 0, "rights": []},
    "change": 12, "description": "page size 2^12 to 2^26", "time": 345,
}


def answer(findings: tuple[dict, ...] = (), **counters: int) -> dict[str, Any]:
    return {"watching": 0, "findings": list(findings),
            "counters": {**dict.fromkeys(audit.WORDS, 0), **counters}}


class Report(unittest.TestCase):
    def test_nothing_found(self) -> None:
        report = audit.parse(answer(windows=12, maps=345))
        self.assertEqual(report.problems(), [])
        self.assertEqual(report.line(), "audit: 0 findings; 12 windows, 345 intermediate maps, "
                         "0 torn, widened or stale bytes, "
                         "0 accesses to such, to revoked keys or astray")

    def test_finding_says_where_what_and_why(self) -> None:
        report = audit.parse(answer((FINDING,), **{"torn-bytes": 8192}))
        self.assertIn("audit: 1 finding; 0 windows, 0 intermediate maps, 8192 torn bytes",
                      report.line())
        self.assertEqual(report.problems(), [
            "audit: 8192 torn bytes",
            "audit: torn: key 0x1204, 8192 bytes at 0x7f0000000000: shown 0x10a000 read+write; "
            "old 0x20b000 read; new absent; change 12 (page size 2^12 to 2^26) at 345 ns"])

    def test_every_counter_but_progress_is_a_problem(self) -> None:
        for name in audit.WORDS:
            with self.subTest(name):
                report = audit.parse(answer(**{name: 2}))
                self.assertEqual(bool(report.problems()), name not in audit.PROGRESS)
                self.assertIn(f"2 {audit.WORDS[name]}", report.line())

    def test_counter_that_is_new_to_us_is_not_overlooked(self) -> None:
        self.assertEqual(audit.parse(answer(**{"lost-things": 1})).problems(),
                         ["audit: 1 lost-things"])

    def test_many_findings_are_cut(self) -> None:
        report = audit.parse(answer((FINDING,) * 20))
        self.assertEqual(len(report.problems()), audit.MOST_FINDINGS_SHOWN + 1)
        self.assertIn("12 more findings", report.problems()[-1])

    def test_addresses_may_be_strings(self) -> None:
        finding = audit.Finding.parse({**FINDING, "address": "0xffffffffffff0000"})
        self.assertEqual(finding.address, 0xffffffffffff0000)

    def test_what_is_no_report(self) -> None:
        for value in (None, 5, {}, {"counters": {}, "findings": []},
                      {"counters": {"windows": "x"}, "findings": []},
                      answer(({"kind": "torn"},))):
            with self.subTest(repr(value)), self.assertRaises(audit.AuditError):
                audit.parse(value)


class Asking(unittest.TestCase):
    """A stand-in for QEMU's end of the monitor; the client is QEMU's own."""

    def setUp(self) -> None:
        try:
            monitor.client_package(trees.Trees())
        except Failure as failure:
            self.skipTest(failure.message)
        self.seen: list[dict] = []

    def ask(self, *replies: dict) -> audit.Report:
        asked = monitor.Monitor(trees.Trees())
        self.addCleanup(asked.close)
        theirs = asked._theirs.dup()
        asked.started()
        server = threading.Thread(target=self.serve, args=(theirs, list(replies)))
        server.start()
        try:
            return audit.ask(asked)
        finally:
            asked.close()
            server.join()

    def serve(self, connection: socket.socket, replies: list[dict]) -> None:
        def send(message: dict) -> None:
            connection.sendall(json.dumps(message).encode() + b"\n")

        with connection:
            send({"QMP": {"version": {}, "capabilities": []}})
            for reply in [{"return": {}}, *replies]:
                # A command comes in one piece, and nothing comes before its answer.
                message = json.loads(connection.recv(1 << 16))
                self.seen.append(message)
                send({**reply, **{name: message[name] for name in message if name == "id"}})

    def test_report_is_read_and_cleared(self) -> None:
        report = self.ask({"return": answer(windows=4)}, {"return": {}})
        self.assertEqual(report.counters["windows"], 4)
        self.assertEqual([(message["arguments"]["path"], message["arguments"]["property"],
                           message["arguments"].get("value")) for message in self.seen[1:]],
                         [("/machine/peripheral/card", "audit-report", None),
                          ("/machine/peripheral/card", "audit-clear", True)])

    def test_card_without_audit(self) -> None:
        with self.assertRaisesRegex(audit.AuditError, "audit: not there: Property"):
            self.ask({"error": {"class": "GenericError",
                                "desc": "Property 'qrdma.audit-report' not found"}})

    def test_qemu_that_goes_away(self) -> None:
        with self.assertRaisesRegex(audit.AuditError, "audit: not there"):
            self.ask()

    def test_qemu_that_hangs(self) -> None:
        asked = monitor.Monitor(trees.Trees())
        self.addCleanup(asked.close)
        with mock.patch.object(monitor, "ANSWER_SECONDS", 0.1), \
                self.assertRaisesRegex(audit.AuditError, "did not answer"):
            audit.ask(asked)


class Client(unittest.TestCase):
    def test_tree_without_it_and_with_wheels(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with mock.patch.object(build_qemu, "source", return_value=folder), \
                    self.assertRaisesRegex(Failure, "no Python package qemu.qmp"):
                monitor.client_package(trees.Trees(folder))
            for version in ("0.0.3", "0.0.5"):
                (folder / f"qemu_qmp-{version}-py3-none-any.whl").touch()
            newest = monitor.wheel(folder)
            self.assertEqual(newest and newest.name, "qemu_qmp-0.0.5-py3-none-any.whl")


if __name__ == "__main__":
    unittest.main()
