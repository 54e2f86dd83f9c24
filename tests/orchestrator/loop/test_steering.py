"""A person's instruction: recorded where somebody reads it, refused where nobody does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Run
from orchestrator.loop.steering import LONGEST, MOST, unfit, unheard
from orchestrator.proposers import Brief
from orchestrator.wiring.reading import ask
from tests.orchestrator.loop.scripted import proposal, scripted


async def test_steer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for is recorded with its answer, in order, and is part of the campaign's state."""
    monkeypatch.setattr("orchestrator.loop.requests.unheard", lambda _: None)
    async with scripted(folder, None, {"value": 1}, {"value": 2}) as session:

        def steer(event: e.AttemptEnded) -> None:
            if event.node == "1":
                for text in (" use a heap ", "use a heap", "no more\nthan \x1b[31m40 lines", "", "x" * (LONGEST + 1)):
                    ask(folder, "steer", {"text": text})

        session.when(e.AttemptEnded, steer)
        await session.run()
        assert session.state.campaign.steering == ("use a heap", "no more\nthan \x1b[31m40 lines")
        assert [event.text for event in session.of(e.Steered)] == list(session.state.campaign.steering)
        answers = [event.answer.partition(":")[0] for event in session.of(e.RequestTaken)]
        assert answers == ["all who propose from now on are told", "refused"] * 2 + ["refused"]


async def test_while_somebody_proposes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is at work on a proposal hears what is said meanwhile: what it was given grows."""
    monkeypatch.setattr("orchestrator.loop.requests.unheard", lambda _: None)
    heard: list[list[str]] = []

    async def listening(brief: Brief) -> Sequence[Proposal]:
        heard.append(list(brief.steering))
        ask(folder, "steer", {"text": "use a heap"})
        while not brief.steering:
            await session.bench.book.changed()
        heard.append([brief.steering[0], *brief.steering[:1]])
        return [proposal({"value": 1})]

    async with scripted(folder, None, listening) as session:
        await session.run()
        assert heard == [[], ["use a heap", "use a heap"]]


async def test_nobody_reads_it(folder: Path) -> None:
    """A proposer that asks no model reads nothing, and the answer says so; nothing is recorded as if it did."""
    async with scripted(folder, None, {"value": 1}) as session:
        session.when(e.AttemptOpened, lambda _: ask(folder, "steer", {"text": "be bold"}))
        await session.run()
        assert session.of(e.Steered) == []
        assert "the proposer random reads no instructions" in session.of(e.RequestTaken)[0].answer


@pytest.mark.parametrize("proposer", ["llm", "llm-params", "agent"])
def test_who_reads_it(proposer: str) -> None:
    """Those that ask a model do."""
    one: dict[str, Any] = {"number": 1, "task": "", "digests": {}, "seed": 0, "control": None, "root": "1"}
    assert unheard(Run(**one, proposer=proposer, width=1, depth=1, why="")) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n", "needs words"),
        ("x" * (LONGEST + 1), "at most 2,000 characters"),
        ("a\0b", "UTF-8"),
        ("a\udc80b", "UTF-8"),
        ("again ", "said last"),
    ],
)
def test_what_is_no_instruction(text: str, why: str) -> None:
    """Too long, empty, no text, or just said: each has its own line."""
    assert why in (unfit(text, ("first", "again")) or "")


def test_how_many() -> None:
    """Every instruction is in every prompt, so there is a most; one that was said before may be said again."""
    assert unfit("first", ("first", "again")) is None
    assert unfit("x" * LONGEST, ("y",) * (MOST - 1)) is None
    assert "50 instructions" in (unfit("x", ("y",) * MOST) or "")
