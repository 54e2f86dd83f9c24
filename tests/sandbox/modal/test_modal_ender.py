"""Every sandbox is seen to its end."""

import asyncio

import pytest

from sandbox.backends.modal import ender as modal_ender
from sandbox.backends.modal.ender import Ender
from sandbox.errors import Unavailable


class Stubborn:
    """Ends at the n-th try."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.tries = 0

    async def end(self) -> None:
        self.tries += 1
        if self.tries <= self.refusals:
            raise Unavailable("terminate: Modal does not answer")


class Provider:
    def __init__(self) -> None:
        self.running: dict[str, Stubborn] = {}
        self.away = False

    async def find(self, name: str) -> Stubborn | None:
        if self.away:
            raise Unavailable("look up: Modal does not answer")
        return self.running.get(name)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modal_ender, "RETRY_S", 0.01)


@pytest.fixture
def provider() -> Provider:
    return Provider()


async def until_clean(ender: Ender) -> None:
    while not ender.is_clean:  # noqa: ASYNC110  it tells nobody
        await asyncio.sleep(0.01)


async def test_terminate_fails_and_is_tried_again(provider: Provider) -> None:
    """Its caller is told at once; the sandbox is ended all the same, and that is told once."""
    ended: list[str] = []
    ender, sandbox = Ender(provider, ended.append), Stubborn(refusals=3)
    ender.expect("a")
    ender.made("a", sandbox)
    with pytest.raises(Unavailable):
        await ender.end("a")
    assert ended == []
    await asyncio.wait_for(until_clean(ender), 60)
    assert (sandbox.tries, ended) == (4, ["a"])
    assert await ender.end("a")
    assert (sandbox.tries, ended) == (4, ["a"])
    await ender.close()


async def test_one_whose_answer_was_lost_is_found_by_its_name(provider: Provider) -> None:
    """A create that was given up may still take effect; nobody calls it gone before that is out of the question."""
    ender = Ender(provider, lambda _: None)
    ender.expect("late")
    assert not await ender.end("late")
    for name in ("there", "late"):
        provider.running[name] = Stubborn()
    ender.expect("there")
    assert await ender.end("there")
    await asyncio.wait_for(until_clean(ender), 60)
    assert [it.tries for it in provider.running.values()] == [1, 1]
    await ender.close()


async def test_one_whose_create_takes_long(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is being created it may come at any time: what is in flight counts from when create was given up."""
    monkeypatch.setattr(modal_ender, "IN_FLIGHT_S", 0.0)
    ender = Ender(provider, lambda _: None)
    ender.expect("a")
    assert not await ender.end("a")
    assert ender.knows("a")
    ender.given_up("a")
    assert await ender.end("a")
    await ender.close()


async def test_the_living_are_not_swept(provider: Provider) -> None:
    """Only what somebody asked to end is ended, until all of it is closed."""
    ender, living = Ender(provider, lambda _: None), Stubborn()
    ender.expect("a")
    ender.made("a", living)
    await ender.sweep()
    assert living.tries == 0
    await ender.close()
    assert living.tries == 1
    assert ender.is_clean


async def test_what_can_not_be_ended_is_left_to_the_warden(provider: Provider) -> None:
    """Closing does not wait for a provider that is away, and does not call it clean."""
    ender = Ender(provider, lambda _: None)
    provider.away = True
    ender.expect("a")
    await ender.close()
    assert not ender.is_clean


async def test_an_error_of_our_own_does_not_end_the_trying(provider: Provider) -> None:
    """Whatever goes wrong in one round, the next one comes: what is not ended costs money."""
    ender, sandbox = Ender(provider, lambda _: None), Stubborn(refusals=1)
    rounds = 0
    end = sandbox.end

    async def broken() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 2:
            raise RuntimeError("a mistake")
        await end()

    sandbox.end = broken  # type: ignore[method-assign]  # one round of it goes wrong
    ender.expect("a")
    ender.made("a", sandbox)
    with pytest.raises(Unavailable):
        await ender.end("a")
    await asyncio.wait_for(until_clean(ender), 60)
    assert rounds == 3
    await ender.close()
