"""The warden of a Docker owner that is gone, before an engine that cannot do all that it is asked."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from tenacity import wait_none

from sandbox.backends.docker import warden
from sandbox.errors import Refused, Unavailable

HANG_S = 60


class StubbornEngine:
    """Has three of each, and answers only once it was asked to remove them all; `a` goes when it is asked again."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure
        self._all_asked = asyncio.Barrier(3)
        self._refuses = {"container a", "volume a"}
        self.kept = {f"{kind} {name}" for kind in ("container", "volume") for name in "abc"}
        self.rounds = 0

    def _listed(self, kind: str, key: str) -> Sequence[Mapping[str, str]]:
        return [{key: name} for name in sorted(self.kept) if name.startswith(kind)]

    async def containers(self, _: str) -> Sequence[Mapping[str, str]]:
        self.rounds += 1
        return self._listed("container", "Id")

    async def volumes(self, _: str) -> Sequence[Mapping[str, str]]:
        return self._listed("volume", "Name")

    async def remove(self, name: str) -> None:
        if self.rounds == 1:
            await self._all_asked.wait()
        if name in self._refuses:
            self._refuses.discard(name)
            raise self._failure
        self.kept.discard(name)

    remove_volume = remove

    def close(self) -> None:
        pass


async def ended_by(engine: StubbornEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warden, "Engine", lambda _: engine)
    await asyncio.wait_for(warden.end_all.retry_with(wait=wait_none())("owner", "unix:///nowhere"), HANG_S)


async def test_one_that_cannot_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the warden from none of the others, and is tried again."""
    engine = StubbornEngine(Unavailable("the engine does not answer"))
    await ended_by(engine, monkeypatch)
    assert (engine.kept, engine.rounds) == (set(), 2)


async def test_one_that_the_engine_refuses_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are ended, and it is told."""
    engine = StubbornEngine(Refused("not by you"))
    with pytest.raises(Refused, match="not by you"):
        await ended_by(engine, monkeypatch)
    assert engine.kept == {"container a", "volume a"}
