"""A backend on the fake that Blastdoor ships: chambers are played by a function. It isolates nothing, and runs nothing
of the candidate's either: the candidate answers with its parameters, and the judge measures how far from nine they are.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from blastdoor import BackendContext, Provider, Site
from orchestrator.loop.jobs import Image
from orchestrator.task import ImageSpec
from sandbox import Input
from sandbox.backends.fake.backend import FakeBackend, Guest

blastdoor_interface = 1


async def _program(guest: Guest) -> int:
    """Plays every chamber. The result is its exit code."""
    if "params.json" in guest.files:
        guest.out["answer.json"] = guest.files["params.json"]
    elif "outputs/answer.json" in guest.files:
        point = json.loads(guest.files["outputs/answer.json"])
        far = sum(abs(value - 9) for value in point.values())
        guest.out["result.json"] = json.dumps({"score": far}).encode()
    return 0


async def _bake(_: ImageSpec) -> Image:
    return Image("none", "none")


def _add_input(name: str, _: Path) -> Input:
    return Input(name=name, digest="0" * 64)


class Pretend(Provider):
    """The class itself is the factory: it is called with the context."""

    def __init__(self, context: BackendContext) -> None:
        self._gpu = context.choice.gpu

    def planned(self) -> Site:
        return Site(
            name="pretend",
            backend=FakeBackend(_program),
            bake=_bake,
            add_input=_add_input,
            usd_per_second=lambda _: 0.0,
            ceiling=lambda _: 4,
            gpu=self._gpu,
        )

    @asynccontextmanager
    async def open(self, progress: Callable[[str], None]) -> AsyncIterator[Site]:
        progress("all chambers are pretended")
        site = self.planned()
        try:
            yield site
        finally:
            await site.backend.close()
