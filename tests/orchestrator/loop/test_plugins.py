"""A campaign whose proposer others wrote: it stands in the ledger with its package, and its faults end no more than a
session.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Brought, Phase
from orchestrator.proposers import Brief, Exhausted, PluginFailed
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.views.cli import cli
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import read_campaign
from orchestrator.wiring.resuming import CannotOpen, parts_of_run, site_of_campaign
from tests.clicking import runner
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import make_site, proposal, ran, scripted, write_task
from tests.orchestrator.loop.test_pruning import GOOD, pruning, reporting
from tests.plugins import PROPOSER, Packages

BROKEN = PROPOSER.replace("        point =", "        if brief.number == 2: {}['missing']\n        point =")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    return Packages(tmp_path / "packages", monkeypatch)


class Mine:
    """An instance of somebody's own."""

    serial = False
    branching = False

    def __init__(self, fault: BaseException | None = None) -> None:
        self.fault = fault

    def exhausted(self, number: int) -> str | None:
        return None if number <= 3 else "three are enough"

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if self.fault and brief.number == 2:
            raise self.fault
        return [proposal({"value": brief.number})]


async def test_a_campaign_with_a_package(folder: Path, packages: Packages) -> None:
    """It runs like any other, and the ledger says which package, in which version, proposed."""
    packages.install()
    session = await ran(folder, proposer="counting")
    finished = session.ends[-1]
    assert session.reason == "four are enough"
    assert finished.champion
    assert finished.champion.params == {"value": 4}
    with read_campaign(folder) as reading:
        run = reading.state.run
        assert run.proposer == "counting"
        assert run.brought == (Brought(kind="proposer", name="counting", package="blastdoor-counting", version="1.2"),)


async def test_it_raises_in_the_middle(folder: Path, packages: Packages) -> None:
    """One line with the package; what was done stays, the attempt is not charged, and a mended one goes on."""
    broken = packages.install(BROKEN)
    async with scripted(folder, proposer="counting") as session:
        with pytest.raises(PluginFailed) as caught:
            await session.run()
        said = str(caught.value)
        assert said.startswith('the proposer "counting" of the package blastdoor-counting 1.2 failed: KeyError: ')
        assert "\n" not in said
        assert session.charged == 1
        assert session.state.campaign.stopped == said
        assert [it.why for it in session.of(e.AttemptRequeued)] == [said]
        assert session.nodes["1.2"].phase is Phase.QUEUED
    packages.remove(broken)
    packages.install(version="1.3")
    async with scripted(folder, how=How.RESUME) as session:
        assert 'the proposer "counting" was that of blastdoor-counting 1.2 when' in session.notes[0]
        finished = await session.run()
        assert finished.champion
        assert finished.champion.params == {"value": 4}
        assert session.charged == 4


async def test_the_package_is_gone(folder: Path, packages: Packages) -> None:
    """A resume names the package, before an engine is looked for. Whatever only looks at the campaign, or runs a trial
    of it again, works after its package is gone, or broken.
    """
    task = write_task(folder, '[search]\nproposer = "counting"\n')
    place = packages.install()
    await ran(task, attempts=1)
    packages.remove(place)
    line = (
        'run 1 was begun with the proposer "counting" of the package blastdoor-counting 1.2, which cannot be used here '
        "(it is not installed); install it, then resume"
    )
    with pytest.raises(TaskError) as caught:
        site_of_campaign(folder, How.RESUME, Flags(), Settings())
    assert str(caught.value) == line
    site = make_site(Script())
    with read_campaign(task) as reading:
        assert (await parts_of_run(task, reading, 1, site)).task.search.proposer == "counting"
    await site.backend.close()
    for words in (["status"], ["tree"], ["report"], ["show", "1.1"], ["logs", "--lines", "99"]):
        assert (told := runner().invoke(cli, [*words, str(task)])).exit_code == 0, told.output
    assert "with the proposer counting of blastdoor-counting 1.2; width 1" in told.output
    packages.install("import nosuchthing")
    assert (told := runner().invoke(cli, ["status", str(task)])).exit_code == 0, told.output


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (PROPOSER.replace("self.context = context", "raise ValueError('no')"), "cannot be made (ValueError: no); mend"),
        (PROPOSER.replace("def propose", "def offer"), "has no propose, which a proposer needs"),
        ("import nosuchthing", "cannot be loaded (ModuleNotFoundError"),
    ],
)
async def test_it_cannot_be_made(folder: Path, packages: Packages, code: str, says: str) -> None:
    """Nothing has begun then, and nothing is left."""
    packages.install(code)
    with pytest.raises(TaskError) as caught:
        async with scripted(folder, proposer="counting"):
            raise AssertionError("it was opened")
    assert 'the proposer "counting" of the package blastdoor-counting 1.2 ' in str(caught.value)
    assert says in str(caught.value)
    assert not (folder / ".blastdoor").exists()


