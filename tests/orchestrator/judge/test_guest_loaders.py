"""Safe loaders for judges: whatever a candidate left is data or BadOutput, and nothing in it ever runs."""

import json
import math
import os
import pickle
import struct
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.judge.bounds import ResultRefused
from orchestrator.judge.guest.blastdoor_judge import (
    BadOutput,
    load_bytes,
    load_csv,
    load_json,
    load_npy,
    number,
    outputs,
)
from orchestrator.judge.json_bounds import loads
from orchestrator.judge.rewriting import npy_bytes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = tmp_path / "outputs"
    there.mkdir()
    monkeypatch.setenv("BLASTDOOR_OUTPUTS", str(there))
    monkeypatch.setitem(sys.modules, "numpy", None)
    return there


def test_plain_files(folder: Path) -> None:
    """Names are relative to the outputs; the path as `outputs` gives it works too."""
    (folder / "deep").mkdir()
    (folder / "deep" / "a.json").write_text('{"a": [1, 2.5, null, true, "x"]}')
    assert load_json("deep/a.json") == {"a": [1, 2.5, None, True, "x"]}
    assert load_bytes(outputs() / "deep" / "a.json") == (folder / "deep" / "a.json").read_bytes()


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "deep/../../secret", ".", "", "a\0b", "\ud800", "x" * 5000]
)
def test_t49_names(folder: Path, name: str) -> None:
    """A name that leads out of the outputs, or is none, is refused."""
    (folder.parent / "secret").write_text("1")
    with pytest.raises(BadOutput, match="too long" if len(name) > 100 else "no name"):
        load_bytes(name)


def test_t47_t50_no_plain_file(folder: Path) -> None:
    """No link is followed, neither of a file nor of a folder above it; a pipe does not hang, a folder is no file."""
    (folder.parent / "secret").write_text("1")
    (folder / "link").symlink_to("../secret")
    (folder / "folder").symlink_to("..")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe")
    (folder / "inner").mkdir()
    for name in ("link", "folder/secret", "loop", "pipe", "inner", "absent"):
        with pytest.raises(BadOutput):
            load_bytes(name)


def test_sizes(folder: Path) -> None:
    """A sparse terabyte costs no more than the limit."""
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadOutput, match="more than 10 bytes"):
        load_bytes("huge", max_bytes=10)
    with pytest.raises(BadOutput, match="more than 8MiB"):
        load_bytes("huge")


HOSTILE_JSON = {
    "NaN": b"[NaN]",
    "infinity": b"[-Infinity]",
    "1e999": b"[1e999]",
    "endless": b"9" * 1_000_000,
    "past every float": b"9" * 400,
    "doubled": b'{"a": 1, "a": 1}',
    "deep": b"[" * 100_000,
    "utf-8": b'"\xff"',
    "half": b'"\\uD800"',
    "cut": b"[1",
    "empty": b"",
    "pickle": b"cos\nsystem\n(S'true'\ntR.",
}


@pytest.mark.parametrize("name", HOSTILE_JSON)
def test_t54_json(folder: Path, name: str) -> None:
    """Hostile JSON is BadOutput."""
    (folder / "a.json").write_bytes(HOSTILE_JSON[name])
    with pytest.raises(BadOutput):
        load_json("a.json")


