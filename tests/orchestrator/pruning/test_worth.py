"""What a peer's curve is worth among others: the order of the verdicts holds it down, on any scale."""

import math
import random
from dataclasses import replace

import pytest

from orchestrator.domain.metric import Goal
from orchestrator.domain.reports import MOST_POINTS
from orchestrator.pruning import Peer, Peers
from orchestrator.pruning.crowd import MOST_PEERS
from orchestrator.pruning.optunas import Halving, Median
from orchestrator.pruning.wilcoxon import Wilcoxon
from orchestrator.pruning.worth import bar, by_verdict, trusted, worth

BOTH = pytest.mark.parametrize("goal", list(Goal))


def flat(name: str, value: float, merit: float, goal: Goal = Goal.HIGHER, steps: int = 3) -> Peer:
    turned = value if goal is Goal.HIGHER else -value
    return Peer(name, tuple((step, turned) for step in range(steps)), merit)


def of(*scored: Peer, baseline: Peer | None = None, pruned: tuple[Peer, ...] = ()) -> Peers:
    return Peers(scored, pruned, max(scored, key=lambda it: it.merit, default=None), len(scored), baseline)


def turned(goal: Goal, *values: float) -> list[float]:
    return [value if goal is Goal.HIGHER else -value for value in values]


@BOTH
def test_in_the_order_of_verdicts(goal: Goal) -> None:
    """Curves in the order of their verdicts are worth what they say; that scores are on another scale is no matter."""
    peers = of(*(flat(str(n), n / 10, 1e6 * n**3, goal) for n in range(9)))
    found = worth(peers, goal, 1)
    assert sorted(found.scored) == sorted(turned(goal, *(n / 10 for n in range(9))))
    assert (found.sure, found.doubted, trusted(peers, goal, 1)) == (9, 0, 9)


@BOTH
def test_promises_more_than_it_kept(goal: Goal) -> None:
    """A curve above those that were judged better is worth the middle one of them, and is not counted on."""
    honest = [flat(str(n), n / 10, n, goal) for n in range(1, 6)]
    found = worth(of(*honest, flat("forged", 99, 0.5, goal)), goal, 1)
    assert sorted(found.scored) == sorted(turned(goal, 0.1, 0.2, 0.3, 0.3, 0.4, 0.5))
    assert (found.sure, found.doubted) == (5, 1)


@BOTH
def test_many_forged_never_raise_the_median(goal: Goal) -> None:
    """However many worthless candidates forge, and whatever, the median of the honest ones does not become harder."""
    draw = random.Random(2)
    for _ in range(30):
        honest = [flat(str(n), n + draw.random(), n, goal) for n in range(7)]
        forged = [flat(f"f{n}", draw.uniform(-9, 99), -1 - draw.random(), goal) for n in range(draw.randint(1, 30))]
        curve = [(0, value := turned(goal, draw.uniform(-1, 8))[0]), (1, value)]
        alone = Median(goal, 5).decide(curve, of(*honest)).prune
        assert alone or not Median(goal, 5).decide(curve, of(*honest, *forged)).prune


def test_the_baseline_holds_them_down() -> None:
    """Where all that were scored are worse than the baseline, none is worth more than it; what ties with it neither."""
    forged = [flat("a", 9, 0.0), flat("b", 9, -1.0)]
    found = worth(of(*forged, baseline=flat("0", 0.4, 0.0)), Goal.HIGHER, 1)
    assert (found.scored, found.sure) == ([0.4, 0.4], 0)


def test_a_silent_baseline() -> None:
    """Nothing is known of what those worse than a silent baseline could have reported; better ones are believed."""
    silent = Peer("0", (), 1.0)
    assert worth(of(flat("a", 9, 0.0), baseline=silent), Goal.HIGHER, 1).scored == []
    assert worth(of(flat("a", 9, 2.0), baseline=silent), Goal.HIGHER, 1).scored == [9]
    assert bar(of(flat("a", 9, 0.0), flat("b", 9, -1.0), baseline=silent), Goal.HIGHER, 1) is None


def test_over_before() -> None:
    """Better ones that were over before a step hold down those that tell of more steps, and are not at it."""
    found = worth(of(flat("a", 0.5, 2.0), flat("b", 9, 1.0, steps=50)), Goal.HIGHER, 40)
    assert (found.scored, found.sure, found.doubted) == ([0.5], 0, 1)


