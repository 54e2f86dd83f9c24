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
import marshal
import math
import struct
from typing import Any, NamedTuple

__all__ = ["Array", "Malformed", "NotPlain", "Reader", "Writer", "decode", "encode"]

MAX_DEPTH = 32
MAX_ITEMS = 2_000_000
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
# From so many numbers on, it pays to look at all of them at once.
_MANY = 16
# From so many bytes on, a part is not copied to stand beside the others.
_LARGE = 65_536


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
    return Writer().written(value)


class Writer:
    """Puts one value together. What sends more kinds than these (blastdoor_kinds) builds on it."""

    tuples = b"l"

    def __init__(self) -> None:
        self.parts: list[Any] = []
        self.left = MAX_ITEMS

    def written(self, value: Any) -> bytes:
        """Raises NotPlain."""
        return b"".join(self.pieces(value))

    def pieces(self, value: Any) -> list[Any]:
        """The same in pieces, of which the large ones are not copied: they may change with what they are of. Raises
        NotPlain.
        """
        try:
            self.put(value, MAX_DEPTH)
        except struct.error:
            raise NotPlain("a text, a list or bytes with more than four gigabytes") from None
        found: list[Any] = []
        done = 0
        for at in [at for at, part in enumerate(self.parts) if len(part) >= _LARGE]:
            found += [b"".join(self.parts[done:at]), self.parts[at]]
            done = at + 1
        return [*found, b"".join(self.parts[done:])]

    def put(self, value: Any, depth: int) -> None:
        if not depth:
            raise NotPlain(f"nested more than {MAX_DEPTH} deep")
        self.count(1)
        add, kind = self.parts.append, type(value)
        if value is None:
            add(b"N")
        elif kind is bool:
            add(b"T" if value else b"F")
        elif kind is int:
            add(_integer(value))
        elif kind is float:
            add(struct.pack("<cd", b"f", value))
        elif kind is str:
            data = text_bytes(value)
            add(struct.pack("<cI", b"s", len(data)) + data)
        elif kind in (bytes, bytearray):
            add(struct.pack("<cI", b"b", len(value)))
            add(value)
        elif kind is list:
            self.items(b"l", value, depth)
        elif kind is tuple:
            self.items(self.tuples, value, depth)
        elif kind is dict:
            self.members(value, depth)
        else:
            self.other(value, depth)

    def count(self, number: int) -> None:
        self.left -= number
        if self.left < 0:
            raise NotPlain(f"more than {MAX_ITEMS} values; send numbers as one array")

    def items(self, tag: bytes, items: Any, depth: int) -> None:
        if len(items) >= _MANY and depth > 1 and (floats := _floats(tag, items)) is not None:
            self.count(len(items))
            self.parts.append(floats)
            return
        self.parts.append(struct.pack("<cI", tag, len(items)))
        for item in items:
            self.put(item, depth - 1)

    def members(self, members: dict[Any, Any], depth: int) -> None:
        self.parts.append(struct.pack("<cI", b"d", len(members)))
        for name, item in members.items():
            if type(name) is not str:
                raise NotPlain(f"a key that is {named(name)}; keys are texts")
            data = text_bytes(name)
            self.parts.append(struct.pack("<I", len(data)) + data)
            self.put(item, depth - 1)

    def other(self, value: Any, depth: int) -> None:
        """An Array, an array.array, or what numpy made: its raw numbers, whatever class it is of."""
        if type(value) is Array:
            self.array(value.dtype, value.shape, value.data)
        elif type(value) is array.array and value.typecode in _OF_ARRAY:
            self.array(f"{_OF_ARRAY[value.typecode]}{value.itemsize}", (len(value),), value.tobytes())
        elif type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            if type(value).__name__ == "ndarray":
                self.ndarray(value)
            else:
                self.scalar(value, depth)
        else:
            raise NotPlain(f"{named(value)}; send None, bool, int, float, str, bytes, list, dict or an array")

    def scalar(self, value: Any, depth: int) -> None:
        """One number of numpy's."""
        self.put(value.item(), depth - 1)

    def ndarray(self, value: Any) -> None:
        """Its own bytes where they are as they are sent: a large array is not copied before it is."""
        little = value.astype(value.dtype.newbyteorder("<"), copy=False)
        plain = little.dtype.str[1:] in CODES and little.flags.c_contiguous and little.ndim
        data = memoryview(little).cast("B") if plain and little.size else little.tobytes()
        self.array(little.dtype.str[1:], tuple(value.shape), data)

    def array(self, dtype: str, shape: tuple[int, ...], data: Any) -> None:
        if dtype not in CODES:
            raise NotPlain(f"an array of {dtype}; send numbers or booleans")
        if len(shape) > MAX_SIDES or math.prod(shape) * SIZES[dtype] != len(data):
            raise NotPlain("an array whose shape does not fit its bytes")
        name = dtype.encode("ascii")
        self.parts.append(struct.pack(f"<cB{len(name)}sB{len(shape)}Q", b"a", len(name), name, len(shape), *shape))
        self.parts.append(data)


