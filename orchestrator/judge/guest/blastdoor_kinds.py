"""More kinds of plain values, each of which arrives as what it was. Standard library only, Python 3.9 up.

Beside those of blastdoor_values:

    t           4 bytes of count, then the values: a tuple
    S, Z        4 bytes of count, then the values: a set, a frozenset
    c           16 bytes: a complex number
    n           1 byte of length, the dtype ("f4"), then its bytes: a number of numpy's
    m           4 bytes of count, then key and value of each member: a dict whose keys are not all texts
    h           1 byte of length, the name of a class, then 8 bytes: the number of an object that stays where it is, or
                that of a member of an enumeration which lies on both sides
    u           1 byte of length, the name of a class, 4 bytes of count, then the values: a named tuple
    g           4 bytes of count, then the values: all that an iterator gives

Types are exact: a subclass is another type, and is not sent. Members of sets, and keys, are made of None, bool, int,
float, complex, str, bytes, tuple, frozenset and members of enumerations.
"""

from __future__ import annotations

import importlib
import struct
import sys
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import islice
from types import GeneratorType, ModuleType
from typing import Any, NamedTuple, Union

from blastdoor_values import (
    CODES,
    MAX_DEPTH,
    MAX_ITEMS,
    SIZES,
    Malformed,
    NotPlain,
    Reader,
    Writer,
    named,
    numpy_or_none,
)

__all__ = [
    "ENUM",
    "ERRORS",
    "Named",
    "Remote",
    "decode_exact",
    "encode_exact",
    "error_name",
    "exact_pieces",
    "member_of",
    "named_of",
    "number_of_member",
    "rebuilt",
    "tuple_classes",
]

# Before the name of an enumeration, where that of a class stands: no class has a space in its name.
ENUM = "enum "

