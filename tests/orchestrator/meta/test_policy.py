"""How choices follow what they earned."""

import random
from collections.abc import Callable

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Arm
from orchestrator.meta.chooser import Chooser, Learnt, Meta
from orchestrator.meta.credit import Price
from orchestrator.meta.policy import Learning, View
from orchestrator.meta.tuning import USUAL
from orchestrator.proposers import Tried
from orchestrator.proposers.operators.table import ON_CODE
from tests.orchestrator.meta.results import arm, ended

PRIOR = {"a": 1.0, "b": 1.0, "c": 2.0}
BOTH = pytest.mark.parametrize("learning", [Learning.LIFT, Learning.GRADIENT])
Gain = Callable[[Chooser, int, random.Random], float | None]


def search(meta: Meta, gain: Gain, attempts: int, past: list[Tried], lag: int = 0) -> list[Tried]:
    """Each attempt ends `lag` attempts after it was drawn."""
    rng, flying = random.Random(1), list[Tried]()
    for number in range(len(past) + 1, len(past) + attempts + 1):
        chooser = meta.chooser(past, 7, number, 0)
        chooser.choose("slot", PRIOR)
        result = ended(number, gain(chooser, number, rng))
        flying.append(Tried(**{**vars(result), "drawn": chooser.drawn}))
        past += flying[: len(flying) - lag]
        del flying[: len(flying) - lag]
    return past


def only(option: str) -> Gain:
    """One arm improves half of the time, all others never."""

    def gain(chooser: Chooser, number: int, rng: random.Random) -> float:
        del number
        assert chooser.drawn
        return float(chooser.drawn.arms["slot"].option == option and rng.random() < 0.5)

    return gain


def odds(meta: Meta, past: list[Tried]) -> dict[str, float]:
    """By what is noted of many choosers of the same past."""
    found = {}
    for number in range(200):
        chooser = meta.chooser(past, 1, number, 0)
        option = chooser.choose("slot", PRIOR)
        assert option
        assert chooser.drawn
        found[option] = chooser.drawn.arms["slot"].p
    return found


@BOTH
def test_what_pays_is_chosen(learning: Learning) -> None:
    """The one arm that improves comes more often than all others together; none of them dies out."""
    meta = Meta(Learnt(learning))
    found = odds(meta, search(meta, only("b"), 80, []))
    assert found["b"] > 0.5
    assert found["a"] >= USUAL.floor / 4
    assert sum(found.values()) == pytest.approx(1.0)


@BOTH
def test_nothing_is_learnt_from_few_results(learning: Learning) -> None:
    """Until a said number of results, the usual weights decide alone."""
    meta = Meta(Learnt(learning))
    assert odds(meta, search(meta, only("b"), USUAL.wait - 1, [])) == {"a": 0.25, "b": 0.25, "c": 0.5}


@BOTH
def test_another_past_is_learnt_again(learning: Learning) -> None:
    """One that saw the past grow, one that sees it at once and one that saw another before draw alike."""
    grown, other = Meta(Learnt(learning)), Meta(Learnt(learning))
    past = search(grown, only("b"), 40, [])
    search(other, only("a"), 20, [])
    assert odds(grown, past) == odds(Meta(Learnt(learning)), past) == odds(other, past)


@BOTH
def test_options_in_another_order_teach_the_same(learning: Learning) -> None:
    """A ledger gives them back sorted: what is learnt from that is the same to the last bit."""
    usual = {name: it.weight for name, it in ON_CODE.items()}
    views = []
    for names in (list(usual), sorted(usual)):
        past = []
        for number in range(1, 60):
            option = list(usual)[number * 5 % len(usual)]
            chosen = Arm(option=option, p=usual[option] / 16, among={name: usual[name] for name in names})
            past.append(ended(number, float(number % 3 - 1), chosen=chosen))
        views.append(Meta(Learnt(learning)).view(past, past[-9:]))
    assert views[0] == views[1]


