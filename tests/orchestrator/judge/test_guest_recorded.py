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
    deal = guest.Deal(known, batches, repeat, random.Random(1))
    return [[it[0][0] for it in deal.question(random.Random(2))[0]] for _ in range(batches)]


def calls(recorded: int, made: int) -> list[Any]:
    return [[[at], {}, True, at, 0.1, at >= recorded] for at in range(recorded + made)]


@pytest.mark.parametrize("repeat", [1, 4])
def test_questions_of_the_tests_are_not_timed(guest: ModuleType, repeat: int) -> None:
    """A candidate has the tests, and could have a table of their answers; they are asked first, and only checked."""
    first, *timed = asked(guest, calls(5, 20), 5, repeat)
    assert first == [0, 1, 2, 3, 4]
    assert {it for batch in timed for it in batch} <= set(range(5, 25))
    if repeat == 1:
        assert sorted(it for batch in timed for it in batch) == list(range(5, 25))
        assert {len(batch) for batch in timed} == {5}


@pytest.mark.parametrize("known", [calls(20, 2), [it[:5] for it in calls(10, 10)], calls(0, 20)])
def test_pools_without_both_kinds(guest: ModuleType, known: list[Any]) -> None:
    """Where too few were made, or nobody says which, all are dealt alike, each once."""
    batches = asked(guest, known, 5)
    assert sorted(it for batch in batches for it in batch) == list(range(len(known)))
