"""What is wanted of a model for one brief: a draft, an improvement, or another go at what went wrong."""

from collections.abc import Iterator
from enum import StrEnum

from orchestrator.domain.ending import Ending
from orchestrator.proposers.base import Brief, Tried

# What a person could mend. A tampered or pruned one is not wanted again.
_MENDABLE = {Ending.BUILD_FAILED, Ending.FAILED, Ending.TIMED_OUT, Ending.OUT_OF_MEMORY, Ending.INVALID}
_DEBUGS_IN_A_ROW = 2
_WEIGHT = 3.0  # of the usual mode, beside the other that is sensible


class Mode(StrEnum):
    DRAFT = "draft"
    IMPROVE = "improve"
    DEBUG = "debug"


def choose(brief: Brief) -> tuple[Mode, Tried | None]:
    """The same for the same past and chooser. With the one that went wrong, where that is what is wanted.

    Where the search learns, it may also improve what it would mend or begin again: both are sensible there.
    """
    mode, failed = _usual(brief)
    fails = brief.lineage and brief.lineage[-1].ending in _MENDABLE
    if not brief.chooser.learns or mode is Mode.IMPROVE or fails:
        return mode, failed
    chosen = brief.chooser.choose("mode", {mode: _WEIGHT, Mode.IMPROVE: 1.0})
    return (mode, failed) if chosen == mode else (Mode.IMPROVE, None)


def _usual(brief: Brief) -> tuple[Mode, Tried | None]:
    siblings = _siblings(brief)
    last = next(siblings, None)
    if last and _can_be_mended(brief, last) and not _tried_enough(last, siblings):
        return Mode.DEBUG, last
    if brief.lineage and brief.lineage[-1].ending in _MENDABLE:
        return Mode.DEBUG, brief.lineage[-1]
    is_root = "." not in brief.parent
    if is_root and (brief.step <= 1 or not any(it.merits is not None for it in _siblings(brief))):
        return Mode.DRAFT, None
    return Mode.IMPROVE, None


def _siblings(brief: Brief) -> Iterator[Tried]:
    """What was tried on the same parent, the last one first."""
    return (it for it in reversed(brief.past.ended) if it.parent == brief.parent)


def _can_be_mended(brief: Brief, tried: Tried) -> bool:
    """Only what became a candidate can be looked at; a change that was refused was told back already."""
    if tried.ending not in _MENDABLE:
        return False
    try:
        brief.past.tree(tried.node)
    except LookupError:
        return False
    return True


def _tried_enough(last: Tried, earlier: Iterator[Tried]) -> bool:
    """So many in a row were meant to mend and did not."""
    if last.operator != Mode.DEBUG:
        return False
    for count, tried in enumerate(earlier, 2):
        if tried.operator != Mode.DEBUG:
            return False
        if count >= _DEBUGS_IN_A_ROW:
            return True
    return False
