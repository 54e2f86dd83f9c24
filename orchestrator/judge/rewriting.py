"""Other numbers in the same file: an honest output, rewritten as the JSON, lines of JSON, table or .npy that it is.

A judge looks at the form first, so a cheat that breaks the form tests little. Where a file has fractions, only they
are replaced: whole numbers are mostly names, counts and indices.
"""

import csv
import io
import json
import re
import struct
from collections.abc import Callable
from enum import StrEnum

from orchestrator.judge.bounds import ResultRefused
from orchestrator.judge.guest.blastdoor_judge import NpyHeader, npy_header
from orchestrator.judge.json_bounds import loads

# Of a number its old value and its place in the innermost list or row; gives the new value, as JSON would hold it.
Fill = Callable[[float, int], object]

MOST_BYTES = 4 << 20
MOST_NUMBERS = 10_000

_DEPTH = 64
_DIGITS = 400
_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_DELIMITERS = ",;\t "
_LARGEST_FLOAT = {"e": 65504.0, "f": 3.4028234e38, "d": 1.7976931348623157e308}


class Format(StrEnum):
    JSON = "json"
    JSON_LINES = "json lines"
    TABLE = "table"
    NPY = "npy"
    OTHER = "other"


def format_of(data: bytes) -> Format:
    """By content. A file that is too large to rewrite counts as other."""
    if not data or len(data) > MOST_BYTES:
        return Format.OTHER
    if _npy(data):
        return Format.NPY
    if _json([data]):
        return Format.JSON
    if data[:1] in b"[{" and _json(data.splitlines()):
        return Format.JSON_LINES
    return Format.TABLE if _rows(data) else Format.OTHER


def refilled(data: bytes, fill: Fill) -> bytes:
    """The same file with other numbers, at most MOST_NUMBERS of them; unchanged where none can be replaced."""
    kind = format_of(data)
    if kind in (Format.JSON, Format.JSON_LINES):
        return _refilled_json(data, kind, fill)
    if kind is Format.TABLE:
        return _refilled_table(data, fill)
    header = _npy(data) if kind is Format.NPY else None
    return _refilled_npy(data, header, fill) if header else data


def doubled(data: bytes) -> bytes:
    """The same file with every row, or every member of its outermost lists, twice."""
    kind = format_of(data)
    if kind is Format.JSON:
        return json.dumps(_doubled_json(_loaded(data))).encode()
    if kind is Format.JSON_LINES:
        return data.rstrip(b"\n") + b"\n" + data
    if kind is Format.TABLE:
        rows = _rows(data)
        first = 0 if any(_NUMBER.fullmatch(cell) for cell in rows[0]) else 1
        return _written([*rows, *rows[first:]], data)
    header = _npy(data) if kind is Format.NPY else None
    if not header or not header.shape or (header.fortran and len(header.shape) > 1):
        return data
    return npy_bytes(header.dtype, (2 * header.shape[0], *header.shape[1:]), data[header.start :] * 2)


def npy_bytes(dtype: str, shape: tuple[int, ...], body: bytes) -> bytes:
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


def _loaded(data: bytes) -> object:
    return loads(data, max_bytes=MOST_BYTES, max_depth=_DEPTH, max_digits=_DIGITS)


def _json(documents: list[bytes]) -> bool:
    try:
        for document in documents:
            _loaded(document)
    except ResultRefused:
        return False
    return True


def _npy(data: bytes) -> NpyHeader | None:
    try:
        return npy_header(data)
    except ValueError:
        return None


class _Refill:
    """Counts what it replaces, so that an oracle stays small."""

    def __init__(self, fill: Fill) -> None:
        self._fill = fill
        self._left = MOST_NUMBERS

    def number(self, old: float, place: int) -> object:
        if self._left == 0:
            return old
        self._left -= 1
        return self._fill(old, place)

    def json(self, value: object, kind: type, place: int = 0) -> object:
        if isinstance(value, dict):
            return {key: self.json(member, kind, at) for at, (key, member) in enumerate(value.items())}
        if isinstance(value, list):
            return [self.json(member, kind, at) for at, member in enumerate(value)]
        return self.number(value, place) if isinstance(value, int | float) and type(value) is kind else value


def _refilled_json(data: bytes, kind: Format, fill: Fill) -> bytes:
    documents = [data] if kind is Format.JSON else data.splitlines()
    values = [_loaded(document) for document in documents]
    wanted = float if _has_fraction(values) else int
    refill = _Refill(fill)
    return "\n".join(json.dumps(refill.json(value, wanted)) for value in values).encode()


def _has_fraction(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_fraction(member) for member in value.values())
    if isinstance(value, list):
        return any(_has_fraction(member) for member in value)
    return isinstance(value, float)


def _doubled_json(value: object) -> object:
    if isinstance(value, dict):
        return {key: _doubled_json(member) for key, member in value.items()}
    return value * 2 if isinstance(value, list) else value


def _rows(data: bytes) -> list[list[str]]:
    """The cells of a text; nothing where it is no text or holds no number."""
    try:
        text = data.decode("utf-8")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(data)) if row]
    except (UnicodeDecodeError, csv.Error):
        return []
    return rows if any(_is_number(cell) for row in rows for cell in row) else []


def _delimiter(data: bytes) -> str:
    first = data.split(b"\n", 1)[0].decode("utf-8")
    return next((one for one in _DELIMITERS if one in first), ",")


def _written(rows: list[list[str]], like: bytes) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=_delimiter(like), lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _is_number(cell: str) -> bool:
    return len(cell) <= _DIGITS and _NUMBER.fullmatch(cell) is not None


def _refilled_table(data: bytes, fill: Fill) -> bytes:
    rows = _rows(data)
    columns = _value_columns(rows)
    refill = _Refill(fill)
    for row in rows:
        for place, at in enumerate(columns):
            if at < len(row) and _is_number(row[at]):
                row[at] = _cell(refill.number(float(row[at]), place))
    return _written(rows, data)


def _value_columns(rows: list[list[str]]) -> list[int]:
    """Columns with a fraction in them; without any, all numbers but those of a first column that names the rows."""
    width = max(len(row) for row in rows)
    cells = {at: [row[at] for row in rows if at < len(row) and _is_number(row[at])] for at in range(width)}
    fractions = [at for at, found in cells.items() if any(set(cell) & set(".eE") for cell in found)]
    numbers = [at for at, found in cells.items() if found]
    return fractions or (numbers[1:] if len(numbers) > 1 else numbers)


def _cell(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _refilled_npy(data: bytes, header: NpyHeader, fill: Fill) -> bytes:
    code = header.code
    if code == "?" or len(code) > 1:
        return data
    count = min(MOST_NUMBERS, (len(data) - header.start) // header.item_bytes)
    end = header.start + count * header.item_bytes
    width = header.shape[-1] if len(header.shape) > 1 and header.shape[-1] else count or 1
    layout = f"{header.order}{count}{code}"
    old = struct.unpack(layout, data[header.start : end])
    new = [_fitting(fill(value, at % width), value, code, header.item_bytes) for at, value in enumerate(old)]
    return data[: header.start] + struct.pack(layout, *new) + data[end:]


def _fitting(new: object, old: float, code: str, size: int) -> float:
    """As much of the new value as the type of the array can hold."""
    if not isinstance(new, int | float):
        return old
    if code in _LARGEST_FLOAT:
        most = _LARGEST_FLOAT[code]
        return new if new != new or abs(new) == float("inf") else max(-most, min(most, new))
    if new != new or abs(new) == float("inf"):
        return old
    signed = code.islower()
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    return max(low, min(high, int(new)))
