"""Two chambers at once: one that lives on while the other looks for it."""

import asyncio
from collections.abc import Mapping

from sandbox.attacks.attack import IMAGE, PROBE, QUICK, Arena
from sandbox.bundle import Bundle
from sandbox.job import Job, Outcome
from sandbox.wire.log import Report

SETTLED = "settled"


class Ear:
    """Hears when the resident has settled."""

    def __init__(self) -> None:
        self.settled = asyncio.Event()

    def line(self, text: str) -> None:
        if text.startswith(SETTLED):
            self.settled.set()

    def report(self, report: Report) -> None:
        """Nothing is reported here."""


# The resident stays until its visitor has been there, however long that takes to come.
LONG = QUICK.model_copy(update={"wall": 80})


async def beside(
    arena: Arena, resident: str, visitor: str, env: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> tuple[Outcome, Outcome]:
    """Run the visitor once the resident has printed `settled`; then stop the resident and take what it told."""
    ear = Ear()
    bundle = Bundle({"attack.py": resident.encode(), "probe.py": PROBE.encode(), **(files or {})})
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=LONG, env=env, loopback=True)
    async with await arena.backend.open(job) as chamber:
        living = asyncio.create_task(chamber.run(bundle, listener=ear))
        settling = asyncio.create_task(ear.settled.wait())
        try:
            await asyncio.wait([living, settling], return_when=asyncio.FIRST_COMPLETED)
            visited = await arena.run(visitor, env=env, files=files, loopback=True)
            await chamber.stop()
            return await living, visited
        finally:
            settling.cancel()
            living.cancel()
