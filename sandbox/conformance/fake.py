"""The fake backend as a subject."""

from collections.abc import Awaitable, Callable, Mapping

from sandbox.backend import Backend
from sandbox.backends.fake.backend import FakeBackend, FakeHold, FakeWorld
from sandbox.conformance import programs


class FakeOrphan:
    def __init__(self, world: FakeWorld, hold: FakeHold) -> None:
        self._world = world
        self._hold = hold

    async def alive(self) -> bool:
        return self._hold.alive

    async def exists(self) -> bool:
        return self._hold.name in self._world.chambers


class FakeSubject:
    """The fake world's owners do not die by signals: an orphan is a chamber whose owner is struck off the list."""

    name = "fake"
    lacks: Mapping[str, str] = {
        "orphan_ends_itself": "its chambers are tasks of the owner's own process and end with it",
    }

    def __init__(self) -> None:
        self._world = FakeWorld()

    async def connect(self) -> Backend:
        return FakeBackend(programs.play, self._world)

    async def connect_cuttable(self) -> tuple[Backend, Callable[[], Awaitable[None]]]:
        world = FakeWorld()

        async def cut() -> None:
            world.cut()

        return FakeBackend(programs.play, world), cut

    async def orphan(self) -> FakeOrphan:
        backend = FakeBackend(programs.play, self._world)
        chamber = await backend.open(programs.SLEEP.job())
        self._world.live_owners.discard(backend.owner)
        return FakeOrphan(self._world, self._world.chambers[chamber.name])

    async def close(self) -> None:
        for hold in list(self._world.chambers.values()):
            await hold.die()
