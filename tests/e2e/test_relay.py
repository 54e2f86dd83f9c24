"""A judge that calls, on a real engine: candidates in C and in Python with numpy, and what the channel carries."""

from pathlib import Path

import pytest

from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts

pytestmark = pytest.mark.docker

SOURCE = (Path(__file__).parent / "candidate.c").read_text()
TASK = """name = "called"
statement = "Be called."
editable = ["candidate.c"]

[trial]
command = ["/work/tmp/candidate"]
build = "gcc -O2 -Wall -Werror candidate.c -o /work/tmp/candidate"

[image]
apt = ["gcc", "libc6-dev"]

[limits]
wall = "60s"
build = "120s"

[judge]
mode = "relay"
command = ["python3", "judge.py"]
limits = {wall = "60s"}
"""
JUDGE = """
import array, random
from blastdoor_judge import BadOutput, publish
from blastdoor_relay import NoFunction, relay

with relay() as candidate:
    rng = random.Random(candidate.seed)
    if set(candidate.functions) != {"add", "echo"}:
        raise BadOutput(f"it has {candidate.functions}")
    for count in (0, 1, 1000, 500_000):
        numbers = array.array("d", (rng.randrange(1000) for _ in range(count)))
        if candidate.call("add", numbers).value != sum(numbers):
            raise BadOutput("a wrong sum")
    for value in (None, True, -7, 2.5, 2**100, "text é", b"bytes", [1, [2, {"a": None}]], {"k": [0.5]}):
        if candidate.call("echo", value).value != value:
            raise BadOutput(f"{value} came back as something else")
    try:
        candidate.call("nothing", 1)
    except NoFunction:
        publish(1.0)
"""


async def met(folder: Path, **files: str) -> Rehearsal:
    written = {"blastdoor.toml": TASK, "workspace/candidate.c": SOURCE, "judge/judge.py": JUDGE, **files}
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    task = load_task(folder)
    settings = Settings()
    async with docker_site(docker_config(settings, inputs_folder=folder / "cache"), settings.image) as site:
        return await rehearse(await make_parts(task, snapshot(task, folder), site))


async def test_a_candidate_in_c(tmp_path: Path) -> None:
    """Compiled in its chamber by the build step, it is called with arrays and every kind of value."""
    run = await met(tmp_path)
    assert run.scored, (run.reason, run.log, run.judgement)
    assert run.calibration
    assert run.calibration.calls == 14
    assert run.functions == ("add", "echo")


async def test_a_build_that_fails(tmp_path: Path) -> None:
    """What does not compile ends as a build that failed, and no judge is asked."""
    run = await met(tmp_path, **{"workspace/candidate.c": "int main(void) { return }\n"})
    assert run.ending == "build failed"
    assert run.judgement is None
