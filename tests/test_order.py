"""Tests that run beside each other begin with the slow ones, file by file."""

from hypothesis import given
from hypothesis import strategies as st

from tests.order import QUICK, dealt, weight

Test = tuple[str, int, int]  # its file, its number there, its weight
TESTS = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([1, 1, 2, 10, 60])), max_size=60).map(
    lambda drawn: [(file, number, each) for number, (file, each) in enumerate(sorted(drawn))]
)


def order(tests: list[Test], workers: int) -> list[Test]:
    return dealt(tests, workers, lambda test: test[0], lambda test: test[2])


@given(TESTS, st.integers(1, 6))
def test_none_is_lost(tests: list[Test], workers: int) -> None:
    """Each runs once, and those of a file keep their order among the slow ones."""
    found = order(tests, workers)
    assert sorted(found) == sorted(tests)
    for file in "abcdef":
        slow = [test for test in found if test[0] == file and test[2] > QUICK]
        assert slow == sorted(slow)


def test_every_part_begins_with_slow_ones() -> None:
    """Files stay whole, the heaviest are dealt out first, and quick ones fill each part up to the same length."""
    slow = [
        (file, number, each)
        for file, each, count in (("a", 60, 2), ("b", 10, 6), ("c", 10, 5))
        for number in range(count)
    ]
    quick = [("d", number, QUICK) for number in range(27)]
    found = order([*quick, *slow], 2)
    first, second = found[:20], found[20:]
    assert [test[0] for test in first] == ["a"] * 2 + ["d"] * 18
    assert [test[0] for test in second] == ["b"] * 6 + ["c"] * 5 + ["d"] * 9
    assert [weight(marks) for marks in ((), ("parametrize", "asyncio"), ("docker", "e2e"))] == [1, 1, 40]
