"""What an agent's chamber says. All of it is hostile: bounded, checked, and refused as a whole if one part is wrong."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from orchestrator.judge.guest.blastdoor_values import Malformed, decode
from orchestrator.text import short
from orchestrator.units import format_size

# The API takes no larger request; and what a workspace may hand over is far below what a change may have.
BODY_BYTES = 32 << 20
FILES, FILE_BYTES = 2_000, 8 << 20
MESSAGES = 1_000
_HEADERS, _HEADER_BYTES, _PATH_BYTES = 100, 65_536, 4_096
_SAID = 1_000
_METHOD = re.compile(r"[A-Z]{1,16}")
_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,128}")


class Broken(Exception):
    """The chamber said something that nobody may say; it is ended. One line for a person."""


@dataclass(frozen=True)
class Request:
    """A call of the API, to be answered piece by piece."""

    id: int
    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True)
class Gone:
    """The maker of the request does not wait for its answer any more."""

    id: int


@dataclass(frozen=True)
class Work:
    """What differs from the workspace as it was delivered: files, and the names of those that are gone."""

    files: Mapping[str, bytes]
    deleted: tuple[str, ...]


@dataclass(frozen=True)
class ToolCall:
    """A call of `blastdoor`: `said` is the agent's own word for what it did, escaped and short."""

    id: int
    name: str
    said: str
    work: Work


@dataclass(frozen=True)
class Exited:
    code: int
    work: Work


Up = Request | Gone | ToolCall | Exited
T = TypeVar("T")


def read(payload: bytes) -> list[Up]:
    """Raises Broken."""
    try:
        found = decode(payload, arrays=False)
    except Malformed as error:
        raise Broken(f"its frame is no value ({error})") from None
    if len(_is(found, list)) > MESSAGES:
        raise Broken(f"{len(found)} messages in one frame")
    return [_message(_is(item, list)) for item in found]


def _message(parts: list[Any]) -> Up:
    match parts:
        case ["request", number, method, path, headers, body]:
            return _request(_number(number), _is(method, str), _is(path, str), _is(headers, list), _is(body, bytes))
        case ["gone", number]:
            return Gone(_number(number))
        case ["tool", number, name, said, files, deleted]:
            words = short(_is(said, str)[:_SAID], _SAID)
            return ToolCall(_number(number), short(_is(name, str)[:40], 40), words, _work(files, deleted))
        case ["exited", code, files, deleted]:
            return Exited(_is(code, int), _work(files, deleted))
    raise Broken(f"a message that nobody knows: {short(repr(parts[:1]), 60)}")


def _request(number: int, method: str, path: str, headers: list[Any], body: bytes) -> Request:
    if not _METHOD.fullmatch(method) or not path.startswith("/") or len(path) > _PATH_BYTES or not path.isascii():
        raise Broken("a request with a method or a path that none has")
    if len(body) > BODY_BYTES:
        raise Broken(f"a request of {format_size(len(body))}; the cap is {format_size(BODY_BYTES)}")
    if len(headers) > _HEADERS:
        raise Broken(f"a request with {len(headers)} headers")
    pairs = tuple(_header(_is(pair, list)) for pair in headers)
    if sum(len(name) + len(value) for name, value in pairs) > _HEADER_BYTES:
        raise Broken("a request with headers that are too long")
    place, _, query = path.partition("?")
    return Request(number, method, place, query, pairs, body)


def _header(pair: list[Any]) -> tuple[str, str]:
    match pair:
        case [str() as name, str() as value] if _HEADER.fullmatch(name) and value.isprintable() and value.isascii():
            return name, value
    raise Broken("a header that none has")


def _work(files: object, deleted: object) -> Work:
    found, gone = _is(files, dict), _is(deleted, list)
    if len(found) > FILES or sum(len(_is(data, bytes)) for data in found.values()) > FILE_BYTES:
        raise Broken("more files than it may hand over")
    if len(gone) > 100_000:
        raise Broken("more deleted files than there were")
    return Work(found, tuple(_is(name, str) for name in gone))


def _number(value: object) -> int:
    number = _is(value, int)
    if not 0 < number < 2**53:
        raise Broken("a number that is out of bounds")
    return number


def _is(value: object, kind: type[T]) -> T:
    """Exactly this type: the decoder makes no subclass, and True is no number."""
    if type(value) is not kind:
        raise Broken(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value
