"""One campaign in which every candidate is a hostile one, with honest ones first and last; and what came of each."""

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.node import order_of
from orchestrator.domain.records import Node, Trial
from orchestrator.ledger import to_csv, to_jsonl
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.units import stamp, utc_now
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.opening import open_campaign
from orchestrator.wiring.reading import campaign_folder, read_campaign
from orchestrator.wiring.site import Site
from tests.orchestrator.views.judging.stage import SOLVE, Stage, whole

# The baseline scores -1.0. The first honest candidate is better, the last better still.
HONEST = SOLVE.replace("[1.0, 2.0, 3.0]", "[1.0, 2.0, 3.2]")
WRONG = SOLVE.replace("[1.0, 2.0, 3.0]", "[8.0, 8.0, 8.0]")
LAST = SOLVE.replace("[1.0, 2.0, 3.0]", "[1.0, 2.0, 3.4]")
# What a candidate that gives these gets from a judge that nobody has captured.
WRONG_SCORE = -(7.0 + 5.5 + 4.5)


def site_of(kind: str, cache: Path) -> AbstractAsyncContextManager[Site]:
    """The stage, or a real engine: without one this fails, nothing is skipped."""
    if kind == "stage":
        return Stage().site()
    settings = Settings()
    return docker_site(docker_config(settings, inputs_folder=cache), settings.image)


@dataclass(frozen=True)
class Fought:
    """The campaign after the fight; nodes by the names of their attacks."""

    folder: Path
    nodes: Mapping[str, Node]
    trials: Mapping[str, Trial]
    champion: str
    reason: str
    outputs: Mapping[str, Mapping[str, bytes]]
    logs: Mapping[str, bytes]
    live: tuple[str, ...] = field(default=())

    def went_on(self) -> bool:
        """The honest ones scored, the wrong one lost, and the last one won."""
        honest, wrong, last = (self.nodes[name] for name in ("honest", "wrong", "last"))
        return (
            honest.kept
            and last.kept
            and self.champion == last.id
            and (wrong.ending, wrong.kept) == ("scored", False)
            and wrong.verdict is not None
            and wrong.verdict.metrics["score"] == WRONG_SCORE
        )

    def records(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is kept of the campaign: the database, artifacts, commits, exports, what views read."""
        folder = campaign_folder(self.folder)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                yield path.relative_to(folder).as_posix(), path.read_bytes()
        with read_campaign(self.folder) as reading:
            for record in reading.ledger.read():
                yield f"event {record.seq}", record.body.encode()
            for key, row in reading.ledger.rows().items():
                yield f"row {key}", row.encode()
            for name, node in reading.state.nodes.items():
                if node.commit:
                    for place, file in reading.candidates.read(node.commit).items():
                        yield f"commit {name} {place}", file.data
            for name, export in (("jsonl", to_jsonl), ("csv", to_csv)):
                target = folder.parent / f"exported.{name}"
                with target.open("w", newline="") as out:
                    export(reading.ledger, out)
                yield name, target.read_bytes()
        for line in self.live:
            yield "live log", line.encode()

    def found(self, needle: str) -> list[str]:
        return [place for place, data in self.records() if needle.encode() in data]


def fight(task: Path, site: AbstractAsyncContextManager[Site], attacks: Mapping[str, str]) -> Fought:
    """Each attack is the text of a solve.py, or a whole change where it starts with a path."""
    return asyncio.run(fought_by(task, site, {"honest": HONEST, "wrong": WRONG, **attacks, "last": LAST}))


async def fought_by(task: Path, site: AbstractAsyncContextManager[Site], candidates: Mapping[str, str]) -> Fought:
    live: list[str] = []
    flags = Flags(proposer="inject", width=1, attempts=len(candidates))
    async with site as opened_site, open_campaign(task, opened_site, flags=flags) as opened:
        bench = opened.bench
        for name, text in candidates.items():
            change = text if text.startswith("@@") else whole(text)
            body = {"text": change.removeprefix("@@"), "description": name}
            bench.book.ledger.ask("inject", json.dumps(body), stamp(utc_now()))
        reader = asyncio.create_task(_follow(bench.live, live))
        finished = await opened.campaign.run()
        reader.cancel()
    with read_campaign(task) as reading:
        state = reading.state
        nodes = {node.description: node for node in sorted(state.nodes.values(), key=lambda it: order_of(it.id))}
        trials = {name: state.trials[node.submitted] for name, node in nodes.items() if node.submitted}
        outputs = {n: reading.artifacts.get_files(it.outputs) for n, it in trials.items() if it.outputs}
        logs = {name: reading.artifacts.get(it.log) for name, it in trials.items() if it.log}
    champion = finished.champion.id if finished.champion else ""
    return Fought(task, nodes, trials, champion, finished.reason, outputs, logs, tuple(live))


async def _follow(folder: Path, seen: list[str]) -> None:
    """Read what another terminal would, while it is there."""
    while True:
        seen += _present(folder)
        await asyncio.sleep(0.02)


def _present(folder: Path) -> list[str]:
    found = []
    for path in folder.glob("*.log"):
        with contextlib.suppress(FileNotFoundError):
            found.append(path.read_text(errors="replace"))
    return found
