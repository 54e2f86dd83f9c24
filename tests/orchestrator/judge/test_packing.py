"""What unpacking a request costs, by processor time of a process of our own."""

import asyncio
import importlib
from typing import Any

import pytest

from orchestrator.judge import packing
from orchestrator.judge.guest.blastdoor_values import encode
from orchestrator.judge.packing import unpacking_s
from tests.orchestrator.judge.guests import fresh_guests


async def test_a_large_request_takes_longer_to_unpack() -> None:
    """By what is computed, however busy the machine is; tuples and sets of a judge that sends them have a cost, too."""
    small, large = [encode(["solve", [[0.5, "text"]] * count]) for count in (10, 20_000)]
    assert 0 < 20 * await unpacking_s(memoryview(small)) < await unpacking_s(memoryview(large))
    with fresh_guests():
        pieces = importlib.import_module("blastdoor_kinds").exact_pieces
        exact = b"".join(pieces(["solve", [({1, 2}, (3, 4j))] * 1000, {}, {}], lambda _: None, given=True))
    assert await unpacking_s(memoryview(exact)) > 0


@pytest.mark.parametrize("data", [b"", b"?", b"l\xff\xff\xff\xff"])
async def test_what_cannot_be_unpacked_takes_nothing(data: bytes) -> None:
    """It is for the judge's own module to refuse it; nothing is taken off."""
    assert await unpacking_s(memoryview(data)) == 0.0


async def test_one_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is taken off, and no process stays; nor where the meeting is cancelled meanwhile."""
    started: list[Any] = []
    is_there = asyncio.Event()
    real = asyncio.create_subprocess_exec

    async def start(*command: Any, **more: Any) -> Any:
        started.append(await real(*command, **more))
        is_there.set()
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(packing, "PROGRAM", "import time; time.sleep(600)")
    cancelled = asyncio.create_task(unpacking_s(memoryview(b"N")))
    await is_there.wait()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    monkeypatch.setattr(packing, "MOST_S", 0.01)
    assert await unpacking_s(memoryview(b"N")) == 0.0
    assert [process.returncode for process in started] == [-9, -9]
