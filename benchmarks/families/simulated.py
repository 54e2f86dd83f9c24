"""Searches whose arms are dice: what an attempt brings is drawn from chances that nobody is told.

A success closes a share of the gap that is left. Every seed has its own chances, drawn from wide ranges.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.domain.proposal import Proposal
from orchestrator.proposers import Brief


@dataclass(frozen=True)
class Arms:
    """Of one seed. `chances` has those of each arm, before and after the gap is half closed; `usd` what one try costs.
    An arm in `opens` brings nothing itself, but makes those in `needs` work on what it made.
    """

    chances: Mapping[str, tuple[float, float]]
    usd: Mapping[str, float]
    opens: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Place:
    """How far a node is: the gap that it leaves, and whether something was opened for its children."""

    gap: float = 1.0
    is_open: bool = False


@dataclass(frozen=True)
class Dice:
    """A family. `ties`: the latest node that is as good as the best is built on, so that neutral steps are taken."""

    name: str
    kind: str
    target: float = 0.05
    ties: bool = False

    def arms(self, seed: int) -> Arms:
        rng = random.Random(f"{self.name}/{seed}")
        names = [f"arm {number}" for number in range(8)]
        rng.shuffle(names)
        one = dict.fromkeys(names, 1.0)
        match self.kind:
            case "models":
                # Dear models are better, but not by as much as they cost; some are neither.
                usd = {name: rng.choice((0.1, 0.3, 1.0, 3.0)) for name in names}
                return Arms({name: _both(min(0.5, rng.uniform(0.02, 0.3) * usd[name] ** 0.3)) for name in names}, usd)
            case "shifts":
                high = {
                    name: rng.uniform(0.25, 0.45) if at < 2 else rng.uniform(0.0, 0.04) for at, name in enumerate(names)
                }
                late = {
                    name: rng.uniform(0.25, 0.45) if at in (5, 6) else rng.uniform(0.0, 0.04)
                    for at, name in enumerate(names)
                }
                return Arms({name: (high[name], late[name]) for name in names}, one)
            case "stones":
                small = {name: _both(rng.uniform(0.0, 0.03)) for name in names}
                small[names[1]] = _both(0.5)
                return Arms(small, one, frozenset(names[:1]), frozenset(names[1:2]))
        return Arms(dict.fromkeys(names, _both(rng.uniform(0.08, 0.15))), one)


def _both(chance: float) -> tuple[float, float]:
    return chance, chance


def thrown(arms: Arms, place: Place, arm: str, dice: random.Random) -> tuple[Place, float]:
    """Where one try leads, and what it costs."""
    hit, size = dice.random(), dice.uniform(0.05, 0.35)
    chance = arms.chances[arm][place.gap < 0.5]
    if arm in arms.opens:
        return Place(place.gap, is_open=True), arms.usd[arm]
    if hit >= chance or (arm in arms.needs and not place.is_open):
        # A change that matters and does not help is worse, as most are.
        return Place(place.gap * (1.02 + 0.1 * size), place.is_open), arms.usd[arm]
    return Place(place.gap * (1.0 - size)), arms.usd[arm]


class Drawing:
    """A proposer that only chooses; where it is `adaptive`, as operators do where nothing else learns."""

    serial = False
    branching = True

    def __init__(self, names: Sequence[str], *, adaptive: bool) -> None:
        self._names = names
        self._adaptive = adaptive

    def exhausted(self, number: int) -> str | None:
        del number
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        rng = random.Random(f"drawing/{brief.seed}/{brief.number}")
        weights = dict.fromkeys(self._names, 1.0)
        arm = brief.chooser.choose("model", weights, rng, lately=self._adaptive) or self._names[0]
        return [Proposal(operator=arm, description=arm, text=f"{brief.node}\n", drawn=brief.chooser.drawn)]
