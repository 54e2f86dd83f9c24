"""The log of a chamber at work: in a file as it comes, off the event loop, and gone with its chamber."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.loop import live_log
from orchestrator.loop.live_log import LiveLog
from tests.lag import MOST_S, longest_turn


async def _written(log: LiveLog) -> None:
    while writing := log.writing:
        await asyncio.wait([writing])


async def test_lines_in_their_order(tmp_path: Path) -> None:
    """Others read every line in its order; the file is there from the first line to the end."""
    path = tmp_path / "live" / "1.1-1.log"
    log = LiveLog(path)
    assert not path.exists()
    for number in range(1000):
        log.line(f"line {number}")
    await _written(log)
    assert path.read_text().splitlines() == [f"line {number}" for number in range(1000)]
    log.line("last")
    with path.open() as held:
        log.close()
        await _written(log)
        assert held.read().endswith("line 999\nlast\n")
    assert not path.exists()


async def test_t82_a_flood_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes faster than it can be written takes no memory and no time of the loop: it is left out, and counted."""
    monkeypatch.setattr(live_log, "MOST_WAITING", 1000)
    path = tmp_path / "1.1-1.log"

    async def scene() -> None:
        log = LiveLog(path)
        for _ in range(10_000):
            log.line("x" * 9)
        await _written(log)
        lines = path.read_text().splitlines()
        assert lines[:99] == ["x" * 9] * 99
        assert lines[-1] == f"[{10_000 - len(lines) + 1} lines are left out here: they came too fast]"
        log.close()
        await _written(log)

    assert await longest_turn(scene) < MOST_S


async def test_one_after_the_other(tmp_path: Path) -> None:
    """A log that is closed late takes nothing from the next one of its name."""
    path = tmp_path / "1.1-agent.log"
    first, second = LiveLog(path), LiveLog(path)
    first.line("old")
    writing = first.writing
    assert writing
    first.close()
    second.line("new")
    await writing
    await _written(second)
    assert path.read_text() == "new\n"
    second.close()
    assert not path.exists()


async def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure to write reaches the one that hears the chamber, with the next line."""

    async def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(live_log, "offload_disk", full)
    log = LiveLog(tmp_path / "1.1-1.log")
    log.line("one")
    await _written(log)
    with pytest.raises(OSError, match="No space left"):
        log.line("two")
    log.close()
    assert not (tmp_path / "1.1-1.log").exists()
