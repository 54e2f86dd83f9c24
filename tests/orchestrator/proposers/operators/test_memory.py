"""What is learnt of the past: a function of what ended, and of nothing else."""

import random
from dataclasses import replace

from orchestrator.proposers import Tried
from orchestrator.proposers.operators.edit import Edit, read_description
from orchestrator.proposers.operators.memory import Memory

TRIED = Tried("1.1", 1, "1", "constant", "changed 0.5 to 0.4 in f(), line 3 of a.py", None, (2.0,), (1.0,))


def many(count: int, seed: int = 1) -> list[Tried]:
    rng = random.Random(seed)
    operators = ("constant", "numbers", "comparison", "line number")
    return [
        replace(
            TRIED,
            node=f"1.{number}",
            number=number,
            operator=rng.choice(operators),
            description=f"changed {rng.randint(0, 9)} to 3 in {rng.choice('fgh')}(), line 3 of {rng.choice('ab')}.py",
            merits=rng.choice((None, (rng.random(),), (0.5,))),
            parent_merits=(0.5,),
        )
        for number in range(1, count + 1)
    ]


def learnt(ended: list[Tried]) -> dict[str, object]:
    memory = Memory()
    memory.learn(ended)
    return vars(memory)


def test_steps_follow_success() -> None:
    """A success makes steps larger, a failure smaller; one in five leaves them, and so does what has no effect."""
    worse = replace(TRIED, merits=(0.5,))
    for ended, low, high in (
        ([TRIED], 0.7, 0.8),
        ([worse], 0.4, 0.49),
        ([worse, worse, TRIED, worse, worse], 0.4999, 0.5001),
        ([replace(TRIED, merits=(1.0,))] * 9, 0.5, 0.5),
        ([worse] * 500, 1e-4, 1e-4),
        ([TRIED] * 500, 2.0, 2.0),
    ):
        memory = Memory()
        memory.learn(ended)
        assert low <= memory.step("a.py", "real") <= high
        assert memory.step("b.py", "real") == memory.step("a.py", "whole") == 0.5


def test_hope_in_a_place() -> None:
    """Each change without any effect makes a place less likely to matter, but never lets go of it; one that had an
    effect settles it. What is under way counts a little, and a place where nothing was tried is an even bet.
    """
    same, hopes = replace(TRIED, merits=(1.0,)), []
    for count in range(6):
        memory = Memory()
        memory.learn([same] * count)
        hopes.append(memory.hope("a.py", "f()"))
        assert memory.hope("a.py", "f()", under_way=2) == memory.hope("a.py", "f()", under_way=200) or count < 4
        assert memory.hope("b.py", "f()") == 0.5 > memory.hope("b.py", "f()", under_way=1)
    assert memory.of_owner("a.py", "f()") < 0.5, "it is tried half as often at most"
    assert hopes == sorted(hopes, reverse=True)
    assert hopes[0] == 0.5
    assert hopes[2] < 0.2
    assert hopes[5] == 0.05
    for proof in (
        TRIED,
        replace(TRIED, merits=(0.5,)),
        replace(TRIED, merits=None),
        replace(TRIED, parent_merits=None),
    ):
        memory.learn([*[same] * 9, proof, same])
        assert memory.hope("a.py", "f()", under_way=9) == 1.0


def test_donors_are_those_that_improved() -> None:
    """The best first, with the last ones; never the node that is built on."""
    ended = [replace(TRIED, node=f"1.{n}", merits=(1.0 + n % 17,)) for n in range(1, 40)]
    memory = Memory()
    memory.learn([*ended, replace(TRIED, node="1.99", merits=(0.0,))])
    names = [known.node for known in memory.donors("1.33")]
    assert (names[0], len(names) <= 12) == ("1.16", True)
    assert set(names) & {"1.39", "1.33", "1.99"} == {"1.39"}
    assert memory.improving_parent("1.33") == "1"
    assert memory.improving_parent("1.99") is None
    points = Memory()
    points.learn([replace(TRIED, params={"x": 1}, operator="tpe", description="x=1")])
    assert (points.of_file(""), [known.node for known in points.donors("1")]) == (1.0, ["1.1"]), "no places are learnt"


def test_a_fresh_memory_knows_the_same() -> None:
    """Whether it was told step by step or all at once, and whatever before: a new cohort begins a new list."""
    ended = many(300)
    slowly = Memory()
    for count in range(0, 301, 7):
        slowly.learn(ended[:count])
    slowly.learn(ended)
    other = Memory()
    other.learn(many(200, seed=2))
    other.learn(ended)
    assert vars(slowly) == learnt(ended) == vars(other)
    for shorter in (ended[:20], []):
        other.learn(shorter)
        assert vars(other) == learnt(shorter)


class Counting(list[Tried]):
    """Counts how often it is looked into."""

    looks = 0

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        self.looks += 1
        return super().__getitem__(at)


def test_cost_is_flat() -> None:
    """After ten thousand attempts, learning of one more looks at a handful of them."""
    ended = Counting(many(10_000))
    memory = Memory()
    memory.learn(ended)
    ended.append(TRIED)
    ended.looks = 0
    memory.learn(ended)
    assert ended.looks <= 4


def test_descriptions_of_others() -> None:
    """What an operator did not write is read as nothing, however it looks; ours are short, even with long words."""
    for text in ("", "layout=square, rows=5", "in line x of y", "changed a to b", "x" * 500, "in , line 3 of "):
        assert read_description(text).owner == ""
        assert read_description(text).old == ""
    edit = Edit(b"", "x" * 1000, 10**6, "f" * 60 + "()")
    for path in ("p" * 240, "\u200b" * 240, "\U000e0001" * 200):
        assert len(edit.description(path)) <= 500
