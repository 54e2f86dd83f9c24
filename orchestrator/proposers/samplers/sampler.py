"""From a model's offers to proposals: never a point that was proposed before, and an end where none is left.

A proposal follows from the seed, the attempt's number and what the proposer was shown, and from nothing else. So a
resume is exact where one attempt runs at a time, and no state is stored. What is kept between two calls is a cache.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator.domain.proposal import Proposal, Value
from orchestrator.proposers.base import Brief, Computed, Exhausted, Tried
from orchestrator.proposers.points import Point, Points, key_of
from orchestrator.proposers.samplers.engine import Engine, Known
from orchestrator.proposers.space import draw, listed, random_point, shown_point
from orchestrator.task import Float, Parameter, is_point

DRAWS = 32


class Sampler(Computed):
    """Points of the space from a model of what was tried. Every point starts at the root.

    `whole` is what the points are all of, for the sentence that says that none is left.
    """

    serial = False
    branching = False

    def __init__(
        self, name: str, space: Mapping[str, Parameter], make: Callable[[], Engine], whole: str = "space"
    ) -> None:
        self._name = name
        self._space = space
        self._make = make
        self._left = Left(space, whole)
        self._forget()

    def exhausted(self, number: int) -> str | None:
        del number  # what is left is known from the past alone
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        self._look_at(brief.past.ended)
        running = [dict(it.params) for it in brief.past.running if it.params is not None]
        made: list[Proposal] = []
        for draft in range(brief.count):
            try:
                seed = f"{brief.seed}/{brief.number}/{brief.again}/{draft}"
                made.append(await self._one(seed, brief.number, running))
            except Exhausted:
                if made:
                    break
                raise
            running.append(dict(made[-1].params or {}))
        return made

    async def _one(self, seed: str, number: int, running: Sequence[Point]) -> Proposal:
        usable = [point for point in running if is_point(self._space, point)]
        offers = self._engine.offers(usable, number_of(seed), number)
        seen = Seen(self._ended, {key_of(point) for point in running})
        # Some seconds of numbers in the worst case: chambers must not wait for it.
        point = await asyncio.to_thread(lambda: next((it for it in offers if it not in seen), None))
        if point is not None:
            return Proposal(operator=self._name, description=shown_point(point), params=point)
        rng = random.Random(seed)  # noqa: S311  # not for secrets: the seed is in the ledger
        draws = (random_point(self._space, rng) for _ in range(DRAWS))
        point = next((it for it in draws if it not in seen), None) or self._left.first(seen, rng)
        return Proposal(operator="random", description=shown_point(point), params=point)

    def _forget(self) -> None:
        self._engine = self._make()
        self._ended: set[str] = set()
        self._past: Sequence[Tried] = ()
        self._last: Tried | None = None
        self._place = 0
        self._left.rewind()

    def _look_at(self, ended: Sequence[Tried]) -> None:
        """Tell the engine what is new. A past that is not the one of the last call is looked at from its beginning."""
        same = ended is self._past and self._place <= len(ended)
        if not same or (self._place and ended[self._place - 1] != self._last):
            self._forget()
            self._past = ended
        for place in range(self._place, len(ended)):
            tried = ended[place]
            if tried.params is not None:
                self._ended.add(key_of(tried.params))
                if is_point(self._space, tried.params):
                    self._engine.tell(Known(place, tried.params, tried.merits, tried.number))
            self._last = tried
        self._place = len(ended)


class Seen:
    """The points that were proposed before."""

    def __init__(self, ended: set[str], others: set[str]) -> None:
        self.ended, self._others = ended, others

    def __contains__(self, point: Mapping[str, Value]) -> bool:
        key = key_of(point)
        return key in self.ended or key in self._others


class Left:
    """What is still there of a space that is nearly used up; a real number always has another value."""

    def __init__(self, space: Mapping[str, Parameter], whole: str) -> None:
        self._space, self._whole = space, whole
        self._points: Points | None = None
        self._from = 0

    def rewind(self) -> None:
        self._from = 0

    def first(self, seen: Seen, rng: random.Random) -> Point:
        """Raises Exhausted where every point was proposed before."""
        if self._points is None:
            # The lowest value of a real number stands for all of them.
            values = {name: (it.low,) if isinstance(it, Float) else listed(it) for name, it in self._space.items()}
            self._points = Points(self._space, values)
        for index in self._unused(seen, self._points):
            point = {name: _at(self._space[name], value, rng) for name, value in self._points.at(index).items()}
            if point not in seen:
                return point
        reals = any(isinstance(it, Float) for it in self._space.values())
        raise Exhausted(
            "no point is left that was not tried"
            if reals
            else f"all {self._points.size} points of the {self._whole} are tried"
        )

    def _unused(self, seen: Seen, points: Points) -> Iterator[int]:
        """What ended stays used, so it is passed over once; what runs may come back."""
        while self._from < points.size and key_of(points.at(self._from)) in seen.ended:
            self._from += 1
        return iter(range(self._from, points.size))


def _at(parameter: Parameter, value: Value, rng: random.Random) -> Value:
    return draw(parameter, rng) if isinstance(parameter, Float) else value


def number_of(seed: str) -> int:
    return int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4])