# Where classes of named tuples are looked for by what an evaluator's processes write for one another.
_TUPLES = "blastdoor_tuples"
_EMPTY: dict[Any, Any] = {}
# Python's own, each of which either side sends as the values that it gives: to be looked at often, or once.
_ROWS = (range, type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_GIVERS = (GeneratorType, enumerate, filter, map, reversed, zip, type(iter([*_EMPTY])))
# What a candidate's function gives instead of a plain value, and what it is sent as.
_NEARLY: dict[type, type] = {OrderedDict: dict, defaultdict: dict, Counter: dict, deque: list}
# So many keys or members may have one hash: more of them take time that grows with their square.
_SAME_HASH = 32
# Errors that may be raised again elsewhere: none that ends a program or a loop, none with a constructor of its own.
ERRORS: dict[str, type[Exception]] = {
    it.__name__: it
    for it in (
        ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, Exception, FileExistsError,
        FileNotFoundError, FloatingPointError, ImportError, IndexError, IsADirectoryError, KeyError, LookupError,
        MemoryError, ModuleNotFoundError, NameError, NotADirectoryError, NotImplementedError, OSError, OverflowError,
        PermissionError, RecursionError, ReferenceError, RuntimeError, TimeoutError, TypeError, UnboundLocalError,
        ValueError, ZeroDivisionError,
    )
}  # fmt: skip


class Remote(NamedTuple):
    """An object that stays in the other chamber: the name of its class, and its number there."""

    kind: str
    number: int


class Named(NamedTuple):
    """A named tuple on its way: the name of its class, which each side has for itself, and its values."""

    kind: str
    values: tuple[Any, ...]

    def made(self, classes: Mapping[str, Any]) -> Any:
        """Of the class that stands here under this name. Raises Malformed."""
        if self.kind not in classes or len(self.values) != len(classes[self.kind]._fields):
            raise Malformed("a named tuple of a class that was not named, or of another length")
        return classes[self.kind]._make(self.values)


def named_of(value: Any, classes: Mapping[str, Any]) -> Named | None:
    """None for what is of no such class."""
    kind = type(value).__name__
    return Named(kind, tuple(value)) if classes.get(kind) is type(value) else None


Known = Union[Remote, Named]  # noqa: UP007  # Python 3.9


def tuple_classes(fields: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A class for each name, always the same one, where the other side has its own."""
    return {name: _tuple_class(name, tuple(names)) for name, names in fields.items()}


@cache
def _tuple_class(name: str, names: tuple[str, ...]) -> Any:
    made: Any = namedtuple(name, names, rename=True, module=_TUPLES)  # type: ignore[misc]  # of what the judge names
    setattr(sys.modules.setdefault(_TUPLES, ModuleType(_TUPLES)), name, made)
    return made


def number_of_member(value: Any, enums: Collection[str]) -> Remote | None:
    """Which member of one of these enumerations (`module.Name`) it is; None for anything else."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name not in enums or not isinstance(value, Enum):
        return None
    members = kind.__members__.values()
    return next((Remote(ENUM + name, at) for at, it in enumerate(members) if it is value), None)


def member_of(remote: Remote) -> Enum:
    """The member that is meant, of the enumeration that lies here. The module is imported: let nobody else name it."""
    module, _, name = remote.kind[len(ENUM) :].rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
        members: list[Enum] = list(found.__members__.values())
    except (ImportError, AttributeError, ValueError):
        raise Malformed(f"an enumeration that is not here: {module}.{name}") from None
    if remote.number >= len(members):
        raise Malformed(f"a member that {module}.{name} does not have")
    return members[remote.number]


def encode_exact(
    value: Any, known: Callable[[Any], Known | None] = lambda _: None, *, given: bool = False, loose: bool = False
) -> bytes:
    """Raises NotPlain. `known` gives what stands for an object that is not sent itself. With `given`, what a range, a
    part of a dict or an iterator of Python's own gives is sent as well; an iterator has nothing left afterwards. With
    `loose`, so is what is no plain value, as the one that comes closest: an array for what offers its numbers by the
    buffer protocol or by `__array__`, a tuple for a named one, a dict or a list for others of Python's collections, and
    all that an iterator of any class gives. That runs code of its class.
    """
    written: bytes = _Exact(known, given, loose).written(value)
    return written


def exact_pieces(
    value: Any, known: Callable[[Any], Known | None] = lambda _: None, *, given: bool = False, loose: bool = False
) -> list[Any]:
    """The same, with large pieces not copied."""
    pieces: list[Any] = _Exact(known, given, loose).pieces(value)
    return pieces


def decode_exact(data: bytes | bytearray | memoryview, found: Callable[[Any], Any] | None = None) -> Any:
    """Raises Malformed. `found` is asked for what a Remote or Named stands for; without it there are none."""
    return _ExactReader(data, found).whole()


def error_name(error: BaseException) -> str:
    """The first of its classes, from its own upwards, that may be raised elsewhere."""
    return next((it.__name__ for it in type(error).__mro__ if ERRORS.get(it.__name__) is it), "RuntimeError")


def rebuilt(name: str, message: str) -> Exception:
    """A new error of this name, if it is one of ERRORS; else a RuntimeError."""
    return ERRORS.get(name, RuntimeError)(message)


class _Exact(Writer):  # type: ignore[misc]  # the module beside it has no types where this is checked
    tuples = b"t"

    def __init__(self, known: Callable[[Any], Known | None], given: bool, loose: bool) -> None:
        super().__init__()
        self._known = known
        self._takes = given or loose
        self._loose = loose

    def members(self, members: dict[Any, Any], depth: int) -> None:
        if all(type(name) is str for name in members):
            super().members(members, depth)
            return
        self.parts.append(struct.pack("<cI", b"m", len(members)))
        for key, item in members.items():
            self._hashable(key, depth)
            self.put(item, depth - 1)

    def scalar(self, value: Any, depth: int) -> None:
        dtype = value.dtype.str[1:]
        if dtype not in CODES:
            raise NotPlain(f"a number of {dtype}; send numbers or booleans")
        del depth
        data = value.astype(value.dtype.newbyteorder("<")).tobytes()
        self.parts.append(struct.pack(f"<cB{len(dtype)}s", b"n", len(dtype), dtype.encode("ascii")) + data)

    def other(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind is complex:
            self.parts.append(struct.pack("<cdd", b"c", value.real, value.imag))
        elif kind in (set, frozenset):
            self.parts.append(struct.pack("<cI", b"S" if kind is set else b"Z", len(value)))
            for item in value:
                self._hashable(item, depth)
        elif (found := self._known(value)) is not None:
            self._stand_in(found, depth)
        elif self._takes and kind in _ROWS:
            self.put(list(value), depth)
        elif self._takes and kind in _GIVERS:
            self._given(value, depth)
        elif self._loose:
            self._nearly(value, depth)
        else:
            super().other(value, depth)

    def _stand_in(self, found: Known, depth: int) -> None:
        name = found.kind.encode("utf-8")
        head = struct.pack(f"<cB{len(name)}s", b"u" if type(found) is Named else b"h", len(name), name)
        if isinstance(found, Remote):
            self.parts.append(head + struct.pack("<Q", found.number))
            return
        self.parts.append(head + struct.pack("<I", len(found.values)))
        for item in found.values:
            self.put(item, depth - 1)

    def _nearly(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in _NEARLY:
            self.put(_NEARLY[kind](value), depth)
        elif isinstance(value, tuple) and hasattr(kind, "_fields"):
            self.put(tuple(value), depth)
        elif kind.__module__ != "numpy" and (found := _as_numbers(value)) is not None:
            self.put(found, depth)
        elif isinstance(value, Iterator):
            self._given(value, depth)
        else:
            super().other(value, depth)

    def _given(self, value: Iterator[Any], depth: int) -> None:
        items = list(islice(value, self.left + 1))
        if len(items) > self.left:
            raise NotPlain(f"{named(value)} that gives more than {MAX_ITEMS} values; let it end sooner")
        self.parts.append(struct.pack("<cI", b"g", len(items)))
        for item in items:
            self.put(item, depth - 1)

    def _hashable(self, key: Any, depth: int) -> None:
        if not may_be_key(key, MAX_DEPTH):
            raise NotPlain(f"a key or a member of a set that is or holds {named(key)}; use numbers, texts or tuples")
        self.put(key, depth - 1)


def may_be_key(key: Any, depth: int, *, is_read: bool = False) -> bool:
    """Of a frozenset that was read, all members were looked at when it was: not again for each set that it is in."""
    kind = type(key)
    if kind is frozenset and is_read:
        return True
    if kind is frozenset or isinstance(key, tuple):
        return bool(depth) and all(may_be_key(item, depth - 1, is_read=is_read) for item in key)
    return key is None or kind in (bool, int, float, complex, str, bytes) or isinstance(key, Enum)


def _as_numbers(value: Any) -> Any:
    """An array of numpy's exact class with the numbers that an object offers; None where it offers none."""
    offers = not isinstance(value, type) and (hasattr(value, "__array__") or _is_buffer(value))
    numpy = numpy_or_none() if offers else None
    if numpy is None:
        return None
    try:
        found = numpy.asarray(value)
    except Exception as error:  # noqa: BLE001  # code of a stranger's class
        raise NotPlain(f"{named(value)}, whose numbers cannot be had: {str(error)[:200]}") from None
    return found if type(found) is numpy.ndarray and found.dtype.str[1:] in CODES else None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


class _ExactReader(Reader):  # type: ignore[misc]  # as above
    def __init__(self, data: bytes | bytearray | memoryview, found: Callable[[Any], Any] | None) -> None:
        super().__init__(data)
        self._found = found

    def other(self, tag: bytes, depth: int) -> Any:
        if tag == b"t":
            return tuple(self.items(depth))
        if tag in (b"S", b"Z"):
            members = self._members(self.items(depth))
            return set(members) if tag == b"S" else frozenset(members)
        if tag == b"c":
            return complex(*struct.unpack("<dd", self.take(16)))
        if tag == b"n":
            return self._scalar()
        if tag == b"m":
            return self._table(depth)
        if tag == b"g":
            return iter(self.items(depth))
        if tag == b"h" and self._found is not None:
            return self._found(Remote(self._name(), self.number("<Q")))
        if tag == b"u" and self._found is not None:
            return self._found(Named(self._name(), tuple(self.items(depth))))
        return super().other(tag, depth)

    def _members(self, items: list[Any]) -> list[Any]:
        """Raises Malformed for what may be no key, for one that comes twice, and for too many that collide."""
        hashes: dict[int, int] = {}
        for item in items:
            if not may_be_key(item, MAX_DEPTH, is_read=True):
                raise Malformed("a key or a member of a set that may be none")
            value = hash(item)
            hashes[value] = hashes.get(value, 0) + 1
            if hashes[value] > _SAME_HASH:
                raise Malformed("too many keys of one hash")
        if len(set(items)) < len(items):
            raise Malformed("a key twice")
        return items

    def _table(self, depth: int) -> dict[Any, Any]:
        keys, values = [], []
        for _ in range(self.number("<I")):
            keys.append(self.value(depth - 1))
            values.append(self.value(depth - 1))
        return dict(zip(self._members(keys), values))  # noqa: B905  # `strict` came with Python 3.10

    def _scalar(self) -> Any:
        dtype = bytes(self.take(self.number("<B"))).decode("ascii", "replace")
        if dtype not in CODES:
            raise Malformed("a number of no known kind")
        data = bytes(self.take(SIZES[dtype]))
        if dtype == "b1" and data not in (b"\0", b"\1"):
            raise Malformed("a truth value other than 0 and 1")
        if (numpy := numpy_or_none()) is None:
            found = struct.unpack(f"<{CODES[dtype]}", data)
            return complex(*found) if len(found) == 2 else found[0]
        return numpy.frombuffer(data, dtype=f"<{dtype}")[0]

    def _name(self) -> str:
        try:
            return str(self.take(self.number("<B")), "utf-8")
        except UnicodeDecodeError:
            raise Malformed("a text that is not UTF-8") from None
