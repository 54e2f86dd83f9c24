"""A removal that somebody else has begun, by an engine of ours that answers as a real one does in moments that pass."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from sandbox.backends.docker import engine as docker_engine
from sandbox.backends.docker.engine import Engine
from sandbox.errors import Unavailable
from tests.sandbox.backends.pretended_engine import Request, pretended_engine

IN_PROGRESS, GONE, REMOVED, FAILED = 409, 404, 204, 500
HANG_S = 30


@contextmanager
def engine_that_answers(*answers: int) -> Iterator[tuple[Engine, list[int]]]:
    """To one removal of a container after the other, the last answer for ever; and those that it gave.

    It never answers a wait for a removal, as Docker's does not where the removal ends between the wait's look for the
    container and its entry in the list of those who wait.
    """
    given: list[int] = []
    asked: Counter[str] = Counter()

    def answer(request: Request) -> None:
        if request.command == "POST":
            request.fall_silent()
        elif request.command == "GET":
            request.say()
        else:
            given.append(answers[min(asked[request.path], len(answers) - 1)])
            asked[request.path] += 1
            request.say(given[-1], {"message": "as it was told"})

    with pretended_engine(answer) as engine:
        yield engine, given


@pytest.mark.parametrize(
    ("answers", "was_there"),
    [
        pytest.param((REMOVED,), True, id="ours"),
        pytest.param((GONE,), False, id="gone before"),
        pytest.param((IN_PROGRESS, GONE), True, id="somebody else's"),
        pytest.param((IN_PROGRESS,) * 4 + (GONE,), True, id="somebody else's, slowly"),
        pytest.param((IN_PROGRESS, REMOVED), True, id="theirs failed, and ours did it"),
        pytest.param((IN_PROGRESS, FAILED, IN_PROGRESS, GONE), True, id="a failure that passed"),
    ],
)
async def test_gone_when_it_returns(answers: Sequence[int], was_there: bool) -> None:
    """Whoever began it, remove returns once the engine says that it is gone, and only then."""
    with engine_that_answers(*answers) as (engine, given):
        assert await asyncio.wait_for(engine.remove("chamber"), HANG_S) is was_there
        assert given == list(answers)


async def test_a_removal_that_fails() -> None:
    """The reason is told once theirs has failed and ours fails, too."""
    with engine_that_answers(IN_PROGRESS, FAILED) as (engine, _), pytest.raises(Unavailable, match="as it was told"):
        await asyncio.wait_for(engine.remove("chamber"), HANG_S)


async def test_a_removal_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, with what to do."""
    monkeypatch.setattr(docker_engine, "CALL_TIMEOUT_S", 0.1)
    with engine_that_answers(IN_PROGRESS) as (engine, _), pytest.raises(Unavailable, match="restart the engine"):
        await asyncio.wait_for(engine.remove("chamber"), HANG_S)


async def test_other_calls_go_on_meanwhile() -> None:
    """More removals at once than the engine has threads, all of them somebody else's, keep none from a call."""
    with engine_that_answers(*(IN_PROGRESS,) * 5, GONE) as (engine, _):
        removals = [asyncio.create_task(engine.remove(f"chamber-{number}")) for number in range(40)]
        assert (await asyncio.wait_for(engine.version(), HANG_S))["ApiVersion"] == "1.45"
        assert await asyncio.wait_for(asyncio.gather(*removals), HANG_S) == [True] * 40
