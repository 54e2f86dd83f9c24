"""Values as bytes: what goes in comes out, as plain types, and nothing else ever comes out of any bytes."""

import array
import math
import random
import struct
from collections import OrderedDict
from enum import IntEnum
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.judge.guest import blastdoor_values as values
from orchestrator.judge.guest.blastdoor_values import Array, Malformed, NotPlain, decode, encode

PLAIN = (type(None), bool, int, float, str, bytes, list, dict)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**4000), 2**4000),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(max_size=100),
)
plain = st.recursive(
    scalars, lambda it: st.one_of(st.lists(it, max_size=5), st.dictionaries(st.text(max_size=5), it, max_size=5))
)


@pytest.fixture
def without_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(values.modules_found, "numpy", None)


@given(plain)
def test_back_and_forth(value: Any) -> None:
    """A plain value is the same afterwards, types included."""
    found = decode(encode(value))
    assert found == value
    assert repr(found) == repr(value)


def test_special_values() -> None:
    """NaN, infinities and minus zero cross as they are: the judge says what they are worth. A tuple is a list."""
    assert math.isnan(decode(encode(math.nan)))
    assert decode(encode([math.inf, -math.inf])) == [math.inf, -math.inf]
    assert math.copysign(1, decode(encode(-0.0))) == -1
    assert decode(encode((1, (2, 3)))) == [1, [2, 3]]


@pytest.mark.parametrize("dtype", sorted(values.CODES))
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (2, 3, 4)])
def test_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    """Raw numbers with dtype and shape, numpy's on both sides; aligned and writable, whatever frame it came in."""
    sent = numpy.arange(math.prod(shape)).reshape(shape).astype(dtype)
    found = decode(encode(["x", sent]))[1]
    assert type(found) is numpy.ndarray
    assert (found.dtype, found.shape) == (sent.dtype, sent.shape)
    assert numpy.array_equal(found, sent)
    assert found.flags.writeable
    assert found.flags.aligned


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (2, 0, 3), (2, 3, 0), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["i4", "f8", "b1", "c16"])
def test_arrays_without_numpy(without_numpy: None, dtype: str, shape: tuple[int, ...]) -> None:
    """Where numpy is not installed it is an Array, whose lists are those that numpy would give."""
    sent = numpy.arange(math.prod(shape)).reshape(shape).astype(dtype)
    found = decode(encode(sent))
    assert type(found) is Array
    assert found.tolist() == sent.tolist()
    assert decode(encode(found)) == found


def test_other_arrays(without_numpy: None) -> None:
    """The standard library's arrays, other byte orders and slices that are not contiguous."""
    assert decode(encode(array.array("d", [1, 2]))) == Array("f8", (2,), struct.pack("<2d", 1, 2))
    assert decode(encode(array.array("B", [1, 2]))).tolist() == [1, 2]
    assert decode(encode(numpy.array([1, 2], dtype=">i4"))).tolist() == [1, 2]
    assert decode(encode(numpy.arange(12).reshape(3, 4)[:, ::2])).tolist() == [[0, 2], [4, 6], [8, 10]]
    assert decode(encode(numpy.float32(0.5))) == 0.5


