# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of trees, hooks, hashes, and checks of the user's own trees."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from qrdma import build_guest, build_kernel, overlay, paths, stages, stamps, trees
from qrdma.errors import Failure
from qrdma.locking import cache_lock


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


class Mirror(Folder):
    def mirror(self, **more) -> bool:
        return overlay.mirror(self.folder / "from", self.folder / "to", **more)

    def test_second_copy_changes_nothing(self) -> None:
        self.write("from/a/b.c", "one")
        self.assertTrue(self.mirror())
        before = (self.folder / "to/a/b.c").stat().st_mtime_ns
        self.assertFalse(self.mirror())
        self.assertEqual((self.folder / "to/a/b.c").stat().st_mtime_ns, before)

    def test_changed_file_is_newer_even_if_its_source_is_old(self) -> None:
        self.write("from/b.c", "one")
        self.mirror()
        before = (self.folder / "to/b.c").stat().st_mtime_ns
        os.utime(self.write("from/b.c", "two"), (1, 1))
        self.assertTrue(self.mirror())
        self.assertEqual((self.folder / "to/b.c").read_text(), "two")
        self.assertGreaterEqual((self.folder / "to/b.c").stat().st_mtime_ns, before)

    def test_deleted_file_and_folder_go(self) -> None:
        for name in ("from/a.c", "from/gone.c", "from/gone/b.c"):
            self.write(name, "x")
        self.mirror()
        (self.folder / "from/gone.c").unlink()
        (self.folder / "from/gone/b.c").unlink()
        (self.folder / "from/gone").rmdir()
        self.assertTrue(self.mirror())
        self.assertEqual([path.name for path in (self.folder / "to").iterdir()], ["a.c"])

    def test_kept_folder_stays_and_edited_file_is_edited_once(self) -> None:
        self.write("from/hw/meson.build", "first\n")
        self.write("to/hw/ours/x.c", "ours")
        edits = {"hw/meson.build": overlay.append("subdir('ours')")}
        self.assertTrue(self.mirror(edits=edits, keep=("hw/ours",)))
        self.assertFalse(self.mirror(edits=edits, keep=("hw/ours",)))
        self.assertEqual((self.folder / "to/hw/meson.build").read_text(),
                         "first\n\nsubdir('ours')\n")
        self.assertTrue((self.folder / "to/hw/ours/x.c").exists())
        self.assertEqual((self.folder / "from/hw/meson.build").read_text(), "first\n")

    def test_file_that_becomes_a_folder(self) -> None:
        self.write("from/a", "x")
        self.mirror()
        (self.folder / "from/a").unlink()
        self.write("from/a/b", "y")
        self.mirror()
        self.assertEqual((self.folder / "to/a/b").read_text(), "y")

    def test_insertion_needs_its_anchor(self) -> None:
        edit = overlay.insert_after("siw", "ours")
        self.assertEqual(edit(b"a\n siw\nb\n"), b"a\n siw\nours\nb\n")
        with self.assertRaises(Failure):
            edit(b"a\nb\n")


class Stamps(Folder):
    def test_key_follows_contents_names_and_absence(self) -> None:
        path = self.folder / "x"
        seen = {stamps.key("k", files=[path])}
        self.write("x/a", "1")
        seen.add(stamps.key("k", files=[path]))
        self.write("x/a", "2")
        seen.add(stamps.key("k", files=[path]))
        (path / "a").rename(path / "b")
        seen.add(stamps.key("k", files=[path]))
        seen.add(stamps.key("l", files=[path]))
        self.assertEqual(len(seen), 5)

    def test_stage_is_done_until_it_is_begun_again(self) -> None:
        with mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder)}):
            paths.prepare_cache()
            self.assertFalse(stamps.is_current("s", "1"))
            stamps.record("s", "1")
            self.assertTrue(stamps.is_current("s", "1"))
            self.assertFalse(stamps.is_current("s", "2"))
            stamps.forget("s")
            self.assertFalse(stamps.is_current("s", "1"))


