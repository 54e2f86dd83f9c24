"""What a candidate, a judge that read it, or a change can send to keep an orchestrator busy; all is made beforehand."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.fake_site import fake_site, write_task
from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Role
from orchestrator.domain.reports import MOST_POINTS
from orchestrator.loop.workbench import Workbench
from orchestrator.proposers import Brief
from orchestrator.pruning.crowd import MOST_PEERS
from orchestrator.run_options import Flags
from orchestrator.wiring.opening import Opened, open_campaign
from sandbox.backends.fake.backend import Guest
from sandbox.wire.demux import Stream

MIB = 1 << 20
PIECE = 262_144
FILES, LINES = 64, 1000
REPORT = b'::report {"step":%d,"value":1}\n'


@dataclass(frozen=True)
class Hostile:
    """`words` are said in PID 1's place, `result` is what the judge gives back, `change` is proposed as a text. So many
    `peers` with whole curves have ended before, and a signed-rank test compares with them.
    """

    log: bytes = b""
    words: bytes = b""
    outputs: Mapping[str, bytes] = field(default_factory=lambda: {"answer": b"1"})
    result: Mapping[str, bytes] = field(default_factory=lambda: {"result.json": b'{"score": 1}'})
    change: str = ""
    peers: int = 0


def source(number: int) -> str:
    """One of the files that a change may touch."""
    return "".join(f"x = {(line * number) % 11}\n" for line in range(LINES))


def _rewritten() -> str:
    """Every editable file again, in lines that all look alike: slow to compare."""
    texts = ("".join(f"x = {(line * 5 + number) % 7}\n" for line in range(2 * LINES)) for number in range(FILES))
    return "".join(f"File: src/file{number}.py\n```\n{text}```\n" for number, text in enumerate(texts))


def _csv(rows: int) -> bytes:
    return (
        b"iteration"
        + b"".join(b",c%d" % n for n in range(64))
        + b"\n"
        + b"".join(b"%d" % row + b",1" * 64 + b"\n" for row in range(rows))
    )


def _traces(count: int) -> Mapping[str, bytes]:
    trace = json.dumps({"task_id": 1, "score": 1, "log": ["x"] * 800}).encode()
    return {"result.json": b'{"score": 1}', **{f"traces/{number}.json": trace for number in range(count)}}


def _tasks() -> Mapping[str, bytes]:
    tasks = {f"{n}-" + "t" * 80: n / 7 for n in range(9000)}
    return {"result.json": json.dumps({"score": 1, "tasks": tasks}).encode()}


# Each takes a part of which its log has one: a test needs less of it.
HOSTILE: dict[str, Callable[[int], Hostile]] = {
    "nothing hostile": lambda _: Hostile(),
    "1 MiB of newlines": lambda part: Hostile(log=b"\n" * (MIB // part)),
    "1 MiB of lines that are no text": lambda part: Hostile(log=b"\xff\n" * (MIB // 2 // part)),
    "15 MiB of escapes": lambda part: Hostile(log=b"\x1b" * (15 * MIB // part)),
    "15 MiB of invisible characters": lambda part: Hostile(log="\U000e0069".encode() * (15 * MIB // 4 // part)),
    "400,000 reports": lambda part: Hostile(log=b"".join(REPORT % step for step in range(400_000 // part))),
    "reports among 256 whole curves": lambda _: Hostile(
        log=b"".join(REPORT % step for step in range(MOST_POINTS)), peers=MOST_PEERS
    ),
    "400,000 lines like reports": lambda part: Hostile(log=b'::report {"step":1,"value":[[[[[[\n' * (400_000 // part)),
    "PID 1's words": lambda _: Hostile(words=b"x" * (8 * MIB)),
    "1,000 files of 60 KiB": lambda _: Hostile(outputs={f"f{n}": n.to_bytes(4, "big") * 15_360 for n in range(1000)}),
    "500 empty files": lambda _: Hostile(outputs={f"{number}/f": b"" for number in range(500)}),
    "one file of 60 MiB": lambda _: Hostile(outputs={"whole": bytes(60 * MIB)}),
    "a result of 49,000 lists": lambda _: Hostile(
        result={"result.json": b'{"score":1,"x":[' + b"[]," * 49_000 + b"1]}"}
    ),
    "a result of 9,000 tasks": lambda _: Hostile(result=_tasks()),
    "1,000 traces": lambda part: Hostile(result=_traces(1000 // part)),
    "4 MiB of metrics.csv": lambda part: Hostile(
        result={"result.json": b'{"score": 1}', "metrics.csv": _csv(30_000 // part)}
    ),
    "a change of 0.9 MB over 64 files": lambda _: Hostile(change=_rewritten()),
    "a change of 50,000 hunks": lambda _: Hostile(
        change="--- a/src/file1.py\n+++ b/src/file1.py\n" + "@@ -1 +1 @@\n-a\n+b\n" * 50_000
    ),
}

TASK = """
name = "beside"
statement = "Nothing to find."
editable = ["params.json", "src/**"]
[trial]
command = ["run"]
[judge]
command = ["judge"]
[parameters]
file = "params.json"
[parameters.space]
x = {type = "int", low = 0, high = 1000}
"""
PRUNING = """
[pruning]
rule = "wilcoxon"
spare = 0.0
"""


def _write_task(folder: Path, hostile: Hostile) -> None:
    sources = {f"workspace/src/file{number}.py": source(number) for number in range(FILES)}
    write_task(folder, TASK + PRUNING * bool(hostile.peers), '{"x": 0}', sources)


class _Attacker:
    """Every second attempt is hostile, the others are honest: somebody has to go on meanwhile."""

    serial = False
    branching = False

    def __init__(self, hostile: Hostile) -> None:
        self._change = hostile.change

    def exhausted(self, number: int) -> str | None:
        return None if number else "it counts from one"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if brief.number % 2 and self._change:
            return [Proposal(operator="hostile", description="hostile", text=self._change)]
        return [Proposal(operator="x", description="x", params={"x": brief.number})]


class _Crowding:
    """Puts peers beside the baseline as soon as that has a verdict, each better than it, in no order at any step."""

    def __init__(self, bench: Workbench, peers: int) -> None:
        self._bench = bench
        self._peers = peers

    def on_event(self, event: e.Event, _: str) -> None:
        if isinstance(event, e.JudgingEnded) and self._peers and self._bench.pruning:
            verdict = self._bench.state.trials[event.trial].verdict
            crowd = self._bench.pruning._crowd((1, verdict.cohort if verdict else "", Role.SEARCH))
            for number in range(self._peers):
                points = [(step, 2.0 + number * 31 % 97) for step in range(MOST_POINTS)]
                crowd.scored(f"peer-{number}", points, 2.0 + number)
            self._peers = 0


@asynccontextmanager
async def opened_campaign(folder: Path, hostile: Hostile, attempts: int = 2) -> AsyncIterator[Opened]:
    """A campaign on the fake backend whose attempts with odd numbers are hostile. The judge is, in all of them."""
    _write_task(folder, hostile)

    async def program(guest: Guest) -> int:
        if "judge/judge.py" in guest.files:
            guest.out.update(hostile.result)
            return 0
        # The baseline, and every second attempt, are honest.
        attacks = json.loads(guest.files["params.json"])["x"] % 2
        for start in range(0, len(hostile.log) if attacks else 0, PIECE):
            guest.log(hostile.log[start : start + PIECE])
        if attacks and hostile.words:
            guest.link.say(Stream.STDOUT, hostile.words)
        guest.out.update(hostile.outputs if attacks else {"answer": b"1"})
        return 0

    site = fake_site(program, 2)
    async with open_campaign(folder, site, flags=Flags(attempts=attempts, rate=1e6, seed=1, width=2)) as opened:
        opened.bench.proposers[Role.SEARCH] = _Attacker(hostile)
        if hostile.peers:
            opened.bench.book.observers.append(_Crowding(opened.bench, hostile.peers).on_event)
        yield opened
