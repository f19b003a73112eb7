# SPDX-License-Identifier: GPL-2.0-or-later
"""Timelines: what is in them, what is wrong with them, and what is drawn of them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import synthetic
from qrdma import command_picture, picture, scene, timeline
from qrdma.errors import Failure
from qrdma.timeline import Interval
from synthetic import BASE, INDEX, PAGE, SIZE, Writer


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def read(self, writer: Writer) -> timeline.Timeline:
        return timeline.read(writer.write(self.folder / "x.json"))

    def read_text(self, text: str) -> timeline.Timeline:
        path = self.folder / "x.json"
        path.write_text(text)
        return timeline.read(path)


class Format(Folder):
    """The array form of the Trace Event Format, as Perfetto takes it."""

    def test_made_up_files_are_json_and_pass_the_check(self) -> None:
        for writer in (synthetic.five_steps(), synthetic.wrong_order(), synthetic.revocation()):
            records = json.loads(writer.text())
            self.assertIsInstance(records, list)
            for record in records:
                timeline.check(record)
                self.assertIn(record["ph"], "MXi")

    def test_what_is_in_it(self) -> None:
        content = self.read(synthetic.five_steps())
        self.assertTrue(content.whole)
        self.assertFalse(content.cut)
        self.assertEqual([(window.outcome, len(window.changes)) for window in content.windows],
                         [("empty", 1), ("whole", 2)])
        self.assertEqual([change.number for change in content.silent], [11, 12, 13])
        window = content.windows[1]
        self.assertEqual((window.begin, window.end, window.index, window.address, window.length),
                         (3_080_000, 3_140_000, INDEX, BASE, SIZE))
        self.assertEqual(window.changes[0].intervals,
                         (Interval("new", BASE + 8 * PAGE, BASE + SIZE),))
        self.assertEqual([mark.kind for mark in content.marks], ["create"])
        self.assertEqual(sum(not access.granted for access in content.accesses), 2)
        self.assertEqual({access.index for access in content.accesses}, {INDEX})

    def test_end_that_is_missing_is_allowed_and_told(self) -> None:
        text = synthetic.revocation().text().removesuffix("\n]\n")
        self.assertFalse(self.read_text(text).whole)
        self.assertFalse(self.read_text(text + ',\n{"name": "ha').whole)

    def test_limit_that_was_reached(self) -> None:
        writer = synthetic.revocation()
        writer.add("cut", 2_000_000, "cut: timeline-limit reached")
        self.assertTrue(self.read(writer).cut)

    def test_bad_files_are_told_with_line_and_reason(self) -> None:
        def record(**more: object) -> str:
            good = {"name": "x", "cat": "create", "ph": "i", "s": "g", "ts": 1.5, "pid": 1,
                    "tid": 2, "args": {"key": 1, "address": "0x0", "length": 1}}
            return json.dumps({name: value for name, value in {**good, **more}.items()
                               if value is not None})

        change = {"key": 1, "change": 1, "intervals": []}
        window = record(cat="window", ph="X", dur=1, s=None)
        for body, line, reason in (
                ("", 1, "the file is empty"),
                ("{}", 1, "does not begin with"),
                ("[\n{\n", 2, "not JSON"),
                ("[\n5\n", 2, "not an object"),
                (f"[\n{record()},\n{record(name=None)}\n]", 3, "no 'name'"),
                (f"[\n{record(ts='soon')}\n]", 2, "'ts' is \"soon\""),
                (f"[\n{record(ts=-1)}\n]", 2, "'ts' is negative"),
                (f"[\n{record(tid=True)}\n]", 2, "'tid' is true"),
                (f"[\n{record(s='x')}\n]", 2, "scope 'x'"),
                (f"[\n{record(ph='X', cat='window')}\n]", 2, "no 'dur'"),
                (f"[\n{record(ph='B')}\n]", 2, "unknown phase 'B'"),
                (f"[\n{record(cat='cow')}\n]", 2, "unknown category 'cow'"),
                (f"[\n{record(args=None)}\n]", 2, "no 'args'"),
                (f"[\n{record(cat='change', args={**change, 'intervals': [['new', 0, 1]]})}\n]",
                 2, "in no window before it"),
                (f"[\n{window},\n{record(cat='change', args={**change, 'intervals': 5})}\n]",
                 3, "'intervals' is no list"),
                (f"[\n{window},\n" + record(cat="change", args={
                    **change, "intervals": [["odd", "0x0", 1]]}), 3, 'unknown class "odd"'),
                (f"[\n{window},\n" + record(cat="change", args={
                    **change, "intervals": [["new", "0x10", 8], ["old", "0x0", 1]]}), 3, "overlap"),
                (f"[\n{window},\n" + record(cat="change", args={
                    **change, "intervals": [["new", "x", 8]]}), 3, "'address' is \"x\""),
                (f"[\n{record()}\n]\n{record()}\n", 4, "follows the array's end")):
            with self.subTest(reason):
                self.assertRaisesRegex(Failure, f"x.json, line {line}: .*{reason}",
                                       self.read_text, body)

    def test_file_that_is_not_there(self) -> None:
        self.assertRaisesRegex(Failure, "cannot read the timeline", timeline.read,
                               self.folder / "absent.json")


class Scenes(Folder):
    def chosen(self, writer: Writer, index: int | None = None) -> scene.Scene:
        return scene.choose(self.read(writer), index)

    def test_five_steps_are_told_from_the_invalidation_before_them(self) -> None:
        chosen = self.chosen(synthetic.five_steps())
        self.assertTrue(chosen.five)
        self.assertEqual([step.name for step in chosen.steps], ["", "1", "2", "3", "4", "5"])
        self.assertEqual([sorted(step.kinds()) for step in chosen.steps],
                         [["absent"]] * 4 + [["absent", "new"], ["new"]])
        self.assertEqual(chosen.before[0].kind, "old")
        self.assertIn("in five steps", picture.title(chosen))

    def test_wrong_order_is_plainly_numbered_and_its_torn_bytes_told(self) -> None:
        chosen = self.chosen(synthetic.wrong_order())
        self.assertFalse(chosen.five)
        self.assertEqual([(step.name, step.text) for step in chosen.steps],
                         [("1", "page size 2^12 to 2^16"), ("2", "entries 0..127")])
        self.assertEqual(chosen.wrong(), {"torn"})
        # A UMR of two parts leaves two maps; the first still has torn bytes.
        self.assertEqual([len(step.states) for step in chosen.steps], [1, 2])
        self.assertIn("TORN after", picture.title(chosen))

    def test_steps_that_lack_one_are_not_called_the_five(self) -> None:
        writer = synthetic.five_steps()
        writer.records = [record for record in writer.records
                          if record["name"] != "entries 8..2047"]
        chosen = self.chosen(writer)
        self.assertFalse(chosen.five)
        self.assertEqual([step.name for step in chosen.steps], ["1", "2", "3", "4", "5"])

    def test_revocation_shows_what_passed_and_what_was_refused(self) -> None:
        chosen = self.chosen(synthetic.revocation())
        self.assertIn("of 12 accesses from then on 12 were refused, 0 passed",
                      picture.title(chosen))
        self.assertEqual(sum(access.granted for access in chosen.accesses),
                         scene.ACCESSES_AROUND)

    def test_key_that_is_taken_again_begins_anew(self) -> None:
        writer = synthetic.revocation()
        writer.add("destroy", 3_000_000, "destroy")
        writer.add("create", 4_000_000, "create")
        writer.window(5_000_000, 5_000_010, "whole")
        writer.change(5_000_000, 30, "entries 0..2047", ("new", 0, 2048))
        runs = scene._runs(self.read(writer))
        self.assertEqual([len(run.windows) for run in runs], [1, 1])
        second = scene.build(self.read(writer), runs[1], [])
        self.assertEqual(second.before[0].kind, "absent")

    def test_changes_in_one_moment_are_in_their_order(self) -> None:
        writer = Writer()
        writer.change(1000, 3, "entries 8..31")
        writer.window(1000, 1000, "whole")
        for number, text, kind in ((1, "entries 0..7 absent", "absent"),
                                   (2, "page size 2^12 to 2^23", "absent"),
                                   (4, "page size 2^23 to 2^16", "new"),
                                   (5, "entries 0..7", "new")):
            writer.change(1000, number, text, (kind, 0, 2048))
        self.assertTrue(self.chosen(writer).five)

    def test_what_is_wrong_is_chosen_before_what_is_rich(self) -> None:
        rich, torn = synthetic.five_steps(), synthetic.wrong_order()
        for record in torn.records[1:]:
            record["ts"] += 10_000
            record["args"]["key"] = 0x7700
            if record["pid"] == 1:
                record["tid"] = 0x77
        rich.records += torn.records[1:]
        self.assertEqual(self.chosen(rich).wrong(), {"torn"})
        self.assertTrue(self.chosen(rich, INDEX).five)

    def test_key_that_has_none(self) -> None:
        with self.assertRaisesRegex(Failure, "no change of mkey 5") as raised:
            self.chosen(synthetic.five_steps(), 5)
        self.assertIn(str(INDEX), raised.exception.advice or "")
        self.assertRaisesRegex(Failure, "no change in the timeline", self.chosen, Writer())

    def test_map_with_a_part_replaced(self) -> None:
        state = scene.overlay([Interval("old", 0, 100)], (Interval("new", 10, 20),
                                                          Interval("torn", 50, 60)))
        self.assertEqual([(part.kind, part.address, part.end) for part in state],
                         [("old", 0, 10), ("new", 10, 20), ("old", 20, 50), ("torn", 50, 60),
                          ("old", 60, 100)])
        state = scene.overlay(state, (Interval("old", 5, 55),))
        self.assertEqual([(part.kind, part.address, part.end) for part in state],
                         [("old", 0, 55), ("torn", 55, 60), ("old", 60, 100)])
        self.assertEqual(scene.overlay(state, (Interval("new", 0, 100),)),
                         [Interval("new", 0, 100)])


class Axes(Folder):
    def test_small_part_is_high_enough_to_be_seen(self) -> None:
        axis, to_scale = picture.address_axis(
            scene.choose(self.read(synthetic.five_steps())))
        self.assertFalse(to_scale)
        self.assertGreaterEqual(axis(BASE + 8 * PAGE), 0.08)
        self.assertEqual((axis(BASE), round(axis(BASE + SIZE), 6)), (0.0, 1.0))

    def test_step_is_a_column(self) -> None:
        chosen = scene.choose(self.read(synthetic.five_steps()))
        axis = picture.time_axis(chosen)
        self.assertEqual([axis(step.begin) for step in chosen.steps], [0, 1, 2, 3, 4, 5])
        self.assertEqual(axis(0), -picture.MARGIN)

    def test_map_that_was_there_for_no_time_is_seen_all_the_same(self) -> None:
        writer = Writer()
        writer.window(1000, 1000, "whole")
        writer.change(1000, 1, "entries 0..7", ("torn", 0, 2048))
        writer.change(1000, 2, "page size 2^23 to 2^16", ("new", 0, 2048))
        chosen = scene.choose(self.read(writer))
        self.assertEqual([(begin, end, state[0].kind) for begin, end, state
                          in picture.spans(chosen)],
                         [(-picture.MARGIN, 0, "absent"), (0, 1, "torn"),
                          (1, 2 + picture.MARGIN, "new")])

    def test_units(self) -> None:
        self.assertEqual([picture.size(count) for count in (0, 12, 4096, 3 << 20, 5000)],
                         ["0 B", "12 B", "4 KiB", "3 MiB", "5000 B"])
        self.assertEqual([picture.time(count) for count in (0, 1500, 2_000_000, 3 * 10 ** 9)],
                         ["0 ns", "1.5 µs", "2 ms", "3 s"])


@unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib on this host")
class Pictures(Folder):
    def setUp(self) -> None:
        super().setUp()
        patch = mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder)})
        patch.start()
        self.addCleanup(patch.stop)

    def test_command_writes_a_png_beside_the_file(self) -> None:
        for name in ("five_steps", "wrong_order", "revocation"):
            file = getattr(synthetic, name)().write(self.folder / f"{name}.json")
            with contextlib.redirect_stdout(io.StringIO()) as output:
                self.assertEqual(command_picture.main([str(file)]), 0)
            self.assertIn("mkey 18", output.getvalue())
            self.assertTrue((self.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG"))

    def test_picture_that_cannot_be_written_fails_first(self) -> None:
        with self.assertRaisesRegex(Failure, "cannot write the picture"):
            command_picture.main([str(self.folder / "absent.json"), "-o", "/nonexistent/x.png"])


if __name__ == "__main__":
    unittest.main()