class OwnTrees(Folder):
    def test_qemu_versions(self) -> None:
        self.write("hw/meson.build", "")
        self.write("configure", "")
        for version, good in (("10.0.13", True), ("10.1.0", True), ("10.2.2", True),
                              ("9.2.0", False), ("10.3.0", False), ("11.1.0", False), ("", False)):
            self.write("VERSION", version + "\n")
            with self.subTest(version):
                if good:
                    trees.check_qemu(self.folder)
                else:
                    self.assertRaises(Failure, trees.check_qemu, self.folder)

    def test_not_a_tree(self) -> None:
        for check in (trees.check_qemu, trees.check_kernel):
            for folder in (self.folder, self.folder / "absent"):
                self.assertRaisesRegex(Failure, "not a (QEMU|Linux) source tree", check, folder)

    def test_kernel_versions(self) -> None:
        (self.folder / "drivers/infiniband").mkdir(parents=True)
        for version, patchlevel, good in ((7, 3, True), (7, 10, True), (8, 0, True),
                                          (7, 2, False), (6, 12, False)):
            self.write("Makefile", f"VERSION = {version}\nPATCHLEVEL = {patchlevel}\n")
            with self.subTest(f"{version}.{patchlevel}"):
                if good:
                    trees.check_kernel(self.folder)
                else:
                    self.assertRaisesRegex(Failure, "7.3 or later", trees.check_kernel,
                                           self.folder)

    def test_kernel_built_in_place(self) -> None:
        (self.folder / "drivers/infiniband").mkdir(parents=True)
        self.write("Makefile", "VERSION = 7\nPATCHLEVEL = 3\n")
        self.write(".config", "")
        self.assertRaisesRegex(Failure, "built in place", trees.check_kernel, self.folder)

    def test_own_trees_do_not_share_build_folders(self) -> None:
        fetched, own = trees.Trees(), trees.Trees(Path("/q"), Path("/k"))
        for folder in ("qemu_build", "kernel_build", "modules_build", "guest_build"):
            self.assertNotEqual(getattr(fetched, folder)(), getattr(own, folder)())


    def test_kernel_flavours_share_no_build_folder(self) -> None:
        for stock in (trees.Trees(), trees.Trees(kernel=Path("/k"))):
            debug = stock.with_debug_kernel()
            for folder in ("kernel_build", "modules_build", "guest_build"):
                self.assertNotEqual(getattr(stock, folder)(), getattr(debug, folder)())
            self.assertEqual(stock.qemu_build(), debug.qemu_build())


class KernelConfiguration(Folder):
    def test_option_that_is_not_off_is_named(self) -> None:
        fragment = self.write("fragment", "# CONFIG_A is not set\n# CONFIG_B is not set\n")
        result = self.write("config", "CONFIG_A=y\n")
        with self.assertRaisesRegex(Failure, "CONFIG_A is not set$"):
            build_kernel.check_configuration(fragment, result)

    def test_lost_option_is_named(self) -> None:
        fragment = self.write("fragment", "# why\nCONFIG_A=y\nCONFIG_B=m\n")
        result = self.write("config", "CONFIG_A=y\n# CONFIG_B is not set\n")
        with self.assertRaisesRegex(Failure, "CONFIG_B=m"):
            build_kernel.check_configuration(fragment, result)


class Libraries(unittest.TestCase):
    LISTING = """\tlinux-vdso.so.1 (0x1)
\tlibibverbs.so.1 => /x/libibverbs.so.1 (0x2)
\t/lib64/ld-linux-x86-64.so.2 (0x3)
"""

    def test_files_are_found(self) -> None:
        self.assertEqual(build_guest.needed(self.LISTING, Path("p")),
                         [Path("/x/libibverbs.so.1"), Path("/lib64/ld-linux-x86-64.so.2")])

    def test_missing_library_is_named(self) -> None:
        with self.assertRaisesRegex(Failure, "libq.so"):
            build_guest.needed("\tlibq.so => not found\n", Path("p"))


class Order(unittest.TestCase):
    def test_needs_come_first_and_once(self) -> None:
        names = [stage.name for stage in stages.in_order(["guest", "qemu"])]
        self.assertEqual(len(names), len(set(names)))
        for stage in stages.in_order(stages.EVERYTHING):
            for need in stage.needs:
                self.assertLess(names.index(need), names.index(stage.name))


class Lock(Folder):
    def test_second_run_is_told_who_has_it(self) -> None:
        with mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder)}):
            with cache_lock():
                with self.assertRaisesRegex(Failure, str(os.getpid())):
                    with cache_lock():
                        pass
            with cache_lock():
                pass

    def test_cache_that_cannot_be_made(self) -> None:
        self.write("file", "")
        with mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder / "file/x")}):
            with self.assertRaisesRegex(Failure, "cannot make the cache folder"):
                paths.prepare_cache()

    def test_no_space(self) -> None:
        with mock.patch.dict(os.environ, {"QRDMA_CACHE": str(self.folder)}):
            with self.assertRaisesRegex(Failure, "not enough disk space"):
                paths.require_space(1 << 62)


if __name__ == "__main__":
    unittest.main()
