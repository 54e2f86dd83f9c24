"""The frontier over tasks: whoever is best at something, and nobody who is dominated."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.ending import Ending
from orchestrator.domain.frontier import Frontier, Merits, dominates, frontier_of, merits_of
from orchestrator.domain.metric import Goal
from orchestrator.domain.node import order_of
from orchestrator.domain.records import Role
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from tests.chance import at_least, at_most
from tests.orchestrator.views.campaign.builder import Story

SCORES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3).map(float), min_size=1)
NODES = st.lists(SCORES, min_size=1, max_size=14).map(lambda many: {f"1.{n}": it for n, it in enumerate(many, 1)})


def by_hand(nodes: dict[str, Merits]) -> dict[str, list[str]]:
    """The same from its definition."""
    best = {task: max(it[task] for it in nodes.values() if task in it) for it in nodes.values() for task in it}
    found: dict[str, list[str]] = {}
    for name in sorted(nodes, key=order_of):
        mine = nodes[name]
        if any(dominates(other, mine) for other in nodes.values()):
            continue
        if any(nodes[other] == mine for other in found):
            continue
        if tasks := sorted(task for task, value in mine.items() if value == best[task]):
            found[name] = tasks
    return found


@given(NODES, st.randoms(use_true_random=False))
def test_it_is_what_its_definition_says(nodes: dict[str, Merits], rng: random.Random) -> None:
    """Nobody who is dominated and no copy, everybody who is best at something, in whatever order they came."""
    order = list(nodes.items())
    rng.shuffle(order)
    assert Frontier(order).best_at == by_hand(nodes)


def test_a_missing_task_is_the_worst() -> None:
    """Who lacks a task dominates nobody who has it, and is dominated by whoever has it too. A copy gains nothing."""
    assert not dominates({"a": 9.0}, {"a": 1.0, "b": -100.0})
    assert dominates({"a": 1.0, "b": -100.0}, {"a": 1.0})
    assert Frontier([("1.1", {"a": 9.0}), ("1.2", {"a": 1.0, "b": -100.0})]).best_at == {"1.1": ["a"], "1.2": ["b"]}
    same = {"a": 1.0, "b": 0.0}
    assert Frontier([("1.3", same), ("1.1", same), ("1.2", same)]).best_at == {"1.1": ["a", "b"]}


def test_chances_follow_the_number_of_tasks() -> None:
    """Best at three tasks of four is drawn three times in four; the same seed draws the same."""
    frontier = Frontier([("1.1", {"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0}), ("1.2", {"d": 1.0, "a": 0.0})])
    drawn = Counter(frontier.draw(f"7/1/branch {n}") for n in range(2000))
    assert at_least(2000, 0.75) <= drawn["1.1"] <= at_most(2000, 0.75)
    assert [frontier.draw(f"{n}") for n in range(50)] == [frontier.draw(f"{n}") for n in range(50)]
    assert Frontier().draw("7") is None


def test_directions() -> None:
    """A task may go the other way."""
    verdict = Verdict(
        metrics={"score": 1.0},
        tasks={"time": 5.0, "hits": 2.0},
        directions={"time": Goal.LOWER},
        tier=Tier.DATA,
        mode=Mode.SUBMIT,
        cohort="c",
    )
    assert merits_of(verdict) == {"time": -5.0, "hits": 2.0}


def test_who_may_be_chosen() -> None:
    """Scored, valid, believed, of the present cohort, and not the control's."""
    story = Story().open(beside="random")
    story.baseline(1.0)
    tasks = {"a": 9.0, "b": 9.0}
    story.attempt("1", 2.0, verdict={"tasks": {"a": 1.0, "b": 0.0}})
    story.attempt("1", 2.0, verdict={"tasks": {"a": 0.0, "b": 1.0}})
    story.attempt("1", 2.0, verdict={"tasks": tasks}, role=Role.CONTROL)
    story.attempt("1", 2.0, verdict={"tasks": tasks, "valid": False}, ending=Ending.INVALID)
    story.attempt("1", 2.0, verdict={"tasks": tasks, "suspect": ("score",)})
    story.attempt("1", 2.0, verdict={"tasks": tasks}, cohort="elsewhere")
    story.attempt("1", 2.0)
    assert frontier_of(story.state).best_at == {"1.1": ["a"], "1.2": ["b"]}
