"""Attempts that ended, for tests of what is learnt from them."""

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Arm, Drawn, Knob
from orchestrator.proposers import Tried


def arm(option: str, among: tuple[str, ...] = ("a", "b"), p: float | None = None) -> Arm:
    return Arm(option=option, p=p or 1 / len(among), among=dict.fromkeys(among, 1.0))


def knob(value: float, mean: float = 0.0) -> Knob:
    return Knob(value=value, mean=mean, spread=0.5, at_first=1.0, least=0.01, most=100.0)


def ended(
    number: int,
    gain: float | None,
    *,
    chosen: Arm | None = None,
    size: Knob | None = None,
    parent: str = "1",
    usd: float = 0.0,
    ending: Ending = Ending.SCORED,
) -> Tried:
    """`gain` over a parent whose merit is 0; None without a score."""
    drawn = Drawn(arms={"slot": chosen} if chosen else {}, knobs={"size": size} if size else {})
    return Tried(
        node=f"{parent}.{number}",
        number=number,
        parent=parent,
        operator="",
        description="",
        params=None,
        merits=None if gain is None else (gain,),
        parent_merits=(0.0,),
        ending=ending,
        drawn=drawn,
        usd=usd,
    )
