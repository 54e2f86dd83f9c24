"""The test within blocks: what it takes to be shown, in either direction, and that no drift of the machine shows it."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from orchestrator.domain.certify import EACH, Block, Certify, CertifyRule, Stand, log_evidence, look_at_blocks, turns
from tests.chance import at_least, at_most

ORDERS = list(itertools.combinations(range(2 * EACH), EACH))
MOST = 10


def of_places(mine: tuple[int, ...]) -> Block:
    """One whose candidate has the so-manieth values of all, from the lowest on."""
    theirs = tuple((float(place),) for place in range(2 * EACH) if place not in mine)
    return Block(theirs, tuple((float(place),) for place in mine))


WON, LOST = of_places((2, 3)), of_places((0, 1))
TIED = Block(((1.0,), (1.0,)), ((1.0,), (1.0,)))


def stand(*blocks: Block, level: float = 0.0125, most: int = MOST, both: bool = False) -> Stand:
    return look_at_blocks(blocks, level, most, both=both).stand


def test_mean_of_all_orders() -> None:
    """Were both alike, the evidence would be 1 in the mean over all orders, exactly: it is a fair bet."""
    for blocks in (1, 2, 3):
        every = itertools.product([of_places(mine) for mine in ORDERS], repeat=blocks)
        found = [math.exp(look_at_blocks(it, 0.01, MOST).log) for it in every]
        assert math.fsum(found) / len(found) == pytest.approx(1.0, abs=1e-12)


def test_one_block_is_the_same_rule() -> None:
    """Within a block, ranks are weighed as Savage's ratio weighs any ranks."""
    assert look_at_blocks([WON], 0.01, MOST).log == pytest.approx(log_evidence(WON.champion, WON.candidate))


@pytest.mark.parametrize("level", [0.2, 0.02])
def test_looking_often(level: float) -> None:
    """With a look after every block, at most `level` of all histories of a no-op are ever proven, in each direction."""
    ends: Counter[Stand] = Counter()

    def go(blocks: list[Block], weight: float) -> None:
        found = look_at_blocks(blocks, level, 4, both=True).stand
        if found is not Stand.OPEN:
            ends[found] += weight  # type: ignore[assignment] # a share, and no count
            return
        for mine in ORDERS:
            go([*blocks, of_places(mine)], weight / len(ORDERS))

    go([], 1.0)
    assert sum(ends.values()) == pytest.approx(1.0)
    assert 0 < ends[Stand.PROVEN] <= level
    assert 0 < ends[Stand.WORSE] <= level


DRIFTS: dict[str, Callable[[int], float]] = {
    "linear": lambda at: 0.5 * at,
    "season": lambda at: 5.0 * math.sin(at / 10),
    "steps": lambda at: 10.0 * (at // 7 % 2),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift(drift: str) -> None:
    """However the machine drifts, no-ops prove seldom anything, and four deviations are found out, either way."""
    blind = Counter(played(drift, f"{test}", 0.0) for test in range(200))
    assert max(blind[Stand.PROVEN], blind[Stand.WORSE]) <= at_most(200, 0.05)
    assert blind[Stand.OPEN] == 0
    for better_by, due in ((4.0, Stand.PROVEN), (-4.0, Stand.WORSE)):
        assert sum(played(drift, f"{test}", better_by) is due for test in range(50)) >= at_least(50, 0.96)


def played(drift: str, coin: str, better_by: float) -> Stand:
    """One test to its end, looked at after every single run."""
    noise, at, sides = random.Random(f"{drift}/{coin}"), 0, list[dict[bool, list[tuple[float]]]]()
    found = Stand.OPEN
    while found is Stand.OPEN and len(sides) < MOST:
        sides.append({True: [], False: []})
        for mine in turns(coin, len(sides) - 1):
            sides[-1][mine].append((noise.gauss(better_by * mine, 1) + DRIFTS[drift](at),))
            at += 1
            blocks = [Block(tuple(it[False]), tuple(it[True])) for it in sides]
            found = look_at_blocks(blocks, 0.05, MOST, both=True).stand
            if found is not Stand.OPEN:
                break
    return found


def test_three_wins_do_at_first() -> None:
    """At the level of the first test, three blocks that are all won are enough, and two are not."""
    assert stand(WON, WON, WON) is Stand.PROVEN
    assert stand(WON, WON) is Stand.OPEN


def test_both_directions() -> None:
    """Lost blocks prove a candidate worse only where that is asked; else they are given up."""
    assert stand(LOST, LOST, LOST, both=True) is Stand.WORSE
    assert stand(LOST, LOST, LOST, most=4) is Stand.FUTILE
    assert stand(WON, WON, WON, both=True) is Stand.PROVEN
    assert stand(WON, LOST, WON, LOST, most=4, both=True) is Stand.FUTILE


def test_ties_prove_nothing() -> None:
    """Runs that are equal count against what is to be proven, in either direction."""
    assert stand(*[TIED] * 4, most=4, both=True) is Stand.FUTILE
    assert look_at_blocks([TIED], 0.01, MOST, both=True).log < 0


def test_incomplete_block() -> None:
    """A block is evidence when it is complete; but what is lost in it is known to be lost."""
    begun = Block((), ((9.0,), (9.0,)))
    assert look_at_blocks([WON, begun], 0.01, MOST).log == look_at_blocks([WON], 0.01, MOST).log
    assert stand(WON, WON, begun, most=3) is Stand.OPEN
    assert stand(WON, WON, Block(((5.0,),), ((1.0,),)), most=3) is Stand.FUTILE


@pytest.mark.parametrize(("most", "level"), [(1, 0.2), (2, 0.05), (2, 0.0125), (3, 0.0125)])
def test_futile_is_exact(most: int, level: float) -> None:
    """A test is given up just when no continuation could pass it: never sooner, never later."""
    every = [of_places(mine) for mine in ORDERS]
    for count in range(most + 1):
        for seen in itertools.product(every, repeat=count):
            ends = (
                look_at_blocks([*seen, *rest[:more]], level, most).log
                for rest in itertools.combinations_with_replacement(every, most - count)
                for more in range(most - count + 1)
            )
            possible = any(end >= -math.log(level) for end in ends)
            assert (stand(*seen, level=level, most=most) is not Stand.FUTILE) == possible


def test_turns() -> None:
    """Every order is about as likely, with as many runs of either side, and the same coin gives the same order."""
    drawn = Counter(turns("1/7", block) for block in range(6000))
    assert (len(drawn), set(map(sum, drawn))) == (6, {EACH})
    assert all(at_least(6000, 1 / 6) <= count <= at_most(6000, 1 / 6) for count in drawn.values())
    assert turns("1/7", 3) == turns("1/7", 3)
    assert [turns("1/7", it) for it in range(9)] != [turns("1/8", it) for it in range(9)]


@pytest.mark.parametrize(
    ("repeats", "error", "blocks"), [(1, 0.05, 3), (5, 0.05, 3), (7, 0.05, 4), (24, 0.05, 12), (5, 1e-9, 13)]
)
def test_never_too_few(repeats: int, error: float, blocks: int) -> None:
    """A test has as many blocks as its repeats need, and enough for the first test to be passed at all."""
    certify = Certify(rule=CertifyRule.NOISY, repeats=repeats, error=error)
    assert certify.blocks == blocks
    assert stand(level=certify.level(1, 1), most=blocks) is Stand.OPEN
    assert stand(level=certify.level(1, 1), most=certify.least - 1) is Stand.FUTILE
