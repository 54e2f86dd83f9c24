"""How a node looks, the same everywhere: a word, a sign that needs no colour, and a colour."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from orchestrator.domain.ending import Ending
from orchestrator.domain.headline import Headline
from orchestrator.domain.records import Node, Phase, Role
from orchestrator.views.render.model import Look


class _Verdict(Protocol):
    @property
    def suspect(self) -> tuple[str, ...]: ...


class Looked(Protocol):
    """What of a node its look comes from."""

    @property
    def phase(self) -> Phase: ...
    @property
    def ending(self) -> Ending | None: ...
    @property
    def verdict(self) -> _Verdict | None: ...
    @property
    def kept(self) -> bool: ...
    @property
    def role(self) -> Role: ...


KEPT = Look("kept", "●", "@", "bold green", 9)
DISCARDED = Look("discarded", "○", "o", "blue", 5)
CONTROL = Look("control", "◇", "v", "cyan", 4)
SUSPECT = Look("not believed", "?", "?", "bold magenta", 8)
RUNNING = Look("running", "▸", ">", "cyan", 3)
QUEUED = Look("queued", "…", ".", "cyan", 2)
QUARANTINED = Look("quarantined", "Q", "Q", "bold yellow", 7)
_ENDINGS = {
    Ending.FAILED: Look("failed", "✗", "x", "red", 6),
    Ending.BUILD_FAILED: Look("build failed", "b", "b", "red", 6),
    Ending.TIMED_OUT: Look("timed out", "t", "t", "red", 6),
    Ending.OUT_OF_MEMORY: Look("out of memory", "m", "m", "red", 6),
    Ending.INVALID: Look("invalid", "i", "i", "red", 6),
    Ending.TAMPERED: Look("tampered", "!", "!", "bold red", 8),
    Ending.PRUNED: Look("pruned", "p", "p", "bright_black", 4),
    Ending.STALLED: Look("stalled", "s", "s", "yellow", 3),
    Ending.INFRASTRUCTURE: Look("infrastructure", "~", "~", "yellow", 3),
    Ending.INTERRUPTED: Look("interrupted", "-", "-", "yellow", 2),
    Ending.CANCELLED: Look("cancelled", "c", "c", "bright_black", 1),
    Ending.HELD: Look("held", "H", "H", "bold yellow", 7),
}
_PHASES = {Phase.OPEN: RUNNING, Phase.QUEUED: QUEUED, Phase.QUARANTINED: QUARANTINED}
LOOKS = (KEPT, DISCARDED, CONTROL, SUSPECT, *_ENDINGS.values(), RUNNING, QUEUED, QUARANTINED)


def look_of(node: Looked) -> Look:
    if node.phase is Phase.QUARANTINED and node.ending is Ending.HELD:
        return _ENDINGS[Ending.HELD]
    if node.phase is not Phase.ENDED or node.ending is None:
        return _PHASES.get(node.phase, RUNNING)
    if node.ending is not Ending.SCORED:
        return _ENDINGS[node.ending]
    if node.verdict and node.verdict.suspect:
        return SUSPECT
    if node.kept or node.role is Role.BASELINE:
        return KEPT
    return CONTROL if node.role is Role.CONTROL else DISCARDED


def doubt_of(node: Node, found: Headline | None) -> str:
    """What there is to say about a node beside its figures: why it is no solution, or what was too short to time."""
    if found is None:
        return node.verdict.notes if node.ending is Ending.INVALID and node.verdict else ""
    names = ", ".join(found.at_most)
    return f"{names} may be less: the channel cannot tell a shorter call from none" if names else ""


def counted(looks: Iterable[Look]) -> list[tuple[Look, int]]:
    """Every look that occurs, in a fixed order, and how often it does."""
    counts = Counter(look.word for look in looks)
    return [(look, counts[look.word]) for look in LOOKS if counts[look.word]]
