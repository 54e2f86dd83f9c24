"""Our Modal backend against the bare SDK, both on the emulator; twenty trials at once; a hundred faults.

The emulator's own time is in both sides of the ratio. What Modal itself would take is not measured anywhere.
"""

import asyncio
import io
import os
import random
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grpclib import Status

from benchmarks.figure import Figure
from orchestrator.tariff import longest
from sandbox import Bundle, Ending, Job, Limits, ModalConfig
from sandbox.backends.modal.backend import ModalBackend
from sandbox.errors import SandboxError
from sandbox.link import Deadlines
from tests.modal_emulator import ModalEmulator
from tests.modal_emulator.bare import Bare

SAMPLES = 40
WARM_UP = 2  # connections are made, the image is looked up
PARALLEL = 20
FAULTS = 100
WIDTH = 4
SEED = 7
PROGRAM = "open('/work/out/x', 'w').write(open('main.txt').read())"
LIMITS = Limits(cpus=1, memory=256 * 1024**2, wall=20, grace=1)
JOB = Job(command=("python3", "-c", PROGRAM), limits=LIMITS)
# What a client without us would do in the sandbox for the same: files in, the program, files out.
BY_HAND = f'mkdir -p /work/out && cd /work && tar -xf - && python3 -c "{PROGRAM}" && tar -cf - -C /work/out .'
RPCS = (
    "SandboxCreateV2",
    "SandboxGetFromNameV2",
    "SandboxListV2",
    "SandboxTerminateV2",
    "SandboxWaitV2",
    "TaskExecStart",
    "TaskExecStdinWrite",
    "TaskExecStdioRead",
)


@dataclass
class Booked:
    """What our side says of one trial."""

    usd: float = 0.0
    done: bool = False
    blamed: bool = False
    timed_out: bool = False
    unended: bool = False
    why: str = ""


@asynccontextmanager
async def emulated() -> AsyncIterator[tuple[ModalEmulator, ModalConfig]]:
    emulator = ModalEmulator()
    before = dict(os.environ)
    os.environ.update(emulator.environment())
    try:
        with tempfile.TemporaryDirectory(prefix="blastdoor-bench-") as folder:
            deadlines = Deadlines(provision=30.0, upload=15.0, collect=15.0)
            places = {"owners_folder": Path(folder, "owners"), "inputs_folder": Path(folder, "inputs")}
            yield emulator, ModalConfig(deadlines=deadlines, **places)
    finally:
        os.environ.clear()
        os.environ.update(before)
        emulator.close()


async def ours(backend: ModalBackend, word: bytes) -> Booked:
    booked = Booked()
    try:
        chamber = await backend.open(JOB)
        try:
            outcome = await chamber.run(Bundle({"main.txt": word}))
            booked.done = outcome.outputs == {"x": word}
            # A stream that hangs for good looks like a program that hangs, where its machine answers all else.
            booked.timed_out = outcome.ending is Ending.TIMED_OUT
            booked.blamed = not booked.done and not booked.timed_out
            booked.why = f"{outcome.ending}: {outcome.reason} {outcome.log_tail.decode(errors='replace')}"
        finally:
            await chamber.kill()
            booked.usd, booked.unended = chamber.bill.usd, not chamber.bill.final
    except SandboxError as failure:
        booked.why = str(failure)
        booked.usd = booked.usd or failure.usd
        booked.unended |= failure.unended
    return booked


async def by_hand(bare: Bare, word: bytes) -> None:
    """The same trial in the SDK's own calls, its end confirmed as well."""
    sandbox = await bare.create(cpu=(1.0, 1.0), memory=(256, 256), timeout=300)
    process = await sandbox.exec.aio("sh", "-c", BY_HAND, text=False, timeout=60)
    process.stdin.write(_archive(word))
    process.stdin.write_eof()
    await process.stdin.drain.aio()
    out, _ = await asyncio.gather(process.stdout.read.aio(), process.stderr.read.aio())
    await process.wait.aio()
    await sandbox.terminate.aio(wait=True)
    with tarfile.open(fileobj=io.BytesIO(out)) as archive:
        found = archive.extractfile("./x")
        if found is None or found.read() != word:
            raise RuntimeError("the trial by hand gave something else back")


