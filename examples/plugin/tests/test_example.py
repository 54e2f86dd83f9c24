"""The package's own tests: they need Blastdoor and pytest, and neither an engine nor a model."""

import asyncio
import json
import random
from pathlib import Path

import pytest
from blastdoor_example.agent import SCRIBE
from blastdoor_example.proposer import beside
from blastdoor_example.rule import Behind

from orchestrator.agents.presets import Told
from orchestrator.choices import AGENTS, PROPOSERS, PRUNERS
from orchestrator.domain.metric import Goal
from orchestrator.loop.jobs import Image
from orchestrator.pruning import Peer, Peers, RuleContext
from orchestrator.task import Bool, Choice, Float, Int, PruningSpec
from orchestrator.wiring import Flags, Site, open_campaign, read_campaign
from sandbox import Input
from sandbox.backends.fake.backend import FakeBackend, Guest

TASK = """
name = "nine"
statement = "Come near to nine."
editable = ["params.json"]

[trial]
command = ["python3", "solve.py"]

[judge]
command = ["python3", "judge.py"]

[[metrics]]
name = "score"
goal = "lower"

[parameters]
file = "params.json"
space = {neighbours = {type = "int", low = 1, high = 20}}

[search]
proposer = "neighbour"
"""


async def program(guest: Guest) -> int:
    """Plays the candidate and its judge: the distance from nine."""
    if guest.job.command == ("python3", "solve.py"):
        guest.out["answer.json"] = guest.files["params.json"]
    elif guest.job.command == ("python3", "judge.py"):
        answer = json.loads(guest.files["outputs/answer.json"])
        guest.out["result.json"] = json.dumps({"score": abs(answer["neighbours"] - 9)}).encode()
    return 0


async def bake(_: object) -> Image:
    return Image("none", "none")


def test_a_campaign(tmp_path: Path) -> None:
    """On the fake backend: it gets nearer to nine, and the ledger names the package."""
    for name, text in {
        "blastdoor.toml": TASK,
        "workspace/params.json": '{"neighbours": 4}\n',
        "judge/judge.txt": "pretended\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    async def search() -> None:
        site = Site(
            name="fake",
            backend=FakeBackend(program),
            bake=bake,
            add_input=lambda name, _: Input(name=name, digest="0" * 64),
            usd_per_second=lambda _: 0.0,
            ceiling=lambda _: 4,
        )
        try:
            async with open_campaign(tmp_path, site, flags=Flags(attempts=6, seed=1, rate=1e6)) as opened:
                await opened.campaign.run()
        finally:
            await site.backend.close()

    asyncio.run(search())
    with read_campaign(tmp_path) as campaign:
        run, best = campaign.state.run, campaign.state.champion()
        assert run.proposer == "neighbour"
        assert [(it.kind, it.package) for it in run.brought] == [("proposer", "blastdoor-example")]
        assert best
        assert best.verdict
        assert best.verdict.metrics["score"] < 5


@pytest.mark.parametrize(
    ("parameter", "value", "found"),
    [
        (Int(low=1, high=9, step=2), 5, {3, 7}),
        (Int(low=1, high=9), 9, {8, 9}),
        (Float(low=0, high=2), 1.0, {0.9, 1.1}),
        (Choice(values=("a", "b")), "a", {"b"}),
        (Bool(), True, {False}),
    ],
)
def test_one_step(parameter: Int | Float | Choice | Bool, value: int | float | str | bool, found: set[object]) -> None:
    """Beside a value, and within its bounds."""
    rng = random.Random(0)
    assert {beside(parameter, value, rng) for _ in range(50)} == found


def test_the_rule() -> None:
    """Only what is behind everybody is ended, and nothing before there are enough others."""
    rule = Behind(RuleContext(PruningSpec(rule="behind", startup=2), Goal.HIGHER))
    peers = Peers(scored=[Peer(str(at), ((0, 0.1), (1, at / 10))) for at in (5, 8)], count=2)
    assert rule.decide([(0, 0.1), (1, 0.4)], peers).prune
    assert not rule.decide([(0, 0.1), (1, 0.6)], peers).prune
    assert not rule.decide([(0, 0.1), (1, 0.4)], Peers()).prune


def test_the_agent() -> None:
    """Its script lies beside our own files, and hands something in."""
    start = SCRIBE.start(Told("be brief", ("large",), 1000))
    assert start.command[0] == SCRIBE.program
    assert "blastdoor submit" in start.files["scribe.sh"]


def test_all_are_found() -> None:
    """Once the package is installed, by name."""
    assert PROPOSERS.find("neighbour").package == "blastdoor-example"
    assert AGENTS.load("scribe") is SCRIBE
    assert PRUNERS.load("behind") is Behind
