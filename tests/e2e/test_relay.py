"""A judge that calls, on a real engine: candidates in C and in Python with numpy, and what the channel carries."""

import asyncio
import json
from pathlib import Path

import pytest

from orchestrator.change import File, Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.verdict import Mode
from orchestrator.judge.relay import Met
from orchestrator.judge.turns import Turn
from orchestrator.loop.rehearsal import rehearse
from orchestrator.loop.relaying import Ended, ended_by, relayed
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from sandbox import Incoming, Reply
from tests.orchestrator.discovery.repositories import write

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


async def test_a_candidate_in_c(tmp_path: Path) -> None:
    """Compiled in its chamber by the build step, it is called with arrays and every kind of value. What does not
    compile ends as a build that failed, and no judge is asked.
    """
    written = {"blastdoor.toml": TASK, "workspace/candidate.c": SOURCE, "judge/judge.py": JUDGE}
    folder = write(tmp_path / "task", written)
    task, settings = load_task(folder), Settings()
    async with docker_site(docker_config(settings, inputs_folder=tmp_path / "cache"), settings.image) as site:
        parts = await make_parts(task, snapshot(task, folder), site)
        run = await rehearse(parts)
        broken = Tree({"candidate.c": File(b"int main(void) { return }\n")})
        failed = await rehearse(parts, tree=broken)
    assert run.scored, (run.reason, run.log, run.judgement)
    assert run.calibration
    assert run.calibration.calls == 14
    assert run.functions == ("add", "echo")
    assert (failed.ending, failed.judgement) == ("build failed", None)


PYTHON_TASK = """name = "streamed"
statement = "Take it."
editable = ["candidate.py"]

[trial]
command = ["python3", "candidate.py"]

[limits]
wall = "8s"

[judge]
mode = "relay"
command = ["python3", "judge.py"]
limits = {wall = "12s"}
"""
# Reads the beginning of a large request, and then does something else than to read on.
BREAKS_OFF = """
import os, sys, time
from blastdoor_values import encode

def read(count):
    data = bytearray()
    while len(data) < count:
        data += os.read(0, min(count - len(data), 1 << 20)) or sys.exit(0)
    return bytes(data)

while True:
    header = read(12)
    length = int.from_bytes(header[:4], "big")
    if length > 1 << 20:
        read(1 << 16)
        ACT
    payload = read(length)
    reply = b"N" if payload[:1] == b"N" else b"L" + encode(["take"])
    os.write(1, len(reply).to_bytes(4, "big") + header[4:] + reply)
"""
STREAMS = """
from blastdoor_judge import publish
from blastdoor_relay import relay
from blastdoor_values import Array

with relay() as candidate:
    publish(float(candidate.value("take", Array("f8", (4 << 20,), bytes(32 << 20)))))
"""


async def streamed(folder: Path, act: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Met, Ended | None]:
    """One call as an attempt makes it, where nobody keeps what was said; it must have been handed on while it came."""
    handed_on = []

    async def forward(turn: Turn, payload: Incoming, sender_s: float) -> Reply:
        handed_on.append(payload.length)
        return await usual(turn, payload, sender_s)

    usual = Turn.forward
    monkeypatch.setattr(Turn, "forward", forward)
    files = {
        "blastdoor.toml": PYTHON_TASK,
        "workspace/candidate.py": BREAKS_OFF.replace("ACT", act.strip()),
        "judge/judge.py": STREAMS,
    }
    write(folder, files)
    task, settings = load_task(folder), Settings()
    async with (
        asyncio.timeout(300),
        docker_site(docker_config(settings, inputs_folder=folder / "cache"), settings.image) as site,
    ):
        parts = await make_parts(task, snapshot(task, folder), site)
        meeting = await relayed(parts, "1", Mode.SUBMIT, parts.jobs.snapshot.tree)
    assert len(handed_on) == 1
    assert handed_on[0] > 32 << 20
    return meeting, ended_by(meeting, task.limits.wall)


@pytest.mark.parametrize(
    ("act", "ending"),
    [
        ("os._exit(3)", Ending.FAILED),
        pytest.param("time.sleep(3600)", Ending.TIMED_OUT, marks=pytest.mark.touching("members")),
        ("data = bytearray(1 << 30); data[::4096] = bytes(len(data) // 4096)", Ending.OUT_OF_MEMORY),
    ],
)
async def test_a_candidate_that_does_not_take_a_streamed_call(
    tmp_path: Path, act: str, ending: Ending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happens to it while the judge sends is its own ending; the judge is neither blamed nor waited for. One that
    sleeps is waited for as long as both limits together, which is in earnest.
    """
    meeting, ended = await streamed(tmp_path, act, monkeypatch)
    assert ended
    assert ended.ending is ending, ended
    assert meeting.files is None
    assert not meeting.broken


async def test_a_candidate_that_answers_before_it_has_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An early answer is an answer: what is still on its way does not reach the next call."""
    act = """
        reply = b"V" + encode(7)
        os.write(1, len(reply).to_bytes(4, "big") + header[4:] + reply)
        read(length - (1 << 16))
        continue"""
    meeting, ended = await streamed(tmp_path, act, monkeypatch)
    assert ended is None
    assert meeting.files
    assert json.loads(meeting.files["result.json"])["score"] == 7
