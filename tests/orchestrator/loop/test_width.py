"""C2: how wide and how deep, said with a reason."""

from typing import Any

import pytest

from orchestrator.loop.width import Shape, shape

LIGHT: dict[str, Any] = {
    "width": None,
    "depth": None,
    "serial": False,
    "branching": True,
    "saturates": None,
    "ceiling": 16,
    "wall_s": 30,
}


def shaped(**changes: Any) -> Shape:
    return shape(**{**LIGHT, **changes})


@pytest.mark.parametrize(
    ("told", "width"),
    [
        ({}, 5),
        ({"ceiling": 2}, 2),
        ({"ceiling": 0}, 1),
        *(({"saturates": (it,)}, 1) for it in ("gpu", "memory", "port", "database", "api")),
        ({"saturates": ("cpu",)}, 16),
        ({"timed": True}, 1),
        ({"timed": True, "saturates": ("cpu",)}, 16),
        ({"timed": True, "width": 3}, 3),
        ({"serial": True}, 1),
        ({"serial": True, "width": 9, "saturates": ("gpu",), "ceiling": 1}, 9),
    ],
)
def test_width(told: dict[str, Any], width: int) -> None:
    """Five where nothing is known, never wider than fits and never less than one. What can be had once (a GPU, memory,
    a port, a database, an API's rate), times and changes to code are serial: a neighbour is in what a candidate takes,
    and each change must see what came before it. Who says what one run fills has thought of that, and who gives a
    width wins over all.
    """
    assert shaped(**told).width == width


@pytest.mark.parametrize(
    ("told", "depth"),
    [({}, 5), ({"wall_s": 600}, 2), ({"branching": False, "depth": 9}, 1), ({"depth": 7}, 7)],
)
def test_depth(told: dict[str, Any], depth: int) -> None:
    """Long trials make short branches; what always starts at the root has none."""
    assert shaped(**told).depth == depth


def test_the_choice_is_said_in_one_line() -> None:
    """Both numbers, each with its reason."""
    assert shaped(saturates=("gpu",)).why == "width 1 (one run fills the gpu), depth 5 (trials are short)"
    assert "times are taken one at a time" in shaped(timed=True).why
