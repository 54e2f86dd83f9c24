"""What a long campaign costs before any of it is worked on: opening it for a resume, its status and its chart, and
whether an attempt after that costs what it costs in a short one. Processor time: on a busy machine, the clock tells
about the others; there, the time of a bare Python says how slow the machine is.
"""

import tempfile
import time
from pathlib import Path

from benchmarks.campaign import WIDTH, program
from benchmarks.fake_site import fake_site
from benchmarks.figure import Figure
from benchmarks.long_campaign import REAL, make_long
from benchmarks.starts import COMMAND, processor_s
from orchestrator.run_options import Flags
from orchestrator.wiring.beginning import How
from orchestrator.wiring.opening import open_campaign

_SHORT = 1_000
_MORE = 200
_ROUNDS = 3


async def measure(nodes: int) -> list[Figure]:
    *_, short = await _of(_SHORT)
    opening, bare, status, chart, long = await _of(nodes)
    return [
        Figure("opening: processor of a bare Python", bare, "s"),
        Figure(f"opening: processor of opening {nodes:,} nodes for a resume", opening, "s", "<= 5"),
        Figure(f"opening: processor of `blastdoor status` on {nodes:,} nodes", status, "s", "<= 1"),
        Figure(f"opening: processor of `blastdoor chart` on {nodes:,} nodes", chart, "s", "<= 1"),
        Figure(f"opening: processor of each of {_MORE} attempts after {_SHORT:,} nodes", short, "ms"),
        Figure(f"opening: the same after {nodes:,} nodes", long, "ms"),
        Figure("opening: the second / the first", long / short, "x", "<= 1.1"),
    ]


async def _of(nodes: int) -> tuple[float, float, float, float, float]:
    """Seconds of opening, of a bare Python, of status and chart, and milliseconds of an attempt that comes after."""
    with tempfile.TemporaryDirectory() as folder:
        await make_long(Path(folder), nodes)
        commands = [("pass",), (COMMAND, "status", folder), (COMMAND, "chart", folder)]
        bare, status, chart = (min(processor_s(*words) for _ in range(_ROUNDS)) for words in commands)
        flags, begun = Flags(attempts=REAL + _MORE, rate=1e6), time.process_time()
        async with open_campaign(Path(folder), fake_site(program, WIDTH), how=How.RESUME, flags=flags) as opened:
            ready = time.process_time()
            await opened.campaign.run()
        return ready - begun, bare, status, chart, (time.process_time() - ready) / _MORE * 1000
