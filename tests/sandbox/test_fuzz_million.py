"""A million mutated streams through every parser of hostile bytes. FUZZ_SEED repeats a run that failed."""

import os
import random
from collections import Counter

import pytest

from sandbox.wire.faults import Fault
from tests.sandbox.wire.fuzzing import PARSERS
from tests.sandbox.wire.streams import cut_at

pytestmark = [pytest.mark.slow, pytest.mark.fuzz]

CASES = {
    "harvest": 300_000,
    "dialogue": 200_000,
    "log": 150_000,
    "report": 100_000,
    "frames": 150_000,
    "demux": 100_000,
}
SEED = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(2**32))
# What a run must meet to have been worth its time: a parser that refuses everything at its door is not tested.
MEETS: dict[str, set[Fault | str | None]] = {
    "harvest": {*(fault for fault in Fault if fault.is_about_outputs)},
    "dialogue": {Fault.OUT_OF_TURN, Fault.LINE_TOO_LONG, Fault.ENDED_EARLY, Fault.ARCHIVE_TRUNCATED},
    "log": {Fault.LOG_OVERFLOW},
    "report": {"no report"},
    "frames": {Fault.FRAME_EXTRA, Fault.FRAME_LIMIT, Fault.FRAME_NONCE, Fault.FRAME_OVERSIZED, Fault.ENDED_EARLY},
    "demux": {"unavailable"},
}


def test_a_million_in_all() -> None:
    """The numbers below add up to what is promised, over every parser."""
    assert sum(CASES.values()) == 1_000_000
    assert set(CASES) == set(PARSERS) == set(MEETS)


@pytest.mark.parametrize("parser", CASES)
def test_nothing_but_the_typed_refusal(parser: str) -> None:
    """Whatever was done to a stream, it is taken or refused by name; caps hold, and the cuts do not matter."""
    make, check = PARSERS[parser]
    rng = random.Random(f"{SEED} {parser}")
    met: Counter[Fault | str | None] = Counter()
    for number in range(CASES[parser]):
        stream = make(rng)
        cuts = [rng.randrange(10**6) for _ in range(rng.randrange(4))]
        try:
            met[check(stream, cut_at(stream, cuts))] += 1
        except Exception as error:
            error.add_note(f"FUZZ_SEED={SEED}, {parser} case {number}, cuts {cuts}, stream {stream!r}")
            raise
    assert met.keys() >= MEETS[parser], f"FUZZ_SEED={SEED}: never met {MEETS[parser] - met.keys()}"
    assert met[None] > CASES[parser] // 50, f"FUZZ_SEED={SEED}: too few streams were taken"
