"""What short commands cost: the processor time of a whole process, least of several, in turn with a bare Python."""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.campaign import TASK, WIDTH, program
from benchmarks.fake_site import fake_site, write_task
from benchmarks.figure import Figure
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import open_campaign

NODES = 1_000
_ROUNDS = 9
COMMAND = "import sys; from orchestrator.views.cli import main; sys.argv[0] = 'blastdoor'; main()"


async def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder), TASK, '{"x": 0.0, "y": 0}')
        flags = Flags(attempts=NODES, rate=1e6, seed=1)
        async with open_campaign(Path(folder), fake_site(program, WIDTH), flags=flags) as opened:
            await opened.campaign.run()
        commands = {
            "a bare Python": ("pass",),
            "`blastdoor --version`": (COMMAND, "--version"),
            "`blastdoor --help`": (COMMAND, "--help"),
            f"`blastdoor status` on {NODES:,} nodes": (COMMAND, "status", folder),
        }
        taken = [[processor_s(*words) for words in commands.values()] for _ in range(_ROUNDS)]
    least = [min(times) for times in zip(*taken, strict=True)]
    goals = ("", "<= 0.25", "<= 0.25", "<= 0.5")
    return [Figure(f"processor of {name}", s, "s", goal) for name, s, goal in zip(commands, least, goals, strict=True)]


def processor_s(*words: str) -> float:
    before = _of_children()
    subprocess.run([sys.executable, "-c", *words], stdout=subprocess.DEVNULL, check=True)
    return _of_children() - before


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