class EqualToAll:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Later(numpy.ndarray[Any, Any]):
    """Computes when it is looked at."""

    def tobytes(self, order: Any = "C") -> bytes:
        raise AssertionError("asked to compute")


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "value",
    [
        *(EqualToAll(), [EqualToAll()], {"x": EqualToAll()}, numpy.arange(3).view(Later), numpy.array([object()])),
        *(numpy.array(["text"]), numpy.zeros(2, dtype=[("a", "i4")]), numpy.zeros(2, dtype="datetime64[s]")),
        *(OrderedDict(a=1), Number.ONE, {1: 2}, {1, 2}, 1j, range(3), lambda: 1, int, "\ud800", {"\ud800": 1}, 2**5000),
        *(memoryview(b"x"), Array("f8", (3,), b"x"), Array("O", (1,), bytes(8))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_t25_t26_not_plain(value: Any) -> None:
    """Objects with a mind of their own, of whatever class, are not sent."""
    with pytest.raises(NotPlain):
        encode(value)


@pytest.fixture
def few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that is soon met."""
    monkeypatch.setattr(values, "MAX_ITEMS", 1_000)


@pytest.mark.usefixtures("few_items")
def test_too_much() -> None:
    """Depth and count are bounded where it is sent, so that the other side's bounds are no surprise."""
    deep: Any = 1
    for _ in range(values.MAX_DEPTH):
        deep = [deep]
    with pytest.raises(NotPlain, match="deep"):
        encode(deep)
    with pytest.raises(NotPlain, match="as one array"):
        encode([0] * values.MAX_ITEMS)
    assert len(decode(encode([0] * (values.MAX_ITEMS - 1)))) == values.MAX_ITEMS - 1


def count(number: int) -> bytes:
    return struct.pack("<I", number)


def an_array(dtype: bytes, sides: int, *shape: int, data: bytes = b"") -> bytes:
    return b"a" + bytes([len(dtype)]) + dtype + bytes([sides]) + b"".join(struct.pack("<Q", it) for it in shape) + data


MALFORMED = {
    "nothing": b"",
    "an unknown tag": b"z",
    "a pickle": b"cunittest.mock\nANY\n.",
    "behind it": b"NN",
    "a short number": b"i\1\2",
    "a short text": b"s" + count(5) + b"abc",
    "a text of four gigabytes": b"s" + count(2**32 - 1),
    "a list of four billion": b"l" + count(2**32 - 1) + b"N",
    "a list of nothing": b"l" + count(1),
    "no UTF-8": b"s" + count(1) + b"\xff",
    "half a character": b"s" + count(3) + b"\xed\xa0\x80",
    "a key twice": b"d" + count(2) + 2 * (count(1) + b"a" + b"N"),
    "a key without a value": b"d" + count(1) + count(1) + b"a",
    "a key that is no UTF-8": b"d" + count(1) + count(1) + b"\xffN",
    "deep": (b"l" + count(1)) * 40 + b"N",
    "very deep": (b"l" + count(1)) * 100_000 + b"N",
    "a long integer": b"I" + count(513) + bytes(513),
    "many values": b"l" + count(1_001) + b"N" * 1_001,
    "an array of objects": an_array(b"O", 1, 1, data=bytes(8)),
    "an array of unknowns": an_array(b"\xff\xff", 1, 1, data=bytes(8)),
    "a short array": an_array(b"f8", 1, 2, data=bytes(8)),
    "a long array": an_array(b"f8", 1, 1, data=bytes(16)),
    "an endless array": an_array(b"u1", 2, 2**63, 2**63),
    "an endless empty array": an_array(b"u1", 3, 2**63, 2**63, 0),
    "many sides": an_array(b"u1", 17, *([1] * 17), data=b"x"),
    "sides that are not there": an_array(b"u1", 3, 1),
    "a third truth value": an_array(b"b1", 1, 2, data=b"\1\2"),
}


@pytest.mark.usefixtures("few_items")
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str) -> None:
    """One typed refusal, at once, and no memory for what is only announced."""
    with pytest.raises(Malformed):
        decode(MALFORMED[name])


def test_no_arrays_where_none_belong() -> None:
    """Whoever expects none gets none: nothing is imported for what a stranger announces."""
    assert decode(encode([1, "x"]), arrays=False) == [1, "x"]
    with pytest.raises(Malformed):
        decode(encode([numpy.arange(3)]), arrays=False)


def test_random_bytes() -> None:
    """Whatever the bytes are: a plain value or Malformed, never anything else."""
    rng = random.Random(4)
    seeds = [encode({"a": [1, 2.5, "x", b"y", None, True, 2**70]}), encode([numpy.arange(6).reshape(2, 3)])]
    decoded = 0
    for number in range(6_000):
        data = bytearray(rng.choice(seeds) if number % 2 else rng.randbytes(rng.randrange(40)))
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            value = decode(data)
        except Malformed:
            continue
        decoded += 1
        assert is_plain(value)
    assert decoded > 100


def is_plain(value: Any) -> bool:
    if type(value) is list:
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(type(name) is str and is_plain(it) for name, it in value.items())
    return type(value) in PLAIN or type(value) is numpy.ndarray
