"""Points and changes to code in one search."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from orchestrator.change import Tree
from orchestrator.domain.proposal import Arm, Drawn, Proposal
from orchestrator.meta.chooser import Meta
from orchestrator.proposers import Brief, Exhausted, Proposer, Tried
from orchestrator.proposers.arms import SLOT, Arms, PricedArm
from orchestrator.proposers.base import Nothing
from tests.chance import at_least, at_most


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


@dataclass
class Shown(Nothing):
    ended: list[Tried] = field(default_factory=list)


POINT = Proposal(operator="tpe", description="", params={"x": 1})
CODE = Proposal(operator="constant", description="", text="a change")


def mixed(points: Proposer, code: Proposer) -> Arms:
    return Arms({"points": PricedArm(points), "code": PricedArm(code)}, drafts=True, priced=False)


def tried(number: int, *, point: bool, better: bool) -> Tried:
    params = {"x": 1} if point else None
    arm = Arm(option="points" if point else "code", p=0.5, among={"points": 1.0, "code": 1.0})
    drawn = Drawn(arms={SLOT: arm})
    return Tried(f"1.{number}", number, "1", "", "", params, (float(better),), (0.0,), drawn=drawn)


def brief(past: Shown, number: int, meta: Meta) -> Brief:
    chooser = meta.chooser(past.ended, 1, number, 0)
    return Brief(node="1.1", parent="1", number=number, seed=1, tree=Tree(), past=past, chooser=chooser)


async def count_of_points(both: Arms, past: Shown, draws: int = 400) -> int:
    meta = Meta()
    drawn = [(await both.propose(brief(past, number, meta)))[0] for number in range(1, draws + 1)]
    return sum(proposal.params is not None for proposal in drawn)


async def test_both_are_asked() -> None:
    """Nothing is known at first: both have the same chance. By luck 400 draws look otherwise twice in 100,000 times."""
    count = await count_of_points(mixed(One(POINT), One(CODE)), Shown())
    assert at_least(400, 0.5) <= count <= at_most(400, 0.5)


@pytest.mark.parametrize(("winner", "share"), [(True, 0.8), (False, 0.2)])
async def test_success_is_followed(winner: bool, share: float) -> None:
    """The better one is asked four times in five. By luck 400 draws look otherwise twice in 100,000 times."""
    ended = [tried(n, point=bool(n % 2), better=bool(n % 2) is winner) for n in range(1, 81)]
    count = await count_of_points(mixed(One(POINT), One(CODE)), Shown(ended))
    assert at_least(400, share) <= count <= at_most(400, share)


async def test_same_past_same_choice() -> None:
    """One that saw the past grow and one that sees it for the first time choose alike: a resume goes on as it was."""
    grown, ended = mixed(One(POINT), One(CODE)), [tried(n, point=n % 3 == 0, better=n % 2 == 0) for n in range(1, 60)]
    past, meta = Shown(), Meta()
    for one in ended:
        past.ended.append(one)
        await grown.propose(brief(past, one.number, meta))
    for number in range(60, 120):
        fresh = await mixed(One(POINT), One(CODE)).propose(brief(Shown(list(ended)), number, Meta()))
        assert await grown.propose(brief(past, number, meta)) == fresh


async def test_one_has_nothing_more() -> None:
    """The other one goes on; only when both are through is the search."""
    both = mixed(One(POINT, through=True), One(CODE))
    assert await count_of_points(both, Shown(), 20) == 0
    assert both.exhausted(1) is None
    assert mixed(One(POINT, through=True), One(CODE, through=True)).exhausted(1) == "all is tried"
    with pytest.raises(Exhausted):
        await mixed(One(POINT, through=True), One(CODE, through=True)).propose(brief(Shown(), 1, Meta()))
