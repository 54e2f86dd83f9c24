"""The breaker by itself, on a clock of ours: when it opens, when it looks again, and what closes it."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.loop.breaker import MODEL, Breaker, CampaignBreaker, Standing


def opened() -> Breaker:
    breaker = Breaker()
    breaker.failed("engine", 0)
    assert breaker.failed("engine", 1)
    return breaker


def test_one_failure_is_none_and_two_in_a_row_open_it() -> None:
    """A provider that fails once an hour is not away; those under way when it opened do not lengthen it."""
    breaker = Breaker()
    assert not breaker.failed("engine", 0)
    assert not breaker.failed("engine", 3600)
    assert breaker.standing is Standing.CLOSED
    assert breaker.failed("engine", 3601)
    assert (breaker.standing, breaker.away, breaker.due_at) == (Standing.OPEN, {"engine"}, 3606)
    assert not any(breaker.failed("engine", now) for now in (3602, 3603, 3604))
    assert breaker.due_at == 3606


def test_what_does_not_add_up() -> None:
    """Failures of two providers, or on either side of an answer, and stalls of one attempt alone."""
    breaker = Breaker()
    breaker.failed("engine", 0)
    assert not breaker.failed(MODEL, 1)
    breaker.answered("engine", 2)
    assert not breaker.failed("engine", 3)
    breaker = Breaker()
    assert [breaker.stalled("1.1", now) for now in (0, 10, 20)] == [False] * 3
    assert breaker.stalled("1.2", 30)


def test_a_silent_provider_is_probed_ever_less_often_up_to_a_limit() -> None:
    """A probe is cheap: it is back within a minute of coming back."""
    breaker, waits = opened(), []
    for _ in range(7):
        waits.append(breaker.wait_s)
        breaker.probed(False, breaker.due_at)
    assert waits == [5, 10, 20, 40, 60, 60, 60]


def test_an_attempt_that_fails_after_a_good_probe_doubles_the_wait_further() -> None:
    """An attempt is dearer than a probe: half an hour at most."""
    breaker, waits = opened(), []
    for _ in range(11):
        waits.append(breaker.wait_s)
        breaker.probed(True, breaker.due_at)
        assert breaker.standing is Standing.TRYING
        assert breaker.failed("engine", breaker.due_at)
    assert waits == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]


def test_what_gets_through_closes_it_and_the_next_outage_begins_anew() -> None:
    """Only a provider that was away can close it, and all that are away have to answer."""
    breaker = opened()
    breaker.probed(True, 10)
    assert not breaker.answered(MODEL, 11)
    assert breaker.answered("engine", 12)
    assert breaker.standing is Standing.CLOSED
    breaker.failed("engine", 20)
    breaker.failed("engine", 21)
    assert breaker.wait_s == 5
    breaker.failed(MODEL, 22)
    assert breaker.failed(MODEL, 23)
    breaker.probed(True, 30)
    assert not breaker.answered("engine", 31)
    assert breaker.answered(MODEL, 32)


def test_what_is_tried_is_not_waited_for() -> None:
    """Patience is for a provider that does not answer; a trial that takes an hour is not one."""
    breaker = opened()
    breaker.probed(True, 11)
    assert breaker.waited_s(3611) == 10
    breaker.failed("engine", 3611)
    assert breaker.waited_s(3616) == 15
    breaker.probed(True, 3616)
    breaker.answered("engine", 3700)
    assert breaker.waited_s(3700) == 0


@pytest.mark.parametrize("sign", [lambda it: it.answered("engine", 3), lambda it: it.hurry(3)])
def test_a_sign_of_life_or_a_person_has_it_probed_at_once(sign: Callable[[Breaker], object]) -> None:
    """One that was under way got through, or somebody knows that the provider is back."""
    breaker = opened()
    sign(breaker)
    assert (breaker.standing, breaker.due_at) == (Standing.OPEN, 3)


class Told:
    """A book of what is said of providers."""

    def __init__(self, *silent: str) -> None:
        self.campaign = SimpleNamespace(away="", away_from=(), silent=silent, silent_since="")
        self.state, self.listeners = self, list[Any]()
        self.told = list[e.Event]()

    def set_campaign(self, **changes: Any) -> None:
        vars(self.campaign).update(changes)

    def record(self, *events: e.Event) -> None:
        for event in events:
            event.apply(self, "then")  # type: ignore[arg-type]  # it is asked for no more
            self.told.append(event)


class Line:
    """A provider, and what is asked of it, on a clock of ours."""

    def __init__(self, book: Told) -> None:
        self.now, self.is_whole = 0.0, asyncio.Event()
        asked = {"rented": self.answers}
        self.breaker = CampaignBreaker(book, asked, asked, away="rented", home="home", quiet_s=5.0, answer_s=3.0)  # type: ignore[arg-type]
        self.breaker.clock = lambda: self.now
        self.breaker.begin(1)

    async def answers(self) -> bool:
        return await self.is_whole.wait()

    async def until(self, now: float) -> None:
        while self.now < now:
            self.now += 0.5
            self.breaker.look(at_work=True)
            for _ in range(5):
                await asyncio.sleep(0)
        self.breaker.look(at_work=True)


async def test_t86_a_silent_line_is_told_of_within_seconds() -> None:
    """While the first question still waits, which counts as no failure: a busy provider may be slow to answer."""
    book = Told()
    line = Line(book)
    await line.until(7)
    assert book.told == []
    await line.until(9)
    assert (book.campaign.silent, line.breaker.standing) == (("rented",), Standing.CLOSED)
    line.is_whole.set()
    await line.until(10)
    assert book.campaign.silent == ()
    await line.until(30)
    assert [event.kind for event in book.told] == ["provider silent", "provider heard"]
    await line.breaker.close()


async def test_t86_who_was_silent_to_a_session_that_died_is_asked_anew() -> None:
    """Nothing is known of it by now."""
    book = Told("rented", MODEL)
    Line(book)
    assert book.campaign.silent == ()
