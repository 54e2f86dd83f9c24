"""Plain values as bytes, for calls between a judge and a candidate. Standard library only, Python 3.9 up.

One byte says what follows; numbers and lengths are little-endian:

    N, T, F     nothing, true, false
    i           8 bytes: a whole number, two's complement
    I           4 bytes of length, then a longer whole number, two's complement, least byte first
    f           8 bytes: a float (IEEE 754)
    s, b        4 bytes of length, then UTF-8 text, or bytes
    l           4 bytes of count, then the values
    d           4 bytes of count, then for each member 4 bytes of length, its name in UTF-8, and its value
    a           1 byte of length, the dtype ("f8"), 1 byte of sides, 8 bytes for each side, then the raw numbers

What is decoded is made here, from these bytes alone: no name is looked up, nothing is called, no class is made.
"""

from __future__ import annotations

import array
import importlib
import math
import struct
from typing import Any, NamedTuple

__all__ = ["Array", "Malformed", "NotPlain", "decode", "encode"]

MAX_DEPTH = 32
MAX_ITEMS = 1_000_000
MAX_INTEGER = 512
MAX_SIDES = 16

# What struct calls one number of a dtype; a complex one is two.
CODES = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
    "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd",
}  # fmt: skip
SIZES = {dtype: struct.calcsize(f"<{code}") for dtype, code in CODES.items()}
_OF_ARRAY = {kind: f"{'f' if kind in 'fd' else 'u' if kind.isupper() else 'i'}" for kind in "bBhHiIlLqQfd"}
_HALF = 1 << 63


class NotPlain(Exception):
    """A value that cannot be sent: it is not made of plain data, or there is too much of it."""


class Malformed(Exception):
    """Bytes that are no value."""


class Array(NamedTuple):
    """Numbers, the last side fastest; what an array is where numpy is not installed."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def tolist(self) -> Any:
        """Its numbers as nested lists, as numpy's own method of that name gives them."""
        code = CODES[self.dtype]
        count = len(self.data) // SIZES[self.dtype] * len(code)
        found: list[Any] = list(struct.unpack(f"<{count}{code[0]}", self.data))
        if len(code) == 2:
            found = list(map(complex, found[::2], found[1::2]))
        for axis in range(len(self.shape) - 1, 0, -1):
            side = self.shape[axis]
            found = [found[at * side : (at + 1) * side] for at in range(math.prod(self.shape[:axis]))]
        return found if self.shape else found[0]


def encode(value: Any) -> bytes:
    """Raises NotPlain, and says what is in the way."""
    parts: list[Any] = []
    try:
        _put(value, parts.append, MAX_DEPTH, [MAX_ITEMS])
    except struct.error:
        raise NotPlain("a text, a list or bytes with more than four gigabytes") from None
    return b"".join(parts)


def _put(value: Any, add: Any, depth: int, left: list[int]) -> None:
    if not depth:
        raise NotPlain(f"nested more than {MAX_DEPTH} deep")
    left[0] -= 1
    if left[0] < 0:
        raise NotPlain(f"more than {MAX_ITEMS} values; send numbers as one array")
    kind = type(value)
    if value is None:
        add(b"N")
    elif kind is bool:
        add(b"T" if value else b"F")
    elif kind is int:
        add(_integer(value))
    elif kind is float:
        add(struct.pack("<cd", b"f", value))
    elif kind is str:
        data = _text(value)
        add(struct.pack("<cI", b"s", len(data)) + data)
    elif kind in (bytes, bytearray):
        add(struct.pack("<cI", b"b", len(value)))
        add(value)
    elif kind in (list, tuple):
        add(struct.pack("<cI", b"l", len(value)))
        for item in value:
            _put(item, add, depth - 1, left)
    elif kind is dict:
        _put_members(value, add, depth, left)
    else:
        _put_array(value, add, depth, left)


def _put_members(members: dict[Any, Any], add: Any, depth: int, left: list[int]) -> None:
    add(struct.pack("<cI", b"d", len(members)))
    for name, item in members.items():
        if type(name) is not str:
            raise NotPlain(f"a key that is {_named(name)}; keys are texts")
        data = _text(name)
        add(struct.pack("<I", len(data)) + data)
        _put(item, add, depth - 1, left)