async def test_an_instance(folder: Path) -> None:
    """It stands in the ledger under its class's name; a resume needs it again, and no other, and goes on with it."""
    session = await ran(folder, instance=Mine(), attempts=1)
    assert session.state.run.brought == (Brought(kind="proposer", name="Mine"),)
    with pytest.raises(TaskError, match=r'the proposer "Mine", an instance .* search\(…, how=How.RESUME, proposer=…\)'):
        site_of_campaign(folder, How.RESUME, Flags(), Settings())
    with pytest.raises(TaskError, match='the proposer "Mine", an instance'):
        await ran(folder, how=How.RESUME)
    with pytest.raises((CannotOpen, TaskError), match="was begun with the proposer"):
        await ran(folder, how=How.RESUME, instance=type("Other", (Mine,), {})())
    session = await ran(folder, how=How.RESUME, instance=Mine(), attempts=5)
    assert (session.reason, session.charged) == ("three are enough", 3)


async def test_an_instance_with_a_taken_name(folder: Path) -> None:
    """A ledger that says random means ours."""
    mine = Mine()
    mine.name = "random"  # type: ignore[attr-defined]  # a name that is optional
    with pytest.raises(TaskError, match='the name "random" is that of another proposer; give yours its own'):
        async with scripted(folder, instance=mine):
            raise AssertionError("it was opened")


@pytest.mark.parametrize("fault", [SystemExit(1), TimeoutError("upstream"), RuntimeError("a\nb\x1b")])
async def test_whatever_it_raises(folder: Path, fault: BaseException) -> None:
    """Also what would end the program, or look like a deadline of ours."""
    async with scripted(folder, instance=Mine(fault)) as session:
        with pytest.raises(PluginFailed, match=f'the proposer "Mine" failed: {type(fault).__name__}'):
            await session.run()
        assert session.charged == 1


async def test_what_a_proposer_may_raise(folder: Path) -> None:
    """What is part of the interface means what it says there."""
    async with scripted(folder, instance=Mine(Exhausted("enough"))) as session:
        assert (await session.run()).reason == "enough"


