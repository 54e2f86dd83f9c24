"""Digests of what an agent's tools are asked and answer: equal ones are the same step once more."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

# What differs from run to run without saying anything by itself: how long it took, when it was, where in memory it lay.
# Whether times keep growing is another matter, so that they are told beside the digest.
_DURATION = re.compile(r"\b(\d+(?:\.\d+)?)\s?(ms|s|secs?|seconds?)\b")
_CLOCK = re.compile(r"\b(?:\d{4}-\d\d-\d\d[T ])?(\d\d):(\d\d):(\d\d(?:[.,]\d+)?)Z?\b")
_TIMES = re.compile(f"{_CLOCK.pattern}|{_DURATION.pattern}")
_MOST_TIMES = 6
_PIECE = 65_536
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


def called(name: str, given: Any) -> str:
    return _digest([name, _calm(given)])


def called_raw(name: str, given: str) -> str:
    """Of input that came as JSON; what is no JSON stands for itself."""
    try:
        return called(name, json.loads(given) if given.strip() else {})
    except (ValueError, RecursionError):
        return _digest([name, given])


def answered(messages: Any) -> Iterator[tuple[str, str]]:
    """Id and digest of each result that was handed in after the model's last words; the times in it follow the digest,
    after a colon.
    """
    if not isinstance(messages, list):
        return
    last = max((at for at, one in enumerate(messages) if one.get("role") == "assistant"), default=-1)
    for message in messages[last + 1 :]:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                said = _calm([block.get("content"), bool(block.get("is_error"))])
                times = ",".join(f"{time:.7g}" for time in islice(_times(said), _MOST_TIMES))
                digest = _digest(_noiseless(said))
                yield str(block.get("tool_use_id"))[:128], f"{digest}:{times}" if times else digest


def _calm(value: Any) -> Any:
    """White space and the order of keys say nothing."""
    if isinstance(value, str):
        return " ".join(" ".join(piece.split()) for piece in _pieces(value))
    if isinstance(value, Mapping):
        return {str(name): _calm(one) for name, one in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_calm(one) for one in value]
    return value


def _noiseless(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(_ADDRESS.sub("0x", _DURATION.sub("0s", _CLOCK.sub("0:00", it))) for it in _pieces(value))
    if isinstance(value, Mapping):
        return {name: _noiseless(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_noiseless(one) for one in value]
    return value


def _times(value: Any) -> Iterator[float]:
    """In seconds, in the order in which they are said."""
    if isinstance(value, str):
        for piece in _pieces(value):
            for hours, minutes, seconds, length, unit in _TIMES.findall(piece):
                if unit:
                    yield float(length) / (1000 if unit == "ms" else 1)
                else:
                    yield 3600 * int(hours) + 60 * int(minutes) + float(seconds.replace(",", "."))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _times(one)
    elif isinstance(value, list):
        for one in value:
            yield from _times(one)


def _pieces(text: str) -> Iterator[str]:
    """Of a long text: what is done with the whole of it would keep every other thread waiting."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
