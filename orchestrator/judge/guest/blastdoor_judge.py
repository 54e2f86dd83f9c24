"""A judge's side of the contract: read what a candidate left, publish one result. Standard library only, Python 3.9 up.

    from blastdoor_judge import BadOutput, judging, load_json, number, publish, trace

    with judging():                                  # BadOutput inside means: no solution, no score
        answer = load_json("answer.json")            # bounded, no NaN, no doubled keys
        if not isinstance(answer, list) or len(answer) != 3:
            raise BadOutput("answer.json is not a list of three")
        errors = [abs(number(given) - right) for given, right in zip(answer, [1.0, 2.0, 3.0])]
        for task, error in enumerate(errors):
            trace(str(task), -error)
        publish(-sum(errors), metrics={"worst": max(errors)})

Any other error is the judge's own: let it raise, and exit with something else than 0. Names are relative to the
folder of the candidate's outputs. The loaders raise BadOutput and never run anything that a file holds, but what they
return is still the candidate's word: check shapes, ranges and counts.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import numbers
import os
import re
import stat
import struct
import sys
from pathlib import Path

# As type checkers know it. Each judge of each attempt begins with this module: typing, and what only some of them use,
# would take as much processor time as all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = [
    "AlreadyPublished",
    "BadOutput",
    "invalid",
    "judging",
    "load_bytes",
    "load_csv",
    "load_json",
    "load_npy",
    "number",
    "outputs",
    "publish",
    "trace",
]

MAX_BYTES = 8 << 20
MAX_DIGITS = 400
MAX_NOTES = 4_000
MAX_LOG = 20_000

_STRUCTURE = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NPY_HEADER_BYTES = 10_000
_NPY_ITEM = re.compile(
    r"\s*(['\"])(descr|fortran_order|shape)\1\s*:\s*('[^'\\]*'|\"[^\"\\]*\"|True|False|\([0-9,\s]*\))\s*(?:,|$)"
)
_NPY_CODES = {
    "b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
    "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd",
}  # fmt: skip

_state = {"published": False}


class BadOutput(Exception):
    """What the candidate left is not what was asked for. Its own fault: the result is `valid: false`."""


class AlreadyPublished(RuntimeError):
    """There is a result already. One judge, one result: two of them are a mistake in the judge."""


@contextlib.contextmanager
def judging() -> Iterator[None]:
    """As `with judging():` or `@judging()`: BadOutput becomes a result that says so."""
    try:
        yield
    except BadOutput as bad:
        invalid(str(bad))


def publish(
    score: float | None,
    *,
    valid: bool = True,
    metrics: Mapping[str, float] | None = None,
    tasks: Mapping[str, float] | None = None,
    tasks_meta: Mapping[str, Mapping[str, str]] | None = None,
    notes: str = "",
) -> None:
    """The one result: claimed exclusively, written beside, renamed. To stdout where no path is set.

    `tasks_meta` is `{"id": {"direction": "lower"}}` for tasks that go the other way. Raises AlreadyPublished the second
    time, and ValueError for a number that is not finite, before anything is claimed.
    """
    result: dict[str, object] = {"valid": bool(valid), "notes": _text(notes, MAX_NOTES)}
    if score is not None or valid:
        result["score"] = _finite(score, "score")
    for name, values in (("metrics", metrics), ("tasks", tasks)):
        if values is not None:
            result[name] = {str(key): _finite(value, f"{name}.{key}") for key, value in values.items()}
    if tasks_meta is not None:
        result["tasks_meta"] = {str(key): dict(value) for key, value in tasks_meta.items()}
    data = json.dumps(result, allow_nan=False).encode("ascii")
    path = os.environ.get("BLASTDOOR_RESULT_PATH") or os.environ.get("EVO_RESULT_PATH")
    if path:
        _claim(Path(path))
        _write_beside(Path(path), data)
    elif _state["published"]:
        raise AlreadyPublished("a result was published before")
    else:
        sys.stdout.write(data.decode("ascii") + "\n")
        sys.stdout.flush()
    _state["published"] = True


def invalid(notes: str = "") -> None:
    """The candidate's output is no solution. There is no score then, not a score of zero."""
    publish(None, valid=False, notes=notes)


def trace(
    task_id: str,
    score: float,
    *,
    status: str | None = None,
    summary: str | None = None,
    failure_reason: str | None = None,
    log: str | None = None,
    started_at: str | None = None,
    ended_at: str | None = None,
) -> None:
    """What happened in one task, as it finishes. For people, not for the score; dropped where no folder is set."""
    folder = os.environ.get("BLASTDOOR_TRACES_DIR") or os.environ.get("EVO_TRACES_DIR")
    fields: dict[str, object] = {"task_id": str(task_id), "score": _finite(score, f"score of {task_id}")}
    short = {"status": status, "summary": summary, "failure_reason": failure_reason}
    fields.update((key, _text(value, 1_000)) for key, value in short.items() if value is not None)
    times = {"started_at": started_at, "ended_at": ended_at}
    fields.update((key, _text(value, 100)) for key, value in times.items() if value is not None)
    if log is not None:
        fields["log"] = _text(str(log)[-MAX_LOG:], MAX_LOG)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        data = json.dumps(fields, allow_nan=False, ensure_ascii=False).encode("utf-8")
        _write_beside(Path(folder) / _file_name(str(task_id)), data)


