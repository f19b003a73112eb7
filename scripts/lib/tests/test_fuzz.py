# SPDX-License-Identifier: GPL-2.0-or-later
"""The list of fuzz targets, the arguments of scripts/fuzz, and how runs are judged."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from qrdma import (command_fuzz, command_fuzz_test, command_test, fuzz, fuzz_seeds, fuzz_targets,
                   stages, trees)
from qrdma.errors import Failure
from qrdma.fuzz_targets import TARGETS, Target

# Does as libFuzzer does: leaves what fails, and prints statistics.
PROGRAM = """#!/bin/sh
for word in "$@"; do
    case $word in
        -artifact_prefix=*) prefix=${word#-artifact_prefix=} ;;
        */regressions/*bad) echo "qrdma fuzz: bad"; exit 77 ;;
    esac
done
case "$MODE:$*" in
    fail:*-max_total_time*)
        echo x >"${prefix}crash-1"
        echo "artifact_prefix='$prefix'; Test unit written to ${prefix}crash-1"
        echo "==1==ERROR: AddressSanitizer: heap-use-after-free"
        echo "    #0 0x55d5 in helper /lib/libc.so.6"
        echo "    #1 0x55d6 in qrdma_engine_run /a/b/../hw-rdma-dev/engine/engine.c:12:5"
        exit 77 ;;
esac
echo "#1200\tDONE   cov: 42 ft: 50 corp: 7/31b lim: 14 exec/s: 343 rss: 482Mb"
echo "stat::number_of_executed_units: 1200"
echo "stat::average_exec_per_sec:     343"
"""


class WithTarget(unittest.TestCase):
    """A cache of its own, and a target whose program is a shell script."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        program = self.folder / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        for patch in (mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder / "cache")}),
                      mock.patch.object(fuzz_targets, "FUZZ", self.folder)):
            patch.start()
            self.addCleanup(patch.stop)
        (self.folder / "cache/logs").mkdir(parents=True)
        self.target = Target("shell", "a script", "tools", lambda _: [str(program)])
        self.trees = trees.Trees()

    def failing(self) -> Target:
        return Target("shell", "a script", "tools", self.target.command, {"MODE": "fail"})


class Targets(unittest.TestCase):
    def test_each_has_a_stage(self) -> None:
        for target in TARGETS.values():
            with self.subTest(target.name):
                self.assertIn(target.stage, stages.STAGES)
                if target.coverage_program is not None:
                    self.assertIn(f"{target.stage}-coverage", stages.STAGES)

    def test_each_of_the_engine_has_a_source_and_the_other_way_round(self) -> None:
        sources = {path.stem.removeprefix("fuzz-") for path in fuzz_targets.FUZZ.glob("fuzz-*.c")
                   if "LLVMFuzzerTestOneInput" in path.read_text()}
        self.assertEqual(sources, set(fuzz_targets.engine_targets()))

    def test_folders_belong_to_targets(self) -> None:
        for kind in ("seeds", "regressions"):
            folder = fuzz_targets.FUZZ / kind
            names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
            self.assertLessEqual(names, set(TARGETS))

    def test_the_suite_builds_what_it_runs(self) -> None:
        self.assertLessEqual({target.stage for target in TARGETS.values()},
                             set(command_test.SUITES["fuzz"]))


class Arguments(unittest.TestCase):
    def test_bad_ones_are_named(self) -> None:
        for arguments, words in ((["bogus"], "unknown fuzz target: bogus"),
                                 (["--reproduce", "x"], "--reproduce wants a target"),
                                 (["wqe", "5", "--reproduce", "x"], "--reproduce wants a target"),
                                 (["wqe", "--reproduce", "/nonexistent"], "no such file"),
                                 (["wqe", "5", "--coverage"], "--coverage takes no seconds")):
            with self.subTest(arguments), self.assertRaisesRegex(Failure, words):
                command_fuzz.main(arguments)

    def test_seconds(self) -> None:
        self.assertEqual(command_fuzz.seconds("0"), 0)
        self.assertEqual(command_fuzz.seconds("1800"), 1800)
        for text in ("", "-1", "1.5", "ten", "99999999"):
            with self.subTest(text), self.assertRaises(argparse.ArgumentTypeError):
                command_fuzz.seconds(text)

    def test_list(self) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self.assertEqual(command_fuzz.main(["--list"]), 0)
        self.assertEqual([line.split()[0] for line in output.getvalue().splitlines()],
                         list(TARGETS))


class Runs(WithTarget):
    def test_good_campaign(self) -> None:
        run = fuzz.campaign(self.target, self.trees, 1)
        self.assertTrue(run.passed)
        self.assertEqual((run.executions, run.per_second, run.edges, run.inputs),
                         (1200, 343, 42, 7))

    def test_finding_is_kept_and_explained(self) -> None:
        target = self.failing()
        run = fuzz.campaign(target, self.trees, 1)
        self.assertFalse(run.passed)
        self.assertEqual([path.name for path in run.findings], ["crash-1"])
        lines = fuzz.explain(target, run)
        self.assertIn("    in qrdma_engine_run (engine.c:12:5)", lines)
        self.assertNotIn("helper", "\n".join(lines))
        self.assertIn(f"reproduce: scripts/fuzz shell --reproduce {target.findings}/crash-1",
                      lines)

    def test_findings_of_an_earlier_run_do_not_count_unless_found_again(self) -> None:
        for _ in range(2):
            run = fuzz.campaign(self.failing(), self.trees, 1)
            self.assertEqual([path.name for path in run.findings], ["crash-1"])
        self.assertTrue(fuzz.campaign(self.target, self.trees, 1).passed)

    def test_regressions_come_first(self) -> None:
        folder = self.target.regressions
        folder.mkdir(parents=True)
        (folder / "good").write_text("x")
        self.assertTrue(self.run_target())
        (folder / "worse-bad").write_text("x")
        self.assertFalse(self.run_target())
        self.assertIn("qrdma fuzz: bad", self.output)
        self.assertNotIn("looking", self.output)

    def run_target(self) -> bool:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            passed = command_fuzz.run_target(self.target, self.trees, 1)
        self.output = output.getvalue()
        return passed

    def test_program_that_is_not_there(self) -> None:
        target = Target("shell", "none", "tools", lambda _: ["/nonexistent/program"])
        with self.assertRaisesRegex(Failure, "cannot run the fuzz target shell"):
            fuzz.campaign(target, self.trees, 1)

    def test_tap(self) -> None:
        for target, status, points in ((self.target, 0, "ok 1 .*\n.*\nok 2 "),
                                       (self.failing(), 1, "ok 1 .*\n(.*\n)*not ok 2 ")):
            with self.subTest(status), mock.patch.dict(TARGETS, {"shell": target}), \
                    contextlib.redirect_stdout(io.StringIO()) as output:
                self.assertEqual(command_fuzz_test.main(["shell"]), status)
            self.assertRegex(output.getvalue(), points)
            self.assertTrue(output.getvalue().startswith("1..2\n"))


class Seeds(unittest.TestCase):
    def test_numbers(self) -> None:
        self.assertEqual(fuzz_seeds.assemble("1 0xff # 7\n# x\n u16:0x102 u32:3\nu64:4 u8:5"),
                         bytes([1, 255, 2, 1, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 5]))

    def test_errors_name_the_line(self) -> None:
        for word in ("256", "-1", "x", "u16:65536", "u24:1", "u16:", ":1"):
            with self.subTest(word), self.assertRaisesRegex(Failure, "a.seed, line 2: .*: "):
                fuzz_seeds.assemble(f"1\n{word}\n", "a.seed")

    def test_those_of_all_targets_can_be_made(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for target in TARGETS.values():
                with self.subTest(target.name):
                    fuzz_seeds.make(target.seeds, Path(folder) / target.name)
            fuzz_seeds.make(Path("/nonexistent"), Path(folder))
            self.assertEqual(list(Path(folder).iterdir()), [])


class Coverage(WithTarget):
    def test_targets_that_cannot_count(self) -> None:
        with self.assertRaisesRegex(Failure, "none of these targets can count lines"):
            fuzz.coverage([self.target], self.trees)

    def test_table(self) -> None:
        def part(covered: int, count: int) -> dict[str, int]:
            return {"covered": covered, "count": count}

        def file(name: str, covered: int, branches: int) -> dict:
            return {"filename": name,
                    "summary": {"lines": part(covered, 8), "regions": part(covered, 8),
                                "branches": part(0, branches)}}

        table = fuzz.coverage_table({"data": [{"files": [
            file("/x/engine/umr.c", 8, 0), file("/x/engine/cq.c", 2, 4),
            file("/x/engine/fuzz/fuzz-wqe.c", 0, 4), file("/usr/include/glib.h", 0, 4)]}]})
        self.assertEqual([line.split() for line in table.splitlines()[1:]], [
            ["cq.c", "25.0", "%", "of", "8", "25.0", "%", "of", "8", "0.0", "%", "of", "4"],
            ["umr.c", "100.0", "%", "of", "8", "100.0", "%", "of", "8", "100.0", "%", "of", "0"],
            ["all", "62.5", "%", "of", "16", "62.5", "%", "of", "16", "0.0", "%", "of", "4"]])


if __name__ == "__main__":
    unittest.main()
