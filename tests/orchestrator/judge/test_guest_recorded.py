"""Which questions a judge of recorded calls takes the time of."""

import importlib
import random
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.orchestrator.judge.guests import fresh_guests


@pytest.fixture
def guest() -> Iterator[ModuleType]:
    with fresh_guests():
        yield importlib.import_module("blastdoor_recorded")


def asked(guest: ModuleType, known: list[Any], batches: int, repeat: int = 1) -> list[list[int]]:
    deal = guest._Deal(known, batches, repeat, random.Random(1))
    return [[it[0][0] for it in deal.question(random.Random(2))[0]] for _ in range(batches)]


def calls(recorded: int, made: int) -> list[Any]:
    return [[[at], {}, True, at, 0.1, at >= recorded] for at in range(recorded + made)]


def test_questions_of_the_tests_are_not_timed(guest: ModuleType) -> None:
    """A candidate has the tests, and could have a table of their answers; they are asked first, and only checked."""
    first, *timed = asked(guest, calls(5, 20), 5)
    assert first == [0, 1, 2, 3, 4]
    assert sorted(it for batch in timed for it in batch) == list(range(5, 25))
    assert {len(batch) for batch in timed} == {5}


def test_repeated_questions_are_made_ones(guest: ModuleType) -> None:
    first, *timed = asked(guest, calls(3, 8), 5, repeat=4)
    assert first == [0, 1, 2]
    assert all(it >= 3 for batch in timed for it in batch)


@pytest.mark.parametrize("known", [calls(20, 2), [it[:5] for it in calls(10, 10)], calls(0, 20)])
def test_pools_without_both_kinds(guest: ModuleType, known: list[Any]) -> None:
    """Where too few were made, or nobody says which, all are dealt alike, each once."""
    batches = asked(guest, known, 5)
    assert sorted(it for batch in batches for it in batch) == list(range(len(known)))
