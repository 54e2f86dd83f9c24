"""What each arm brought lately: all that counts beside the usual weights where a search does not learn."""

import random
from dataclasses import replace
from typing import NoReturn

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Arm, Drawn
from orchestrator.meta.chooser import Chooser, Learnt, Meta
from orchestrator.meta.policy import Learning
from orchestrator.proposers import Tried

PRIOR = {"constant": 3.0, "flag": 1.0, "move": 1.0, "delete": 1.0}
TRIED = Tried("1.1", 1, "1", "constant", "", None, (2.0,), (1.0,), ending=Ending.SCORED)


def drawn(option: str) -> Drawn:
    return Drawn(arms={"operator": Arm(option=option, p=0.5, among=PRIOR)})


def chooser_after(*ended: Tried, learnt: Learnt | None = None) -> Chooser:
    return Meta(learnt).chooser(ended, 1, 9, 0)


@pytest.mark.parametrize("told", [True, False])
def test_what_was_worth_it_is_known(told: bool) -> None:
    """Also of an older ledger, which tells the operator and not what was drawn; and where the search learns."""

    def of(operator: str, merits: tuple[float, ...] | None) -> Tried:
        return replace(TRIED, operator=operator, merits=merits, drawn=drawn(operator) if told else None)

    ended = [of("constant", (2.0,)), of("constant", (2.0,)), of("move", (1.0,)), of("delete", None)]
    for learnt in (None, Learnt(Learning.GRADIENT)):
        chooser = chooser_after(*ended, learnt=learnt)
        assert chooser.lately.quality("operator", "constant") > chooser.lately.quality("operator", "flag") == 1.0
        assert 1.0 > chooser.lately.quality("operator", "move") > chooser.lately.quality("operator", "delete") > 0.5


def test_asked_late() -> None:
    """A chooser tells what was known when it was made, whenever it is asked and whoever was asked before."""
    ended = [replace(TRIED, number=number, drawn=drawn("flag" if number % 3 else "move")) for number in range(9)]
    alone = {count: Meta().chooser(ended[:count], 1, 9, 0).lately for count in (0, 4, 9)}
    past: list[Tried] = []
    meta, choosers = Meta(), {}
    for count in range(10):
        past += ended[len(past) : count]
        choosers[count] = meta.chooser(past, 1, 9, 0)
    for count in (4, 9, 0, 4):
        assert choosers[count].lately == alone[count]
        assert choosers[count].fork().lately == alone[count]
    another = [ended[0]]
    assert meta.chooser(another, 1, 9, 0).lately == Meta().chooser(another, 1, 9, 0).lately


def test_a_past_that_nobody_asks_for_is_not_read() -> None:
    """Proposers that draw nothing do not wait until a long past is read."""

    class Unread(list[Tried]):
        def __getitem__(self, at: object) -> NoReturn:
            raise AssertionError(at)

    chooser = Meta().chooser(Unread([TRIED] * 3), 1, 9, 0)
    assert chooser.choose("operator", PRIOR, random.Random(3)) in PRIOR


def test_it_counts_where_it_is_asked() -> None:
    """The odds that are noted are those of the draw: three quarters by weight times worth, a quarter by weight."""
    ended = [replace(TRIED, drawn=drawn("flag"))] * 30
    chooser, dice = chooser_after(*ended), random.Random(3)
    worth = chooser.lately.quality("operator", "flag")
    odds = 0.75 * worth / (worth + 5.0) + 0.25 / 6.0
    found = []
    for _ in range(400):
        found.append(chooser.choose("operator", PRIOR, dice, lately=True))
        arm = chooser.drawn and chooser.drawn.arms["operator"]
        assert arm
        assert arm.among == PRIOR
        if arm.option == "flag":
            assert arm.p == pytest.approx(odds)
    assert 0.4 < found.count("flag") / 400 < 0.6
    assert not chooser.learns
    chooser.choose("operator", PRIOR, dice)
    assert chooser.drawn
    assert chooser.drawn.arms["operator"].p in (0.5, 1 / 6)


def test_a_search_that_learns_goes_by_its_policy() -> None:
    """There, the same is not counted twice."""
    ended = [replace(TRIED, drawn=drawn("flag"))] * 30
    both = [chooser_after(*ended, learnt=Learnt(Learning.LIFT)) for _ in range(2)]
    for chooser, lately in zip(both, (True, False), strict=True):
        chooser.choose("operator", PRIOR, random.Random(1), lately=lately)
    assert both[0].drawn == both[1].drawn
