# SPDX-License-Identifier: GPL-2.0-or-later
"""Arguments of the commands, the report, the tally, and versions in the archive."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from qrdma import (audit, checks, command_build, command_run, command_test, command_vm_test,
                   debian, fetch, files, report)
from qrdma.errors import Failure
from qrdma.flows import FLOWS
from qrdma.guest import Program, Result


class Arguments(unittest.TestCase):
    def test_suites_on_demand_run_only_when_they_are_named(self) -> None:
        options = command_test.parser().parse_args([])
        self.assertEqual(set(command_test.SUITES) - set(command_test.suites_of(options)),
                         set(command_test.ON_DEMAND))
        options = command_test.parser().parse_args(["--debug-kernel"])
        self.assertEqual(command_test.suites_of(options), ["debug-kernel-whole"])

    def test_unknown_flow_suite_and_stage_are_named(self) -> None:
        for main, word in ((command_run.main, "flow"), (command_test.main, "suite"),
                           (command_build.main, "stage")):
            with self.subTest(word), self.assertRaisesRegex(Failure, f"unknown {word}: bogus"):
                main(["bogus"])

    def test_unknown_option(self) -> None:
        for main in (command_run.main, command_test.main, command_build.main):
            with contextlib.redirect_stderr(io.StringIO()) as errors:
                self.assertRaises(SystemExit, main, ["--bogus"])
            self.assertIn("--bogus", errors.getvalue())

    def test_lists(self) -> None:
        for main, word in ((command_run.main, "revoke-vfio"), (command_test.main, "qtest"),
                           (command_build.main, "rdma-core")):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                self.assertEqual(main(["--list"]), 0)
            self.assertIn(word, output.getvalue())

    def test_flows_run_once_and_in_order(self) -> None:
        flows = command_run.chosen_flows(["revoke", "register", "revoke"])
        self.assertEqual([flow.name for flow in flows], ["register", "revoke"])
        self.assertEqual(len(command_run.chosen_flows([])), len(FLOWS))

    def test_wrong_tree_fails_before_anything_is_built(self) -> None:
        with self.assertRaisesRegex(Failure, "not a QEMU source tree"):
            command_run.main(["--qemu-tree", "/nonexistent"])

    def test_unwritable_json_fails_before_anything_is_built(self) -> None:
        with self.assertRaisesRegex(Failure, "cannot write the JSON file"):
            command_run.main(["--json", "/nonexistent/report.json"])

    def test_picture_folder_that_cannot_be_made_fails_before_anything_is_built(self) -> None:
        with tempfile.NamedTemporaryFile() as file, \
                self.assertRaisesRegex(Failure, "cannot write to the picture folder"):
            command_run.main(["--picture", f"{file.name}/pictures"])

    def test_check_of_a_json_file_leaves_none_behind(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            files.check_writable(Path(folder) / "x.json", "JSON file")
            self.assertEqual(list(Path(folder).iterdir()), [])


def quiet(**counters: int) -> audit.Report:
    """A report without findings; counters are those that differ."""
    return audit.parse({"watching": 0, "findings": [],
                        "counters": {**dict.fromkeys(audit.WORDS, 0), "windows": 3, "maps": 7,
                                     **counters}})


def outcome(text: str, name: str = "revoke", **more) -> report.Outcome:
    result = Result(Program(name, ""), text.splitlines(), **{"status": 0, **more})
    return report.Outcome(FLOWS[name], result, checks.judge(result), [Path("/log")])


class Report(unittest.TestCase):
    GOOD = "# figures: right=3 refused=2 wrong=0\nok 1 - idle\n# figures: right=4 wrong=0\n" \
           "ok 2 - busy\n1..2"

    def test_sums_and_verdict(self) -> None:
        good = outcome(self.GOOD)
        self.assertEqual(report.sums(good.verdict), {"right": 7, "refused": 2, "wrong": 0})
        self.assertTrue(report.holds([good]))
        self.assertTrue(report.verdict_line([good]).startswith("HELD: revoke; no access saw"))
        self.assertIn("2 of 2 checks; right 7, refused 2, wrong 0", report.text([good]))

    def test_short_report_tells_values_not_checks(self) -> None:
        good = outcome("# figures: n=32 x=8\nok 1 - a\n# figures: n=4 x=8\nok 2 - b\n1..2")
        self.assertIn("n 4, 32; x 8", report.text([good]))
        self.assertNotIn("+ a", report.text([good]))
        self.assertIn("+ a", report.text([good], every_check=True))

    def test_failure_is_shown_with_its_logs(self) -> None:
        bad = outcome("not ok 1 - idle\n1..1", status=1)
        self.assertFalse(report.holds([outcome(self.GOOD), bad]))
        self.assertIn("FAILED: revoke did not hold", report.verdict_line([bad]))
        self.assertIn("/log", report.text([bad]))

    def test_skipped_flow_is_not_shown_as_held(self) -> None:
        skipped = outcome("1..0 # SKIP no IOMMU")
        self.assertFalse(report.holds([skipped]))
        self.assertTrue(report.verdict_line([skipped]).startswith("NOT SHOWN"))

    def test_json_says_the_same(self) -> None:
        content = json.loads(report.as_json([outcome(self.GOOD, audit=quiet())],
                                            {"qemu": "10.0.13"}))
        self.assertTrue(content["held"])
        self.assertEqual(content["flows"][0]["sums"]["right"], 7)
        self.assertEqual(content["flows"][0]["checks"][1]["figures"], {"right": 4, "wrong": 0})
        self.assertEqual(content["flows"][0]["audit"]["counters"]["windows"], 3)

    def test_audit_is_told_beside_the_sums(self) -> None:
        good = outcome(self.GOOD, audit=quiet())
        self.assertIn("audit: 0 findings; 3 windows, 7 intermediate maps, 0 torn",
                      report.text([good]))
        self.assertIn("the audit found nothing", report.verdict_line([good]))
        self.assertNotIn("audit", report.verdict_line([outcome(self.GOOD)]))

    def test_audit_fails_a_flow_whose_traffic_saw_nothing(self) -> None:
        bad = outcome(self.GOOD, audit=quiet(**{"torn-bytes": 4096}))
        self.assertIn("! audit: 4096 torn bytes", report.text([bad]))
        self.assertIn("FAILED: revoke did not hold", report.verdict_line([bad]))
        silent = outcome(self.GOOD, audit_trouble="audit: not there: no property")
        self.assertIn("! audit: not there: no property", report.text([silent]))
        self.assertFalse(report.holds([silent]))


class VmTestOutput(unittest.TestCase):
    def tap(self, text: str, *, makes_findings: bool = False, **more) -> list[str]:
        return command_vm_test.tap(Result(
            Program("x", "", makes_findings=makes_findings), text.splitlines(),
            **{"status": 0, "audit": quiet(), **more}))

    def test_own_points_follow_and_the_plan_counts_them(self) -> None:
        lines = self.tap("TAP version 13\nok 1 - a\n1..1")
        self.assertEqual(lines[0], "TAP version 13")
        self.assertEqual(lines[-1], "1..5")
        self.assertEqual([line.startswith("ok") for line in lines[1:-1] if line[0] != "#"],
                         [True] * 5)

    def test_broken_plan_and_console_fail(self) -> None:
        lines = self.tap("ok 1 - a", console=["WARNING: CPU: 0"])
        self.assertEqual(sum(line.startswith("not ok") for line in lines), 2)

    def test_audit_has_a_point_unless_the_program_makes_findings(self) -> None:
        point = "not ok 5 - the audit has no findings"
        torn = quiet(**{"torn-bytes": 1})
        self.assertIn(point, self.tap("ok 1 - a\n1..1", audit=torn))
        self.assertIn(point, self.tap("ok 1 - a\n1..1", audit=None))
        self.assertIn("1..4", self.tap("ok 1 - a\n1..1", audit=torn, makes_findings=True))

    def test_skip_of_everything_is_passed_on(self) -> None:
        self.assertEqual(self.tap("1..0 # SKIP no card"), ["1..0 # SKIP no card"])


class Tally(unittest.TestCase):
    def tally(self, **test) -> command_test.Tally:
        total = command_test.Tally()
        command_test.add(total, {"name": "qrdma:unit / x", **test})
        return total

    def test_points_are_counted(self) -> None:
        total = self.tally(result="FAIL", stdout="ok 1 - a\nnot ok 2 - b\nok 3 # SKIP why\n1..3")
        self.assertEqual(total.line(), "1 passed, 1 failed, 1 skipped")
        self.assertEqual(total.failures, ["x: b"])

    def test_test_without_points_counts_one(self) -> None:
        self.assertEqual(self.tally(result="OK", stdout="fine").line(),
                         "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.tally(result="SKIP", stdout="no tool").skips, ["x: no tool"])

    def test_crash_after_good_points_is_a_failure(self) -> None:
        self.assertEqual(self.tally(result="TIMEOUT", stdout="ok 1 - a").line(),
                         "1 passed, 1 failed, 0 skipped")


class Versions(unittest.TestCase):
    def test_upstream_part(self) -> None:
        for version, expected in (("1:10.0.13+ds-0+deb13u1", "10.0.13"), ("65.0-1", "65.0"),
                                  ("7.3.4-1~bpo13+1", "7.3.4")):
            self.assertEqual(debian.upstream(version), expected)

    def test_choice(self) -> None:
        versions = ["1:10.0.2+ds-1", "1:10.0.13+ds-1", "1:10.2.2+ds-1", "1:9.2.0+ds-1"]
        self.assertEqual(fetch.choose(versions, "10.0.", (10, 0)), "1:10.0.13+ds-1")
        self.assertEqual(fetch.choose(versions[2:], "10.0.", (10, 0)), "1:10.2.2+ds-1")
        self.assertIsNone(fetch.choose(versions[3:], "10.0.", (10, 0)))


if __name__ == "__main__":
    unittest.main()
