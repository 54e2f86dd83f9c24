"""Other numbers, or other rows, in the same file: an honest output as the JSON, table, .npy or text that it is.

A judge looks at the form first, so a cheat that breaks the form tests little. Where a file has fractions, only they
are replaced, unless all numbers are asked for: whole numbers are mostly names, counts and indices.
"""

import csv
import io
import json
import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from orchestrator.judge.bounds import ResultRefused
from orchestrator.judge.guest.blastdoor_judge import NpyHeader, npy_header
from orchestrator.judge.guest.blastdoor_twists import (
    MOST_NUMBERS,
    Fill,
    Pick,
    claimed,
    field_names,
    has_both,
    picked,
    refilled,
    with_field,
)
from orchestrator.judge.json_bounds import loads

MOST_BYTES = 4 << 20

_DEPTH = 64
_DIGITS = 400
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_DELIMITERS = ",;\t "
_LARGEST_FLOAT = {"e": 65504.0, "f": 3.4028234e38, "d": 1.7976931348623157e308}


class Document(Protocol):
    """Some output, understood as far as its format goes."""

    def refilled(self, fill: Fill, *, whole: bool = False) -> bytes:
        """The same with other numbers, at most MOST_NUMBERS of them; unchanged where none can be replaced. `whole`:
        whole numbers, too, where there are fractions beside them.
        """
        ...

    def picked(self, pick: Pick) -> bytes:
        """The same with other rows, or other members of its outermost lists."""
        ...


def opened(data: bytes) -> Document:
    """By content, whatever the name. A file that is too large to rewrite is taken as it is."""
    if not data or len(data) > MOST_BYTES:
        return Opaque(data)
    header = _npy_header(data)
    if header:
        return Array(data, header)
    values = _json([data])
    if values:
        return Json(data, values)
    values = _json(data.splitlines()) if data[:1] in b"[{" else []
    if values:
        return Json(data, values)
    rows, delimiter = _rows(data)
    return Table(data, rows, delimiter) if rows else Opaque(data)


def npy_bytes(dtype: str, shape: tuple[int, ...], body: bytes) -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


@dataclass(frozen=True)
class Opaque:
    data: bytes

    def refilled(self, fill: Fill, *, whole: bool = False) -> bytes:
        del fill, whole  # there is nothing to fill in
        return self.data

    def picked(self, pick: Pick) -> bytes:
        """A text has lines."""
        lines = self.data.splitlines(keepends=True)
        if len(lines) < 2 or len(self.data) > MOST_BYTES or b"\0" in self.data:
            return self.data
        return b"".join(lines[at] for at in pick(len(lines)))[: 2 * MOST_BYTES]


@dataclass(frozen=True)
class Json:
    """One value, or one per line."""

    data: bytes
    values: list[object]

    def refilled(self, fill: Fill, *, whole: bool = False) -> bytes:
        kind = None if whole else float if _has_fraction(self.values) else int
        return self._written(refilled(self.values, fill, kind))

    def picked(self, pick: Pick) -> bytes:
        if len(self.values) > 1:
            return self._written([self.values[at] for at in pick(len(self.values))])
        return self._written([picked(self.values[0], pick)])

    @property
    def has_both(self) -> bool:
        """Whether there are whole numbers beside fractions."""
        return has_both(self.values)

    @property
    def fields(self) -> list[str]:
        return field_names(self.values)

    def with_field(self, name: str, new: object) -> bytes:
        return self._written(with_field(self.values, name, new))

    def claiming(self, claims: dict[str, object]) -> bytes:
        """The same with more members, if it is an object."""
        return self.data if len(self.values) > 1 else self._written([claimed(self.values[0], claims)])

    def _written(self, values: Sequence[object]) -> bytes:
        """The very same bytes where nothing is changed: in another spelling they would be no cheat."""
        text = "\n".join(map(json.dumps, values))
        return self.data if text == "\n".join(map(json.dumps, self.values)) else text.encode()


