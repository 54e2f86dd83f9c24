"""What the judge's word is worth, and whether it makes a candidate the champion."""

from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, Field

from orchestrator.domain.metric import Goal, Ranking
from orchestrator.domain.tier import Tier


class Mode(StrEnum):
    """What a trial runs against: the cheaper target while tuning, the real one when it counts.

    Held-out is a split that only a candidate about to be kept is run on; its scores are for the ladder alone.
    """

    TUNE = "tune"
    SUBMIT = "submit"
    HELDOUT = "heldout"


class Verdict(BaseModel, extra="forbid", frozen=True):
    """The judge's result with all that is needed to compare it; `directions` are those of single tasks.

    `at_most` names times that may have been less: so small that their channel cannot tell them from none.
    """

    metrics: dict[str, float]
    tasks: dict[str, float] = Field(default_factory=dict)
    directions: dict[str, Goal] = Field(default_factory=dict)
    tier: Tier
    mode: Mode
    cohort: str
    valid: bool = True
    notes: str = ""
    suspect: tuple[str, ...] = ()
    at_most: tuple[str, ...] = ()


class NotComparable(Exception):
    """Two verdicts that must not be ranked against each other; the message says why."""


class Aim(StrEnum):
    """What is asked of a candidate. A campaign keeps what is better; a gate may let in what is not worse."""

    BETTER = "better"
    NOT_WORSE = "not worse"


class Stage(StrEnum):
    """What has the last word on a candidate that its judge calls a solution, in the order in which they are asked."""

    SCORE = "score"
    REPLAY = "replay"
    REPEATS = "repeats"
    GUARDS = "guards"
    HELD_OUT = "held-out"
    PERSON = "person"


class Decision(NamedTuple):
    """`undecided`: it is not kept, but nothing was found out about the candidate either; somebody else failed."""

    kept: bool
    why: str
    undecided: bool = False


def better(new: Verdict, old: Verdict, ranking: Ranking) -> bool:
    """Whether `new` beats `old`. Raises NotComparable across cohorts, between modes, and for held-out verdicts."""
    if Mode.HELDOUT in (new.mode, old.mode):
        raise NotComparable("a held-out verdict is never ranked; only the ladder answers for it")
    if new.mode is not old.mode:
        raise NotComparable(f"a {new.mode} verdict is never ranked against a {old.mode} verdict")
    if new.cohort != old.cohort:
        raise NotComparable(f"cohort {new.cohort} is never ranked against cohort {old.cohort}")
    return ranking.better(new.metrics, old.metrics)


def decide(
    new: Verdict, champion: Verdict, ranking: Ranking, *, lower_tier: bool = False, smaller: bool = False
) -> Decision:
    """Whether a candidate becomes champion; one that ties in every metric does where its change is the `smaller`.

    Raises NotComparable rather than guess.
    """
    if refused := objection(new, champion, lower_tier=lower_tier):
        return Decision(False, refused)
    if better(new, champion, ranking):
        return Decision(True, "better than the champion")
    if smaller and ranking.merits(new.metrics) == ranking.merits(champion.metrics):
        return Decision(True, "as good as the champion, and a smaller change")
    return Decision(False, "no better than the champion")


def tolerate(new: Verdict, champion: Verdict, ranking: Ranking, *, lower_tier: bool = False) -> Decision:
    """Whether a candidate is not worse. Raises NotComparable rather than guess."""
    if refused := objection(new, champion, lower_tier=lower_tier):
        return Decision(False, refused)
    if better(champion, new, ranking):
        return Decision(False, "worse than the champion")
    return Decision(True, "not worse than the champion")


def objection(new: Verdict, champion: Verdict, *, lower_tier: bool = False) -> str | None:
    """Why a verdict cannot make a champion, however good it is."""
    if new.mode is not Mode.SUBMIT:
        raise NotComparable(f"a {new.mode} verdict cannot make a champion; promote the candidate first")
    if not new.valid:
        return "the judge says that it is no solution"
    if new.suspect:
        return f"too good to be believed: {', '.join(new.suspect)} beyond the ceiling"
    if new.tier.terms.strength < champion.tier.terms.strength and not lower_tier:
        return f"tier {new.tier} does not replace tier {champion.tier}"
    return None
