"""One conversation with a model: what it offers, what is wrong with that told back once, and what it makes of it.

Both questions belong to one attempt and are paid from one allowance.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.proposal import Proposal
from orchestrator.llm.line import Answer, Line, NoAnswer
from orchestrator.offload import offload
from orchestrator.proposers.base import Barred, Brief, Stalled, Unanswered
from orchestrator.proposers.llm.context import Context
from orchestrator.proposers.llm.words import quoted
from orchestrator.text import short

CUT = "max_tokens"
_REASON = 400
_SHOWN = 16


@dataclass(frozen=True)
class Offer:
    """`why` says why it would not be taken; None where it would. Without a proposal it cannot even be recorded."""

    said: str
    proposal: Proposal | None
    why: str | None = None


Read = Callable[[Answer], Sequence[Offer]]


@dataclass(frozen=True)
class Conversation:
    """`wanted` says in a few words what an answer has to hold, for one that holds none. `model` is whom to ask, None
    for the preferred one; `temperature` how far it may stray, None for its own.
    """

    line: Line
    context: Context
    max_tokens: int
    wanted: str
    model: str | None = None
    temperature: float | None = None

    async def proposals(self, read: Read) -> list[Proposal]:
        """Those that would be taken first. Raises Stalled where the provider failed, Unanswered where nothing came."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": self.context.question}]
        answer = await self._ask(messages)
        first = await offload(read, answer)
        if first and not any(it.why for it in first):
            return _made(first)
        messages.append({"role": "assistant", "content": answer.text.strip() or "(nothing)"})
        messages.append({"role": "user", "content": self._told_back(first, answer.stop)})
        good = [it for it in first if it.why is None]
        try:
            second = await offload(read, await self._ask(messages))
        except (Stalled, Unanswered):
            if not good:
                raise
            second = ()
        return self._best(good, second, first)

    async def _ask(self, messages: Sequence[dict[str, Any]]) -> Answer:
        try:
            return await self.line.ask(
                system=self.context.system,
                messages=messages,
                max_tokens=self.max_tokens,
                model=self.model,
                temperature=self.temperature,
            )
        except NoAnswer as error:
            fault = Unanswered if error.charged else Barred if self.line.barred else Stalled
            raise fault(str(error)) from error

    def _best(self, good: Sequence[Offer], second: Sequence[Offer], first: Sequence[Offer]) -> list[Proposal]:
        mended = [it for it in second if it.why is None]
        refused = [it for it in second or first if it.why]
        if found := _made([*good, *mended, *refused]):
            return found
        reason = next((it.why for it in refused if it.why), f"there is no {self.wanted} in its answer")
        raise Unanswered(f"the model was asked twice and gave nothing to try: {short(reason, _REASON)}")

    def _told_back(self, offers: Sequence[Offer], stop: str) -> str:
        cut = "Your answer was cut off, because it was too long; be shorter. " if stop == CUT else ""
        if not offers:
            return f"{cut}There is no {self.wanted} in your answer. Answer again, in the form that you were given."
        wrong = [it for it in offers if it.why][:_SHOWN]
        listed = "\n".join(f"- {quoted(it.said, 200)}: {short(it.why or '', _REASON)}" for it in wrong)
        return f"{cut}These were not taken:\n{listed}\nSend these again, corrected, and only these, in the same form."


def chosen_model(brief: Brief) -> str | None:
    """Where the search learns and several may be asked; else the line's own, the preferred one."""
    if brief.line is None or not brief.chooser.learns or len(brief.line.models) < 2:
        return None
    return brief.chooser.choose("model", dict.fromkeys(brief.line.models, 1.0))


def chosen_temperature(brief: Brief, bounds: tuple[float, float] | None) -> float | None:
    """Within the task's bounds, where it has some and the search learns; else the model's own."""
    if bounds is None or not brief.chooser.learns:
        return None
    return round(brief.chooser.knob("temperature", math.sqrt(bounds[0] * bounds[1]), *bounds), 4)


def _made(offers: Sequence[Offer]) -> list[Proposal]:
    return [it.proposal for it in offers if it.proposal is not None]
