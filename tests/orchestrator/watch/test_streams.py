"""The drawn streams are what their labels say, and the detector tells them apart where it was tuned."""

import pytest

from benchmarks.stalls import looks
from benchmarks.stream_ranges import CHECKING, TUNING, Ranges
from benchmarks.streams import STALLS, WALL_S, WELL, drawn
from orchestrator.watch import Outcome


@pytest.mark.parametrize("ranges", [TUNING, CHECKING], ids=lambda it: it.name)
@pytest.mark.parametrize("label", [*WELL, *STALLS])
def test_drawn(label: str, ranges: Ranges) -> None:
    """A seed gives the same stream; times go forward; only stalls have an onset, and they last to the wall limit."""
    one, again = drawn(label, ranges, 5), drawn(label, ranges, 5)
    assert one == again
    times = [it.at for it in one.stream.signals]
    assert times == sorted(times)
    assert times[-1] <= one.stream.ended
    assert (one.onset is None) == (label in WELL)
    assert (one.stream.outcome is Outcome.WELL) == (label in WELL)
    if one.onset is not None:
        assert one.onset < WALL_S
        assert one.stream.ended == WALL_S


@pytest.mark.parametrize("label", [*WELL, *STALLS])
def test_told_apart(label: str) -> None:
    """A sample of each kind: the healthy live, the stalled are found."""
    seen = looks(label, CHECKING, 12)
    assert [it.cause is not None for it in seen] == [label in STALLS] * 12
