"""Other numbers in the same file: an honest output, rewritten as the JSON, lines of JSON, table or .npy that it is.

A judge looks at the form first, so a cheat that breaks the form tests little. Where a file has fractions, only they
are replaced: whole numbers are mostly names, counts and indices.
"""

import csv
import io
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from orchestrator.judge.bounds import ResultRefused
from orchestrator.judge.guest.blastdoor_judge import NpyHeader, npy_header
from orchestrator.judge.json_bounds import loads

# From a number's old value and its place in the innermost list or row to its new value, as JSON would hold it.
Fill = Callable[[float, int], object]

MOST_BYTES = 4 << 20
MOST_NUMBERS = 10_000

_DEPTH = 64
_DIGITS = 400
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_DELIMITERS = ",;\t "
_LARGEST_FLOAT = {"e": 65504.0, "f": 3.4028234e38, "d": 1.7976931348623157e308}


class Document(Protocol):
    """Some output, understood as far as its format goes."""

    def refilled(self, fill: Fill) -> bytes:
        """The same with other numbers, at most MOST_NUMBERS of them; unchanged where none can be replaced."""
        ...

    def doubled(self) -> bytes:
        """The same with every row, or every member of its outermost lists, twice."""
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
    return Table(rows, delimiter) if rows else Opaque(data)


def npy_bytes(dtype: str, shape: tuple[int, ...], body: bytes) -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


@dataclass(frozen=True)
class Opaque:
    data: bytes

    def refilled(self, fill: Fill) -> bytes:  # noqa: ARG002  # there is nothing to fill in
        return self.data

    def doubled(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class Json:
    """One value, or one per line."""

    data: bytes
    values: list[object]

    def refilled(self, fill: Fill) -> bytes:
        refill = _Refill(fill, float if _has_fraction(self.values) else int)
        return "\n".join(json.dumps(refill.json(value)) for value in self.values).encode()

    def doubled(self) -> bytes:
        if len(self.values) > 1:
            return self.data.rstrip(b"\n") + b"\n" + self.data
        return json.dumps(_doubled(self.values[0])).encode()

    def claiming(self, claims: dict[str, object]) -> bytes:
        """The same with more members, if it is an object."""
        (value, *others) = self.values
        return self.data if others or not isinstance(value, dict) else json.dumps({**value, **claims}).encode()


@dataclass(frozen=True)
class Table:
    """Cells of text, parted by a comma, semicolon, tab or space."""

    rows: list[list[str]]
    delimiter: str

    def refilled(self, fill: Fill) -> bytes:
        refill = _Refill(fill)
        rows = [list(row) for row in self.rows]
        for row in rows:
            for place, at in enumerate(self._columns):
                if at < len(row) and _is_number(row[at]):
                    row[at] = str(refill.number(float(row[at]), place))
            if not refill.left:
                break
        return self._written(rows)

    def doubled(self) -> bytes:
        first = 0 if any(_is_number(cell) for cell in self.rows[0]) else 1
        return self._written([*self.rows, *self.rows[first:]])

    @cached_property
    def _columns(self) -> list[int]:
        """Columns with a fraction in them; without any, all numbers but those of a first column that names rows."""
        numbers, fractions = set(), set()
        for row in self.rows:
            for at, cell in enumerate(row):
                if at not in fractions and _is_number(cell):
                    numbers.add(at)
                    if set(cell) & set(".eE"):
                        fractions.add(at)
        return sorted(fractions) or sorted(numbers)[1 if len(numbers) > 1 else 0 :]

    def _written(self, rows: list[list[str]]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()


@dataclass(frozen=True)
class Array:
    """A .npy file of numbers or booleans."""

    data: bytes
    header: NpyHeader

    def refilled(self, fill: Fill) -> bytes:
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

    def doubled(self) -> bytes:
        shape = self.header.shape
        if not shape or (self.header.fortran and len(shape) > 1):
            return self.data
        return npy_bytes(self.header.dtype, (2 * shape[0], *shape[1:]), self.data[self.header.start :] * 2)


class _Refill:
    """Counts what it replaces, so that a cheat stays small."""

    def __init__(self, fill: Fill, kind: type = float) -> None:
        self._fill = fill
        self._kind = kind
        self.left = MOST_NUMBERS

    def number(self, old: float, place: int) -> object:
        if not self.left:
            return old
        self.left -= 1
        return self._fill(old, place)

    def json(self, value: object, place: int = 0) -> object:
        if isinstance(value, dict):
            return {key: self.json(member, at) for at, (key, member) in enumerate(value.items())}
        if isinstance(value, list):
            return [self.json(member, at) for at, member in enumerate(value)]
        return self.number(value, place) if isinstance(value, int | float) and type(value) is self._kind else value


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


def _doubled(value: object) -> object:
    if isinstance(value, dict):
        return {key: _doubled(member) for key, member in value.items()}
    return value * 2 if isinstance(value, list) else value


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