@pytest.mark.parametrize(
    ("offered", "says"),
    [
        (None, "'NoneType' object is not iterable"),
        (["a text"], "it proposed a str, not a Proposal"),
        (3, "'int' object is not iterable"),
        ({"value": 1}, "it gave back a dict, not a list of Proposal"),
    ],
)
async def test_what_is_no_proposal(folder: Path, offered: object, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told as a fault of the proposer, not of the program."""

    async def propose(_: Mine, __: Brief) -> object:
        return offered

    monkeypatch.setattr(Mine, "propose", propose)
    async with scripted(folder, instance=Mine()) as session:
        with pytest.raises(PluginFailed, match=f'the proposer "Mine" failed: TypeError: {says}'):
            await session.run()
        assert session.charged == 0


RULE = """
from orchestrator.pruning import Decision

blastdoor_interface = 1


class Below:
    def __init__(self, context):
        self.threshold = context.spec.threshold or 0.15

    def decide(self, curve, peers):
        step, value = curve[-1]
        return Decision(value < self.threshold and bool(peers.count), f"step {step}: {value:g} is too little")
"""
BELOW = {"blastdoor.pruners": {"below": "{module}:Below"}}


async def test_a_rule_of_a_package(tmp_path: Path, packages: Packages) -> None:
    """It ends trials early in its own words, and its package is kept with the run. What stands in pruning.options
    reaches it, and comes back from the ledger as it was written.
    """
    packages.install(RULE.replace("context.spec.threshold or 0.15", 'context.spec.options["below"]'), BELOW)
    options = 'options = {below = 0.15, often = true, words = ["a", "b"], count = 3}'
    folder = write_task(tmp_path / "task", f"{pruning('below')}{options}\n")
    session = await ran(folder, None, *GOOD, reporting(4, 0.1, 0.12, 0.9, 0.9))
    node = session.nodes["1.3"]
    assert (node.ending, node.why) == (Ending.PRUNED, "step 1: 0.12 is too little")
    assert [(it.kind, it.name, it.package) for it in session.state.run.brought] == [
        ("pruning rule", "below", "blastdoor-counting")
    ]
    with read_campaign(folder) as reading:
        spec = reading.task.pruning
    assert spec
    assert spec.options == {"below": 0.15, "often": True, "words": ("a", "b"), "count": 3}
    assert type(spec.options["often"]) is bool
    async with scripted(folder, how=How.RESUME):
        pass


@pytest.mark.parametrize("fault", ["{}['missing']", "return None"])
async def test_a_rule_that_fails(
    tmp_path: Path, packages: Packages, fault: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It ends no trial, and is named once; the campaign goes on without it."""
    packages.install(RULE.replace("        step, value", f"        {fault}\n        step, value"), BELOW)
    session = await ran(pruned(tmp_path), None, *GOOD, reporting(4, 0.1, 0.12, 0.9, 0.9))
    assert session.nodes["1.3"].ending is Ending.SCORED
    said = "".join(capfd.readouterr())
    assert said.count('the pruning rule "below" of the package blastdoor-counting 1.2 failed, so it ends no trial') == 1


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (RULE.replace("self.threshold =", "raise ValueError('no')\n        self.threshold ="), "made (ValueError: no)"),
        (RULE.replace("def decide", "def choose"), "made (TypeError: it has no decide"),
        (RULE.replace("interface = 1", "interface = 7"), "says blastdoor_interface = 7"),
    ],
)
async def test_a_rule_that_cannot_be_made(tmp_path: Path, packages: Packages, code: str, says: str) -> None:
    """Nothing has begun then."""
    packages.install(code, BELOW)
    with pytest.raises(TaskError, match='the pruning rule "below" of the package blastdoor-counting') as caught:
        async with scripted(pruned(tmp_path), None, *GOOD):
            raise AssertionError("it was opened")
    assert says in str(caught.value)


def test_a_rule_that_nobody_has(tmp_path: Path) -> None:
    """One line with the key, all rules and the nearest."""
    folder = write_task(tmp_path / "task", '[pruning]\nrule = "medain"\n')
    with pytest.raises(TaskError, match=r'pruning.rule: must be "median", .* or "curve", not "medain"; did you'):
        load_task(folder)


def pruned(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", pruning("below", threshold=0.15))


async def test_watching_without_the_backend(folder: Path, packages: Packages) -> None:
    """Neither the widths nor the caps of a campaign need the place that it ran at."""
    place = packages.install(announced={"blastdoor.backends": {"elsewhere": "{module}:Counting"}})
    await ran(folder, None, {"value": 1}, attempts=1, backend="elsewhere")
    packages.remove(place)
    for words in (["status"], ["watch", "--once"]):
        assert (told := runner().invoke(cli, [*words, str(folder)])).exit_code == 0, told.output


async def test_a_taken_name_is_told(folder: Path, packages: Packages) -> None:
    """The campaign runs with what is built in, and a warning names the package."""
    packages.install(announced={"blastdoor.proposers": {"random": "{module}:Counting"}})
    session = await ran(folder, attempts=1, proposer="random")
    assert session.notes[0].startswith('blastdoor-counting 1.2 brings a proposer "random", a name that is built in')
    assert session.state.run.brought == ()
