"""A scripted campaign with a playbook: users do better or worse by what its notes say, and an evolver writes them."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Phase, Role, Spent
from orchestrator.ledger import LedgerError
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.line import Answer
from orchestrator.loop.book import Book
from orchestrator.loop.evolving import Evolving
from orchestrator.loop.playbooks import Playbooks
from orchestrator.playbook import Pages
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Scripted, scripted, write_task
from tests.orchestrator.loop.verifying import FakeLine

PAGES = {"notes.md": "Work as you like.\n", "prompts/system.md": "You improve programs.\n"}
WORST = Spent(microdollars=100_000, tokens=1000)
COST = Spent(microdollars=30_000, tokens=400)


def notes(word: str, why: str = "another word") -> str:
    """An evolver's answer that writes one word into the notes."""
    return f"Why: {why}\n\nnotes.md\n```\n{word}\n```\n"


class Evolver(FakeLine):
    """Gives its answers in turn, the last one for ever; each call is recorded as the gateway's would be."""

    models = ("small", "other")
    allowances = MappingProxyType(
        {ModelRole.EVOLVER: Allowance(ModelRole.EVOLVER, models, WORST.microdollars, WORST.tokens)}
    )

    def __init__(self, *answers: str | Exception) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[str] = []
        self.models_asked: list[str | None] = []
        self.book: Book | None = None
        self.hangs = False

    async def answer(self, prompt: str, asked: Mapping[str, Any]) -> Answer:
        assert self.book is not None
        assert set(self.lines) == {("", ModelRole.EVOLVER)}
        model: str | None = asked["model"]
        self.asked.append(prompt)
        self.models_asked.append(model)
        call = f"call-{self.book.state.campaign.calls + 1}"
        told: dict[str, Any] = {"node": "", "call": call, "role": ModelRole.EVOLVER, "model": model or ""}
        self.book.record(e.ModelCallIntended(**told, worst=WORST))
        if self.hangs:
            await self.book.durable()
            self.book.fail(LedgerError("killed"))  # nothing more is recorded
            await asyncio.sleep(60)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        ending = CallEnding.FAILED if isinstance(answer, Exception) else CallEnding.COMPLETE
        self.book.record(e.ModelCallEnded(**told, ending=ending, tokens=Tokens(), spent=COST))
        if isinstance(answer, Exception):
            raise answer
        return Answer(answer, model or "", "end_turn", Tokens())


class Users:
    """Each builds on the best, and gets further by what the notes say: `gains` has the chance and size of a gain."""

    serial = True
    branching = True

    def __init__(self, gains: Mapping[str, tuple[float, int]] | None = None, seed: int = 0) -> None:
        self.gains = {"Work": (0.5, 10), **(gains or {})}
        self.briefs: list[Brief] = []
        self.seed = seed

    def exhausted(self, number: int) -> str | None:
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        assert brief.playbook is not None
        self.briefs.append(brief)
        word = brief.playbook.files["notes.md"].split()[0]
        chance, size = self.gains[word]
        draw = random.Random(f"{self.seed}/{brief.node}/{brief.again}")
        value = json.loads(brief.tree["params.json"].data)["value"]
        gain = draw.randint(1, size) if draw.random() < chance else -draw.randint(1, 10**6)
        point = {"value": value + gain}
        return [Proposal(operator="user", description=f"{word} {gain}", params=point, playbook=brief.playbook.version)]


def write_evolving(folder: Path, repeats: int = 20, error: float = 0.05) -> Path:
    """Scores repeat, and nothing is run twice: what is tested here is the playbook."""
    certify = f"[certify]\nreplay = false\nrepeats = {repeats}\nerror = {error}\n"
    roles = '[roles.evolver]\nmodels = ["small", "other"]\n'
    write_task(folder, certify, roles, high=10**9)
    text = (folder / "blastdoor.toml").read_text().replace("low = 1", f"low = -{10**9}")
    (folder / "blastdoor.toml").write_text(text)
    return folder


@asynccontextmanager
async def evolving(
    folder: Path,
    users: Users,
    evolver: Evolver,
    *,
    how: How = How.START,
    pages: Pages = PAGES,
    funded: bool = True,
    **flags: Any,
) -> AsyncIterator[Scripted]:
    """Open a campaign whose proposer works with a playbook; the parts that ask models are put in by hand. The evolver
    is asked between two attempts: how long a thread works for one decides nothing.
    """
    async with scripted(folder, Script(), how=how, **flags) as session:
        bench = session.bench
        playbooks = Playbooks(bench.book, bench.artifacts, pages, "task")
        object.__setattr__(bench, "playbooks", playbooks)
        bench.proposers[Role.SEARCH] = users
        evolver.book = bench.book

        def is_funded() -> bool:
            return funded and not any(node.phase is Phase.OPEN for node in session.nodes.values())

        session.campaign.evolving = Evolving(bench, playbooks, evolver, is_funded)
        begun = playbooks.begun(new_run=how is not How.RESUME)
        if begun:
            bench.book.record(*begun)
        yield session