def _put_array(value: Any, add: Any, depth: int, left: list[int]) -> None:
    """An Array, an array.array, or what numpy made: its raw numbers, whatever class it is of."""
    if type(value) is Array:
        found = value
    elif type(value) is array.array and value.typecode in _OF_ARRAY:
        found = Array(f"{_OF_ARRAY[value.typecode]}{value.itemsize}", (len(value),), value.tobytes())
    elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        if type(value).__name__ != "ndarray":  # one number
            _put(value.item(), add, depth - 1, left)
            return
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        found = Array(little.dtype.str[1:], tuple(value.shape), little.tobytes())
    else:
        raise NotPlain(f"{_named(value)}; send None, bool, int, float, str, bytes, list, dict or an array")
    if found.dtype not in CODES:
        raise NotPlain(f"an array of {found.dtype}; send numbers or booleans")
    if len(found.shape) > MAX_SIDES or math.prod(found.shape) * SIZES[found.dtype] != len(found.data):
        raise NotPlain("an array whose shape does not fit its bytes")
    dtype = found.dtype.encode("ascii")
    add(struct.pack(f"<cB{len(dtype)}sB{len(found.shape)}Q", b"a", len(dtype), dtype, len(found.shape), *found.shape))
    add(found.data)


def _integer(value: int) -> bytes:
    if -_HALF <= value < _HALF:
        return struct.pack("<cq", b"i", value)
    size = value.bit_length() // 8 + 1
    if size > MAX_INTEGER:
        raise NotPlain(f"a whole number of more than {MAX_INTEGER} bytes")
    return struct.pack("<cI", b"I", size) + value.to_bytes(size, "little", signed=True)


def _text(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotPlain("a text with half of a character") from None


def _named(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else str(kind.__qualname__)


def decode(data: bytes | bytearray | memoryview, *, arrays: bool = True) -> Any:
    """The one value that these bytes are, of plain types; an array is numpy's where that is installed, else an Array.

    Raises Malformed for anything else. Memory is taken only for what is there, never for what is announced.
    """
    reader = _Reader(memoryview(data), arrays)
    value = reader.value(MAX_DEPTH)
    if reader.at != len(reader.view):
        raise Malformed(f"{len(reader.view) - reader.at} bytes behind the value")
    return value


class _Reader:
    def __init__(self, view: memoryview, arrays: bool) -> None:
        self.view = view
        self.arrays = arrays
        self.at = 0
        self.left = MAX_ITEMS

    def take(self, count: int) -> memoryview:
        if count > len(self.view) - self.at:
            raise Malformed("it ends early")
        self.at += count
        return self.view[self.at - count : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        try:
            return str(self.take(self.number("<I")), "utf-8")
        except UnicodeDecodeError:
            raise Malformed("a text that is not UTF-8") from None

    def value(self, depth: int) -> Any:
        if not depth:
            raise Malformed(f"nested more than {MAX_DEPTH} deep")
        self.left -= 1
        if self.left < 0:
            raise Malformed(f"more than {MAX_ITEMS} values")
        tag = bytes(self.take(1))
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _NUMBERS:
            return self.number(_NUMBERS[tag])
        if tag == b"s":
            return self.text()
        if tag == b"b":
            return bytes(self.take(self.number("<I")))
        if tag == b"l":
            return [self.value(depth - 1) for _ in range(self.number("<I"))]
        if tag == b"d":
            return self.members(depth)
        if tag == b"a" and self.arrays:
            return self.array()
        if tag == b"I":
            return self.integer()
        raise Malformed("a tag that nobody knows")

    def members(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self.number("<I")):
            name = self.text()
            if name in found:
                raise Malformed("a key twice")
            found[name] = self.value(depth - 1)
        return found

    def integer(self) -> int:
        size = self.number("<I")
        if size > MAX_INTEGER:
            raise Malformed(f"a whole number of more than {MAX_INTEGER} bytes")
        return int.from_bytes(self.take(size), "little", signed=True)

    def array(self) -> Any:
        dtype = bytes(self.take(self.number("<B"))).decode("ascii", "replace")
        sides = self.number("<B")
        if dtype not in CODES or sides > MAX_SIDES:
            raise Malformed("an array of no known kind")
        shape = struct.unpack(f"<{sides}Q", self.take(8 * sides))
        # A side of 0 must not hide sides that nobody could index.
        if math.prod(max(1, side) for side in shape) > 1 << 48:
            raise Malformed("an array too large")
        data = self.take(math.prod(shape) * SIZES[dtype])
        if dtype == "b1" and bytes(data).strip(b"\0\1"):
            raise Malformed("a truth value other than 0 and 1")
        numpy = _numpy()
        if numpy is None:
            return Array(dtype, shape, bytes(data))
        # A copy: aligned, writable, and independent of the frame.
        return numpy.frombuffer(data, dtype=f"<{dtype}").reshape(shape).copy()


def _numpy() -> Any:
    if "numpy" not in _found:
        try:
            _found["numpy"] = importlib.import_module("numpy")
        except ImportError:
            _found["numpy"] = None
    return _found["numpy"]


_found: dict[str, Any] = {}
_CONSTANTS: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
_NUMBERS = {b"i": "<q", b"f": "<d"}
