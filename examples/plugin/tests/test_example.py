"""The package's own tests: they need Blastdoor and pytest, and neither an engine nor a model."""

import asyncio
import random
from pathlib import Path

import pytest
from blastdoor_example.agent import SCRIBE
from blastdoor_example.backend import Pretend
from blastdoor_example.parents import AnyOfTheBest
from blastdoor_example.proposer import beside
from blastdoor_example.rule import Behind

from orchestrator.agents.presets import Told
from orchestrator.api import read_campaign, search
from orchestrator.choices import AGENTS, BACKENDS, PARENTS, PROPOSERS, PRUNERS
from orchestrator.domain.metric import Goal
from orchestrator.population import Member, ParentContext
from orchestrator.pruning import Peer, Peers, RuleContext
from orchestrator.task import Bool, Choice, Float, Int, PruningSpec, TaskError

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
BROUGHT = [("proposer", "neighbour"), ("backend", "pretend")]


def write_task(folder: Path) -> Path:
    files = {"blastdoor.toml": TASK, "workspace/params.json": '{"neighbours": 4}\n', "judge/judge.txt": "pretended\n"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_campaign(tmp_path: Path) -> None:
    """It gets nearer to nine, and the ledger names the package."""
    finished = asyncio.run(search(write_task(tmp_path), backend="pretend", attempts=6, seed=1, rate=1e6))
    assert finished.best
    assert finished.best.metrics["score"] < 5
    with read_campaign(tmp_path) as campaign:
        run = campaign.state.run
        assert run.proposer == "neighbour"
        assert run.site
        assert run.site.backend == "pretend"
        found = [(it.kind, it.name, it.package) for it in run.brought]
        assert found == [(kind, name, "blastdoor-example") for kind, name in BROUGHT]


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


def test_an_option_of_the_rule() -> None:
    """How far behind is a key of its own in the task file, and it knows no other."""
    peers = Peers(scored=[Peer("1", ((0, 0.5),))], count=1)
    for by, prune in ((0.05, True), (0.2, False)):
        spec = PruningSpec(rule="behind", startup=1, options={"by": by})
        assert Behind(RuleContext(spec, Goal.HIGHER)).decide([(0, 0.4)], peers).prune is prune
    with pytest.raises(TaskError, match="and no others"):
        Behind(RuleContext(PruningSpec(rule="behind", options={"bye": 1}), Goal.HIGHER))


def test_the_parent_rule() -> None:
    """Any of the ten best, whatever order they came in, and the same one for the same seed."""
    members = [Member(f"1.{at}", at, (float(at),)) for at in range(1, 21)]
    rules = [AnyOfTheBest(ParentContext()) for _ in range(2)]
    for one, other in zip(members, reversed(members), strict=True):
        rules[0].add(one)
        rules[1].add(other)
    drawn = [[rule.draw(str(seed)) for seed in range(200)] for rule in rules]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {f"1.{at}" for at in range(11, 21)}
    assert AnyOfTheBest(ParentContext()).draw("1") is None


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
    assert PARENTS.load("anyone") is AnyOfTheBest
    assert BACKENDS.load("pretend") is Pretend