def _floats(tag: bytes, items: Any) -> bytearray | None:
    """Many floats at once, with their count before them; None where there is anything else among them.

    What marshal writes is laid out like what we write, but for the tags: of a list and its count five bytes, of a float
    nine. It takes only what is a float and no subclass for one. So where every ninth byte is that tag, all are floats.
    """
    if type(items[0]) is not float:
        return None
    try:
        written = marshal.dumps(items, 2)
    except ValueError:
        return None
    if len(written) != 5 + 9 * len(items) or written[5::9] != b"g" * len(items):
        return None
    found = bytearray(written)
    found[:1] = tag
    found[5::9] = b"f" * len(items)
    return found


def _integer(value: int) -> bytes:
    if -_HALF <= value < _HALF:
        return struct.pack("<cq", b"i", value)
    size = value.bit_length() // 8 + 1
    if size > MAX_INTEGER:
        raise NotPlain(f"a whole number of more than {MAX_INTEGER} bytes")
    return struct.pack("<cI", b"I", size) + value.to_bytes(size, "little", signed=True)


def text_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise NotPlain("a text with half of a character") from None


def named(value: Any) -> str:
    kind = type(value)
    return f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ != "builtins" else str(kind.__qualname__)


def decode(data: bytes | bytearray | memoryview, *, arrays: bool = True) -> Any:
    """The one value that these bytes are, of plain types; an array is numpy's where that is installed, else an Array.

    Raises Malformed for anything else. Memory is taken only for what is there, never for what is announced.
    """
    return Reader(data, arrays).whole()


class Reader:
    """Takes one value apart; the counterpart of Writer."""

    def __init__(self, data: bytes | bytearray | memoryview, arrays: bool = True) -> None:
        self.view = memoryview(data)
        self.arrays = arrays
        self.at = 0
        self.left = MAX_ITEMS

    def whole(self) -> Any:
        """Raises Malformed."""
        value = self.value(MAX_DEPTH)
        if self.at != len(self.view):
            raise Malformed(f"{len(self.view) - self.at} bytes behind the value")
        return value

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
        self.count(1)
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
            return self.items(depth)
        if tag == b"d":
            return self.members(depth)
        if tag == b"a" and self.arrays:
            return self.array()
        if tag == b"I":
            return self.integer()
        return self.other(tag, depth)

    def other(self, tag: bytes, depth: int) -> Any:  # noqa: ARG002  # what reads more kinds than these needs both
        raise Malformed("a tag that nobody knows")

    def count(self, number: int) -> None:
        self.left -= number
        if self.left < 0:
            raise Malformed(f"more than {MAX_ITEMS} values")

    def items(self, depth: int) -> list[Any]:
        number = self.number("<I")
        if number >= _MANY and depth > 1 and (found := self.floats(number) or self.wholes(number)) is not None:
            return found
        return [self.value(depth - 1) for _ in range(number)]

    def floats(self, number: int) -> list[float] | None:
        """So many floats, if that is what comes next: every ninth byte is their tag."""
        end = self.at + 9 * number
        if end > len(self.view) or self.view[self.at] != _FLOAT or self.view[end - 9] != _FLOAT:
            return None
        data = bytearray(b"[" + number.to_bytes(4, "little")) + self.view[self.at : end]
        if data[5::9] != b"f" * number:
            return None
        self.count(number)
        self.at = end
        data[5::9] = b"g" * number
        # Every tag in it was written here, by the line above: so many floats and nothing else can come of it.
        found: list[float] = marshal.loads(data)  # noqa: S302
        return found

    def wholes(self, number: int) -> list[int] | None:
        """So many whole numbers of eight bytes, likewise."""
        end = self.at + 9 * number
        if end > len(self.view) or self.view[self.at] != _WHOLE or self.view[self.at : end : 9] != b"i" * number:
            return None
        self.count(number)
        data = bytearray(self.view[self.at : end])
        del data[::9]
        self.at = end
        return list(struct.unpack(f"<{number}q", data))

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
        dtype, shape, data = self.raw_array()
        numpy = numpy_or_none()
        if numpy is None:
            return Array(dtype, shape, bytes(data))
        # A copy: aligned, writable, and independent of the frame.
        return numpy.frombuffer(data, dtype=f"<{dtype}").reshape(shape).copy()

    def raw_array(self) -> tuple[str, tuple[int, ...], memoryview]:
        """Dtype, shape and numbers of an array, checked."""
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
        return dtype, shape, data


def numpy_or_none() -> Any:
    if "numpy" not in modules_found:
        try:
            modules_found["numpy"] = importlib.import_module("numpy")
        except ImportError:
            modules_found["numpy"] = None
    return modules_found["numpy"]


modules_found: dict[str, Any] = {}
_CONSTANTS: dict[bytes, Any] = {b"N": None, b"T": True, b"F": False}
_NUMBERS = {b"i": "<q", b"f": "<d"}
_FLOAT = ord("f")
_WHOLE = ord("i")
