"""Calls between a judge and a candidate: how long a small one takes, how fast arrays cross, and what neighbours do."""

import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from benchmarks.figure import Figure
from orchestrator.change import Tree
from orchestrator.domain.verdict import Mode
from orchestrator.door import Door
from orchestrator.judge.data import contract_variables, judge_files
from orchestrator.judge.helpers import CANDIDATE_HELPERS, JUDGE_HELPERS, helpers
from orchestrator.judge.relay import Met, Seat, judgement_of, meet
from orchestrator.loop.jobs import bundle_of, together
from orchestrator.tariff import Tariff
from sandbox import Bundle, DockerConfig, Job, Limits, RuncConfig
from sandbox import Mode as JobMode
from sandbox.backend import Backend
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.runc.backend import RuncBackend

CALLS = 1000
MEGABYTES = 32
TURNS = 15
NEIGHBOURS = 16
LIMITS = Limits(wall=120, cpus=2, memory="1GiB")

CANDIDATE = f"""
from blastdoor_candidate import serve
KEPT = bytes({MEGABYTES} << 20)
serve(take=len, echo=lambda value: value, give=lambda: KEPT)
"""
# Its own clock is trusted here: it is our code, and measures what a judge waits, both ways through the orchestrator.
_JUDGE = """
import json, os, time
from blastdoor_judge import publish
from blastdoor_relay import relay

def timed(name, *data):
    if PAUSE_S:
        time.sleep(PAUSE_S)
    started = time.perf_counter()
    reply = candidate.call(name, *data)
    return time.perf_counter() - started, reply.elapsed

with relay() as candidate:
    data = bytes(MEGABYTES << 20)
    rows = {
        "small": [timed("echo", 7) for _ in range(CALLS)],
        "there": [timed("take", data) for _ in range(TURNS)],
        "back": [timed("give") for _ in range(TURNS)],
    }
    os.makedirs(os.environ["BLASTDOOR_TRACES_DIR"])
    with open(os.path.join(os.environ["BLASTDOOR_TRACES_DIR"], "figures.json"), "w") as file:
        json.dump(rows, file)
    publish(0.0)
"""
JUDGE = f"MEGABYTES, CALLS, TURNS, PAUSE_S = {MEGABYTES}, {CALLS}, {TURNS}, 0\n{_JUDGE}"
# As long as a judge beside busy neighbours waits between two calls, since they keep the event loop.
PAUSE_S = 0.005


async def seated(backend: Backend, serving: str, judging: str) -> Mapping[str, bytes]:
    """The files that a judge leaves. Raises RuntimeError where it left none."""
    met = await _met(backend, serving, judging)
    if met.files is None:
        raise RuntimeError(f"{judgement_of(met)}")
    return met.files


async def _met(backend: Backend, serving: str, judging: str) -> Met:
    door = Door(backend, Job(command=("true",)), Tariff(lambda _: 0.0, 120.0, 100.0))
    candidate = together(bundle_of(Tree.of({"serve.py": serving})), bundle_of(helpers(CANDIDATE_HELPERS)))
    files = judge_files(Tree.of({"judge.py": judging}), Tree(), helpers(JUDGE_HELPERS))
    job = Job(command=("python3", "serve.py"), mode=JobMode.RELAY, limits=LIMITS)
    variables = contract_variables(Mode.SUBMIT, "0")
    judge = Job(command=("python3", "judge.py"), mode=JobMode.RELAY, limits=LIMITS, workdir="judge", env=variables)
    return await meet(Seat(door, job, candidate, 120.0), Seat(door, judge, bundle_of(files), 120.0))


async def measure() -> list[Figure]:
    by_docker = await _figures("by Docker", await DockerBackend.connect(DockerConfig()), "<= 1")
    without = await _figures("without a daemon", await RuncBackend.connect(RuncConfig()), "<= 0.4")
    return [*by_docker, *without, *await beside_neighbours()]


async def beside_neighbours() -> list[Figure]:
    """The same small calls, once alone and once beside chambers that come and go: what their clock says."""
    backend = await RuncBackend.connect(RuncConfig())
    try:
        alone, rare = await _small(backend), await _small(backend, PAUSE_S)
        async with _neighbours(backend):
            beside = await _small(backend)
    finally:
        await backend.close()
    name = f"relay beside {NEIGHBOURS} chambers that come and go"
    figures = [Figure(f"{name}: a small call by the orchestrator's clock", beside[0] * 1e3, "ms")]
    for of, times in (("alone", alone), (f"alone, one every {PAUSE_S * 1e3:g} ms", rare)):
        for word, mine, theirs in zip(("median", "95 of 100"), beside, times, strict=True):
            figures.append(Figure(f"{name}: {word}, of that {of}", mine / theirs, "x", "<= 2"))
    return figures


async def _small(backend: Backend, pause_s: float = 0.0) -> tuple[float, float]:
    """The median, and the time within which 95 of 100 were answered."""
    judge = f"MEGABYTES, CALLS, TURNS, PAUSE_S = 1, {CALLS}, 0, {pause_s}\n{_JUDGE}"
    rows = json.loads((await seated(backend, CANDIDATE, judge))["traces/figures.json"])
    elapsed = [row[1] for row in rows["small"]]
    return statistics.median(elapsed), statistics.quantiles(elapsed, n=20)[-1]


@asynccontextmanager
async def _neighbours(backend: Backend) -> AsyncIterator[None]:
    async def come_and_go() -> None:
        while True:
            async with await backend.open(Job(command=("true",), limits=Limits(cpus=1))) as chamber:
                await chamber.run(Bundle({"a": b"1"}))

    tasks = [asyncio.create_task(come_and_go()) for _ in range(NEIGHBOURS)]
    try:
        yield
        if gone := [task for task in tasks if task.done()]:
            raise RuntimeError(f"{len(gone)} neighbours were gone before the end") from gone[0].exception()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _figures(way: str, backend: DockerBackend | RuncBackend, small: str) -> list[Figure]:
    try:
        met = await _met(backend, CANDIDATE, JUDGE)
    finally:
        await backend.close()
    if met.files is None:
        raise RuntimeError(f"{judgement_of(met)}")
    rows = json.loads(met.files["traces/figures.json"])
    waited = {name: statistics.median(row[0] for row in values) for name, values in rows.items()}
    elapsed = {name: statistics.median(row[1] for row in values) for name, values in rows.items()}
    size = MEGABYTES * 1.048576
    return [
        Figure(f"relay {way}: a small call, as its judge waits for it", waited["small"] * 1e3, "ms", small),
        Figure(f"relay {way}: the same by the orchestrator's clock", elapsed["small"] * 1e3, "ms"),
        Figure(f"relay {way}: jitter of empty calls", met.jitter_s * 1e3, "ms"),
        Figure(f"relay {way}: {MEGABYTES} MiB, orchestrator to candidate", size / elapsed["there"], "MB/s", ">= 200"),
        Figure(f"relay {way}: {MEGABYTES} MiB, candidate to orchestrator", size / elapsed["back"], "MB/s", ">= 200"),
        Figure(f"relay {way}: {MEGABYTES} MiB, judge to candidate, as the judge waits", size / waited["there"], "MB/s"),
        Figure(f"relay {way}: {MEGABYTES} MiB, candidate to judge, as the judge waits", size / waited["back"], "MB/s"),
    ]
