"""`discover --proposer llm`: what a model adds to a task, and what it cost."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.budget import Account, shown
from orchestrator.discovery.advice import ANSWER_TOKENS, SYSTEM, NoAdvice, prompt, read_advice, with_questions
from orchestrator.discovery.chambers import Laboratory
from orchestrator.discovery.targets import Target
from orchestrator.discovery.writing import Made
from orchestrator.settings import Settings
from orchestrator.text import short
from orchestrator.wiring.models import Ready
from orchestrator.wiring.question import ask_once

_WAIT_S = 300.0


@dataclass(frozen=True)
class Adviser:
    """A model that may be asked once."""

    ready: Ready
    settings: Settings
    doing: Callable[[str], None]
    wait_s: float = _WAIT_S


@dataclass(frozen=True)
class Advised:
    """What the task is made of, with or without a model's word."""

    target: Target
    made: Made
    line: str
    record: dict[str, Any] = field(default_factory=dict)


async def advised(adviser: Adviser, target: Target, made: Made, laboratory: Laboratory) -> Advised:
    """A model that gives nothing to use costs the task nothing. Raises the sandbox's errors."""
    try:
        question = prompt(target, made.repository)
    except NoAdvice as error:
        why = short(str(error), 300)
        return Advised(target, made, f"model: not asked, so without it: {why}", {"microdollars": 0, "why": why})
    adviser.doing("a model is asked for a statement and for questions")
    asked = await ask_once(
        adviser.ready,
        adviser.settings,
        system=SYSTEM,
        question=question,
        max_tokens=ANSWER_TOKENS,
        wait_s=adviser.wait_s,
    )
    cost = shown(Account.USD, asked.spent.microdollars)
    record: dict[str, Any] = {"microdollars": asked.spent.microdollars, "tokens": asked.spent.tokens}
    try:
        if asked.answer is None:
            raise NoAdvice(asked.why)
        advice = read_advice(asked.answer)
    except NoAdvice as error:
        why = short(str(error), 300)
        return Advised(target, made, f"model: nothing to use, so without it: {why}; {cost}", {**record, "why": why})
    more, kept = await with_questions(target, advice.questions, laboratory)
    record |= {"questions": len(advice.questions), "kept": kept, "statement": advice.statement}
    line = f"model: {kept} of its {len(advice.questions)} questions are new and are answered alike each time; {cost}"
    return Advised(more, replace(made, hint=advice.statement), line, record)
