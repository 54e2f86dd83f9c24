"""Modules of a judge's and a candidate's chamber, as those have them: beside each other, and nothing before them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from orchestrator.judge.helpers import GUEST

Hook = Callable[[str, tuple[Any, ...]], None]
# Those of the guests that are loaded now: no hook can be taken away, and each would be asked for ever.
_hooks: list[Hook] = []
_OF_A_CHAMBER = ("blastdoor_", "evaluation_module", "openevolve", "shinka")


@contextmanager
def fresh_guests() -> Iterator[None]:
    """They know errors by their classes: one that another test left would not know those of one that is loaded now."""
    before = _taken_out()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(str(GUEST))
            _hook()
            patch.setattr(sys, "addaudithook", _hooks.append)
            yield
    finally:
        _hooks.clear()
        _taken_out()
        sys.modules.update(before)


@cache
def _hook() -> None:
    def ask(event: str, arguments: tuple[Any, ...]) -> None:
        for hook in _hooks:
            hook(event, arguments)

    sys.addaudithook(ask)


def _taken_out() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(_OF_A_CHAMBER)}