@BOTH
def test_as_much_is_spent_on_each_before_anything_is_learnt(learning: Learning) -> None:
    """An arm that cost ten times as much comes a tenth as often, as soon as its price is known; without a price, or
    where the weights have prices in them, cost says nothing.
    """
    past = [ended(n, 0.0, chosen=arm(it), usd=usd) for n, (it, usd) in enumerate({"a": 0.1, "b": 1.0}.items(), 1)]
    evenly = {"a": 1.0, "b": 1.0, "c": 1.0}
    view = Meta(Learnt(learning, price=Price.USD)).view(past)
    assert view
    weights = view.per_cost("slot", evenly)
    assert weights["a"] == pytest.approx(10 * weights["b"])
    assert weights["c"] == 1.0, "not tried yet: as dear as the others are together"
    chooser = Meta(Learnt(learning, price=Price.USD)).chooser(past, 1, 3, 0)
    chooser.choose("slot", evenly)
    assert chooser.drawn
    assert chooser.drawn.arms["slot"].among == weights
    chooser.choose("slot", evenly, priced=True)
    assert chooser.drawn.arms["slot"].among == evenly
    free = Meta(Learnt(learning)).view(past)
    assert free
    assert free.per_cost("slot", evenly) == evenly


def test_what_is_under_way_spreads() -> None:
    """While attempts of an arm have no result, it is drawn less often; what they bring counts when they end."""
    meta = Meta(Learnt(Learning.GRADIENT))
    past = search(meta, only("b"), 40, [])
    running = [ended(number, None, chosen=arm("b", ("a", "b", "c"))) for number in range(41, 57)]
    before, meanwhile, after = (meta.view(past, it) for it in ([], running, []))
    assert before
    assert meanwhile
    assert meanwhile.odds("slot", PRIOR)["b"] < before.odds("slot", PRIOR)["b"]
    assert after == before


def test_a_change_of_regime_unlearns() -> None:
    """When another arm begins to pay, it is found as soon as the first was; with sixteen in flight, too."""
    meta = Meta(Learnt(Learning.GRADIENT))
    past = search(meta, only("b"), 100, [])
    found = odds(meta, search(meta, only("a"), 80, past))
    assert found["a"] > found["b"]
    assert odds(meta, search(meta, only("b"), 100, [], lag=16))["b"] > 0.5


def test_a_knob_stays_within_its_bounds() -> None:
    """At a bound it goes on drawing there, and comes back as soon as that pays."""
    meta = Meta(Learnt(Learning.GRADIENT))

    def bound(wants_small: bool) -> Gain:
        def gain(chooser: Chooser, number: int, rng: random.Random) -> float:
            del number, rng
            return chooser.knob("size", 1.0, 0.5, 2.0) * (-1.0 if wants_small else 1.0) + 1.0

        return gain

    past = search(meta, bound(wants_small=True), 200, [])
    values = [it.drawn.knobs["size"].value for it in past if it.drawn]
    assert min(values) == 0.5
    assert max(values) <= 2.0
    past = search(meta, bound(wants_small=False), 200, past)
    values = [it.drawn.knobs["size"].value for it in past if it.drawn]
    assert sorted(values[-40:])[20] > 1.0


def test_off_throws_the_callers_dice() -> None:
    """Without learning the weights that are given decide, as if nobody stood between; what was drawn is noted."""
    ours, theirs = random.Random(3), random.Random(3)
    chooser = Meta().chooser([ended(1, None, ending=Ending.FAILED)], 7, 2, 0)
    assert not chooser.learns
    for _ in range(50):
        option = chooser.choose("slot", {**PRIOR, "never": 0.0}, ours)
        assert option == theirs.choices([*PRIOR, "never"], [1.0, 1.0, 2.0, 0.0])[0]
    assert chooser.drawn
    assert chooser.drawn.arms["slot"].p == PRIOR[option or ""] / 4
    assert chooser.knob("size", 0.3, 0.1, 1.0) == 0.3
    assert chooser.choose("slot", {"a": 0.0}) is None


def test_a_fork_keeps_its_choices_to_itself() -> None:
    """A draw that came to nothing leaves no trace in the next one; what was chosen before both is in each."""
    chooser = Chooser(random.Random(1), View({}, {}, 0.2, 0.5))
    chooser.choose("proposer", {"code": 1.0})
    one, other = chooser.fork(), chooser.fork()
    one.knob("size", 1.0, 0.1, 10.0)
    other.choose("operator", PRIOR)
    assert other.drawn
    assert set(other.drawn.arms) == {"proposer", "operator"}
    assert not other.drawn.knobs


def test_odds_of_far_logits() -> None:
    """However far a logit has gone, all options keep a probability, and they sum up to one."""
    for far in (1_000.0, -1_000.0):
        odds = View({"slot": {"a": far, "b": 0.0}}, {}, USUAL.floor, USUAL.spread).odds("slot", PRIOR)
        assert sum(odds.values()) == pytest.approx(1.0)
        assert all(it >= USUAL.floor * PRIOR[name] / 4 for name, it in odds.items())
