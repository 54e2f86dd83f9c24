"""TPE, CMA-ES, the Gaussian process, Thompson sampling and differential evolution, all by the same rules."""

import random
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from orchestrator.domain.metric import Rule
from orchestrator.domain.proposal import Value
from orchestrator.proposers import Exhausted, Random
from orchestrator.proposers.samplers import Sampler, make_sampler
from orchestrator.proposers.samplers.thompson import arms_of
from orchestrator.proposers.space import random_point
from orchestrator.task import Bool, Choice, Float, Int, TaskError, is_point, load_task
from orchestrator.wiring.proposers import make_proposer
from tests.chance import at_most
from tests.examples.judging import EXAMPLES
from tests.orchestrator.proposers.pasts import (
    ONE,
    Shown,
    Space,
    asked,
    middle,
    point_of,
    ranked,
    searched,
    tried,
)

pytestmark = pytest.mark.touching("samplers")

# What a sampler proposes hangs on the last bit of every number before, so another platform sees another search. The
# means and deviations below are those of 4 (gp) to 40 seeds; bounds lie 4.5 deviations off, or more.
ALL = ("tpe", "cmaes", "gp", "thompson", "de")

SPACE: Space = {
    "kind": Choice(values=(1, True, "x")),
    "few": Int(low=2, high=20, step=3),
    "rows": Int(low=1, high=8, when={"kind": ("x", 1)}),
    "rate": Float(low=1e-4, high=10, log=True),
    "shift": Float(low=-1, high=1, when={"flag": (True,), "rows": (4, 5)}),
    "flag": Bool(),
}
SMALL: Space = {"a": Int(low=0, high=3), "b": Bool(), "c": Choice(values=(1, 1.0)), "d": Bool(when={"b": (True,)})}


def quality(point: Mapping[str, Value]) -> tuple[float, ...] | None:
    """Fails in one corner, so that there are attempts without a score."""
    if point["kind"] is True and point["few"] == 2:
        return None
    return (float(point["few"]) - float(point["rate"]) ** 2 + float(point.get("rows", 0)), float(point["few"]))


def drawn(count: int, name: str = "tpe") -> Shown:
    """Points that the sampler itself could have proposed."""
    rng = random.Random(3)
    space = arms_of(SPACE) if name == "thompson" else SPACE
    points = [random_point(space, rng) for _ in range(count)]
    return Shown([tried(number, point, quality(point)) for number, point in enumerate(points, 1)])


async def one(sampler: Sampler, number: int, past: Shown, seed: int = 7, **changes: object) -> dict[str, Value]:
    (proposal,) = await sampler.propose(asked(number, past, seed, **changes))
    return point_of(proposal)


@pytest.mark.parametrize("rule", [Rule.LEXICOGRAPHIC, Rule.PARETO])
@pytest.mark.parametrize("name", ALL)
async def test_a_resume_is_exact(name: str, rule: Rule) -> None:
    """Who has seen the campaign grow and who sees it for the first time propose the same, wherever it is cut."""
    ranking = ranked(rule, 1.0, 2.0)
    whole = drawn(270, name)
    old, past = make_sampler(name, SPACE, ranking), Shown()
    for cut in (0, 3, 12, 40, 129, 251, 270):
        past.ended += whole.ended[len(past.ended) : cut]
        past.running = [tried(999, random_point(SPACE, random.Random(cut)))]
        here = await one(old, cut + 1, past)
        again = Shown(past.ended, past.running)
        assert here == await one(make_sampler(name, SPACE, ranking), cut + 1, again), cut
        assert is_point(SPACE, here)


