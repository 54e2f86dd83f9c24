"""A reply counts from when it came, whatever its reader did by then, and never from before it was whole.

What a link does with it is in test_clock.py.
"""

import os
import time
from collections.abc import Iterator

import pytest

from sandbox.arrivals import Arrivals, watcher

HANG_S = 120.0


def until_seen(watched: Arrivals, count: int) -> float:
    """A moment at which so many bytes are known to have come."""
    until = time.monotonic() + HANG_S
    while watched.stamp[0] < count:
        assert time.monotonic() < until, "nobody saw them come"
        time.sleep(0.001)
    return time.monotonic()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ours, theirs = os.pipe()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def test_the_time_is_that_of_arrival(pipe: tuple[int, int]) -> None:
    watched = Arrivals(pipe[0])
    for number in (1, 2):
        before = time.monotonic()
        os.write(pipe[1], b"reply")
        seen = until_seen(watched, 5 * number)
        time.sleep(0.01)  # the reader comes late
        assert len(os.read(pipe[0], 100)) == 5
        assert before <= watched.took(5) <= seen
    watched.close()


def test_a_first_byte_in_advance_gains_nothing(pipe: tuple[int, int]) -> None:
    """Where the rest came unseen, it is the time of reading; where it was read in parts, each has its own."""
    watched = Arrivals(pipe[0])
    os.write(pipe[1], b"r")
    until_seen(watched, 1)
    with watcher().guard:  # the watcher is late
        rest = time.monotonic()
        os.write(pipe[1], b"eply")
        assert len(os.read(pipe[0], 100)) == 5
        assert watched.took(5) >= rest
    os.write(pipe[1], b"more and more")
    seen = until_seen(watched, 18)
    for count in (4, 9):
        assert len(os.read(pipe[0], count)) == count
        assert watched.took(count) <= seen
    watched.close()


def test_a_descriptor_that_is_used_again(pipe: tuple[int, int]) -> None:
    """What is over is forgotten: the next one of the same number begins at nothing."""
    first = Arrivals(pipe[0])
    os.write(pipe[1], b"old")
    until_seen(first, 3)
    os.read(pipe[0], 3)
    first.close()
    first.close()
    second = Arrivals(pipe[0])
    before = time.monotonic()
    os.write(pipe[1], b"new")
    until_seen(second, 3)
    os.read(pipe[0], 3)
    assert second.took(3) >= before
    second.close()
