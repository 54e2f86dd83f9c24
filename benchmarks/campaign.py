"""What orchestrator and ledger cost for each trial, early and late in a long campaign. No containers are involved."""

import json
import tempfile
import time
from pathlib import Path

from benchmarks.fake_site import fake_site, write_task
from benchmarks.figure import Figure
from orchestrator.domain import events as e
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.fake.backend import Guest

WIDTH = 4
TASK = """
name = "flat"
statement = "Nothing to find."
editable = ["params.json"]
[trial]
command = ["run"]
[judge]
command = ["judge"]
[parameters]
file = "params.json"
[parameters.space]
x = {type = "float", low = 0.0, high = 1.0}
y = {type = "int", low = 1, high = 1000}
"""


async def program(guest: Guest) -> int:
    """Trial and judge alike: a candidate writes its point down, the judge adds it up."""
    if "judge/judge.py" in guest.files:
        point = json.loads(guest.files["outputs/point.json"])
        guest.out["result.json"] = json.dumps({"score": point["x"] + point["y"]}).encode()
    else:
        guest.out["point.json"] = guest.files["params.json"]
    return 0


async def measure(nodes: int) -> list[Figure]:
    site = fake_site(program, WIDTH)
    ends: list[tuple[float, float]] = []
    count = 0

    def observe(event: e.Event, _: str) -> None:
        nonlocal count
        count += 1
        if isinstance(event, e.AttemptEnded):
            ends.append((time.process_time(), time.perf_counter()))

    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder), TASK, '{"x": 0.0, "y": 0}')
        flags = Flags(attempts=nodes, rate=1e6, seed=1)
        async with open_campaign(Path(folder), site, flags=flags) as opened:
            opened.bench.book.observers.append(observe)
            await opened.campaign.run()
    tenth = len(ends) // 10
    first, last = _per_trial(ends[: tenth + 1]), _per_trial(ends[-tenth - 1 :])
    return [
        Figure(f"CPU of a trial, first tenth of {len(ends)} nodes and {count} events", first[0], "ms", "<= 15"),
        Figure("CPU of a trial, last tenth", last[0], "ms", "<= 15"),
        Figure("CPU of a trial, last / first tenth", last[0] / first[0], "x", "<= 1.2"),
        Figure("time of a trial on the clock, last / first tenth", last[1] / first[1], "x"),
    ]


def _per_trial(ends: list[tuple[float, float]]) -> tuple[float, float]:
    spans = len(ends) - 1
    return (ends[-1][0] - ends[0][0]) / spans * 1000, (ends[-1][1] - ends[0][1]) / spans * 1000
