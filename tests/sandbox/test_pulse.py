"""A provider's silence is noticed, measured, and waited out."""

import asyncio
import contextlib
import time
from types import SimpleNamespace

import pytest

from sandbox.errors import Unavailable
from sandbox.link import Deadlines
from sandbox.pulse import STILL_S, Pulse


class Provider:
    def __init__(self) -> None:
        self.is_there = True
        self.hangs = False
        self.asked = 0
        self.called = asyncio.Event()

    async def ask(self) -> None:
        self.asked += 1
        self.called.set()
        if self.hangs:
            await asyncio.Event().wait()
        if not self.is_there:
            raise Unavailable("nobody is there")


def beating(provider: Provider, patience_s: float = 60.0) -> Pulse:
    return Pulse(provider.ask, every_s=0.01, within_s=0.05, patience_s=patience_s)


async def asked_more(provider: Provider, times: int = 2) -> None:
    for _ in range(times):
        provider.called.clear()
        await provider.called.wait()


async def test_an_answer_is_no_silence() -> None:
    provider, since = Provider(), time.monotonic()
    pulse = beating(provider)
    with pulse.watched():
        await asked_more(provider)
        assert await pulse.silence_until_it_answers(since) == 0


async def test_where_nobody_watched_a_silence_begins_with_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour in which nobody asked is no hour of silence; two who ask at once count the same one, and wait until it
    answers again.
    """
    provider, began, now = Provider(), time.monotonic(), time.monotonic
    pulse = beating(provider)
    monkeypatch.setattr("sandbox.pulse.time.monotonic", lambda: now() + 3600)
    provider.is_there = False
    asking = [asyncio.create_task(pulse.silence_until_it_answers(began)) for _ in range(2)]
    await asked_more(provider, 4)
    assert not any(it.done() for it in asking)
    provider.is_there = True
    assert all(0 < silent_s < 60 for silent_s in await asyncio.gather(*asking))
    assert await pulse.silence_until_it_answers(time.monotonic()) == 0


@pytest.mark.parametrize("hangs", [True, False])
async def test_a_silence_that_is_over_is_remembered(hangs: bool) -> None:
    """Whether it was refused or just not answered; and it does not count for whoever began after it."""
    provider, since = Provider(), time.monotonic()
    pulse = beating(provider)
    with pulse.watched():
        provider.hangs, provider.is_there = hangs, hangs
        await asked_more(provider, 4)
        assert pulse.silence(since) > 0
        provider.hangs, provider.is_there = False, True
        assert 0 < await pulse.silence_until_it_answers(since) <= time.monotonic() - since
        assert pulse.silence(time.monotonic()) == 0


class Kept(Provider):
    """It keeps a connection from one question to the next, whose end is heard of with the next question."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = False

    async def ask(self) -> None:
        await super().ask()
        if self.is_broken:
            self.reset()
            raise Unavailable("it hung up")

    def reset(self) -> None:
        self.is_broken = False


@pytest.mark.parametrize("watched", [True, False])
async def test_a_line_that_broke_while_nobody_watched_is_no_silence(watched: bool) -> None:
    line, since = Kept(), time.monotonic()
    pulse = Pulse(line.ask, 60.0, every_s=0.01, reset=line.reset)
    line.is_broken = True
    with pulse.watched() if watched else contextlib.nullcontext():
        assert await pulse.silence_until_it_answers(since) == 0


async def test_T86_a_line_that_breaks_under_the_first_question_is_silence() -> None:
    """The streams of the chamber that has just begun went the same way."""
    line, since = Kept(), time.monotonic()
    pulse = Pulse(line.ask, 60.0, every_s=0.01, reset=line.reset)
    with pulse.watched():
        line.is_broken = True
        await asked_more(line)
        assert await pulse.silence_until_it_answers(since) > 0


async def test_patience_ends() -> None:
    """A provider that does not come back holds nobody for ever."""
    provider = Provider()
    provider.is_there = False
    assert await beating(provider, patience_s=0.0).silence_until_it_answers(time.monotonic() - 1) > 0


async def test_T86_two_minutes_are_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the deadlines that count where nobody sets others, a provider that is away for 120 s is heard again before
    anything is given up.
    """
    now, back_at = 1000.0, 1120.0
    monkeypatch.setattr("sandbox.pulse.time", SimpleNamespace(monotonic=lambda: now))

    async def ask() -> None:
        nonlocal now
        now += 5.0
        if now < back_at:
            raise Unavailable("nobody is there")

    pulse = Pulse(ask, Deadlines().silence, every_s=0.001)
    assert await pulse.silence_until_it_answers(now) == back_at - 1000.0
    assert pulse.silence(now) == 0


async def test_nobody_is_asked_while_nobody_watches() -> None:
    provider = Provider()
    pulse = beating(provider)
    with pulse.watched(), pulse.watched():
        await asked_more(provider)
    await asyncio.sleep(0)
    asked = provider.asked
    await asyncio.sleep(0.05)
    assert provider.asked == asked


async def test_T88_time_in_which_we_stood_still_is_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was stopped heard nobody, though the provider answers as soon as it is asked again."""
    provider, since = Provider(), time.monotonic()
    pulse = beating(provider)
    with pulse.watched():
        await asked_more(provider)
        now = time.monotonic
        monkeypatch.setattr("sandbox.pulse.time.monotonic", lambda: now() + 100)
        assert await pulse.silence_until_it_answers(since) > STILL_S
