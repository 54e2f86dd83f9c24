"""What an attempt costs on the event loop's own thread, in calls of our own functions and in callbacks that the loop
makes: figures that hardly vary.
"""

import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.campaign import TASK, WIDTH, program
from benchmarks.fake_site import fake_site, write_task
from orchestrator.domain import events as e
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign

OURS = tuple(str(Path(__file__).parents[3] / folder) for folder in ("orchestrator", "sandbox"))
SPAN = 40
# Found: 1,900 to 2,000, the fake's own among them. A turn of the loop more in a chamber's life is forty.
MOST = 2_150
# Found: 75 to 83. A trip to a thread is three.
MOST_CALLBACKS = 90
CALLBACK = vars(asyncio.Handle)["_run"].__code__


async def test_calls_of_an_attempt(tmp_path: Path) -> None:
    """On the fake backend they stay below a bound, and are no more for later attempts."""
    write_task(tmp_path, TASK, '{"x": 0.0, "y": 0}')
    calls = callbacks = ended = 0
    marks: list[tuple[int, int]] = []

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls, callbacks
        if event == "call":
            calls += frame.f_code.co_filename.startswith(OURS)
            callbacks += frame.f_code is CALLBACK

    def observe(event: e.Event, _: str) -> None:
        nonlocal ended
        if isinstance(event, e.AttemptEnded):
            ended += 1
            if ended % SPAN == 0:
                marks.append((calls, callbacks))

    flags = Flags(attempts=4 * SPAN, rate=1e6, seed=1)
    async with open_campaign(tmp_path, fake_site(program, WIDTH), flags=flags) as opened:
        opened.bench.book.listeners.append(observe)
        sys.setprofile(count)
        try:
            await opened.campaign.run()
        finally:
            sys.setprofile(None)
    spans = [[(after - before) / SPAN for before, after in zip(*pair, strict=True)] for pair in pairwise(marks)]
    (first, most_callbacks), *_, (last, _) = spans
    assert first < MOST
    assert most_callbacks < MOST_CALLBACKS
    assert last < 1.1 * first
