"""One question to a model, by a command that has no campaign: metered, capped and waited for like any other."""

import asyncio
from dataclasses import dataclass

from orchestrator.budget import micro_dollars
from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance, Call, Used
from orchestrator.llm.line import Answer, NoAnswer, Unusable
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import ModelSpec
from orchestrator.watch.signals import Signal
from orchestrator.wiring.choice import cascade
from orchestrator.wiring.models import MODELS, Ready, capped, check_models, key_of, prices_of

_CAPS = ("usd", "tokens")


@dataclass(frozen=True)
class Asked:
    """The answer, or why there is none, and what it cost: a call that was cut counts at its worst case."""

    answer: Answer | None
    why: str
    spent: Spent


class _Counting:
    """Nobody but the one who asks hears of it: there is no ledger."""

    def __init__(self) -> None:
        self.spent = Spent()

    async def intended(self, call: Call) -> None:
        """There is nothing to write it to."""

    def heard(self, signal: Signal) -> None:
        """Nobody watches the stream: the whole has a time to end."""

    def ended(self, call: Call, used: Used) -> None:
        del call  # there is but one
        self.spent += used.spent


def ready_question(flags: Flags, settings: Settings) -> Ready:
    """All that can be known without asking. Raises TaskError for what is missing."""
    key = key_of(settings, "llm")
    caps, _ = cascade(_CAPS, [("flag", dict(flags)), ("user", settings.model_dump(exclude_unset=True))])
    usd, tokens = capped(ModelSpec(), caps["usd"], caps["tokens"])
    role = ModelRole.USER
    models = settings.models or MODELS[role]
    ready = Ready({role: Allowance(role, models, micro_dollars(usd), tokens)}, prices_of(settings), key)
    check_models(ready.allowances, ready.prices)
    return ready


async def ask_once(
    ready: Ready, settings: Settings, *, system: str, question: str, max_tokens: int, wait_s: float
) -> Asked:
    """Never raises for what a provider does."""
    import orchestrator.llm.asking  # noqa: F401  # slow to load, which must not count as a model's silence
    from orchestrator.llm.gateway import Gateway
    from orchestrator.llm.upstream import Upstream

    ear, answer, why = _Counting(), None, ""
    messages = [{"role": "user", "content": question}]
    async with (
        Gateway(Upstream(settings.api_url, ready.key), ready.prices) as gateway,
        gateway.open_line(ready.allowances[ModelRole.USER], ear) as line,
    ):
        try:
            async with asyncio.timeout(wait_s):
                answer = await line.ask(system=[system], messages=messages, max_tokens=max_tokens)
        except TimeoutError:
            why = f"it did not answer within {wait_s:.0f} s"
        except (NoAnswer, Unusable) as error:
            why = str(error)
    return Asked(answer, why, ear.spent)