def _archive(word: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("main.txt")
        entry.size = len(word)
        archive.addfile(entry, io.BytesIO(word))
    return buffer.getvalue()


async def measure() -> list[Figure]:
    async with emulated() as (emulator, config):
        figures = await _overhead(emulator, config)
        figures += await _parallel(config)
        return figures + await _faults(emulator, config, FAULTS)


async def _overhead(emulator: ModalEmulator, config: ModalConfig) -> list[Figure]:
    bare = await Bare.connect(emulator.environment())
    backend = await ModalBackend.connect(config)
    mine: list[float] = []
    plain: list[float] = []

    async def timed(into: list[float], trial: Coroutine[Any, Any, object]) -> None:
        started = time.perf_counter()
        await trial
        into.append(time.perf_counter() - started)

    async def sound(word: bytes) -> None:
        if not (booked := await ours(backend, word)).done:
            raise RuntimeError(f"a trial without any fault failed: {booked.why}")

    try:
        for number in range(WARM_UP + SAMPLES):
            word = str(number).encode()
            pair = [(plain, by_hand(bare, word)), (mine, sound(word))]
            for into, trial in pair if number % 2 else reversed(pair):  # each goes first as often as the other
                await timed(into, trial)
    finally:
        await backend.close()
    mine, plain = mine[WARM_UP:], plain[WARM_UP:]
    a, b = statistics.median(plain) * 1000, statistics.median(mine) * 1000
    ratio = statistics.median(ours / bare for ours, bare in zip(mine, plain, strict=True))
    return [
        Figure("Modal, emulated: a trial by the bare SDK", a, "ms"),
        Figure("Modal, emulated: the same trial by our backend", b, "ms"),
        Figure("Modal, emulated: our backend / bare SDK", ratio, "x", "<= 1.15"),
    ]


async def _parallel(config: ModalConfig) -> list[Figure]:
    backend = await ModalBackend.connect(config.model_copy(update={"deadlines": Deadlines(120.0, 60.0, 60.0)}))
    try:
        trials = await asyncio.gather(*(ours(backend, f"trial {number}".encode()) for number in range(PARALLEL)))
    finally:
        await backend.close()
    lost = sum(not trial.done for trial in trials)
    return [Figure(f"Modal, emulated: of {PARALLEL} trials at once, lost", lost, "", "<= 0")]


async def _faults(emulator: ModalEmulator, config: ModalConfig, count: int) -> list[Figure]:
    """Trials, a few at a time, each after one more fault was set, until so many have struck, whomever they struck."""
    emulator.forget()
    chance = random.Random(SEED)
    kinds = _kinds(emulator, chance)
    backend = await ModalBackend.connect(config)
    trials: list[Booked] = []

    async def worker() -> None:
        while emulator.struck() < count:
            chance.choice(kinds)()
            trials.append(await ours(backend, f"trial {len(trials)}".encode()))

    try:
        await asyncio.gather(*(worker() for _ in range(WIDTH)))
    finally:
        struck = emulator.struck()
        emulator.heal()
        await backend.close()
    await (await ModalBackend.connect(config)).close()
    return _account(emulator, config, trials, struck)


def _kinds(emulator: ModalEmulator, chance: random.Random) -> list[Callable[[], object]]:
    def rpc() -> str:
        return chance.choice(RPCS)

    return [
        lambda: emulator.fail(rpc(), "before", times=chance.choice((1, 5))),
        lambda: emulator.fail(rpc(), "after"),
        lambda: emulator.fail("SandboxCreateV2", "before", status=Status.RESOURCE_EXHAUSTED),
        lambda: emulator.fail(rpc(), "before", status=Status.UNAUTHENTICATED),
        lambda: emulator.hang(rpc(), "before"),
        lambda: emulator.hang(rpc(), "after"),
        lambda: emulator.cut_at(rpc(), "before"),
        lambda: emulator.cut_at(rpc(), "after"),
        lambda: emulator.slow(rpc(), 2.0, times=1),
    ]


def _account(emulator: ModalEmulator, config: ModalConfig, trials: list[Booked], struck: int) -> list[Figure]:
    """A trial whose end is not confirmed is booked at its worst case, as the orchestrator's door does."""
    rate = config.rates.per_second(LIMITS)
    spare_s = config.deadlines.upload + config.deadlines.collect
    worst_s = longest(LIMITS, builds=False, spare_s=spare_s) + config.terms.opening_s + config.terms.closing_s
    charged = [bill["seconds"] * rate for bill in emulator.sandboxes()]
    booked = sum(rate * worst_s if trial.unended else trial.usd for trial in trials)
    timed_out = sum(trial.timed_out for trial in trials)
    blamed = [trial.why for trial in trials if trial.blamed]
    for why in blamed:
        sys.stderr.write(f"blamed on the program: {why}\n")
    through = sum(trial.done for trial in trials) / len(trials) * 100
    return [
        Figure("Modal, emulated: faults that struck", struck, "", f">= {FAULTS}"),
        Figure(f"Modal, emulated: of {len(trials)} trials among them, came through all the same", through, "%"),
        Figure("Modal, emulated: streams that hung, taken for a program that timed out", timed_out, ""),
        Figure("Modal, emulated: other failures of the provider's taken for the program's", len(blamed), "", "<= 0"),
        Figure("Modal, emulated: sandboxes left running after them", len(emulator.running()), "", "<= 0"),
        Figure("Modal, emulated: containers left on the engine", len(emulator.containers()), "", "<= 0"),
        Figure("Modal, emulated: dearest sandbox / reserved for a trial", max(charged) / rate / worst_s, "x", "<= 1"),
        Figure("Modal, emulated: charged by the provider / booked by us", sum(charged) / booked, "x", "<= 1"),
    ]
