"""What is said of money that is booked at its worst: never that somebody is asked who can tell nothing."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain.records import Unsettled
from orchestrator.units import utc_now
from orchestrator.views.campaign.sections.money import LISTED_S, unsettled
from orchestrator.views.render.model import raw
from sandbox.backends.modal import backend as modal
from sandbox.backends.skypilot import backend as skypilot


def said(holder: str | None, *doubts: tuple[str, float]) -> str:
    known = {}
    for number, (registry, age_s) in enumerate(doubts):
        since = (utc_now() - timedelta(seconds=age_s)).isoformat()
        name = f"chamber-{number}"
        known[name] = Unsettled(
            chamber=name, registry=registry, usd_per_second=1.0, microdollars=10_000, node="1.1", since=since, run=1
        )
    it: Any = SimpleNamespace(state=SimpleNamespace(doubts=known), holder=holder)
    line = unsettled(it).line
    assert line is not None
    return raw(line)


@pytest.mark.parametrize(
    ("holder", "doubts", "says"),
    [
        (None, [("modal/ap-1", 60)], "blastdoor resume asks modal/ap-1 if it rents there"),
        ("me", [("modal/ap-1", 60)], "until modal/ap-1 says how long each lived"),
        (None, [("modal/ap-1", 7200)], "modal/ap-1 may remember none that old"),
        ("me", [("modal/ap-1", 7200)], "modal/ap-1 may remember none that old"),
        (
            None,
            [("modal/ap-1", 7200), ("skypilot/slurm", 7200)],
            "blastdoor resume asks skypilot/slurm if it rents there",
        ),
    ],
)
def test_who_is_asked(holder: str | None, doubts: list[tuple[str, float]], says: str) -> None:
    """By name, since another account or place is asked nothing; and nobody who may have forgotten."""
    assert said(holder, *doubts).endswith(f"booked at the worst case; {says}")


def test_how_long_they_remember() -> None:
    """As the backends themselves take it."""
    assert LISTED_S == {"modal": modal.LISTED_S, "skypilot": skypilot.LISTED_S}
