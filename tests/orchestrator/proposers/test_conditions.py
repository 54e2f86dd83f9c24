"""Spaces in which some parameters are there only while others have certain values."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.change import File, Policy, Tree
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.loop.candidate import next_tree, point_in
from orchestrator.proposers.points import Points
from orchestrator.proposers.space import grid, random_point, resampled, steps
from orchestrator.task import Bool, Choice, Float, Int, Parameter, Parameters, is_point, is_there
from orchestrator.task.conditions import in_order

SPACE: dict[str, Parameter] = {
    "layout": Choice(values=("hex", "rings", "square")),
    "rows": Int(low=3, high=5, when={"layout": ("hex", "square")}),
    "shift": Float(low=0, high=1, points=2, when={"rows": (4,), "layout": ("hex",)}),
    "fast": Bool(),
}


@st.composite
def spaces(draw: st.DrawFn) -> dict[str, Parameter]:
    """Small ones; whatever a parameter depends on has a name before its own, or behind it."""
    names = draw(st.permutations("abcdef"))[: draw(st.integers(1, 6))]
    space: dict[str, Parameter] = {}
    for name in names:
        others = draw(st.lists(st.sampled_from(sorted(space)), max_size=2, unique=True)) if space else []
        when = {
            other: tuple(draw(st.lists(st.sampled_from(list(steps(space[other]))), min_size=1, unique=True)))
            for other in others
        }
        kind = draw(st.integers(0, 2))
        if kind == 0:
            space[name] = Bool(when=when)
        elif kind == 1:
            space[name] = Int(low=0, high=draw(st.integers(1, 4)), when=when)
        else:
            space[name] = Choice(values=(1, True, "x")[: draw(st.integers(1, 3))], when=when)
    return dict(sorted(space.items()))


def every_point(space: dict[str, Parameter]) -> set[str]:
    """By brute force: all combinations, each without what is not there."""
    found = set()
    for values in itertools.product(*(steps(it) for it in space.values())):
        full = dict(zip(space, values, strict=True))
        point: dict[str, Value] = {}
        for name in in_order(space):
            if is_there(space[name], point):
                point[name] = full[name]
        found.add(repr(sorted(point.items())))
    return found


@given(spaces())
@settings(deadline=None)
def test_a_grid_has_every_point_that_can_be_there_once(space: dict[str, Parameter]) -> None:
    """As many as brute force finds, all of them, none twice."""
    whole = grid(space)
    seen = [repr(sorted(whole.at(index).items())) for index in range(whole.size)]
    assert len(seen) == len(set(seen))
    assert set(seen) == every_point(space)


@given(spaces(), st.integers())
@settings(deadline=None)
def test_what_is_drawn_is_a_point(space: dict[str, Parameter], seed: int) -> None:
    """It has a value for all that is there and nothing else, drawn at once or from another point."""
    rng = random.Random(seed)
    point = random_point(space, rng)
    assert is_point(space, point)
    assert is_point(space, resampled(space, rng, point))
    assert list(point) == [name for name in space if name in point]


def test_a_huge_grid_is_counted_without_a_list() -> None:
    """Neither the values of a switch nor the points are gone through one by one."""
    space: dict[str, Parameter] = {
        "n": Int(low=0, high=2**50),
        "x": Int(low=1, high=2**40, when={"n": (5, 2**50)}),
        "y": Int(low=1, high=1000, when={"x": (7,)}),
    }
    assert grid(space).size == (2**50 - 1) + 2 * (2**40 - 1 + 1000)
    assert grid(space).at(5) == {"n": 5, "x": 1}
    assert grid(space).at(5 + 6 + 999) == {"n": 5, "x": 7, "y": 1000}
    assert grid(space).at(grid(space).size - 1) == {"n": 2**50, "x": 2**40}
    switches: dict[str, Parameter] = {f"a{number:02}": Bool() for number in range(40)}
    linked = {f"b{number:02}": Int(low=1, high=10, when={f"a{number:02}": (True,)}) for number in range(40)}
    assert grid({**switches, **linked}).size == 11**40, "what no condition links is counted apart"
    assert grid(SPACE).size == (1 + 2 + 1 + 1 + 3) * 2, "rings have no rows, and only four rows of hex have a shift"


def test_conditions_that_can_not_be_counted() -> None:
    """Counting gives up with a reason instead of taking for ever."""
    rng = random.Random(1)
    space: dict[str, Parameter] = {f"s{number:02}": Bool() for number in range(60)}
    for number in range(120):
        first, second = rng.sample(sorted(space)[:60], 2)
        space[f"t{number:03}"] = Bool(when={first: (True,), second: (False,)})
    with pytest.raises(ValueError, match="too entangled"):
        Points(space, {name: steps(it) for name, it in space.items()})


def test_what_is_not_there_leaves_the_file() -> None:
    """A point's file has no parameter that is not there; keys of other kinds stay."""
    tree = Tree({"p.json": File(b'{"layout": "hex", "rows": 4, "shift": 0.5, "fast": true, "note": 1}')})
    parameters = Parameters(file="p.json", space=SPACE)
    point: dict[str, Value] = {"layout": "rings", "fast": False}
    made = next_tree(tree, Proposal(operator="x", description="x", params=point), Policy(editable=("*",)), parameters)
    assert made["p.json"].data.split() == b'{ "fast": false, "layout": "rings", "note": 1 }'.split()
    assert point_in(made, "p.json", SPACE) == point


def test_what_a_file_holds_of_a_conditional_space() -> None:
    """A value of a parameter that is not there is not taken over, nor what depends on a value that is none."""
    for text, held in (
        ('{"layout": "rings", "rows": 4, "shift": 1}', {"layout": "rings"}),
        ('{"layout": "hex", "rows": 9, "shift": 1}', {"layout": "hex"}),
        ('{"rows": 4, "shift": 1, "fast": true}', {"fast": True}),
        ('{"layout": "hex", "rows": 4, "shift": 1}', {"layout": "hex", "rows": 4, "shift": 1}),
    ):
        assert point_in(Tree({"p.json": File(text.encode())}), "p.json", SPACE) == held
