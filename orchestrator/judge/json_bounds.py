"""JSON with bounds on bytes, depth and digits, without doubled keys and without numbers that are none.

The standard parser takes NaN, keeps the last of two equal keys, recurses as deep as the text does and turns
1e999 into infinity. Depth is counted before parsing, so that the answer does not depend on how deep the stack
already is.
"""

import json
import math
import re
from typing import NoReturn

from orchestrator.judge.bounds import ResultFault, ResultRefused, quoted

# An escaped character is one mark, so that an escaped quote does not end its string.
_STRUCTURE = re.compile(r'\\.|["\[\]{}]', re.DOTALL)


def loads(data: bytes, *, max_bytes: int, max_depth: int, max_digits: int) -> object:
    """Plain values, every number finite and every string fit for UTF-8. Raises ResultRefused and nothing else."""
    if len(data) > max_bytes:
        raise ResultRefused(ResultFault.TOO_LARGE, f"{len(data)} bytes, at most {max_bytes} are read")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultRefused(ResultFault.NOT_UTF8, f"byte {error.start}") from None
    _check_depth(text, max_depth)
    value = _parsed(text, max_digits)
    _check(value, ())
    return value


def _check_depth(text: str, limit: int) -> None:
    depth, inside_string = 0, False
    for found in _STRUCTURE.finditer(text):
        mark = found[0]
        if mark == '"':
            inside_string = not inside_string
        elif inside_string:
            continue
        elif mark in "[{":
            depth += 1
            if depth > limit:
                raise ResultRefused(ResultFault.TOO_DEEP, f"more than {limit} levels")
        elif mark in "]}":
            depth -= 1


def _parsed(text: str, max_digits: int) -> object:
    def short(digits: str) -> str:
        if len(digits) > max_digits:
            raise ResultRefused(ResultFault.NUMBER_TOO_LONG, f"{len(digits)} characters, at most {max_digits} are read")
        return digits

    try:
        value: object = json.loads(
            text,
            parse_int=lambda digits: int(short(digits)),
            parse_float=lambda digits: float(short(digits)),
            object_pairs_hook=_without_doubles,
        )
    except json.JSONDecodeError as error:
        raise ResultRefused(ResultFault.NOT_JSON, f"{error.msg}, line {error.lineno} column {error.colno}") from None
    return value


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise ResultRefused(ResultFault.DUPLICATE_KEY, quoted(key))
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
        raise ResultRefused(ResultFault.NOT_UTF8, f"{_shown(where)} has half of a character", where) from None


def _not_finite(where: tuple[str, ...]) -> NoReturn:
    raise ResultRefused(ResultFault.NOT_FINITE, f"{_shown(where)} is not a finite number", where)


def _shown(where: tuple[str, ...]) -> str:
    return quoted(".".join(where)) if where else "the value"