@pytest.mark.parametrize("name", ALL)
async def test_another_seed_number_or_question(
    name: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each gives another point. No library logs anything: nobody asked for that."""
    past = drawn(30, name)
    sampler = make_sampler(name, SPACE, ONE)
    first = await one(sampler, 31, past)
    assert first != await one(sampler, 31, past, seed=8)
    assert first != await one(sampler, 32, past)
    assert first != await one(sampler, 31, past, again=1)
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


@pytest.mark.parametrize("name", ALL)
async def test_another_past_is_looked_at_from_its_beginning(name: str) -> None:
    """What was kept of a first campaign does not reach a second one."""
    sampler = make_sampler(name, SPACE, ONE)
    await one(sampler, 41, drawn(40, name))
    other = Shown([tried(it.number, it.params, (float(it.number),)) for it in drawn(60, name).ended])
    assert await one(sampler, 61, other) == await one(make_sampler(name, SPACE, ONE), 61, other)
    other.ended[10:] = other.ended[10:30]
    assert await one(sampler, 31, other) == await one(make_sampler(name, SPACE, ONE), 31, other)
    shorter = Shown(other.ended[:20])
    assert await one(sampler, 21, shorter) == await one(make_sampler(name, SPACE, ONE), 21, shorter)


@pytest.mark.parametrize("name", ALL)
async def test_all_points_of_a_small_space(name: str) -> None:
    """Three at a time, some of them still running: every point once, then the end in one sentence."""
    sampler = make_sampler(name, SMALL, ONE)
    past, seen = Shown(), list[str]()
    while len(seen) < 4 * 3 * 2:
        for proposal in await sampler.propose(asked(len(seen), past, count=3)):
            seen.append(repr(sorted(point_of(proposal).items())))
            past.running.append(tried(len(seen), point_of(proposal)))
        while len(past.running) > 4:
            ended = past.running.pop(0)
            past.ended.append(tried(ended.number, ended.params, (float(len(past.ended)),)))
    assert len(set(seen)) == len(seen) == 24
    with pytest.raises(Exhausted) as told:
        await sampler.propose(asked(25, past, count=3))
    assert str(told.value) == "all 24 points of the space are tried"


@pytest.mark.parametrize("name", [it for it in ALL if it != "thompson"])  # which has no real numbers
async def test_a_branch_without_points_left(name: str) -> None:
    """Where a real number is left to choose, there is always another point."""
    space: Space = {"many": Int(low=0, high=400), "rate": Float(low=0, high=1, when={"many": (0,)})}
    past = Shown([tried(at, {"many": at}, (float(at),)) for at in range(1, 401)])
    point = await one(make_sampler(name, space, ONE), 401, past)
    assert point["many"] == 0
    assert is_point(space, point)


@pytest.mark.parametrize("name", ALL)
async def test_many_at_a_time(name: str) -> None:
    """Twenty that run at once are twenty points."""
    past = drawn(60, name)
    sampler = make_sampler(name, SPACE, ONE)
    for number in range(61, 81):
        point = await one(sampler, number, past)
        assert point not in [it.params for it in (*past.ended, *past.running)]
        past.running.append(tried(number, point))


@pytest.mark.parametrize("name", ALL)
async def test_what_fails_is_left_alone(name: str) -> None:
    """Where a half of the space fails, few of the later points lie there.

    Of 30 it is 1.1 ± 1.4 for tpe, 4.3 ± 0.9 for gp, and 1.9 ± 3.3 for cmaes, which sometimes has 14: six searches are
    counted together. Chance alone breaks the bound less than once in 100,000 times; draws that learn nothing have 15.
    """
    space: Space = {"x": Float(low=0, high=1), "y": Float(low=0, high=1), "z": Float(low=0, high=1)}

    def half(point: Mapping[str, Value]) -> tuple[float, ...] | None:
        return None if float(point["x"]) > 0.5 else (-((float(point["y"]) - 0.3) ** 2),)

    seeds = range(6 if name == "cmaes" else 1)
    pasts = [await searched(make_sampler(name, space, ONE), half, 70, seed) for seed in seeds]
    assert sum(it.merits is None for past in pasts for it in past.ended[40:]) <= 10 * len(seeds)


@pytest.mark.parametrize("name", ALL)
async def test_what_teaches_nothing(name: str) -> None:
    """An attempt without a point, or with one of another space, does no harm; of failures alone, points are drawn."""
    past = drawn(30, name).ended
    strange = [tried(90, None, (1e9,)), tried(91, {"other": 3}, (1e9,)), tried(92, {"kind": "y"}, (1e9,))]
    sampler = make_sampler(name, SPACE, ONE)
    await one(sampler, 21, Shown([*past[:20], *strange], strange))
    assert is_point(SPACE, await one(sampler, 22, Shown([*past[:20], *strange, *past[20:]], strange)))
    failed = Shown([tried(it.number, it.params) for it in past])
    assert is_point(SPACE, await one(make_sampler(name, SPACE, ONE), 31, failed))


@pytest.mark.parametrize("name", ALL)
async def test_it_learns(name: str) -> None:
    """On a bowl with a choice the middle one of its last 20 draws is nearer to the bottom than that of random draws.

    By a factor of e to the 1.8 ± 0.36 (tpe), 5.3 ± 1.2 (cmaes) and 3.5 ± 0.75 (gp): chance alone breaks this less than
    once in 100,000 times. The best draw of all is luck: tpe's is the worse one in six searches of 32.
    """
    space: Space = {
        "x": Float(low=-5, high=10),
        "y": Float(low=0.01, high=10, log=True),
        "n": Int(low=0, high=50),
        "k": Choice(values=("a", "b", "c")),
    }

    def bowl(point: Mapping[str, Value]) -> tuple[float, ...]:
        off = (float(point["x"]) - 2) ** 2 + (float(point["y"]) - 3) ** 2 + (int(point["n"]) - 17) ** 2 / 10
        return (-off - 5 * (point["k"] != "b"),)

    attempts = 150 if name == "cmaes" else 60  # it takes some generations
    past = await searched(make_sampler(name, space, ONE), bowl, attempts, 1)
    assert middle(past) > middle(await searched(Random(space, branching=False), bowl, attempts, 1))


@pytest.mark.parametrize("name", ALL)
async def test_weights_decide(name: str) -> None:
    """Of two metrics that pull apart, the heavier one wins; left to right, the first.

    The middle one of the last draws is 0.02 ± 0.025 off, 0.002 ± 0.003 for gp: chance alone breaks the bound once in a
    million times. Draws that learn nothing are 0.3 off. What gp draws is dear and soon learnt: it has fewer attempts.
    """
    space: Space = {"x": Float(low=0, high=1, points=21), "y": Float(low=0, high=1, points=21)}

    def apart(point: Mapping[str, Value]) -> tuple[float, ...]:
        return (-abs(float(point["x"]) - 0.2), -abs(float(point["x"]) - 0.8))

    for ranking, wanted in ((ranked(Rule.WEIGHTED, 1.0, 9.0), 0.8), (ranked(Rule.LEXICOGRAPHIC, 1.0, 9.0), 0.2)):
        past = await searched(make_sampler(name, space, ranking), apart, 30 if name == "gp" else 60)
        late = sorted(float(it.params["x"]) for it in past.ended[-20:] if it.params)
        assert late[10] == pytest.approx(wanted, abs=0.2)


@pytest.mark.parametrize("name", [it for it in ALL if it != "thompson"])  # see below
async def test_pareto_keeps_to_the_front(name: str) -> None:
    """Where two metrics pull apart, points lie between what is best for the one and for the other.

    Of 30 late ones it is 24.6 ± 1.7 for tpe, 29.6 ± 1.3 for cmaes and 28.5 ± 0.9 for gp; of blind draws more than the
    bound are near once in 100,000 times.
    """
    space: Space = {"x": Float(low=0, high=1, points=21), "y": Float(low=0, high=1, points=21)}

    def front(point: Mapping[str, Value]) -> tuple[float, ...]:
        x, y = float(point["x"]), float(point["y"])
        return (-((x - 0.4) ** 2) - y**2, -((x - 0.6) ** 2) - y**2)

    past = await searched(make_sampler(name, space, ranked(Rule.PARETO, 1.0, 1.0)), front, 60 if name == "gp" else 90)
    late = [it.params for it in past.ended[-30:] if it.params]
    near = [it for it in late if 0.3 < float(it["x"]) < 0.7 and float(it["y"]) < 0.3]
    assert len(near) > at_most(30, 0.12)  # which is how much of the square is as near as that


def test_cmaes_needs_a_number() -> None:
    """It says so, and what to do."""
    with pytest.raises(ValueError, match="needs an int or a float without a condition; add one, or use tpe"):
        make_sampler("cmaes", {"a": Bool(), "b": Int(low=0, high=9, when={"a": (True,)})}, ONE)


def test_thompson_needs_few_values() -> None:
    """It says so, of the parameter that has too many, and what to do; a number with `points` has as many values."""
    wanted = "an arm for each value, and n has 1,000 of them; set its points (256 at most), or use tpe"
    with pytest.raises(ValueError, match=re.escape(wanted)):
        make_sampler("thompson", {"n": Int(low=1, high=1000)}, ONE)
    with pytest.raises(TaskError, match=r"^parameters\.space: the proposer thompson has an arm for each value"):
        make_proposer("thompson", load_task(EXAMPLES / "circle_packing"))


async def test_thompson_draws_points_of_the_grid() -> None:
    """The values are those that a grid takes, and the end says so."""
    space: Space = {"n": Int(low=1, high=1000, points=3), "rate": Float(low=0.01, high=1, log=True, points=3)}
    past = await searched(make_sampler("thompson", space, ONE), lambda point: (float(point["n"]),), 9)
    assert {it.params["n"] for it in past.ended if it.params} == {1, 501, 1000}
    assert {f"{it.params['rate']:.2f}" for it in past.ended if it.params} == {"0.01", "0.10", "1.00"}
    with pytest.raises(Exhausted, match=r"^all 9 points of the grid are tried$"):
        await make_sampler("thompson", space, ONE).propose(asked(10, past))


WORDS: Space = {name: Choice(values=tuple("abcde")) for name in "uvwxyz"}


async def test_thompson_learns_what_each_value_is_worth() -> None:
    """Both good values come often (15.6 ± 2.3 of 20); only the order of scores counts, whatever their scale."""

    def score(point: Mapping[str, Value]) -> tuple[float, ...]:
        return (float(point["w"] == "b") + float(point["x"] == "c"),)

    past = await searched(make_sampler("thompson", WORDS, ONE), score, 60)
    late = [it.params for it in past.ended[-20:] if it.params]
    assert sum(it["w"] == "b" and it["x"] == "c" for it in late) > at_most(20, 1 / 25)
    scaled = await searched(make_sampler("thompson", WORDS, ONE), lambda point: (1e9 * score(point)[0] ** 3 - 7,), 60)
    assert [it.params for it in scaled.ended] == [it.params for it in past.ended]


async def test_a_population_follows_from_numbers_not_from_the_order_of_endings() -> None:
    """With many in flight, an attempt challenges the member that it was made for, whenever it ends."""
    space: Space = {"x": Float(low=0, high=1)}
    points = [tried(number, {"x": number / 16}, (float(number),)) for number in range(1, 9)]
    turned = Shown([*reversed(points)])
    for number in range(9, 17):
        assert await one(make_sampler("de", space, ONE), number, Shown(points)) == await one(
            make_sampler("de", space, ONE), number, turned
        )


async def test_a_population_that_has_settled_starts_again() -> None:
    """All but the best member are drawn again."""
    space: Space = {"x": Float(low=0, high=1)}
    past = Shown([tried(number, {"x": 0.5 + number / 1e6}, (float(number == 3),)) for number in range(1, 9)])
    sampler = make_sampler("de", space, ONE)
    operators = [(await sampler.propose(asked(number, past)))[0].operator for number in range(9, 17)]
    assert operators == ["random"] * 8
    past.ended += [tried(number, {"x": number / 20}, (0.0,)) for number in (9, 10, 12, 13, 14, 15, 16)]
    assert (await sampler.propose(asked(19, past)))[0].operator == "de"


def test_libraries_are_loaded_when_a_proposer_is_wanted() -> None:
    """Not before: every command would wait for them."""
    code = (
        "import sys\nfrom tests.clicking import every_command\nevery_command()\n"
        "print([it for it in ('optuna', 'numpy', 'cmaes', 'libcst') if it in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ALL)
def test_a_task_names_it(name: str) -> None:
    """By the same names as on the command line."""
    proposer = make_proposer(name, load_task(EXAMPLES / ("digits" if name == "thompson" else "circle_packing")))
    assert isinstance(proposer, Sampler)
    assert (proposer.serial, proposer.branching, proposer.exhausted(1)) == (False, False, None)
