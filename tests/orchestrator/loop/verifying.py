"""A verifier that says what it is told to, on a line that books its calls as the real one does."""

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, TypeVar

from orchestrator.domain import events as e
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance
from orchestrator.llm.line import Answer, App
from orchestrator.loop.workbench import Workbench
from orchestrator.proposers import Brief
from tests.orchestrator.loop.scripted import Act, Scripted

VERIFIER = "[roles.verifier]\n"
Say = Callable[[str], str]
Result = TypeVar("Result")


def says(finding: str, reason: str = "because I say so") -> Say:
    """An answer in the form that is asked for, with the word that the prompt gives."""

    def answer(prompt: str) -> str:
        nonce = nonce_of(prompt)
        return f"It changes a number.\nREASON {nonce}: {reason}\nFINDING {nonce}: {finding}"

    return answer


def nonce_of(prompt: str) -> str:
    found = re.search(r"The word CODE of your answer is (\w+)\.", prompt)
    assert found, "the prompt gives no word"
    return found[1]


class FakeLine:
    """The parts that ask models, a line, and what is heard on it, in one; users get a line, too, and do not ask."""

    token = "t"
    unanswered = False
    refusal = None
    barred = None
    models: Sequence[str] = ()
    allowances: Mapping[ModelRole, Allowance] = {}

    def __init__(self) -> None:
        self.lines: list[tuple[str, ModelRole]] = []

    @property
    def line(self) -> Self:
        return self

    @property
    def grants(self) -> Self:
        return self

    @property
    def app(self) -> App:
        raise NotImplementedError

    def may_propose(self, node: str) -> bool:
        """Users are scripted: what they do costs nothing."""
        return bool(node)

    async def heard(self, signal: object) -> None:
        raise NotImplementedError

    async def until_stalled(self, work: Coroutine[Any, Any, Result]) -> Result:
        return await work

    @asynccontextmanager
    async def watched(self, node: str, role: ModelRole, lasts_s: float) -> AsyncIterator[Self]:
        del lasts_s
        self.lines.append((node, role))
        yield self

    async def ask(
        self,
        *,
        system: Sequence[str],
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        model: str | None = None,
        thinking: int | None = None,
        temperature: float | None = None,
    ) -> Answer:
        assert temperature is None
        asked = {"system": system, "max_tokens": max_tokens, "model": model, "thinking": thinking}
        return await self.answer(messages[-1]["content"], asked)

    async def answer(self, prompt: str, asked: Mapping[str, Any]) -> Answer:
        raise NotImplementedError


class Verifying(FakeLine):
    """Answers review after review; the last answer is repeated. An exception is raised instead of an answer."""

    models = ("a-verifier",)

    def __init__(self, bench: Workbench, *answers: Say | Exception, microdollars: int = 1_000) -> None:
        super().__init__()
        self._bench = bench
        self._answers = answers
        self._microdollars = microdollars
        self.prompts: list[str] = []
        self.asked: list[Mapping[str, Any]] = []

    async def answer(self, prompt: str, asked: Mapping[str, Any]) -> Answer:
        self.asked.append(asked)
        self.prompts.append(prompt)
        record_call(self._bench, self.lines[-1][0], ModelRole.VERIFIER, self._microdollars)
        said = self._answers[min(len(self.prompts), len(self._answers)) - 1]
        if isinstance(said, Exception):
            raise said
        return Answer(said(prompt), "a-verifier", "end_turn", Tokens(input=40, output=10))


def record_call(bench: Workbench, node: str, role: ModelRole, microdollars: int) -> None:
    spent = Spent(microdollars=microdollars, tokens=50)
    call, model = f"c{bench.state.campaign.calls + 1}", f"a-{role}"
    bench.book.record(e.ModelCallIntended(node=node, call=call, role=role, model=model, worst=spent))
    used = Tokens(input=40, output=10)
    ended = e.ModelCallEnded(
        node=node, call=call, role=role, model=model, ending=CallEnding.COMPLETE, tokens=used, spent=spent
    )
    bench.book.record(ended)


def verified(session: Scripted, *answers: Say | Exception, microdollars: int = 1_000) -> Verifying:
    """Give the campaign a verifier."""
    verifier = Verifying(session.bench, *answers, microdollars=microdollars)
    object.__setattr__(session.bench, "models", verifier)
    return verifier


def change(value: int, note: str = "") -> Act:
    """A proposer's change to code, as far as this task has any."""

    async def act(_: Brief) -> Sequence[Proposal]:
        return [proposed(value, note)]

    return act


def proposed(value: int, note: str = "") -> Proposal:
    text = f'params.json\n```\n{{\n  "value": {value}\n}}\n```\n'
    text += f"\nnotes.txt\n```\n{note}\n```\n" if note else ""
    return Proposal(operator="scripted", description=f"value {value}", text=text)