def outputs() -> Path:
    """The folder of what the candidate left."""
    return Path(os.environ.get("BLASTDOOR_OUTPUTS") or "../outputs").resolve()


def number(value: object, what: str = "a value") -> float:
    """A finite number, from JSON or from a cell of a CSV file; BadOutput for all else."""
    if isinstance(value, str) and len(value) <= MAX_DIGITS and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    try:
        return _finite(value, what)
    except ValueError as error:
        raise BadOutput(str(error)) from None


def load_bytes(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> bytearray:
    """A plain file of the outputs; no link is followed."""
    name, target = _inside(path)
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadOutput(f"{name}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadOutput(f"{name} is not a plain file")
    with os.fdopen(descriptor, "rb") as file:
        data = bytearray(file.read(max_bytes + 1))
    if len(data) > max_bytes:
        most = f"{max_bytes / (1 << 20):.3g}MiB" if max_bytes >= 1 << 20 else f"{max_bytes} bytes"
        raise BadOutput(f"{name} has more than {most}")
    return data


def load_json(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, max_depth: int = 64) -> Any:
    """Plain values; doubled keys, NaN, infinities and endless numbers are refused."""
    name = _shown(path)
    text = _decoded(load_bytes(path, max_bytes), name)
    _check_depth(text, max_depth, name)
    try:
        value = json.loads(
            text,
            parse_int=lambda digits: _digits(digits, int, name),
            parse_float=lambda digits: _digits(digits, float, name),
            parse_constant=lambda _: _digits("nan", float, name),
            object_pairs_hook=lambda pairs: _without_doubles(pairs, name),
        )
    except json.JSONDecodeError as error:
        raise BadOutput(f"{name} is not JSON: {error.msg}, line {error.lineno} column {error.colno}") from None
    if "\\ud" in text.lower():
        _check_whole_characters(value, name)
    return value


def load_csv(
    path: str | os.PathLike[str],
    max_bytes: int = MAX_BYTES,
    max_rows: int = 100_000,
    max_columns: int = 1_000,
    delimiter: str = ",",
) -> list[list[str]]:
    """Rows of text cells, all of one width; turn a cell into a number with `number`. Empty lines are left out."""
    import csv

    name = _shown(path)
    text = _decoded(load_bytes(path, max_bytes), name)
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if len(row) > max_columns or len(rows) >= max_rows:
                raise BadOutput(f"{name} has more than {max_rows} rows or {max_columns} columns")
            if row and rows and len(row) != len(rows[0]):
                raise BadOutput(f"{name}: row {len(rows) + 1} has {len(row)} cells, the first {len(rows[0])}")
            if row:
                rows.append(row)
    except csv.Error as error:
        raise BadOutput(f"{name} is not CSV: {error}") from None
    return rows


def load_npy(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES, allow_nan: bool = False) -> Any:
    """Numbers or booleans from a .npy file: an array where numpy is installed, otherwise nested lists.

    Objects, records and texts are refused, and so is a file whose length is not exactly what its header says.
    """
    name = _shown(path)
    data = load_bytes(path, max_bytes)
    try:
        header = npy_header(data)
    except ValueError as error:
        raise BadOutput(f"{name}: {error}") from None
    body = memoryview(data)[header.start :]
    if math.prod(max(1, side) for side in header.shape) > max_bytes:
        raise BadOutput(f"{name}: an array too large")
    if math.prod(header.shape) * header.item_bytes != len(body):
        raise BadOutput(f"{name}: the header does not fit the length")
    if header.kind == "b1" and any(value > 1 for value in body):
        raise BadOutput(f"{name}: booleans other than 0 and 1")
    try:
        numpy = importlib.import_module("numpy")
    except ImportError:
        return _nested(header, body, name, allow_nan)
    array = numpy.frombuffer(body, dtype=header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
    if not allow_nan and not numpy.isfinite(array).all():
        raise BadOutput(f"{name} holds NaN or infinity")
    return array


class NpyHeader:
    """`start` is where the values begin; `code` is what struct calls one of them."""

    def __init__(self, dtype: str, fortran: bool, shape: tuple[int, ...], start: int) -> None:
        self.dtype = dtype
        self.fortran = fortran
        self.shape = shape
        self.start = start

    @property
    def kind(self) -> str:
        return self.dtype[1:]

    @property
    def code(self) -> str:
        return _NPY_CODES[self.kind]

    @property
    def order(self) -> str:
        return ">" if self.dtype[0] == ">" else "<"

    @property
    def item_bytes(self) -> int:
        return struct.calcsize(self.order + self.code)


def npy_header(data: bytes | bytearray) -> NpyHeader:
    """Read by pattern, not by evaluating it as numpy does. Raises ValueError."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12 or data[6] not in (1, 2, 3):
        raise ValueError("not a .npy file")
    start = 10 if data[6] == 1 else 12
    length = int.from_bytes(data[8:start], "little")
    if length > _NPY_HEADER_BYTES or start + length > len(data):
        raise ValueError("the header is too long")
    text = data[start : start + length].decode("latin-1").strip()
    items, at = text[1:-1].rstrip(), 0
    fields: dict[str, str] = {}
    while at < len(items):
        item = _NPY_ITEM.match(items, at)
        if item is None or item[2] in fields:
            raise ValueError("objects, records and unknown headers are not read")
        fields[item[2]] = item[3]
        at = item.end()
    if text[:1] != "{" or text[-1:] != "}" or len(fields) != 3:
        raise ValueError("the header is not complete")
    return _npy_checked(fields, start + length)


def _npy_checked(fields: Mapping[str, str], start: int) -> NpyHeader:
    dtype, fortran, shape = fields["descr"][1:-1], fields["fortran_order"], fields["shape"]
    sized = dtype[:1] in "<>" or (dtype[:1] == "|" and dtype[2:] == "1")
    if dtype[1:] not in _NPY_CODES or not sized or fortran not in ("True", "False") or shape[0] != "(":
        raise ValueError("only numbers and booleans are read")
    sides = [side.strip() for side in shape[1:-1].split(",")]
    if sides[-1] == "":
        sides.pop()
    if len(sides) > 32 or not all(side.isdigit() and len(side) <= 18 for side in sides):
        raise ValueError("the shape is wrong")
    return NpyHeader(dtype, fortran == "True", tuple(int(side) for side in sides), start)


def _nested(header: NpyHeader, body: memoryview, name: str, allow_nan: bool) -> Any:
    count = math.prod(header.shape) * len(header.code)
    flat: Any = struct.unpack(f"{header.order}{count}{header.code[0]}", body)
    if not allow_nan and not all(map(math.isfinite, flat)):
        raise BadOutput(f"{name} holds NaN or infinity")
    if len(header.code) == 2:
        flat = tuple(map(complex, flat[::2], flat[1::2]))
    steps = [1]
    for side in header.shape[:-1] if header.fortran else header.shape[:0:-1]:
        steps.append(steps[-1] * max(1, side))
    return _nest(flat, header.shape, steps if header.fortran else steps[::-1], 0)


def _nest(flat: Any, shape: tuple[int, ...], steps: list[int], at: int) -> Any:
    if not shape:
        return flat[at]
    if len(shape) == 1:
        return list(flat[at : at + shape[0] * steps[0] : steps[0]])
    return [_nest(flat, shape[1:], steps[1:], at + place * steps[0]) for place in range(shape[0])]


def _inside(path: str | os.PathLike[str]) -> tuple[str, Path]:
    root, name = outputs(), _shown(path)
    given = Path(path)
    target = root / given
    plain = "\0" not in str(given) and not any("\ud800" <= one <= "\udfff" for one in str(given))
    if not plain or ".." in given.parts or root not in target.parents:
        raise BadOutput(f"{name} is no name of a file in {root.name}/")
    if os.path.realpath(target) != str(target):
        raise BadOutput(f"{name} is a link")
    return name, target


def _decoded(data: bytearray, name: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadOutput(f"{name} is not UTF-8 at byte {error.start}") from None
    if "\0" in text:
        raise BadOutput(f"{name} holds a NUL")
    return text


def _check_depth(text: str, limit: int, name: str) -> None:
    depth, inside_string = 0, False
    for found in _STRUCTURE.finditer(text):
        if found[0] == '"':
            inside_string = not inside_string
        elif not inside_string and found[0] in "[{":
            depth += 1
            if depth > limit:
                raise BadOutput(f"{name} is nested more than {limit} deep")
        elif not inside_string and found[0] in "]}":
            depth -= 1


def _check_whole_characters(value: Any, name: str) -> None:
    """An escape can name half of a character; a program that prints it later would fail."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadOutput(f"{name} holds half of a character") from None


def _digits(digits: str, kind: Any, name: str) -> Any:
    if len(digits) <= MAX_DIGITS:
        with contextlib.suppress(OverflowError):
            value = kind(digits)
            if math.isfinite(float(value)):
                return value
    raise BadOutput(f"{name} holds a number that is not finite, or too long")


def _without_doubles(pairs: list[tuple[str, Any]], name: str) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadOutput(f"{name} has a key twice")
    return members


def _finite(value: Any, what: str) -> float:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):
            if math.isfinite(float(value)):
                return float(value)
    raise ValueError(f"{what} must be a finite number")


def _claim(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        raise AlreadyPublished(f"{path.name} was claimed before") from None


def _write_beside(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name[:40]}.{os.urandom(8).hex()}")
    with beside.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def _file_name(task_id: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", task_id)[:80]
    if plain != task_id:
        import hashlib

        plain += "-" + hashlib.sha256(task_id.encode("utf-8", "backslashreplace")).hexdigest()[:12]
    return f"task_{plain}.json"


def _text(text: object, limit: int) -> str:
    whole = str(text).encode("utf-8", "backslashreplace").decode("utf-8")
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _shown(path: str | os.PathLike[str]) -> str:
    return ascii(os.fspath(path))[:80]
