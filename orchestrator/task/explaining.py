"""What a validator found, in the words of the one who wrote the file: key, bounds and units as people write them."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from orchestrator.task.errors import Key, Wrong
from orchestrator.task.shape import known_keys, unit_of

SHOWN = 60

_WANTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "tuple_type": "a list in brackets",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def explained(errors: Sequence[ErrorDetails], raw: dict[str, Any]) -> Wrong:
    """The one error to begin with: a misspelt key first, since it makes others of its own."""
    error = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    absent = error["type"] in ("missing", "extra_forbidden")
    key = _written(error["loc"], raw, absent=absent)
    if error["type"] == "extra_forbidden":
        return Wrong(key, _unknown(str(key[-1]), known_keys(error["loc"][:-1])))
    if error["type"] == "union_tag_not_found":
        return Wrong((*key, "type"), "is missing; write what the parameter is: int, float, choice or bool")
    if error["type"] == "union_tag_invalid":
        context = error["ctx"]
        return Wrong((*key, "type"), _quoted(f"must be one of {context['expected_tags']}, not '{context['tag']}'"))
    return Wrong(key, _told(error))


def nearest(word: str, known: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)), None)


def _told(error: ErrorDetails) -> str:
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    unit, said = unit_of(error["loc"])
    if kind == "missing":
        return "is missing; add it"
    if kind == "value_error":
        return str(context["error"])
    if isinstance(value, float) and not math.isfinite(value):
        return f"must be {_WANTED['finite_number']}, not {value}"
    if kind in _WANTED:
        return f"must be {unit or _WANTED[kind]}, not {_shown(value)}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        # Text is told as it was written: the validator hands out what it was given, not what was read of it.
        return f"must be {words} {said(context[bound])}, not {_shown(value) if isinstance(value, str) else said(value)}"
    if kind in ("enum", "literal_error"):
        return f"must be {_quoted(context['expected'])}, not {_shown(value)}"
    if kind in ("too_short", "string_too_short"):
        return f"is too short; the least is {context['min_length']}"
    if kind in ("too_long", "string_too_long"):
        return f"is too long; the most is {context['max_length']}"
    return f"{error['msg']}; correct it"


def _unknown(word: str, known: list[str]) -> str:
    if close := nearest(word, known):
        return f"unknown key; did you mean {close}?"
    return f"unknown key; known are {', '.join(known)}"


def _quoted(words: str) -> str:
    return words.replace("'", '"')


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _written(location: tuple[str | int, ...], raw: Any, *, absent: bool) -> Key:
    """The location without what the validator put in: names of alternatives, and the mark of a bad key.

    The last part of it may be `absent` from the file: a key that should be there.
    """
    key: list[str | int] = []
    parts = [part for part in location if part != "[key]" and not str(part).startswith("<")]
    for at, part in enumerate(parts):
        is_there = part in raw if isinstance(raw, dict) else isinstance(raw, list) and isinstance(part, int)
        if is_there:
            raw = raw[part]
            key.append(part)
        elif absent and at == len(parts) - 1:
            key.append(part)
    return tuple(key)
