"""Several changes of one answer: tried next to each other, each once, without asking again."""

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pygit2
import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase, Role
from orchestrator.loop.spares import next_spare
from orchestrator.proposers import Brief
from orchestrator.views.campaign.opening import material_of
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import plain
from orchestrator.views.render.markdown import document
from orchestrator.views.render.terminal import Terminal
from orchestrator.wiring.beginning import How
from orchestrator.wiring.reading import ask, read_campaign
from tests.orchestrator.loop.scripted import Scripted, proposal, scripted, write_task
from tests.orchestrator.loop.telling import at

Answer = Callable[[Brief], Sequence[Proposal]]
REFUSED = Proposal(operator="draft", description="no change at all", text="let us talk")


def three_from(number: int) -> list[Proposal]:
    return [proposal({"value": value}) for value in range(number, number + 3)]


class Model:
    """Answers by the number of the attempt that asks, so that whoever resumes gets the same."""

    serial = False

    def __init__(self, answer: Answer | None = None, branching: bool = False) -> None:
        self._answer = answer or (lambda brief: three_from(brief.number))
        self.branching = branching
        self.asked: list[Brief] = []

    def exhausted(self, number: int) -> str | None:
        del number
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        self.asked.append(brief)
        return self._answer(brief)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_task(tmp_path / "task", low=0, high=60)


@asynccontextmanager
async def several(folder: Path, model: Model, at_once: int = 3, **flags: Any) -> AsyncIterator[Scripted]:
    async with scripted(folder, None, **flags) as session:
        session.bench.proposers[Role.SEARCH] = model
        object.__setattr__(session.bench, "at_once", at_once)
        yield session


def origins(session: Scripted) -> dict[str, str | None]:
    nodes = session.nodes
    found = {name: session.state.draft(f"{name}#{node.promoted}") for name, node in nodes.items() if name != "1"}
    return {name: draft.origin for name, draft in found.items() if draft}


async def test_one_answer_three_siblings(folder: Path) -> None:
    """Six attempts, two questions; every change is run once, in the order in which it was offered."""
    model = Model()
    async with several(folder, model, attempts=6) as session:
        await session.run()
        nodes = session.nodes
        assert [(nodes[f"1.{n}"].params or {})["value"] for n in range(1, 7)] == [1, 2, 3, 4, 5, 6]
        assert [brief.node for brief in model.asked] == ["1.1", "1.4"]
        assert {brief.count for brief in model.asked} == {3}
        expected = {"1.1": None, "1.2": "1.1#2", "1.3": "1.1#3", "1.4": None, "1.5": "1.4#2", "1.6": "1.4#3"}
        assert origins(session) == expected
        counted = [(it.node, it.offered, it.distinct, it.refused) for it in session.of(e.OffersCounted)]
        assert counted == [("1.1", 3, 3, 0), ("1.4", 3, 3, 0)]
        assert session.charged == 6
        assert (session.state.campaign.offered, session.state.campaign.distinct) == (6, 6)


async def test_each_is_known_by_its_own_words(folder: Path) -> None:
    """Node and commit are named after the change that was run, not after another of the same answer."""
    async with several(folder, Model(), attempts=3) as session:
        await session.run()
        for number in (1, 2, 3):
            node = session.nodes[f"1.{number}"]
            assert node.description == f'{{"value": {number}}}'
            commit: Any = pygit2.Repository(folder / ".blastdoor/candidates.git").revparse_single(node.commit or "")
            assert commit.message.strip() == f"{node.id}: {node.description}"


@pytest.mark.parametrize(
    ("kind", "width"),
    [(e.OffersCounted, 1), (e.Promoted, 1), (e.AttemptOpened, 3), (e.Proposed, 3), (e.JudgingEnded, 3)],
)
async def test_stop_and_resume(tmp_path: Path, kind: type[e.Event], width: int) -> None:
    """Stopped at whatever point, a resume takes up what was offered, and nothing is run twice or lost."""
    folder = write_task(tmp_path / "task")
    first, second = Model(), Model()
    async with several(folder, first, attempts=6, width=width) as session:
        session.stop_at(kind, 2 if kind is not e.OffersCounted else 1)
        assert (await session.run()).reason == "Ctrl-C"
    async with several(folder, second, how=How.RESUME) as session:
        await session.run()
        nodes = [node for name, node in session.nodes.items() if name != "1"]
        values = sorted((node.params or {})["value"] for node in nodes if node.ending is Ending.SCORED)
        assert values == [1, 2, 3, 4, 5, 6]
        assert all(node.phase is Phase.ENDED for node in nodes)
        assert session.charged == 6
        assert session.state.campaign.offered == 6
        used = [it for it in origins(session).values() if it]
        assert len(used) == len(set(used)) == 4


@pytest.mark.usefixtures("on_disk")
@pytest.mark.parametrize(("kind", "number"), [(e.Proposed, 2), (e.Promoted, 3)])
async def test_killed_and_resumed(tmp_path: Path, kind: type[e.Event], number: int) -> None:
    """From what lay on the disk at some moment, which is all that `kill -9` leaves: every spare is taken up, once."""
    folder, killed = write_task(tmp_path / "task"), tmp_path / "killed"
    async with several(folder, Model(), attempts=6) as session:

        def copy(event: e.Event) -> None:
            nonlocal number
            number -= 1
            if number == 0:
                shutil.copytree(folder, killed)

        session.when(kind, copy, on_disk=True)
        await session.run()
    again = Model()
    async with several(killed, again, how=How.RESUME) as session:
        await session.run()
        nodes = [node for name, node in session.nodes.items() if name != "1"]
        assert sorted((node.params or {})["value"] for node in nodes) == [1, 2, 3, 4, 5, 6]
        assert {node.ending for node in nodes} == {Ending.SCORED}
        assert [brief.node for brief in again.asked] == ["1.4"]
        assert session.charged == 6


