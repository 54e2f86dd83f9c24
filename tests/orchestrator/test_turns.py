"""Held-out data run alone on their machine; all else runs side by side."""

import asyncio

import pytest

from orchestrator.turns import HELDOUT, Turns


class Stage:
    """Chambers that run until they are told to end; `together` has who was there when each of them started."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.running: set[str] = set()
        self.together: list[set[str]] = []
        self._ends: dict[str, asyncio.Event] = {}

    def start(self, name: str, realm: str = "") -> "asyncio.Task[None]":
        self._ends[name] = asyncio.Event()

        async def run() -> None:
            async with self.turns.take(realm):
                self.running.add(name)
                self.together.append(set(self.running))
                try:
                    await self._ends[name].wait()
                finally:
                    self.running.discard(name)

        return asyncio.create_task(run())

    def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()


async def idle() -> None:
    """Everybody has looked at everything."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_t83_held_out_runs_alone() -> None:
    """It waits for those that run, later ones wait for it, and all of them run in the end."""
    stage = Stage()
    tasks = [stage.start("a"), stage.start("b", "trial")]
    await idle()
    assert stage.running == {"a", "b"}
    tasks += [stage.start("held", HELDOUT)]
    await idle()
    tasks += [stage.start("late")]
    await idle()
    assert stage.running == {"a", "b"}, "whoever wants to be alone is not overtaken"
    stage.end("a")
    await idle()
    assert stage.running == {"b"}
    stage.end("b")
    await idle()
    assert stage.running == {"held"}
    await idle()
    assert stage.running == {"held"}
    stage.end("held")
    await idle()
    assert stage.running == {"late"}
    stage.end("late")
    await asyncio.gather(*tasks)
    assert all(len(names) == 1 for names in stage.together if "held" in names)


@pytest.mark.parametrize("when", ["waiting", "running"])
async def test_a_cancelled_one_holds_nobody_up(when: str) -> None:
    """Ctrl-C while it waits, or while it runs: the others go on."""
    stage = Stage()
    first = stage.start("a")
    await idle()
    assert stage.running == {"a"}
    held = stage.start("held", HELDOUT)
    await idle()
    if when == "running":
        stage.end("a")
        await idle()
        assert stage.running == {"held"}
    late = stage.start("late")
    await idle()
    assert "late" not in stage.running
    held.cancel()
    await idle()
    assert "late" in stage.running
    stage.end("a", "late")
    await asyncio.gather(first, late)


async def test_two_that_want_to_be_alone() -> None:
    """One after the other."""
    stage = Stage()
    tasks = [stage.start("one", HELDOUT), stage.start("two", HELDOUT)]
    await idle()
    assert stage.running
    stage.end("one", "two")
    await asyncio.gather(*tasks)
    assert stage.together == [{"one"}, {"two"}]
