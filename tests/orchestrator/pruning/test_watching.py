"""Curves, crowds and watches: bounded whatever comes, independent of order, and looking only when it is time."""

import itertools
import random
from collections.abc import Sequence

import pytest

from orchestrator.domain.reports import MOST_POINTS, BadReport, Curve, Point
from orchestrator.pruning import Crowd, Decision, Peer, Peers, Watch
from orchestrator.pruning.crowd import MOST_PEERS
from orchestrator.pruning.watch import is_spared
from tests.chance import at_least, at_most


@pytest.mark.parametrize("count", [65, 1000, 30_000])
def test_long_curves_are_thinned(count: int) -> None:
    """As long as there are few points, all of them are kept; of a long curve at least half of what there may be, evenly
    spread, the first and the last among them. A flood of reports does not make a flood of looks.
    """
    curve = Curve()
    kept = sum(curve.add(step, float(step)) for step in range(MOST_POINTS))
    assert curve.points == [(step, float(step)) for step in range(MOST_POINTS)]
    kept += sum(curve.add(step, float(step)) for step in range(MOST_POINTS, count))
    found = [step for step, _ in curve.points]
    assert MOST_POINTS // 2 <= len(found) <= MOST_POINTS + 1
    assert (found[0], found[-1]) == (0, count - 1)
    assert len({after - before for before, after in itertools.pairwise(found[:-1])}) == 1
    assert kept < 20 * MOST_POINTS
    record = curve.record()
    assert record
    assert record.count == count
    rule = Eager(False)
    heard(Watch(rule, Peers), list(range(count)))
    assert len(rule.asked) < 20 * MOST_POINTS


def test_bad_reports_change_nothing() -> None:
    """A step that was over, or comes twice, is counted alone. Who says nothing has no record; nonsense makes one."""
    curve = Curve()
    curve.refuse(BadReport.UNREADABLE, 0)
    assert curve.record() is None
    curve.refuse(BadReport.UNREADABLE, 7)
    assert curve.record()
    for step, value in [(3, 1.0), (3, 2.0), (1, 3.0), (4, 4.0)]:
        curve.add(step, value)
    record = curve.record()
    assert record
    assert (record.points, record.refused) == (((3, 1.0), (4, 4.0)), 9)
    assert record.bad == {BadReport.AGAIN: 1, BadReport.BACK: 1, BadReport.UNREADABLE: 7}


def crowd_of(order: list[int]) -> Crowd:
    crowd = Crowd()
    for number in order:
        points: list[Point] = [(0, float(number))]
        crowd.pruned(f"1.{number}-1", points) if number % 3 == 0 else crowd.scored(f"1.{number}-1", points, number % 97)
    return crowd


def test_crowds_do_not_depend_on_order() -> None:
    """After a resume the peers are the same, in whatever order the rows are read; and they are a sample of all."""
    there = list(range(5000))
    back = random.Random(3).sample(there, len(there))
    one, other = crowd_of(there).peers(), crowd_of(back).peers()
    assert {peer.trial for peer in one.scored} == {peer.trial for peer in other.scored}
    assert {peer.trial for peer in one.pruned} == {peer.trial for peer in other.pruned}
    assert (one.best, one.count) == (other.best, other.count)
    assert len(one.scored) == len(one.pruned) == MOST_PEERS
    mean = sum(peer.last[1] for peer in one.scored) / MOST_PEERS
    assert 2200 < mean < 2800


def test_the_best_is_the_judges() -> None:
    """The best peer has the best score; what it reported of itself does not matter, and the best is never lost."""
    crowd = Crowd()
    crowd.scored("1.1-1", [(0, 1e9)], 1.0)
    crowd.scored("1.2-1", [(0, -1e9)], 2.0)
    for number in range(3, 2000):
        crowd.scored(f"1.{number}-1", [(0, 0.0)], 0.0)
    best = crowd.peers().best
    assert best
    assert best.trial == "1.2-1"


class Eager:
    """Ends everything, and notes when it was asked."""

    def __init__(self, answer: bool) -> None:
        self.asked: list[int] = []
        self._answer = answer

    def decide(self, curve: Sequence[Point], peers: Peers) -> Decision:
        self.asked.append(curve[-1][0])
        return Decision(self._answer, "because")


def heard(watch: Watch, steps: list[int]) -> list[int]:
    """The steps at which the watch has enough."""
    curve = Curve()
    return [step for step in steps if curve.add(step, 0.0) and watch.enough(curve)]


@pytest.mark.parametrize(
    ("warmup", "every", "steps", "looks"),
    [
        (0, 1, [0, 1, 2], [0, 1, 2]),
        (2, 1, [0, 1, 2, 3], [2, 3]),
        (2, 3, list(range(10)), [2, 5, 8]),
        (5, 10, [0, 7, 12, 16, 40, 44], [7, 16, 40]),
        (100, 1, list(range(50)), []),
    ],
)
def test_looks(warmup: int, every: int, steps: list[int], looks: list[int]) -> None:
    """From the warm-up on, once in so many steps, at the first report that there is."""
    rule = Eager(False)
    assert heard(Watch(rule, Peers, warmup=warmup, every=every), steps) == []
    assert rule.asked == looks


def test_enough_once() -> None:
    """The order is given once, then nobody looks; a spared trial goes on, and where it would have ended is known."""
    rule = Eager(True)
    watch = Watch(rule, Peers, warmup=1)
    assert heard(watch, [0, 1, 2, 3]) == [1]
    assert rule.asked == [1]
    assert (watch.look.step, watch.look.value, watch.look.why, watch.look.spared) == (1, 0.0, "because", False)
    spared = Watch(Eager(True), Peers, spared=True)
    assert heard(spared, [0, 1, 2]) == []
    assert (spared.look.spared, spared.look.step) == (True, 0)


@pytest.mark.parametrize(("last", "ended"), [(3, []), (4, [3]), (9, [3])])
def test_the_last_step_ends_nothing(last: int, ended: list[int]) -> None:
    """A trial that got as far as the longest one before it has nothing left that could be saved."""
    longest = Peer("1.1-1", ((0, 1.0), (last, 1.0)))
    others = (Peer("1.2-1", ((0, 1.0), (1, 1.0))),)
    assert heard(Watch(Eager(True), lambda: Peers(scored=(*others, longest)), warmup=3), [0, 1, 2, 3]) == ended
    assert heard(Watch(Eager(True), lambda: Peers(scored=others, baseline=longest), warmup=3), [0, 1, 2, 3]) == ended


def test_spared_by_lot() -> None:
    """The share that was asked for, the same each time, another with another seed; none and all are possible."""
    names = [f"1.{number}-1" for number in range(4000)]
    spared = [is_spared(1, name, 0.1) for name in names]
    assert at_least(4000, 0.1) <= sum(spared) <= at_most(4000, 0.1)
    assert spared == [is_spared(1, name, 0.1) for name in names]
    assert spared != [is_spared(2, name, 0.1) for name in names]
    assert not any(is_spared(1, name, 0.0) for name in names)
    assert all(is_spared(1, name, 1.0) for name in names)