async def test_side_by_side_they_wait_for_who_asks(folder: Path) -> None:
    """Three attempts that begin at once have one question between them."""
    model = Model()
    async with several(folder, model, attempts=3, width=3) as session:
        await session.run()
        assert len(model.asked) == 1
        assert len([it for it in origins(session).values() if it]) == 2


async def test_who_asks_in_vain_lets_the_next_one_ask(folder: Path) -> None:
    """An answer without anything new is counted, the attempt is free, and its neighbour does not wait for ever."""

    def answer(brief: Brief) -> Sequence[Proposal]:
        return [proposal({"value": 0})] * 3 if brief.node == "1.1" else three_from(4)

    model = Model(answer)
    async with several(folder, model, attempts=3, width=3) as session:
        await session.run()
        assert session.nodes["1.1"].ending is Ending.CANCELLED
        assert "1 has the same files" in session.nodes["1.1"].why
        assert [it.distinct for it in session.of(e.OffersCounted) if it.node == "1.1"] == [0] * 8
        assert session.charged == 3


async def test_what_is_refused_or_equal_is_no_spare(folder: Path) -> None:
    """It is counted: offered, distinct, and not applying."""

    def answer(brief: Brief) -> Sequence[Proposal]:
        one = three_from(brief.number)[0]
        return [REFUSED, one, one]

    model = Model(answer)
    async with several(folder, model, attempts=2) as session:
        await session.run()
        assert [brief.node for brief in model.asked] == ["1.1", "1.2"]
        assert [(it.offered, it.distinct, it.refused) for it in session.of(e.OffersCounted)] == [(3, 1, 1)] * 2
        assert [draft.refused is None for draft in session.state.drafts("1.1")] == [False, True]
        assert {node.ending for node in session.nodes.values()} == {Ending.SCORED}


async def test_a_node_that_was_refused_altogether(folder: Path) -> None:
    """It was asked and answered, so it is charged; the reason is on record."""
    async with several(folder, Model(lambda _: [REFUSED]), attempts=1) as session:
        await session.run()
        node = session.nodes["1.1"]
        assert node.ending is Ending.INVALID
        assert "no change found" in node.why
        assert session.charged == 1
        assert session.bench.pasts[Role.SEARCH].tried("1.1").fault == "change refused: no change found"


async def test_siblings_first_then_deeper(folder: Path) -> None:
    """A branch tries all that it was offered before it builds on the best of it; what is left waits on its parent."""
    model = Model(lambda brief: three_from(3 * brief.number), branching=True)
    async with several(folder, model, attempts=5, depth=5) as session:
        await session.run()
        assert list(session.nodes) == ["1", "1.1", "1.2", "1.3", "1.3.1", "1.3.2"]
        assert [brief.parent for brief in model.asked] == ["1", "1.3"]
        left = next_spare(session.state, "1.3")
        assert left is not None
        assert (left.node, left.number) == ("1.3.1", 3)
        assert next_spare(session.state, "1") is None


async def test_a_new_instruction_makes_them_old(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was offered before a person spoke is not tried after it."""
    monkeypatch.setattr("orchestrator.loop.requests.unheard", lambda _: None)
    model = Model(lambda brief: three_from(brief.number * 3))
    async with several(folder, model, attempts=3) as session:
        at(session, e.AttemptEnded, "1.1", lambda: ask(folder, "steer", {"text": "be bold"}))
        await session.run()
        assert [brief.node for brief in model.asked] == ["1.1", "1.2"]
        assert origins(session) == {"1.1": None, "1.2": None, "1.3": "1.2#2"}


async def test_what_a_person_brings_is_not_run_again(folder: Path) -> None:
    """The same files as a spare, injected meanwhile: one trial is enough."""
    change = '--- a/params.json\n+++ b/params.json\n@@ -1,3 +1,3 @@\n {\n-  "value": 0\n+  "value": 2\n }\n'
    model = Model()
    async with several(folder, model, attempts=3) as session:

        def inject(event: e.AttemptEnded) -> None:
            if event.node == "1.1":
                ask(folder, "inject", {"text": change, "description": "mine", "on": "1"})

        session.when(e.AttemptEnded, inject)
        await session.run()
        assert session.nodes["1.2"].role is Role.INJECTED
        assert origins(session) == {"1.1": None, "1.2": None, "1.3": "1.1#3"}
        assert session.bench.pasts[Role.SEARCH].has_measured((await session.bench.tree("1.3")).digest)


async def test_the_share_of_new_ones_is_told(folder: Path) -> None:
    """In the status, in the report and in their JSON."""
    one = three_from(5)[0]
    async with several(folder, Model(lambda _: [one, one, REFUSED]), attempts=1) as session:
        await session.run()
    with read_campaign(folder) as reading:
        told = "1 of 3 changes that were offered are new (33%), 1 did not apply"
        material = material_of(reading)
        assert told in document(sections(material, Place.REPORT))
        assert any(told in plain(line) for line in Terminal(120).digest(sections(material, Place.STATUS)))
        for place in Place:
            assert record(sections(material, place))["offers"] == {"offered": 3, "distinct": 1, "refused": 1}
