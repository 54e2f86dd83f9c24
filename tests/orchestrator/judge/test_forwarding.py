"""Whose time it is while a large request goes from the judge to the candidate."""

import asyncio

import pytest

from orchestrator.judge.relay import Conversation, Met, NotAllowed, Side
from orchestrator.judge.turns import TooLate, Turn
from orchestrator.loop.calling import SeatTurn
from sandbox import Incoming, Limits, Reply

PATIENT_S = 60.0
REST = b"C" * 10


class Stub:
    """A channel: the judge's begins a request, the candidate's takes it and answers, unless it is one that hangs."""

    def __init__(self, incoming: Incoming, *, hangs: bool = False) -> None:
        self.incoming, self.hangs = incoming, hangs

    async def call(self, payload: bytes, timeout: float) -> Reply:
        raise AssertionError((payload, timeout))

    async def call_ahead(self, payload: bytes, timeout: float, kind: bytes) -> Reply | Incoming:
        del payload, timeout
        self.incoming.take(kind)
        return self.incoming

    async def forward(self, payload: Incoming, timeout: float) -> Reply:
        del timeout
        while await payload.next():
            pass
        await asyncio.sleep(60 if self.hangs else 0)
        return Reply(b"VN", 0.01)

    async def processor_seconds(self) -> float | None:
        return None


def conversation(incoming: Incoming, *, hangs: bool = False, wall_s: float = PATIENT_S) -> tuple[Conversation, Met]:
    met = Met(seed="7")
    it = Conversation(met, Turn(Stub(incoming), wall_s), Limits())
    it.turns[Side.CANDIDATE] = Turn(Stub(incoming, hangs=hangs), wall_s, is_timed=True)
    return it, met


@pytest.mark.parametrize("late", [Side.JUDGE, Side.CANDIDATE])
async def test_who_is_late(late: Side) -> None:
    """A judge that does not send the rest is late itself; a candidate that has it all, and does not answer, is."""
    incoming = Incoming(b"S", len(REST))
    it, met = conversation(incoming, hangs=True, wall_s=0.3)
    request = await it.wish(b"B")
    assert request is incoming
    if late is Side.CANDIDATE:
        incoming.take(REST)
    with pytest.raises(TooLate):
        await it.serve(request)
    assert met.late is late


async def test_the_judge_pays_for_what_it_was_waited_for() -> None:
    """And the candidate for its own time only."""
    incoming = Incoming(b"S", len(REST))
    it, met = conversation(incoming)
    serving = asyncio.create_task(it.serve(await it.wish(b"B")))
    for _ in range(20):
        await asyncio.sleep(0)  # until the rest is waited for
    await asyncio.sleep(0.05)
    incoming.take(REST)
    assert (await serving)[9:] == b"VN"
    assert it.turns[Side.CANDIDATE].left_s == PATIENT_S - 0.01
    assert it.turns[Side.JUDGE].left_s < PATIENT_S - 0.04
    assert (met.calls, met.late) == (1, None)


async def test_nothing_but_a_call_is_handed_on() -> None:
    """What no judge may say breaks the protocol here, too, before the candidate gets a byte."""
    incoming = Incoming(b"S", len(REST))
    it, met = conversation(incoming)
    request = await it.wish(b"B")
    incoming.take(b"H" + REST[1:])
    with pytest.raises(NotAllowed):
        await it.serve(request)
    assert met.broken == "a request that nobody knows"


async def test_a_tape_wants_it_whole() -> None:
    """Nothing is asked ahead where what was said is kept."""
    it, met = conversation(Incoming(b"S", len(REST)))
    met.tape = object()  # type: ignore[assignment]  # that there is one is all that counts
    with pytest.raises(AssertionError):
        await it.wish(b"B")


class HeardLate(Stub):
    """Its reply is heard after the limit; what it took, by the clock, was less."""

    async def call(self, payload: bytes, timeout: float) -> Reply:
        del payload, timeout
        await asyncio.sleep(0.1)
        return Reply(b"V", 0.01)


@pytest.mark.parametrize("turn", [Turn, SeatTurn])
async def test_a_call_is_late_by_the_clock(turn: type[Turn | SeatTurn]) -> None:
    """Not by when it was sent or heard: what the clock and our own loop took is nobody's time."""
    asked = turn(HeardLate(Incoming(b"S", 1)), 0.05)
    assert await asked.ask(b"C")