@dataclass(frozen=True)
class Table:
    """Cells of text, parted by a comma, semicolon, tab or space."""

    data: bytes
    rows: list[list[str]]
    delimiter: str

    def refilled(self, fill: Fill, *, whole: bool = False) -> bytes:
        rows = [list(row) for row in self.rows]
        columns = sorted(self._numbers[0]) if whole else self._columns
        left = MOST_NUMBERS
        for row in rows:
            for place, at in enumerate(columns):
                if left and at < len(row) and _is_number(row[at]):
                    left -= 1
                    row[at] = str(fill(float(row[at]), place))
        return self._written(rows)

    def picked(self, pick: Pick) -> bytes:
        """What names the columns stays."""
        first = 0 if any(_is_number(cell) for cell in self.rows[0]) else 1
        rows = self.rows[first:]
        return self._written([*self.rows[:first], *(rows[at] for at in pick(len(rows)) if rows)])

    @property
    def _columns(self) -> list[int]:
        """Columns with a fraction in them; without any, all numbers but those of a first column that names rows."""
        numbers, fractions = self._numbers
        return sorted(fractions) or sorted(numbers)[1 if len(numbers) > 1 else 0 :]

    @cached_property
    def _numbers(self) -> tuple[set[int], set[int]]:
        """Columns with a number in them, and those with a fraction."""
        numbers: set[int] = set()
        fractions: set[int] = set()
        for row in self.rows:
            for at, cell in enumerate(row):
                if at not in fractions and _is_number(cell):
                    numbers.add(at)
                    if set(cell) & set(".eE"):
                        fractions.add(at)
        return numbers, fractions

    def _written(self, rows: list[list[str]]) -> bytes:
        if rows == self.rows:
            return self.data
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()


@dataclass(frozen=True)
class Array:
    """A .npy file of numbers or booleans."""

    data: bytes
    header: NpyHeader

    def refilled(self, fill: Fill, *, whole: bool = False) -> bytes:
        del whole  # they are all of one kind
        header, start = self.header, self.header.start
        if header.code == "?" or len(header.code) > 1:
            return self.data
        count = min(MOST_NUMBERS, (len(self.data) - start) // header.item_bytes)
        end = start + count * header.item_bytes
        width = header.shape[-1] if len(header.shape) > 1 and header.shape[-1] else count or 1
        layout = f"{header.order}{count}{header.code}"
        old = struct.unpack(layout, self.data[start:end])
        new = [_fitting(fill(value, at % width), value, header) for at, value in enumerate(old)]
        return self.data[:start] + struct.pack(layout, *new) + self.data[end:]

    def picked(self, pick: Pick) -> bytes:
        shape = self.header.shape
        if not shape or not shape[0] or (self.header.fortran and len(shape) > 1):
            return self.data
        body = self.data[self.header.start :]
        size = len(body) // shape[0]
        rows = [body[at * size : (at + 1) * size] for at in pick(shape[0])]
        return npy_bytes(self.header.dtype, (len(rows), *shape[1:]), b"".join(rows))


def _json(documents: list[bytes]) -> list[object]:
    """Their values; nothing where any of them is no JSON."""
    try:
        return [loads(it, max_bytes=MOST_BYTES, max_depth=_DEPTH, max_digits=_DIGITS) for it in documents]
    except ResultRefused:
        return []


def _has_fraction(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_fraction(member) for member in value.values())
    if isinstance(value, list):
        return any(_has_fraction(member) for member in value)
    return isinstance(value, float)


def _rows(data: bytes) -> tuple[list[list[str]], str]:
    """The cells of a text and what parts them; nothing where it is no text or holds no number."""
    try:
        text = data.decode("utf-8")
        first = text.split("\n", 1)[0]
        delimiter = next((one for one in _DELIMITERS if one in first), ",")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error):
        return [], ""
    return (rows, delimiter) if any(_is_number(cell) for row in rows for cell in row) else ([], "")


def _is_number(cell: str) -> bool:
    return len(cell) <= _DIGITS and _NUMBER.fullmatch(cell) is not None


def _npy_header(data: bytes) -> NpyHeader | None:
    try:
        return npy_header(data)
    except ValueError:
        return None


def _fitting(new: object, old: float, header: NpyHeader) -> float:
    """As much of the new value as the type of the array can hold."""
    if not isinstance(new, int | float):
        return old
    finite = isinstance(new, int) or math.isfinite(new)
    if header.code in _LARGEST_FLOAT:
        most = _LARGEST_FLOAT[header.code]
        return max(-most, min(most, new)) if finite else new
    if not finite:
        return old
    bits = 8 * header.item_bytes
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if header.code.islower() else (0, (1 << bits) - 1)
    return max(low, min(high, int(new)))
