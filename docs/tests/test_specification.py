#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the specification with the headers that card and driver compile.

qrdma_hw.h is in docs/specification.rst, qrdma_diagnostic.h in
docs/verification.rst. Every constant of the headers is in the text; registers,
doorbells, opcodes, codes and flags stand in a table row with their value;
registers have their access and width; every structure has a table with its
fields, in order, at the right offset and with the right width.
"""

from __future__ import annotations

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ("hw-rdma-dev/abi/qrdma_hw.h", "hw-rdma-dev/abi/qrdma_diagnostic.h")
TEXTS = ("docs/specification.rst", "docs/verification.rst")

# Not part of the interface: how the headers check themselves.
NOT_INTERFACE = {"QRDMA_HW_H", "QRDMA_DIAGNOSTIC_H", "QRDMA_ABI_ASSERT", "QRDMA_ABI_SIZE",
                 "QRDMA_ABI_OFFSET"}

WIDTHS = {"__u8": 1, "__le16": 2, "__le32": 4, "__le64": 8}


class Header:
    """Constants and structures of the headers, read as text."""

    def __init__(self, text: str):
        # Registers whose comment gives access and bits: RW, 32.
        self.registers: dict[str, tuple[str, int]] = {
            name: (access, int(bits) // 8) for name, access, bits in re.findall(
                r"^#define (QRDMA_REG_\w+)\s+0x\w+\s+/\* (RO|RW|WO) (32|64)\b", text,
                re.MULTILINE)}
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        text = text.replace("\\\n", " ")
        self.constants: dict[str, int | None] = {}
        self.bits: set[str] = set()
        self.enumerators: set[str] = set()
        self.structures: dict[str, list[tuple[str, int, int]]] = {}
        self.sizes: dict[str, int] = {}
        self._read_defines(text)
        self._read_enums(text)
        self._read_structures(text)

    def _read_defines(self, text: str) -> None:
        for name, arguments, value in re.findall(
                r"^#define[ \t]+(QRDMA_\w+)(\([^)]*\))?[ \t]*(.*)$", text, re.MULTILINE):
            if name in NOT_INTERFACE:
                continue
            self.constants[name] = None if arguments else self._value(value)
            if re.fullmatch(r"\(1u(ll)? << \d+\)", value.strip()):
                self.bits.add(name)

    def _read_enums(self, text: str) -> None:
        for body in re.findall(r"^enum \w+ \{(.*?)\};", text, re.MULTILINE | re.DOTALL):
            value = -1
            for entry in filter(None, (part.strip() for part in body.split(","))):
                name, _, given = (part.strip() for part in entry.partition("="))
                value = self._value(given) if given else value + 1
                self.constants[name] = value
                self.enumerators.add(name)

    def _value(self, expression: str) -> int | None:
        """What a constant expression of the header is worth."""
        expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)(?:u|ull)\b", r"\1", expression.strip())
        expression = re.sub(r"QRDMA_\w+", lambda match: str(self.constants[match[0]]),
                            expression)
        if not re.fullmatch(r"[0-9a-fA-Fx()<>|~+\- ]+", expression):
            return None
        return eval(expression)  # pylint: disable=eval-used

    def _read_structures(self, text: str) -> None:
        for name, body in re.findall(r"^struct (\w+) \{(.*?)^\};", text,
                                     re.MULTILINE | re.DOTALL):
            offset = 0
            fields = []
            for kind, field, count in re.findall(r"(struct \w+|__\w+) (\w+)(?:\[(\d+)\])?;",
                                                 body):
                width = WIDTHS.get(kind) or self.sizes[kind.removeprefix("struct ")]
                alignment = min(width, 8) if kind in WIDTHS else 1
                assert offset % alignment == 0, f"{name}.{field}: padding"
                fields.append((field, offset, width * int(count or 1)))
                offset += fields[-1][2]
            self.structures[name] = fields
            self.sizes[name] = offset


class Specification:
    """Table rows of the text. A row's continuation lines have an empty first cell."""

    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()
        self.names = set(re.findall(r"``(QRDMA_\w+)``", text))
        # Rows by the first constant that they name: the number in the first cell.
        self.rows: dict[str, list[int]] = {}
        self.registers: dict[str, tuple[str, int]] = {
            name: (access, int(width)) for access, width, name in re.findall(
                r"^0x\w+ +(RO|RW|WO) +(\d) +``(QRDMA_REG_\w+)``", text, re.MULTILINE)}
        for line in self.lines:
            number = re.match(r"\[?(0x[0-9a-f]+|\d+)\]? {2,}", line)
            name = re.search(r"``(QRDMA_\w+)``", line)
            if number and name:
                self.rows.setdefault(name[1], []).append(int(number[1], 0))

    def fields(self, structure: str) -> list[tuple[str, int, int]]:
        """Offset table under the title, or the line, that names the structure."""
        found = []
        for number, line in enumerate(self.lines):
            following = self.lines[number + 1] if number + 1 < len(self.lines) else ""
            title = following.startswith("---") and re.search(rf"\b{structure}\b", line)
            if title or f"struct {structure}" in line and not found:
                found = self._fields_from(number)
                if title:
                    break
        return found

    def _fields_from(self, start: int) -> list[tuple[str, int, int]]:
        found = []
        for number in range(start + 1, len(self.lines)):
            line = self.lines[number]
            row = re.match(r"(0x[0-9a-f]+) +(\d+) +``(\w+)``", line)
            if row:
                found.append((row[3], int(row[1], 0), int(row[2])))
            elif found and line.startswith("===="):
                break
            elif found == [] and number > start + 2 and self._is_title(number):
                break
        return found

    def _is_title(self, number: int) -> bool:
        return bool(re.fullmatch(r"(=+|-+)", self.lines[number]))

    def states(self, name: str, value: int) -> bool:
        """Whether the value stands with the name: in its row, or right after it."""
        spellings = {str(value), hex(value)}
        if value and value & (value - 1) == 0:
            spellings.add(f"2^{value.bit_length() - 1}")
        after = re.findall(rf"``{name}``[\s(]*(0x[0-9a-fA-F]+|2\^\d+|\d+)", self.text)
        return bool(spellings & {text.lower() for text in after})


