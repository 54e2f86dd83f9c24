"""Which files of a tree operators may work on: text that the task lets a change touch, small files first."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.change import Policy, Refusal, Tree
from orchestrator.change.regions import BadRegion, Region, spans
from orchestrator.proposers.operators.meaning import is_python

MOST_FILES = 64
_HALF = 8 << 10  # bytes at which a file counts half
_PROSE = (".md", ".rst", ".markdown", ".adoc")


@dataclass(frozen=True, slots=True)
class Target:
    """A file with how likely it is to be chosen, before anything is known of it, and its regions if it has some."""

    path: str
    data: bytes
    weight: float
    regions: tuple[Region, ...] = ()


def editable_texts(tree: Tree, policy: Policy, left_out: str | None = None) -> list[Target]:
    """`left_out` is a file that others look after; it counts when there is no other."""
    found = [
        Target(path, file.data, _weight(path, file.data), policy.regions.get(path, ()))
        for path, file in tree.items()
        if len(file.data) <= policy.caps.file_bytes and _may_touch(path, policy) and _is_text(file.data)
        if _has_regions(path, file.data, policy)
    ]
    others = [target for target in found if target.path != left_out]
    return sorted(others or found, key=lambda target: (len(target.data), target.path))[:MOST_FILES]


def _may_touch(path: str, policy: Policy) -> bool:
    try:
        policy.check(path)
    except Refusal:
        return False
    return True


def _has_regions(path: str, data: bytes, policy: Policy) -> bool:
    """Whether a file that is editable in part still has these parts."""
    try:
        return not (regions := policy.regions.get(path)) or bool(spans(path, data, regions))
    except BadRegion:
        return False


def _is_text(data: bytes) -> bool:
    """UTF-8 with something in it; a change in any other encoding could not be written down."""
    try:
        return "\0" not in data.decode() and bool(data.strip())
    except UnicodeDecodeError:
        return False


def _weight(path: str, data: bytes) -> float:
    size = 1.0 / (1.0 + len(data) / _HALF)
    if PurePosixPath(path).suffix.lower() in _PROSE:
        return 0.02 * size
    return size * (1.0 if is_python(path) else 0.7)
