"""How often a campaign is looked at while it has viewers, by a clock that skips all waits."""

import asyncio
from typing import Any, cast

import pytest

from orchestrator.views.page.followed import Followed
from orchestrator.views.page.streams import Broadcast, Viewer
from orchestrator.views.page.waking import Notices
from tests.virtual_time import VirtualTime

# Less than a campaign that the kernel tells of is left alone, and more than all looks after a notice take.
SOON_S = 3.0
IDLE_S = 5.0


class Looks(Broadcast):
    """One whose looks are counted; each finds what `finds` says, and nothing after that."""

    def __init__(self, *finds: bool) -> None:
        super().__init__(cast(Followed, None), cast(Notices, None))
        self.finds = iter(finds)
        self.count = 0

    async def _polled(self) -> dict[str, Any] | None:
        self.count += 1
        return {"seq": self.count, "mark": f"{self.count}-a"} if next(self.finds, False) else None

    def notice(self) -> None:
        self._wake.set()

    def shown_to(self, viewer: Viewer) -> None:
        """As one who joins, but that nothing begins."""
        self._viewers.add(viewer)

    async def counted(self, idle_s: float = IDLE_S) -> "Looks":
        """After its first looks."""
        self._task = asyncio.create_task(self._follow(idle_s))
        await asyncio.sleep(SOON_S)
        self.count = 0
        return self

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return VirtualTime(monkeypatch)


def test_a_notice_that_comes_before_its_write_is_not_lost(clock: VirtualTime) -> None:
    """Nobody tells of it once more: it is found by a later look, also after one that found something else."""

    async def run() -> None:
        looks = await Looks(*[False] * 4, False, False, True, True).counted()
        viewer = Viewer()
        looks.shown_to(viewer)
        looks.notice()
        await asyncio.sleep(SOON_S)
        told = viewer.messages()
        assert [b"event: update" in await anext(told) for _ in range(2)] == [True, True]
        await looks.end()

    clock.run(run())


def test_notices_that_come_together_are_one_look(clock: VirtualTime) -> None:
    """And one more after an update: the write that a notice told of may have been one later still."""

    async def run() -> None:
        looks = await Looks(*[False] * 4, True).counted()
        for _ in range(5):
            looks.notice()
            await asyncio.sleep(0)
        assert looks.count == 0
        await asyncio.sleep(SOON_S)
        assert looks.count == 2
        await looks.end()

    clock.run(run())


def test_a_database_is_asked_as_often_while_much_happens(clock: VirtualTime) -> None:
    """Where nobody tells, a look that found something is followed by one that is no later than any other."""

    async def run() -> None:
        looks = await Looks(*[False] * 1000).counted(0.25)
        await asyncio.sleep(SOON_S)
        idle, looks.count = looks.count, 0
        looks.finds = iter([True] * 1000)
        await asyncio.sleep(SOON_S)
        assert looks.count >= idle - 1
        await looks.end()

    clock.run(run())


def test_a_viewer_that_is_told_of_much_has_one_timer(clock: VirtualTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is told of nothing hears a beat, by which one that left is noticed."""

    async def run() -> None:
        loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
        call_at = loop.call_at

        def noted(*given: Any, **named: Any) -> asyncio.TimerHandle:
            timers.append(call_at(*given, **named))
            return timers[-1]

        monkeypatch.setattr(loop, "call_at", noted)
        viewer = Viewer()
        told = viewer.messages()
        for number in range(50):
            viewer.give(b"%d" % number)
            assert await anext(told) == b"%d" % number
        assert len(timers) == 1
        assert await anext(told) == b": \n\n"
        viewer.give(None)
        assert [message async for message in told] == []
        assert all(timer.cancelled() or timer.when() < loop.time() for timer in timers)

    clock.run(run())