def read_all(names: tuple[str, ...]) -> str:
    return "\n".join((ROOT / name).read_text() for name in names)


HEADER_FACTS = Header(read_all(HEADERS))
TEXT = Specification(read_all(TEXTS))


class NamesTest(unittest.TestCase):
    def test_every_constant_of_the_header_is_in_the_text(self):
        missing = set(HEADER_FACTS.constants) - TEXT.names
        self.assertEqual(sorted(missing), [])

    def test_the_text_names_nothing_that_the_header_lacks(self):
        unknown = TEXT.names - set(HEADER_FACTS.constants)
        self.assertEqual(sorted(unknown), [])

    def test_the_header_was_read(self):
        self.assertEqual(HEADER_FACTS.constants["QRDMA_REG_COMMAND_CONSUMER"], 0x34)
        self.assertEqual(HEADER_FACTS.constants["QRDMA_QP_MASK_ALL"], 0x3fff)
        self.assertEqual(HEADER_FACTS.sizes["qrdma_qpc"], 192)
        self.assertIn("QRDMA_UMR_INLINE", HEADER_FACTS.bits)
        self.assertEqual(HEADER_FACTS.constants["QRDMA_FINDING_REUSED_INDEX"], 7)
        self.assertEqual(HEADER_FACTS.registers["QRDMA_REG_FINDING_OLD"], ("RO", 8))


class ValuesTest(unittest.TestCase):
    def check_row(self, name: str, expected: int):
        self.assertIn(expected, TEXT.rows.get(name, []), f"row of {name}")

    def test_registers_and_doorbells_are_at_their_offsets(self):
        for name, value in HEADER_FACTS.constants.items():
            if re.match(r"QRDMA_REG_|QRDMA_DOORBELL_(SEND|RECEIVE|CQ|EQ)$", name):
                with self.subTest(name):
                    self.check_row(name, value)

    def test_registers_have_their_access_and_width(self):
        for name, expected in HEADER_FACTS.registers.items():
            with self.subTest(name):
                self.assertEqual(TEXT.registers.get(name), expected)

    def test_codes_and_opcodes_have_their_values(self):
        for name in HEADER_FACTS.enumerators - {"QRDMA_STATUS_COUNT"}:
            with self.subTest(name):
                self.check_row(name, HEADER_FACTS.constants[name])

    def test_flags_are_at_their_bits(self):
        for name in HEADER_FACTS.bits:
            value = HEADER_FACTS.constants[name]
            if TEXT.states(name, value):
                continue
            with self.subTest(name):
                self.check_row(name, value.bit_length() - 1)

    def test_numbers_are_stated(self):
        for name, value in HEADER_FACTS.constants.items():
            if (value is None or name in HEADER_FACTS.enumerators or name in HEADER_FACTS.bits
                    or name in TEXT.rows or self.is_mask(name)):
                continue
            with self.subTest(name):
                self.assertTrue(TEXT.states(name, value) or
                                value in self.table_values(name), f"{name} = {value:#x}")

    @staticmethod
    def is_mask(name: str) -> bool:
        """Masks stand in rows that give their bits, as [63:12]."""
        return name in TEXT.names and bool(re.search(
            rf"^\[\d+(:\d+)?\] +``{name}``", TEXT.text, re.MULTILINE)) or \
            name == "QRDMA_PBLE_PRESENT" or name == "QRDMA_QP_MASK_ALL"

    @staticmethod
    def table_values(name: str) -> list[int]:
        """Numbers in rows that begin with the name, or name it before their value."""
        values = []
        for line in TEXT.lines:
            match = re.match(rf"(?:\w[\w ]*? +)?``{name}`` +(0x[0-9a-f]+|\d+\^\d+|\d+)\b", line)
            if match:
                base, _, power = match[1].partition("^")
                values.append(int(base, 0) ** int(power) if power else int(base, 0))
        return values


class StructuresTest(unittest.TestCase):
    def test_fields_are_at_their_offsets(self):
        for name, fields in HEADER_FACTS.structures.items():
            with self.subTest(name):
                self.assertEqual(TEXT.fields(name), fields)


if __name__ == "__main__":
    unittest.main()
