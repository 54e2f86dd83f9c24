"""Several proposers in one search: who is asked first, who when nothing gets better, and who not at all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import pytest

from orchestrator.change import Tree
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Arm, Drawn, Proposal
from orchestrator.llm.line import Line
from orchestrator.meta.chooser import Chooser, Learnt, Meta
from orchestrator.meta.credit import Price
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Brief, Exhausted, Proposer, Tried
from orchestrator.proposers.arms import SLOT, Arms, PricedArm
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import TaskError, load_task
from orchestrator.wiring.options import resolve
from orchestrator.wiring.proposers import changes_at_once, make_searcher
from tests.chance import at_least, at_most
from tests.examples.judging import EXAMPLES
from tests.orchestrator.proposers.pasts import Shown

LINE = cast("Line", object())
LEARNT = Learnt(Learning.GRADIENT, price=Price.USD)


@dataclass
class One:
    """A proposer that offers one kind, or has nothing more."""

    proposal: Proposal
    through: bool = False
    serial: bool = False
    branching: bool = True

    def exhausted(self, number: int) -> str | None:
        return "all is tried" if self.through else None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        if self.through:
            raise Exhausted("all is tried")
        return [self.proposal]


def proposer(name: str, **more: bool) -> Proposer:
    return One(Proposal(operator=name, description="", text="x"), **more)


def arms(*, cheap_is_through: bool = False) -> Arms:
    cheap = PricedArm(proposer("cheap", through=cheap_is_through))
    return Arms({"cheap": cheap, "dear": PricedArm(proposer("dear", serial=True), price=10.0, asks=True, several=True)})


def mixed(*through: str) -> Arms:
    """Points and changes to code, which cost alike."""
    made = {name: PricedArm(proposer(name, through=name in through)) for name in ("points", "code")}
    return Arms(made, drafts=True, priced=False)


def brief(past: Shown, number: int, line: Line | None = LINE, chooser: Chooser | None = None) -> Brief:
    made = Brief("1.1", "1", number, 1, Tree(), past=past, line=line, count=3)
    return replace(made, chooser=chooser) if chooser else made


async def share(name: str, both: Arms, past: Shown, draws: int = 300, learnt: Learnt | None = None) -> float:
    """How often the arm of that name is asked."""
    meta, found = Meta(learnt), Counter[str]()
    for number in range(1, draws + 1):
        chooser = meta.chooser(past.ended, 1, number, 0)
        (made,) = await both.propose(brief(past, number, chooser=chooser))
        assert made.drawn
        assert made.drawn.arms[SLOT].option == made.operator
        found[made.operator] += 1
    return found[name] / draws


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


def scored(number: int, arm: str, *, better: bool) -> Tried:
    drawn = Drawn(arms={SLOT: Arm(option=arm, p=0.5, among={"points": 1.0, "code": 1.0})})
    return Tried(f"1.{number}", number, "1", "", "", None, (float(better),), (0.0,), drawn=drawn)


@pytest.mark.parametrize(("winner", "wanted"), [("", 0.5), ("points", 0.8), ("code", 0.2)])
async def test_success_is_followed(winner: str, wanted: float) -> None:
    """Where nothing is known, both have the same chance; the better one is asked four times in five."""
    arms_ = ["points" if number % 2 else "code" for number in range(1, 81)] if winner else []
    past = Shown([scored(number, arm, better=arm == winner) for number, arm in enumerate(arms_, 1)])
    found = await share("points", mixed(), past, 400)
    assert at_least(400, wanted) <= 400 * found <= at_most(400, wanted)


async def test_same_past_same_choice() -> None:
    """One that saw the past grow and one that sees it for the first time choose alike: a resume goes on as it was."""
    grown, past, meta = mixed(), Shown(), Meta()
    for number in range(1, 60):
        past.ended.append(scored(number, "code" if number % 3 else "points", better=number % 2 == 0))
        await grown.propose(brief(past, number, chooser=meta.chooser(past.ended, 1, number, 0)))
    for number in range(60, 120):
        again = brief(Shown(past.ended), number, chooser=Meta().chooser(list(past.ended), 1, number, 0))
        here = brief(past, number, chooser=meta.chooser(past.ended, 1, number, 0))
        assert await grown.propose(here) == await mixed().propose(again)


async def test_one_has_nothing_more() -> None:
    """The other one goes on; only when both are through is the search."""
    assert await share("code", mixed("points"), Shown(), 20) == 1.0
    assert mixed("points").exhausted(1) is None
    assert mixed("points", "code").exhausted(1) == "all is tried"
    with pytest.raises(Exhausted):
        await mixed("points", "code").propose(brief(Shown(), 1))


async def test_cheap_arms_come_first() -> None:
    """While nothing is known or things get better, by price; after many attempts without a better one, evenly."""
    assert await share("dear", arms(), Shown()) < 0.2
    assert await share("dear", arms(), await ended(20, cheap=1.0, dear=1.0)) < 0.2
    assert await share("dear", arms(), await ended(40, cheap=0.0, dear=0.0)) > 0.35


async def test_what_does_not_apply_is_left() -> None:
    """Changes that do not apply bring the search back to the cheap arm, learning or not."""
    for learnt in (Learnt(), LEARNT):
        past = await ended(60, cheap=0.0, dear=None, learnt=learnt)
        assert await share("dear", arms(), past, learnt=learnt) < 0.3


async def test_what_pays_at_its_price_is_asked() -> None:
    """Where only the dear arm improves, it is learnt, for all that it costs."""
    past = await ended(60, cheap=0.0, dear=1.0, learnt=LEARNT)
    assert await share("dear", arms(), past, learnt=LEARNT) > 0.5


async def test_without_a_line_nobody_asks_a_model() -> None:
    """Dollars are short: the cheap arm goes on alone, and where it has nothing more, the search has."""
    past = await ended(40, cheap=0.0, dear=0.0)
    found = [(await arms().propose(brief(past, number, None)))[0].operator for number in range(1, 30)]
    assert set(found) == {"cheap"}
    with pytest.raises(Exhausted):
        await arms(cheap_is_through=True).propose(brief(past, 1, None))
    assert (await arms(cheap_is_through=True).propose(brief(past, 1)))[0].operator == "dear"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"proposer": "hybrid", "arms": "operators,nobody"}, "nobody"),
        ({"proposer": "hybrid", "arms": "tpe,tpe"}, "tpe is there twice"),
        ({"proposer": "hybrid", "arms": "operators,hybrid"}, "hybrid cannot be an arm"),
        ({"proposer": "hybrid", "arms": "operators,tpe"}, r"tpe needs \[parameters\]"),
        ({"proposer": "operators", "arms": "llm"}, "arms mean nothing to the proposer operators"),
    ],
)
def test_arms_that_cannot_work(flags: dict[str, str], said: str) -> None:
    """Unknown, there twice, without what it needs, or another's: one line, before anything runs."""
    task = load_task(EXAMPLES / "circle_packing").model_copy(update={"parameters": None})
    with pytest.raises(TaskError, match=said):
        make_searcher(resolve(Flags.model_validate(flags), task, Settings()), task)


def test_several_at_once_where_an_arm_offers_them() -> None:
    """A search with a model among its arms is serial and asks it for several changes."""
    task = load_task(EXAMPLES / "circle_packing")
    with_model = resolve(Flags(proposer="hybrid", arms="tpe,operators,llm"), task, Settings())
    assert (make_searcher(with_model, task).serial, changes_at_once(with_model, task)) == (True, task.model.proposals)
    without = resolve(Flags(proposer="hybrid"), task, Settings())
    assert (make_searcher(without, task).serial, changes_at_once(without, task)) == (False, 1)


async def test_an_arm_that_repeats_itself_is_left() -> None:
    """Where all that it offered was known, the next asking goes to another one; to all again where each did."""
    both = arms()
    drawn = [(await both.propose(brief(Shown(), number)))[0] for number in range(1, 10)]
    first = next(it for it in drawn if it.operator == "cheap")
    again = [(await both.propose(replace(brief(Shown(), n), again=1, repeated=[first])))[0] for n in range(1, 30)]
    assert {it.operator for it in again} == {"dear"}
    last = [(await both.propose(replace(brief(Shown(), n), again=2, repeated=[first, again[0]])))[0] for n in range(30)]
    assert "cheap" in {it.operator for it in last}
