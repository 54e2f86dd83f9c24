"""Campaigns that measure for real, on the fake backend, while the load of this machine is driven up and down.

A candidate is a count of rounds of arithmetic, run by a process of its own; its score is the time that it takes.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles

from benchmarks.certify import null_before
from benchmarks.fake_site import fake_site, write_task
from benchmarks.figure import Figure
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.proposers import Brief
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.fake.backend import Guest

CAMPAIGNS = 6
CANDIDATES = 20
ROUNDS = 300
BETTER = 60
TASK = """
name = "loaded"
statement = "Take less time."
editable = ["params.json"]
[trial]
command = ["run"]
[judge]
command = ["judge"]
[certify]
rule = "noisy"
[parameters]
file = "params.json"
[parameters.space]
rounds = {type = "int", low = 1, high = 1000}
name = {type = "int", low = 0, high = 1000}
"""
WORK = """
import sys, time
began = time.perf_counter()
for _ in range(int(sys.argv[1])):
    sum(range(2000))
print(time.perf_counter() - began)
"""
SPIN = "while True: pass"


async def program(guest: Guest) -> int:
    """A candidate's trial does its rounds; its judge takes the time that they took, more is better."""
    if "judge/judge.py" in guest.files:
        guest.out["result.json"] = json.dumps({"score": -float(guest.files["outputs/took.txt"])}).encode()
        return 0
    rounds = json.loads(guest.files["params.json"])["rounds"]
    worker = await asyncio.create_subprocess_exec(*_command(rounds), stdout=subprocess.PIPE)
    told, _ = await worker.communicate()
    guest.out["took.txt"] = told
    return 0


def timed() -> float:
    """The same without a campaign around it."""
    return float(subprocess.run(_command(ROUNDS), capture_output=True, check=True).stdout)


def _command(rounds: int) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", WORK, str(rounds)]


@asynccontextmanager
async def load(seed: int) -> AsyncIterator[None]:
    """So many processes spin as a coin says, for one to four seconds at a time; none to twice as many as processors."""
    chance, most = random.Random(seed), 2 * (os.cpu_count() or 1)
    command = (sys.executable, "-I", "-S", "-c", SPIN)
    spinners = [await asyncio.create_subprocess_exec(*command) for _ in range(most)]

    async def drive() -> None:
        while True:
            awake = chance.randint(0, most)
            for place, spinner in enumerate(spinners):
                spinner.send_signal(signal.SIGCONT if place < awake else signal.SIGSTOP)
            await asyncio.sleep(chance.uniform(1, 4))

    driver = asyncio.create_task(drive())
    try:
        yield
    finally:
        driver.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await driver
        for spinner in spinners:
            spinner.kill()
            await spinner.wait()


class Listed:
    """Offers candidates of so many rounds each, one after the other."""

    serial = False
    branching = False

    def __init__(self, rounds: Sequence[int]) -> None:
        self._rounds = rounds

    def exhausted(self, number: int) -> str | None:
        return None if number <= len(self._rounds) else "all is proposed"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        params = {"rounds": self._rounds[brief.number - 1], "name": brief.number}
        return [Proposal(operator="listed", description=json.dumps(params), params=params)]


async def campaign(rounds: Sequence[int], seed: int) -> tuple[list[int], list[float]]:
    """The rounds of those that were kept, and how long the champion took each time that it was measured."""
    site = fake_site(program, 1)
    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder), TASK, json.dumps({"rounds": ROUNDS, "name": 0}))
        flags = Flags(attempts=len(rounds), rate=1e6, seed=seed, width=1)
        async with open_campaign(Path(folder), site, flags=flags) as opened:
            opened.bench.proposers[Role.SEARCH] = Listed(rounds)
            await opened.campaign.run()
            state = opened.bench.state
            kept = [node for node in state.nodes.values() if node.kept and node.parent]
            took = [-state.trials[it].verdict.metrics["score"] for it in state.nodes["1"].measured]  # type: ignore[union-attr] # those were judged
            return [int((node.params or {})["rounds"]) for node in kept], took


async def measure() -> list[Figure]:
    """What no-ops, and what a candidate of a fifth of the work, come to under load that changes."""
    false, found, before = 0, 0, 0
    took: list[float] = []
    for seed in range(CAMPAIGNS):
        async with load(seed):
            kept, times = await campaign([ROUNDS] * CANDIDATES, seed)
            false, took = false + bool(kept), took + times
            before += await asyncio.to_thread(null_before, lambda _, __: -timed(), seed, CANDIDATES)
            kept, _ = await campaign([ROUNDS, ROUNDS, BETTER], seed)
            found += kept == [BETTER]
    parts = quantiles(took, n=10)
    what = f"real time under changing load, {CAMPAIGNS} campaigns of {CANDIDATES} no-op candidates"
    return [
        Figure(f"campaigns that keep anything falsely: {what}", false, "campaigns", "<= 1"),
        Figure("… and where the champion was measured once, beforehand", before, "campaigns"),
        Figure("… the champion's slowest tenth / its fastest tenth", parts[-1] / parts[0], "x"),
        Figure(
            f"… campaigns of {CAMPAIGNS} that keep a candidate of a fifth of the work",
            found,
            "campaigns",
            f">= {CAMPAIGNS - 2}",
        ),
    ]