PIECES = [*'[]{}":,1-\\', '"a"', ".5", "e9", "1e999", "NaN", "true", "\\ud800", "9" * 401]
SOUP = st.lists(st.sampled_from(PIECES), max_size=12).map(lambda pieces: "".join(pieces).encode())
WRITTEN = st.recursive(
    st.one_of(st.floats(), st.integers(), st.text(max_size=5), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
).map(lambda value: json.dumps(value).encode())


@given(data=st.one_of(SOUP, WRITTEN, st.binary(max_size=30)))
@settings(max_examples=3 * settings().max_examples)
def test_both_parsers_agree(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """The helper refuses what the orchestrator refuses, and reads the same values."""
    folder = tmp_path_factory.getbasetemp() / "agree"
    folder.mkdir(exist_ok=True)
    (folder / "a.json").write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLASTDOOR_OUTPUTS", str(folder))
        assert helper(data) == ours(data)


def helper(data: bytes) -> Any:
    try:
        return load_json("a.json", max_depth=32)
    except BadOutput:
        return BadOutput


def ours(data: bytes) -> Any:
    try:
        return loads(data, max_bytes=1 << 20, max_depth=32, max_digits=400)
    except ResultRefused:
        return BadOutput


def test_csv(folder: Path) -> None:
    """Rows of cells, quoted or not, all of one width."""
    (folder / "a.csv").write_text('x,y\r\n1,"2,5"\r\n\r\n3,4\r\n')
    assert load_csv("a.csv") == [["x", "y"], ["1", "2,5"], ["3", "4"]]


@pytest.mark.parametrize(
    "data",
    [
        *(b"a,b\n1\n", b'a\n"b', b"a\n\0\n", b"\xff", b"a\n" * 6, b"a,b,c,d\n", b'"' + b"a" * 200_000 + b'"'),
        b"a" * 300_001,
    ],
)
def test_t54_csv(folder: Path, data: bytes) -> None:
    """Ragged, unfinished, endless or binary tables are BadOutput."""
    (folder / "a.csv").write_bytes(data)
    with pytest.raises(BadOutput):
        load_csv("a.csv", max_bytes=300_000, max_rows=5, max_columns=3)


def test_numbers() -> None:
    """Finite numbers and cells that hold one; nothing else is a number."""
    assert [number(value) for value in (1, 2.5, " 3 ", "-1e-3", ".5")] == [1, 2.5, 3, -0.001, 0.5]
    texts = ["", "nan", "inf", "1_000", "0x1", "1e999", "9" * 401, "1 2"]
    others: list[object] = [True, None, math.nan, math.inf, 10**400, []]
    for value in [*texts, *others]:
        with pytest.raises(BadOutput):
            number(value)


def npy(folder: Path, data: bytes) -> None:
    (folder / "a.npy").write_bytes(data)


@pytest.mark.parametrize(
    ("dtype", "shape", "body", "value"),
    [
        ("<f8", (3,), struct.pack("<3d", 1, 2, 3), [1, 2, 3]),
        (">f4", (2, 2), struct.pack(">4f", 1, 2, 3, 4), [[1, 2], [3, 4]]),
        ("<f2", (1,), struct.pack("<e", 0.5), [0.5]),
        ("|u1", (2, 1, 2), bytes([1, 2, 3, 4]), [[[1, 2]], [[3, 4]]]),
        ("<i8", (), struct.pack("<q", -7), -7),
        ("|b1", (2,), b"\1\0", [True, False]),
        ("<c16", (2,), struct.pack("<4d", 1, 2, 3, 4), [1 + 2j, 3 + 4j]),
        ("<f8", (0, 3), b"", []),
        ("<f8", (2, 0), b"", [[], []]),
    ],
)
def test_npy(folder: Path, dtype: str, shape: tuple[int, ...], body: bytes, value: Any) -> None:
    """Numbers of every kind and shape, as nested lists where there is no numpy."""
    npy(folder, npy_bytes(dtype, shape, body))
    assert load_npy("a.npy") == value


def test_npy_in_the_other_order(folder: Path) -> None:
    """Columns first, and the header of version 2."""
    head = b"{'shape': (2, 3), 'fortran_order': True, 'descr': '<u2'}\n"
    npy(folder, b"\x93NUMPY\x02\x00" + struct.pack("<I", len(head)) + head + struct.pack("<6H", 1, 4, 2, 5, 3, 6))
    assert load_npy("a.npy") == [[1, 2, 3], [4, 5, 6]]


def header(text: str, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body


HOSTILE_NPY = {
    "empty": b"",
    "magic alone": b"\x93NUMPY\x01\x00",
    "another magic": b"PK\x03\x04" + bytes(100),
    "version 9": b"\x93NUMPY\x09\x00" + bytes(100),
    "header past the end": b"\x93NUMPY\x01\x00\xff\xff{}",
    "header of four gigabytes": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
    "objects": npy_bytes("|O", (1,), b"N."),
    "objects with a size": npy_bytes("|O8", (1,), bytes(8)),
    "texts": npy_bytes("<U1", (1,), b"\xff\xff\xff\xff"),
    "raw": npy_bytes("|V8", (1,), bytes(8)),
    "times": npy_bytes("<M8[s]", (1,), bytes(8)),
    "records": header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "an expression": header("{'descr': '<f8', 'fortran_order': False, 'shape': (__import__('os'),), }"),
    "a key too many": header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), 'x': 1}"),
    "a key twice": header("{'descr': '<f8', 'descr': '<f8', 'shape': (0,)}"),
    "a key too few": header("{'descr': '<f8', 'shape': (0,)}"),
    "no braces": header(" 'descr': '<f8', 'fortran_order': False, 'shape': (0,) "),
    "a deep header": header("(" * 9000),
    "no order": npy_bytes("f8", (1,), bytes(8)),
    "too short": npy_bytes("<f8", (2,), bytes(8)),
    "too long": npy_bytes("<f8", (1,), bytes(16)),
    "huge": npy_bytes("<f8", (10**9, 10**9), bytes(8)),
    "huge and empty": npy_bytes("<f8", (0, 10**17, 10**17), b""),
    "negative": header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
    "forty sides": npy_bytes("|u1", (1,) * 40, b"\0"),
    "an endless side": header("{'descr': '|u1', 'fortran_order': False, 'shape': (" + "1" * 5000 + ",), }", b"\0"),
    "booleans that are none": npy_bytes("|b1", (2,), b"\1\2"),
    "NaN": npy_bytes("<f8", (2,), struct.pack("<2d", 1, math.nan)),
    "infinity": npy_bytes("<f4", (1,), struct.pack("<f", math.inf)),
    "NaN in a complex number": npy_bytes("<c8", (1,), struct.pack("<2f", 0, math.nan)),
}


@pytest.mark.parametrize("name", HOSTILE_NPY)
def test_t55_npy(folder: Path, name: str) -> None:
    """Anything but plain finite numbers of exactly the length that the header says is BadOutput; NaN on request."""
    npy(folder, HOSTILE_NPY[name])
    with pytest.raises(BadOutput):
        load_npy("a.npy")
    if name == "NaN":
        assert math.isnan(load_npy("a.npy", allow_nan=True)[1])


def test_t55_nothing_is_unpickled(folder: Path, tmp_path: Path) -> None:
    """The pickle in an array of objects does run when it is unpickled, and the loader does not."""
    mark = tmp_path / "mark"
    attack = b"cbuiltins\nopen\n(S'%s'\nS'w'\ntR." % str(mark).encode()
    npy(folder, npy_bytes("|O", (1,), attack))
    with pytest.raises(BadOutput, match="only numbers"):
        load_npy("a.npy")
    assert not mark.exists()
    pickle.loads(attack).close()  # noqa: S301  # the control: this is what the loader must not do
    assert mark.exists()


@given(data=st.binary(max_size=120))
def test_any_header(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Arbitrary bytes behind the magic are BadOutput or numbers."""
    folder = tmp_path_factory.getbasetemp() / "headers"
    folder.mkdir(exist_ok=True)
    npy(folder, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(data) // 2) + data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLASTDOOR_OUTPUTS", str(folder))
        with pytest.raises(BadOutput):
            load_npy("a.npy")


def test_numpy_where_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With numpy installed it gets the checked bytes, the type, the shape and the order, and nothing to unpickle."""
    monkeypatch.setitem(sys.modules, "numpy", PretendedNumpy("numpy"))
    npy(folder, npy_bytes("<f4", (2, 1), struct.pack("<2f", 1, 2)))
    assert load_npy("a.npy") == (struct.pack("<2f", 1, 2), "<f4", (2, 1), "C")


class PretendedNumpy(types.ModuleType):
    """Says what it was asked for."""

    def frombuffer(self, data: memoryview, dtype: str) -> Any:
        def reshape(shape: tuple[int, ...], order: str) -> tuple[bytes, str, tuple[int, ...], str]:
            return bytes(data), dtype, shape, order

        return types.SimpleNamespace(reshape=reshape)

    def isfinite(self, array: Any) -> Any:
        return types.SimpleNamespace(all=lambda: True)
