"""The modes of a judge, by name: how far it stands from the candidate, and what a task may ask for with it.

Here is what must be known where nothing is run: to read a task, a verdict or a ledger. What a mode does when a
candidate is run is its class in loop/judge_modes.py. They are apart because the domain cannot know the loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


@dataclass(frozen=True)
class Terms:
    """A champion gives way only to a verdict of the same `strength` or more. `caveat` is what people must be told of
    its scores; empty where they hold. `about` is its paragraph in docs/task.md.

    `hides_gold`: judge and gold are out of the candidate's reach. `calls`: the judge calls the candidate, so that both
    are there at the same time and nothing is harvested. `stops`: a trial can be told to stop.
    """

    about: str
    strength: int = 2
    caveat: str = ""
    hides_gold: bool = True
    calls: bool = False
    stops: bool = False


class Tier(StrEnum):
    """What the judge's mode makes of its word. A task names the mode; a verdict keeps it."""

    terms: Terms

    def __new__(cls, name: str, terms: Terms) -> Self:
        tier = str.__new__(cls, name)
        tier._value_ = name
        tier.terms = terms
        return tier

    DATA = (
        "data",
        Terms(
            about="the candidate's outputs are harvested as bytes, the candidate is dead, then the judge scores them "
            "in a chamber of its own. What a candidate says of itself can only cost it the trial.",
            stops=True,
        ),
    )
    SHARED = (
        "shared",
        Terms(
            about="for evaluators that must run candidate and judge together. The judge's command runs in one chamber "
            "with the candidate, in the candidate's image, under the judge's limits; the candidate's files are in "
            "`$BLASTDOOR_CANDIDATE`, and the judge must run them itself: `trial.command`, `trial.build` and "
            "`trial.env` are not used. Gold lies in that chamber too. **A candidate can forge its own score.** Such a "
            "verdict is labelled `shared` wherever its score is shown (`run`, `watch`, `status`, `tree`, `show`, "
            "reports), and never replaces a champion of a better tier unless the run was started with "
            "`blastdoor run --lower-tier`.",
            strength=0,
            caveat="shared: judge and candidate are in one chamber, so a candidate can forge its score",
            hides_gold=False,
        ),
    )
    RELAY = (
        "relay",
        Terms(
            about="the judge calls the candidate, each in a chamber of its own, and the orchestrator carries the calls "
            "and holds the clock ([relay.md](relay.md)). `limits.wall` and `judge.limits.wall` count each side's own "
            "turns. As strong as `data`.",
            calls=True,
        ),
    )


# Of a task that names none.
USUAL = Tier.DATA


def modes_with(trait: Callable[[Terms], bool]) -> str:
    """The names of all modes whose terms have a trait, as one writes them in a task file."""
    return " or ".join(f'"{tier}"' for tier in Tier if trait(tier.terms))