@BOTH
def test_one_alone_raises_no_bar(goal: Goal) -> None:
    """The best one's curve counts up to what another is worth: a single champion that forges ends nobody."""
    best = flat("best", 99, 9, goal)
    assert bar(of(best), goal, 1) is None
    assert [bar(of(best, flat("a", 0.5, 1, goal)), goal, 1)] == turned(goal, 0.5)
    worthless = [flat(str(n), 99, -n, goal) for n in range(1, 5)]
    assert [bar(of(best, *worthless, baseline=flat("0", 0.4, 0, goal)), goal, 1)] == turned(goal, 0.4)
    assert [bar(of(flat("a", 0.3, 2, goal), flat("b", 0.5, 1, goal)), goal, 1)] == turned(goal, 0.3)


@BOTH
def test_the_bar_is_the_most_that_another_is_worth(goal: Goal) -> None:
    """It is found without the whole order, and is what the whole order says, ties and silent ones included."""
    draw, seen = random.Random(goal), set()
    for _ in range(150):
        scored = [_drawn(draw, str(number)) for number in range(draw.randint(1, 6))]
        baseline = draw.choice([None, _drawn(draw, "0"), Peer("0", (), draw.randint(0, 3))])
        peers = of(*scored, baseline=baseline)
        sign = 1 if goal is Goal.HIGHER else -1
        for step in range(5):
            mine = peers.best.by(step) if peers.best else None
            line = by_verdict([it for it in scored if it is not peers.best], baseline, sign, step)
            most = max((it.worth for it in line if math.isfinite(it.worth)), default=None)
            expected = None if mine is None or most is None else sign * min(sign * mine, most)
            assert bar(peers, goal, step) == expected, (peers, step)
            seen.add(expected)
    assert len(seen) > 3


def _drawn(draw: random.Random, name: str) -> Peer:
    steps = sorted(draw.sample(range(5), draw.randint(1, 5)))
    return Peer(name, tuple((step, draw.randint(0, 3)) for step in steps), draw.randint(0, 3))


def test_t82_a_look_among_many_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signed-rank look at a whole curve, which is done on the loop, does not ask every peer for every step."""
    steps = range(MOST_POINTS)
    draw = random.Random(1)
    scored = [Peer(str(n), tuple((step, draw.random()) for step in steps), n) for n in range(MOST_PEERS)]
    peers = of(*scored, baseline=flat("0", 0.0, -1.0, steps=MOST_POINTS))
    asked: list[str] = []
    by = Peer.by

    def counted(peer: Peer, step: int) -> float | None:
        asked.append(peer.trial)
        return by(peer, step)

    monkeypatch.setattr(Peer, "by", counted)
    assert Wilcoxon(Goal.HIGHER, 4, 0.1).decide([(step, -1.0) for step in steps], peers).prune
    assert MOST_PEERS < len(asked) < 4 * MOST_PEERS


@BOTH
def test_doubt_is_scaled_to_all(goal: Goal) -> None:
    """Where only a part of the peers is here, as large a share of the others is doubted as of that part."""
    forged = [flat(f"f{n}", 99, n / 10, goal) for n in range(3)]
    here = of(flat("a", 0.5, 1, goal), *forged)
    assert trusted(here, goal, 1) == 1
    assert trusted(replace(here, count=400, memo={}), goal, 1) == 100
    assert trusted(Peers(), goal, 1) == 0


def test_poison_heals() -> None:
    """Forged curves of candidates that are good hold only until one better than they has a verdict."""
    forged = [flat("a", 99, 1.0), flat("b", 99, 2.0)]
    curve = [(0, 0.5), (1, 0.5)]
    assert Median(Goal.HIGHER, 1).decide(curve, of(*forged)).prune
    assert not Median(Goal.HIGHER, 1).decide(curve, of(*forged, flat("spared", 0.5, 3.0))).prune


def test_pruned_ones_can_not_raise_a_rung() -> None:
    """A pruned peer has no verdict: it counts for no more than the middle one of those that have, whatever it said."""
    honest = [flat(str(n), n / 10, n) for n in range(1, 6)]
    forged = tuple(Peer(f"f{n}", ((0, 99.0), (1, 99.0))) for n in range(20))
    rule, curve = Halving(Goal.HIGHER, 2, 2, 1), [(1, 0.35)]
    assert not rule.decide(curve, of(*honest)).prune
    assert not rule.decide(curve, of(*honest, pruned=forged)).prune
    assert set(worth(of(*honest, pruned=forged), Goal.HIGHER, 1).pruned) == {0.3}
