"""Several proposers in one search: who is asked first, who when nothing gets better, and who not at all."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from orchestrator.change import Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.llm.line import Line
from orchestrator.meta.chooser import Chooser, Learnt, Meta
from orchestrator.meta.credit import Price
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Brief, Exhausted, Proposer, Tried
from orchestrator.proposers.arms import Arms, PricedArm
from orchestrator.proposers.base import Nothing
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.wiring.options import resolve
from orchestrator.wiring.proposers import changes_at_once, make_searcher
from tests.orchestrator.proposers.test_mixed import One

LINE = cast("Line", object())
LEARNT = Learnt(Learning.GRADIENT, price=Price.USD)
EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass
class Shown(Nothing):
    ended: list[Tried] = field(default_factory=list)


def proposer(name: str, **more: bool) -> Proposer:
    return One(Proposal(operator=name, description="", text="x"), **more)


def arms(**through: bool) -> Arms:
    return Arms(
        {
            "cheap": PricedArm(proposer("cheap", through=through.get("cheap", False))),
            "dear": PricedArm(proposer("dear", serial=True), price=10.0, asks=True, several=True),
        }
    )


def brief(past: Shown, number: int, line: Line | None = LINE, chooser: Chooser | None = None) -> Brief:
    made = Brief("1.1", "1", number, 1, Tree(), past=past, line=line, count=3)
    return replace(made, chooser=chooser) if chooser else made


async def share_of_dear(past: Shown, draws: int = 300, learnt: Learnt | None = None) -> float:
    both, meta = arms(), Meta(learnt)
    found = [
        (await both.propose(brief(past, number, chooser=meta.chooser(past.ended, 1, number, 0))))[0]
        for number in range(1, draws + 1)
    ]
    assert all(it.drawn and it.drawn.arms["proposer"].option == it.operator for it in found)
    return sum(it.operator == "dear" for it in found) / draws


async def ended(count: int, *, cheap: float, dear: float | None, learnt: Learnt | None = None) -> Shown:
    """Attempts of both, drawn as they come: with what gain each ends, None as invalid. The dear one costs a dollar."""
    both, past, meta = arms(), Shown(), Meta(learnt)
    for number in range(1, count + 1):
        chooser = meta.chooser(past.ended, 1, number, 0)
        (made,) = await both.propose(brief(past, number, chooser=chooser))
        gain = dear if made.operator == "dear" else cheap
        merits, ending = (None, Ending.INVALID) if gain is None else ((gain,), Ending.SCORED)
        usd = 1.0 if made.operator == "dear" else 0.0
        past.ended.append(
            Tried("1.1", number, "1", made.operator, "", None, merits, (0.0,), ending=ending, drawn=made.drawn, usd=usd)
        )
    return past


async def test_cheap_arms_come_first() -> None:
    """Before anything is known, and as long as things get better, by price."""
    assert await share_of_dear(Shown()) < 0.2
    assert await share_of_dear(await ended(20, cheap=1.0, dear=1.0)) < 0.2


async def test_a_stall_escalates() -> None:
    """After many attempts without a better one, the dear arm is asked as often as the cheap one."""
    assert await share_of_dear(await ended(40, cheap=0.0, dear=0.0)) > 0.35


async def test_what_does_not_apply_is_left() -> None:
    """Changes that do not apply bring the search back to the cheap arm, learning or not."""
    for learnt in (Learnt(), LEARNT):
        assert await share_of_dear(await ended(60, cheap=0.0, dear=None, learnt=learnt), learnt=learnt) < 0.3


async def test_what_pays_at_its_price_is_asked() -> None:
    """Where only the dear arm improves, it is learnt, for all that it costs."""
    past = await ended(60, cheap=0.0, dear=1.0, learnt=LEARNT)
    assert await share_of_dear(past, learnt=LEARNT) > 0.5


async def test_without_a_line_nobody_asks_a_model() -> None:
    """Dollars are short: the cheap arm goes on alone, and where it has nothing more, the search has."""
    past = await ended(40, cheap=0.0, dear=0.0)
    found = [(await arms().propose(brief(past, number, None)))[0].operator for number in range(1, 30)]
    assert set(found) == {"cheap"}
    with pytest.raises(Exhausted):
        await arms(cheap=True).propose(brief(past, 1, None))
    assert (await arms(cheap=True).propose(brief(past, 1)))[0].operator == "dear"


@pytest.mark.parametrize(
    ("arms_", "said"),
    [
        ("operators,nobody", "nobody"),
        ("tpe,tpe", "tpe is there twice"),
        ("operators,hybrid", "hybrid cannot be an arm"),
        ("operators,tpe", r"tpe needs \[parameters\]"),
    ],
)
def test_arms_that_cannot_work(arms_: str, said: str) -> None:
    """One that does not exist, is there twice, or needs what the task has not: one line, before anything runs."""
    task = load_task(EXAMPLES / "circle_packing").model_copy(update={"parameters": None})
    with pytest.raises(TaskError, match=said):
        make_searcher(resolve(Flags(proposer="hybrid", arms=arms_), task, Settings()), task)


def test_arms_are_for_hybrid() -> None:
    """Another proposer has no use for them, and says so."""
    task = load_task(EXAMPLES / "circle_packing")
    with pytest.raises(TaskError, match="arms mean nothing to the proposer tpe"):
        make_searcher(resolve(Flags(proposer="tpe", arms="operators"), task, Settings()), task)


def test_several_at_once_where_an_arm_offers_them() -> None:
    """A search with a model among its arms is serial and asks it for several changes."""
    task = load_task(EXAMPLES / "circle_packing")
    with_model = resolve(Flags(proposer="hybrid", arms="tpe,operators,llm"), task, Settings())
    assert (make_searcher(with_model, task).serial, changes_at_once(with_model, task)) == (True, task.model.proposals)
    without = resolve(Flags(proposer="hybrid"), task, Settings())
    assert (make_searcher(without, task).serial, changes_at_once(without, task)) == (False, 1)


async def test_an_arm_that_repeats_itself_is_left() -> None:
    """Where all that an arm offered was known, the next asking of the attempt goes to another one, however dear; to
    all of them again where each did.
    """
    both = arms()
    drawn = [(await both.propose(brief(Shown(), number)))[0] for number in range(1, 10)]
    first = next(it for it in drawn if it.operator == "cheap")
    again = [(await both.propose(replace(brief(Shown(), n), again=1, repeated=[first])))[0] for n in range(1, 30)]
    assert {it.operator for it in again} == {"dear"}
    last = [(await both.propose(replace(brief(Shown(), n), again=2, repeated=[first, again[0]])))[0] for n in range(30)]
    assert "cheap" in {it.operator for it in last}
