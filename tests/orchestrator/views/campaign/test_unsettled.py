"""What is said of money that is booked at its worst: never that somebody is asked who can tell nothing."""

from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain.records import Unsettled
from orchestrator.views.campaign.sections.money import unsettled
from orchestrator.views.render.model import raw

SINCE = "2026-01-02T03:04:05+00:00"


def said(holder: str | None, *registries: str) -> str:
    doubts = {
        registry: Unsettled(
            chamber=registry, registry=registry, usd_per_second=1.0, microdollars=10_000, node="1.1", since=SINCE, run=1
        )
        for registry in registries
    }
    it: Any = SimpleNamespace(state=SimpleNamespace(doubts=doubts), holder=holder)
    line = unsettled(it).line
    assert line is not None
    return raw(line)


ASKED = "if it rents there; providers forget in time"


@pytest.mark.parametrize(
    ("holder", "registries", "says"),
    [
        (None, ["modal/ap-1"], f"blastdoor resume asks modal/ap-1 {ASKED}"),
        (None, ["skypilot/slurm", "modal/ap-1"], f"blastdoor resume asks modal/ap-1 and skypilot/slurm {ASKED}"),
        ("me", ["modal/ap-1"], "until modal/ap-1 says how long each lived"),
    ],
)
def test_who_is_asked(holder: str | None, registries: list[str], says: str) -> None:
    """By name, since another account or place is asked nothing."""
    assert said(holder, *registries).endswith(f"booked at the worst case; {says}")
