"""A campaign on the fake backend at five attempts a second, in a process of its own: what looks on must not slow it.

usage: python -m benchmarks.paced_campaign FOLDER ATTEMPTS; writes a line to FOLDER/pace.txt for each event: its number,
when it was on disk, the processor time of the process, and 1 for the end of an attempt
"""

import asyncio
import sys
import time
from pathlib import Path

from benchmarks import campaign
from benchmarks.fake_site import fake_site, write_task
from orchestrator.domain import events as e
from orchestrator.ledger import Ledger
from orchestrator.run_options import Flags
from orchestrator.wiring.ledgers import FILE
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.fake.backend import Guest

EACH_S = 0.2


async def program(guest: Guest) -> int:
    if "judge/judge.py" not in guest.files:
        await asyncio.sleep(EACH_S * campaign.WIDTH)
    return await campaign.program(guest)


async def run(folder: Path, attempts: int) -> None:
    write_task(folder, campaign.TASK, '{"x": 0.0, "y": 0}')
    count = 0
    with (folder / "pace.txt").open("w", buffering=1) as lines:

        def observe(event: e.Event, _: str) -> None:
            nonlocal count
            count += 1
            ended = int(isinstance(event, e.AttemptEnded))
            lines.write(f"{count} {time.time()} {time.process_time()} {ended}\n")

        flags = Flags(attempts=attempts, rate=1e6, seed=1)
        async with open_campaign(folder, fake_site(program, campaign.WIDTH), flags=flags) as opened:
            with Ledger.open(folder / ".blastdoor" / FILE, read_only=True) as ledger:
                count = ledger.head().seq
            opened.bench.book.observers.append(observe)
            await opened.campaign.run()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))
