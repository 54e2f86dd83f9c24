"""JSON with bounds on bytes, parts, depth and digits, without doubled keys and without numbers that are none.

The standard parser takes NaN, keeps the last of two equal keys, recurses as deep as the text does and turns
1e999 into infinity. Depth is counted before parsing, so that the answer does not depend on how deep the stack
already is.
"""

import json
import math
import re
from enum import StrEnum
from typing import NoReturn

from orchestrator.text import short
from orchestrator.units import format_size

_QUOTED_CHARACTERS = 60
# The parser makes lists and objects without a pause, so that many of them would keep every other thread waiting.
MOST_OPENED = 50_000

# An escaped character is one mark, so that an escaped quote does not end its string.
_STRUCTURE = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
_PARTS = re.compile(rb'\\.|["\[{,]', re.DOTALL)


class JsonFault(StrEnum):
    TOO_LARGE = "too large"
    NOT_UTF8 = "not UTF-8"
    NOT_JSON = "not JSON"
    TOO_DEEP = "nested too deeply"
    DUPLICATE_KEY = "a key twice"
    NUMBER_TOO_LONG = "number too long"
    NOT_FINITE = "number not finite"


class JsonRefused(Exception):
    """Somebody else's bytes are no JSON that is read here. `where` is the path of keys, as far as it is known."""

    def __init__(self, code: JsonFault, detail: str, where: tuple[str, ...] = ()) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.where = where


def loads(data: bytes, *, max_bytes: int, max_depth: int, max_digits: int) -> object:
    """Plain values, every number finite and every string fit for UTF-8. Raises JsonRefused and nothing else."""
    if len(data) > max_bytes:
        raise JsonRefused(JsonFault.TOO_LARGE, f"{format_size(len(data))}, at most {format_size(max_bytes)} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonRefused(JsonFault.NOT_UTF8, f"byte {error.start}") from None
    _check_structure(text, max_depth)
    value = _parsed(text, max_digits)
    _check(value, ())
    return value


def _check_structure(text: str, limit: int) -> None:
    depth, opened, inside_string = 0, 0, False
    for found in _STRUCTURE.finditer(text):
        mark = found[0]
        if mark == '"':
            inside_string = not inside_string
        elif inside_string:
            continue
        elif mark in "[{":
            depth, opened = depth + 1, opened + 1
            if depth > limit:
                raise JsonRefused(JsonFault.TOO_DEEP, f"more than {limit} levels")
            if opened > MOST_OPENED:
                raise JsonRefused(JsonFault.TOO_LARGE, f"more than {MOST_OPENED} lists and objects")
        elif mark in "]}":
            depth -= 1


def has_most_parts(data: bytes, most: int) -> bool:
    """Whether JSON has no more lists, objects and members than that: what it costs to parse, and to keep.

    A text may hold the same characters for nothing, so they are looked at one by one only where there are many.
    """
    if sum(map(data.count, (b"[", b"{", b","))) <= most:
        return True
    count, inside_string = 0, False
    for found in _PARTS.finditer(data):
        if found[0] == b'"':
            inside_string = not inside_string
        elif not inside_string and found[0] in b"[{,":
            count += 1
            if count > most:
                return False
    return True


def _parsed(text: str, max_digits: int) -> object:
    def short(digits: str) -> str:
        if len(digits) > max_digits:
            raise JsonRefused(JsonFault.NUMBER_TOO_LONG, f"{len(digits)} characters, at most {max_digits} are read")
        return digits

    decoder = json.JSONDecoder(
        parse_int=lambda digits: int(short(digits)),
        parse_float=lambda digits: float(short(digits)),
        object_pairs_hook=_without_doubles,
    )
    try:
        value: object = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise JsonRefused(JsonFault.NOT_JSON, f"{error.msg}, line {error.lineno} column {error.colno}") from None
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise JsonRefused(JsonFault.DUPLICATE_KEY, quoted(key))
        members[key] = value
    return members


def _check(value: object, where: tuple[str, ...]) -> None:
    """NaN, 1e999 and escaped halves of a character are let through by the parser, so look at every leaf."""
    if isinstance(value, dict):
        for key, member in value.items():
            _check_text(key, where)
            _check(member, (*where, key))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            _check(member, (*where, str(place)))
    elif isinstance(value, str):
        _check_text(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            _not_finite(where)
    elif isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            _not_finite(where)


def _check_text(text: str, where: tuple[str, ...]) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise JsonRefused(JsonFault.NOT_UTF8, f"{_shown(where)} has half of a character", where) from None


def _not_finite(where: tuple[str, ...]) -> NoReturn:
    raise JsonRefused(JsonFault.NOT_FINITE, f"{_shown(where)} is not a finite number", where)


def _shown(where: tuple[str, ...]) -> str:
    return quoted(".".join(where)) if where else "the value"


def quoted(text: str) -> str:
    """Text of somebody else: short, on one line, and nothing in it acts on a screen."""
    return f"'{short(text[: 2 * _QUOTED_CHARACTERS], _QUOTED_CHARACTERS)}'"
