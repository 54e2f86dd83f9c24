"""A judge that knows what a function answered, and asks again: for the same answers, sooner. Standard library only,
Python 3.9 up.

    from blastdoor_recorded import judge

    judge(calls="gold/calls.bin", batches=8)

The file is a list of calls as values (blastdoor_kinds): arguments, keywords, whether it answered, the answer or the
name of its error, the seconds that it took when it was recorded, and whether the question was made from others. The
questions that were not are known to all who have the tests: they are the first batch, which is not timed. Every judging
deals the made ones into the other batches, each with about as much work, in an order of its own. So no question comes
twice, and what a candidate keeps of an answer is of no use, unless `repeat` says that each is asked so many times at
once. Where too few were made, all are dealt alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blastdoor_judge import BadOutput, publish
from blastdoor_kinds import decode_exact
from blastdoor_relay import relay
from blastdoor_same import same

__all__ = ["judge"]


def judge(*, calls: str, batches: int = 8, repeat: int = 1) -> None:
    """Publish `seconds`, what one batch takes: the median over all but the first."""
    known = decode_exact(Path(calls).read_bytes())
    with relay(exact=True) as candidate:
        deal = Deal(known, batches, repeat, candidate.rng())
        timed = batches - 1
        most = timed if repeat == 1 else 4 * timed
        timing = candidate.time("each", deal.question, deal.check, calls=timed, most=most, seconds=20.0, packing=False)
        publish(timing.seconds, metrics={"seconds": timing.seconds})


class Deal:
    """Who takes from a pack that is used up gets the next one, dealt again."""

    def __init__(self, known: Sequence[Any], batches: int, repeat: int, rng: random.Random) -> None:
        self._known = known
        self._batches = batches
        self._repeat = repeat
        self._rng = rng
        made = [at for at, it in enumerate(known) if len(it) > 5 and it[5] is True]
        enough = len(made) >= batches - 1
        self._timed = made if enough else list(range(len(known)))
        first = sorted({*range(len(known))}.difference(made))
        self._left: list[list[int]] = [first] if enough and first else []
        # The first batch is not one of those that are dealt.
        self._apart = len(self._left)
        self._asked: list[int] = []

    def question(self, rng: random.Random) -> Sequence[Any]:
        del rng  # one deal is one draw
        if not self._left:
            self._left = self._dealt()
        self._asked = self._left.pop()
        return ([self._known[at][:2] for at in self._asked],)

    def _dealt(self) -> list[list[int]]:
        """The slow ones are spread first, so that every batch has as much work as another."""
        order = sorted(self._timed, key=lambda at: (-self._known[at][4], self._rng.random()))
        batches: list[list[int]] = [[] for _ in range(self._batches - self._apart)]
        for first in range(0, len(order), len(batches)):
            row = self._rng.sample(batches, len(batches))
            for batch, at in zip(row, order[first : first + len(batches)]):  # noqa: B905  # the last row is shorter
                batch += [at] * self._repeat
        for batch in batches:
            self._rng.shuffle(batch)
        return [batch for batch in batches if batch]

    def check(self, answers: Any, questions: Any) -> None:
        del questions
        if type(answers) is not list or len(answers) != len(self._asked):
            raise BadOutput("not one answer to each question")
        for at, answer in zip(self._asked, answers):  # noqa: B905  # their lengths are the same
            arguments, keywords, well, expected = self._known[at][:4]
            if type(answer) is not list or len(answer) != 2 or answer[0] is not well or not same(answer[1], expected):
                raise BadOutput(f"{_told(arguments, keywords)} is not answered as before")


def _told(arguments: Any, keywords: Any) -> str:
    """Which question it was. Its answer is not told: notes are shown to those who propose."""
    text = ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])
    return f"a call with ({text if len(text) <= 80 else text[:79] + '…'})"
