"""Columns of numbers as bytes: a browser takes them as they are, where text would have to be read digit by digit.

First the length of what stands before the columns, then that as JSON, then one column after the other, each from a
multiple of eight bytes on, in as few bytes a number as it needs.
"""

import gzip
import itertools
import json
import math
import operator
import sys
from array import array
from collections.abc import Mapping
from typing import Any

# A column, and whether it is of times: tenths of a second that mostly grow, and are told by how much.
Columns = Mapping[str, tuple["array[float] | array[int]", bool]]

KIND = "application/octet-stream"
_WIDTHS = (("b", 1 << 7), ("h", 1 << 15), ("i", 1 << 31))


def compressed(body: bytes) -> bytes:
    """Quick rather than small: it goes over loopback, or through ssh."""
    return gzip.compress(body, 1, mtime=0)


def packed(head: Mapping[str, Any], columns: Columns) -> bytes:
    told = {name: _column(values, timed) for name, (values, timed) in columns.items()}
    names = [[name, column.typecode, columns[name][1]] for name, column in told.items()]
    first = json.dumps({**head, "columns": names}, allow_nan=False, separators=(",", ":")).encode()
    parts = [len(first).to_bytes(8, "little"), _even(first)]
    return b"".join([*parts, *(_even(_little(column)) for column in told.values())])


def parted(data: bytes) -> tuple[dict[str, Any], list[tuple[str, "array[Any]"]]]:
    """What stands before the columns, and these, each with its name; a number that is missing is NaN."""
    size = int.from_bytes(data[:8], "little")
    head, at = json.loads(data[8 : 8 + size]), 8 + size + -size % 8
    columns: list[tuple[str, array[Any]]] = []
    for name, kind, timed in head["columns"]:
        values = array(kind)
        length = head["count"] * values.itemsize
        values.frombytes(data[at : at + length])
        if sys.byteorder == "big":
            values.byteswap()
        at += length + -length % 8
        columns.append((name, _times(values) if timed else values))
    return head, columns


def unpacked(data: bytes) -> dict[str, Any]:
    """As the browser reads it; a number that is missing is none."""
    head, columns = parted(data)
    told = {name: [None if math.isnan(it) else it for it in values] for name, values in columns}
    return {**head, "columns": told}


def _column(values: "array[float] | array[int]", timed: bool) -> "array[Any]":
    if timed:
        tenths = [round(value * 10) for value in values]
        return _narrow(array("q", map(operator.sub, tenths, [0, *tenths[:-1]])))
    return values if values.typecode == "d" else _narrow(values)


def _narrow(values: "array[Any]") -> "array[Any]":
    """Whole numbers beyond four bytes go as eight of a float, which holds those of any campaign exactly."""
    most = max(max(values, default=0), -min(values, default=0))
    kind = next((kind for kind, end in _WIDTHS if most < end), "d")
    return array(kind, values)


def _times(steps: "array[Any]") -> "array[float]":
    return array("d", (tenths / 10 for tenths in itertools.accumulate(map(int, steps))))


def _little(values: "array[Any]") -> bytes:
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values.tobytes()


def _even(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)
