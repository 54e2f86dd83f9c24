"""Modules of a judge's and a candidate's chamber, as those have them: beside each other, and nothing before them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from orchestrator.judge.helpers import GUEST

_OF_A_CHAMBER = ("blastdoor_", "evaluation_module", "openevolve", "shinka")


@contextmanager
def fresh_guests() -> Iterator[None]:
    """They know errors by their classes: one that another test left would not know those of one that is loaded now."""
    before = _taken_out()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(GUEST))
            yield
    finally:
        _taken_out()
        sys.modules.update(before)


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(_OF_A_CHAMBER)}
