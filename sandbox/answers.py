"""What an engine answers, whichever version wrote it: a field that is left out, null or empty says the same."""

from collections.abc import Mapping, Sequence
from typing import Any

from sandbox.errors import Unavailable

Answer = Mapping[str, Any]


def fields(answer: Answer, *path: str) -> Answer:
    found = _found(answer, path)
    return found if isinstance(found, Mapping) else {}


def items(answer: Answer, *path: str) -> Sequence[Any]:
    found = _found(answer, path)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def text(answer: Answer, *path: str) -> str:
    found = _found(answer, path)
    return "" if found is None else str(found)


def flag(answer: Answer, *path: str) -> bool:
    return bool(_found(answer, path))


def needed(answer: Answer, *path: str) -> str:
    """What nobody can leave out, such as an id. Raises Unavailable: no container is to blame for its engine."""
    if not (found := text(answer, *path)):
        raise Unavailable(f"the engine's answer has no {'.'.join(path)}; is it a Docker engine, and a known version?")
    return found


def _found(answer: object, path: Sequence[str]) -> object:
    for name in path:
        answer = answer.get(name) if isinstance(answer, Mapping) else None
    return answer
