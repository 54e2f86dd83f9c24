"""The fewest parts that keep a score, found with few questions: no single one of them can go."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.minimise.search import Part, Search


def asked(search: Search, keeps: Callable[[Part], bool]) -> int:
    """How many different selections it took."""
    seen: dict[Part, bool] = {}
    questions = search.questions()
    batch = next(questions, None)
    while batch is not None:
        answers = [seen.setdefault(it, keeps(it)) for it in batch]
        try:
            batch = questions.send(answers)
        except StopIteration:
            break
    return len(seen)


def singles(count: int) -> list[Part]:
    return [frozenset({at}) for at in range(count)]


@given(st.integers(1, 14), st.randoms(use_true_random=False), st.sampled_from([1, 3]))
def test_no_single_part_can_go(count: int, chance: random.Random, width: int) -> None:
    """Whatever the parts do to each other: what is left keeps the score, and without any part of it, it is lost."""
    drawn: dict[Part, bool] = {frozenset(range(count)): True}

    def keeps(part: Part) -> bool:
        return drawn.setdefault(part, chance.random() < 0.3)

    halves: list[Part] = [frozenset(range(count // 2)), frozenset(range(count // 2, count))]
    search = Search([[half for half in halves if half], singles(count)], width)
    asked(search, keeps)
    assert keeps(search.kept)
    assert not any(keeps(search.kept - part) for part in search.parts())


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("needed", [frozenset({17}), frozenset({3, 17, 30}), frozenset(range(0, 40, 5)), frozenset()])
def test_few_questions(needed: Part, width: int) -> None:
    """Where parts do not hang together, exactly what is needed is left, after far fewer trials than there are parts."""
    search = Search([singles(40)], width)
    trials = asked(search, lambda part: needed <= part)
    assert search.kept == needed
    assert trials <= 24 + 6 * len(needed)
    assert sorted(search.gone(), key=min) == [part for part in singles(40) if not part <= needed]


def test_two_of_a_line() -> None:
    """Two parts of one line that can only go together, like brackets, go."""
    rows: list[Part] = [frozenset({0, 1, 2}), frozenset({3, 4})]
    search = Search([singles(5)], rows=rows)
    asked(search, lambda part: 1 in part and (0 in part) == (2 in part) and (3 in part) == (4 in part))
    assert search.kept == frozenset({1})


def test_all_is_needed() -> None:
    search = Search([singles(8)])
    assert asked(search, lambda part: len(part) == 8) <= 16
    assert len(search.kept) == 8


def test_needed_beside_another() -> None:
    """A part that is needed only while another one is there goes after it."""
    search = Search([singles(2)])
    asked(search, lambda part: part in (frozenset({0, 1}), frozenset({0}), frozenset()))
    assert search.kept == frozenset()
