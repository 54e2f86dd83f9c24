"""Values between a judge and a candidate: what packing costs, and whether speed-ups by the door are the native ones.

Packing is measured in this process, by processor time. Speed-ups are those of a slow and a fast candidate on the same
questions: natively, the work alone; through the door, with and without what packing costs.
"""

import json
import random
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.figure import Figure
from benchmarks.relay import seated
from orchestrator.judge.guest.blastdoor_values import Writer, decode, encode
from sandbox import DockerConfig, RuncConfig
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.runc.backend import RuncBackend

FLOATS = 10**6
TURNS, ROUNDS = 25, 100
MEGABYTES = 32
# Rounds of the two candidates' work, so that the fast one takes five milliseconds and more on a list of this length.
LENGTH, SLOW, FAST = 50_000, 9, 3

WORK = """
import math

def work(numbers, rounds):
    return sum(sum(map(math.sin, numbers)) for _ in range(rounds))
"""
CANDIDATE = f"""
from blastdoor_candidate import serve
{WORK}
serve(slow=lambda it: work(it, {SLOW}), fast=lambda it: work(it, {FAST}), take=lambda it: len(it.data))
"""
# Its own clock is trusted here: it is our code. The native times are those of the same work in the judge's chamber.
JUDGE = f"""
import json, os, time
from blastdoor_judge import publish
from blastdoor_relay import relay
from blastdoor_values import Array
{WORK}
def question(rng):
    return ([rng.random() for _ in range({LENGTH})],)

def native(rounds):
    numbers, = question(candidate.rng())
    started = time.perf_counter()
    work(numbers, rounds)
    return time.perf_counter() - started

def sent(call, data):
    started = time.perf_counter()
    call("take", data)
    return time.perf_counter() - started

with relay() as candidate:
    rows = {{"work": []}}
    for turn in range({ROUNDS}):
        row = [native({SLOW}), native({FAST})]
        for function in ("slow", "fast"):
            reply = candidate.call(function, *question(candidate.rng()))
            row += [reply.elapsed, reply.elapsed - reply.net, reply._rehearse()]
        rows["work"].append(row)
    data = Array("f8", ({MEGABYTES} << 17,), bytes({MEGABYTES} << 20))
    rows["array"] = [(sent(candidate.value, data), sent(candidate.call, data)) for _ in range({TURNS})]
    os.makedirs(os.environ["BLASTDOOR_TRACES_DIR"])
    with open(os.path.join(os.environ["BLASTDOOR_TRACES_DIR"], "figures.json"), "w") as file:
        json.dump(rows, file)
    publish(0.0)
"""


async def measure() -> list[Figure]:
    docker = await _crossed(await DockerBackend.connect(DockerConfig()))
    without_daemon = await _crossed(await RuncBackend.connect(RuncConfig()))
    return [
        *_packing(),
        *_speed_ups(docker),
        *_arrays("by Docker", docker),
        *_arrays("without a daemon", without_daemon),
    ]


async def _crossed(backend: DockerBackend | RuncBackend) -> Any:
    try:
        files = await seated(backend, CANDIDATE, JUDGE)
    finally:
        await backend.close()
    return json.loads(files["traces/figures.json"])


def _speed_ups(rows: Any) -> list[Figure]:
    # Of each the quickest: others on the machine only ever make it slower.
    least = [min(column) for column in zip(*rows["work"], strict=True)]
    native, slow, fast = least[:2], least[2:5], least[5:8]
    gain = {
        "native": native[0] / native[1],
        "with": (slow[0] - slow[1]) / (fast[0] - fast[1]),
        "without": (slow[0] - slow[2]) / (fast[0] - fast[2]),
    }
    fast_s = native[1]
    return [
        Figure("values: native time of the fast candidate", fast_s * 1e3, "ms", ">= 5"),
        Figure("values: native speed-up", gain["native"], "times"),
        Figure("values: speed-up by the door, of the native one", gain["with"] / gain["native"], ""),
        Figure("values: the same without packing", gain["without"] / gain["native"], "", ">= 0.85"),
        Figure("values: the same without packing, at most", gain["without"] / gain["native"], "", "<= 1.15"),
    ]


def _arrays(way: str, rows: Any) -> list[Figure]:
    streamed, stored = zip(*rows["array"], strict=True)
    name = f"values: {MEGABYTES} MiB array {way}, judge to candidate, as the judge waits"
    return [
        Figure(name, _rate(streamed), "MB/s", ">= 200"),
        Figure("values: the same, stored whole before it is handed on", _rate(stored), "MB/s"),
    ]


def _packing() -> list[Figure]:
    numbers = [random.random() for _ in range(FLOATS)]
    packed = encode(numbers)
    pack, unpack = _least(lambda: Writer().pieces(numbers)), _least(lambda: decode(packed))
    plain = _least(lambda: struct.pack(f"<{FLOATS}d", *numbers))
    return [
        Figure("values: packing a list of 1,000,000 floats", pack * 1e3, "ms", "<= 20"),
        Figure("values: the same, of what struct takes for the bare numbers", pack / plain, "times"),
        Figure("values: unpacking it", unpack * 1e3, "ms"),
    ]


def _least(act: Callable[[], object]) -> float:
    """Processor seconds of the quickest of several: others on the machine only ever make it slower."""
    found = []
    for _ in range(TURNS):
        started = time.process_time()
        act()
        found.append(time.process_time() - started)
    return min(found)


def _rate(seconds: Sequence[float]) -> float:
    return MEGABYTES * 1.048576 / statistics.median(seconds)
