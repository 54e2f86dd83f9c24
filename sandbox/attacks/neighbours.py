"""Two chambers at once: one that lives on while the other looks for it, or reads what both have."""

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.attacks.attack import IMAGE, PROBE, QUICK, Arena, Finding, attack, told
from sandbox.bundle import Bundle
from sandbox.job import Input, Job, Outcome
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
    arena: Arena,
    resident: str,
    visitor: str,
    env: Mapping[str, str],
    files: Mapping[str, bytes] | None = None,
    inputs: Sequence[Input] = (),
) -> tuple[Outcome, Outcome]:
    """Run the visitor once the resident has printed `settled`; then stop the resident and take what it told."""
    ear = Ear()
    bundle = Bundle({"attack.py": resident.encode(), "probe.py": PROBE.encode(), **(files or {})})
    job = Job(command=("python3", "attack.py"), image=IMAGE, limits=LONG, env=env, inputs=tuple(inputs), loopback=True)
    async with await arena.backend.open(job) as chamber:
        living = asyncio.create_task(chamber.run(bundle, listener=ear))
        settling = asyncio.create_task(ear.settled.wait())
        try:
            await asyncio.wait([living, settling], return_when=asyncio.FIRST_COMPLETED)
            visited = await arena.run(visitor, env=env, files=files, inputs=tuple(inputs), loopback=True)
            await chamber.stop()
            return await living, visited
        finally:
            settling.cancel()
            living.cancel()


# A file of the image and one of an input, both of which a neighbour has, too.
PLACES = ("/usr/lib/os-release", "/inputs/data/file")


def shared_input(arena: Arena) -> Input:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "file").write_bytes(bytes(65536))
        return arena.host.inputs.add("data", Path(folder, "file"))


MARK = """
import fcntl, json, os, signal, time
from probe import *
signal.signal(signal.SIGIO, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
places, marks, refusals = json.loads(os.environ["PLACES"]), 0, set()
def kept(error):
    global marks
    refusals.add(error)
    marks += not error
for _ in range(128):
    watcher, error = syscall(294, 26, 0x800)
    for place in places:
        kept(error or syscall(254, 27, watcher, place.encode(), 0xFFF)[1])
    if error:
        break
for place in places:
    for _ in range(32):
        folder = os.open(os.path.dirname(place), os.O_RDONLY)
        # A number with high bits set is the same command to the kernel.
        for command in (1026, (1 << 32) + 1026):
            kept(syscall(72, 25, folder, command, 0x80000001)[1])
tell(marks=marks, refusals=sorted(refusals))
print("settled", flush=True)
time.sleep(60)
"""
READ = """
import json, os, time
from probe import *
def cost(place):
    started = time.process_time()
    for _ in range(1000):
        file = os.open(place, os.O_RDONLY)
        os.pread(file, 64, 0)
        os.close(file)
    return time.process_time() - started
tell(costs=[min(cost(place) for _ in range(5)) for place in json.loads(os.environ["PLACES"])])
"""
# Of a neighbour's own processor time. A busy machine makes it 3 at most, a hundred marks 13 to 200.
MOST_SLOWER = 8.0


@attack("T97", "slow a neighbour's reads by watching the files it reads", runsc="watches are the sentry's own there")
async def marks_on_what_is_read(arena: Arena) -> Finding:
    """As many marks as one can have, on an input and a file of the image, cost a neighbour that reads them nothing."""
    env, inputs = {"PLACES": json.dumps(PLACES)}, (shared_input(arena),)
    alone = told(await arena.run(READ, env=env, inputs=inputs)).get("costs", [])
    watcher, reader = await beside(arena, MARK, READ, env, inputs=inputs)
    marked, costs = told(watcher), told(reader).get("costs", [])
    ran = marked.get("ran") is True and len(alone) == len(costs) == len(PLACES)
    slower = [now / max(before, 1e-3) for now, before in zip(costs, alone, strict=False)]
    text = f"{marked.get('marks')} marks, refused with {marked.get('refusals')}; reads cost "
    text += f"{' and '.join(f'{it:.1f}' for it in slower)} times as much"
    blocked = ran and max(slower) < MOST_SLOWER and (arena.is_gvisor or not marked["marks"])
    return Finding(ran, blocked, str(reader.ending), text)


LOCK = """
import fcntl, json, os, time
from probe import *
files = [os.open(place, os.O_RDONLY) for place in json.loads(os.environ["PLACES"])]
tell(locked=[denied(lambda: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)) for file in files])
print("settled", flush=True)
time.sleep(60)
"""
SHARE = """
import fcntl, json, os
from probe import *
files = [os.open(place, os.O_RDONLY) for place in json.loads(os.environ["PLACES"])]
tell(locked=[denied(lambda: fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)) for file in files])
"""


@attack("T97", "lock a file that a neighbour locks, too", runsc="locks are the sentry's own there")
async def locks_on_what_is_read(arena: Arena) -> Finding:
    """Whatever one chamber locks, its neighbour gets the lock that it asks for: the files are not the same ones."""
    env, inputs = {"PLACES": json.dumps(PLACES)}, (shared_input(arena),)
    holder, asker = (told(it).get("locked", []) for it in await beside(arena, LOCK, SHARE, env, inputs=inputs))
    ran = holder == [""] * len(PLACES) and len(asker) == len(PLACES)
    text = f"exclusive locks were answered {holder}, the neighbour's shared ones {asker}"
    return Finding(ran, ran and not any(asker), "completed", text)
