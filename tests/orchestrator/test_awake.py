"""The clock that stands still with the process: slept time counts for nobody, and busy time is no sleep."""

import time
from dataclasses import dataclass

import pytest

from orchestrator.awake import Awake


@dataclass
class Times:
    """`now` goes on whatever happens, `worked` is the processor time of the process, `held` how long nothing could be
    put on record.
    """

    now: float = 1000.0
    worked: float = 5.0
    held: float = 0.0

    def awake(self) -> Awake:
        made = Awake(lambda: self.now, lambda: self.worked, limit_s=10, held=lambda: self.held)
        made.begin()
        return made


def test_t88_a_gap_without_work_is_sleep() -> None:
    """A machine that was suspended for an hour: the clock says the same as before."""
    times = Times()
    awake = times.awake()
    times.now += 1
    before = awake()
    times.now += 3600
    assert awake() == before
    assert awake.slept == 3600
    times.now += 2
    assert awake() == before + 2


def test_a_loop_that_is_busy_does_not_sleep() -> None:
    """Else whoever keeps it busy would have made time stand still, and be refunded for it."""
    times = Times()
    awake = times.awake()
    before = awake()
    times.now += 60
    times.worked += 55
    assert (awake(), awake.slept) == (before + 60, 0)


def test_held_up_while_it_stood_still_counts_once() -> None:
    """A write that was under way when the process was stopped has stood still with it; one that is slow by itself is
    missed, and not slept.
    """
    times = Times()
    awake = times.awake()
    before = awake()
    times.now += 3600
    times.held += 3590
    assert (awake(), awake.slept, awake.missed) == (before, 3600, 3600)
    for _ in range(4):
        times.now += 5
        times.held += 4
        awake()
    assert (awake(), awake.slept, awake.missed) == (before + 4, 3600, 3616)


def test_small_gaps_are_time() -> None:
    """A machine under load is late now and then."""
    times = Times()
    awake = times.awake()
    for _ in range(100):
        times.now += 9
        awake()
    assert awake.slept == 0


def test_a_clock_that_nobody_asks_often_never_sleeps() -> None:
    """Without a campaign nobody does."""
    times = Times()
    awake = times.awake()
    awake.end()
    times.now += 3600
    assert awake.slept == 0


def test_a_machine_whose_clock_stands_still_in_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no clock goes on while the machine sleeps, as on macOS, the steady one counts."""
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    before = time.monotonic()
    assert before <= Awake()() <= time.monotonic()
