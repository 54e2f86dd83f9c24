"""What is said of money: what asking a model came to, and what is booked at its worst."""

from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.records import Unsettled
from orchestrator.views.campaign.sections.money import offers, unsettled
from orchestrator.views.render.model import raw
from tests.orchestrator.views.campaign.builder import Story, material


@pytest.mark.parametrize(
    ("offered", "distinct", "line"),
    [(0, 0, ""), (1, 0, "0 of 1 change that was offered is new (0%)")],
)
def test_offers(offered: int, distinct: int, line: str) -> None:
    """One is one; nothing is said where nobody was asked."""
    story = Story().open()
    if offered:
        story.tell(e.OffersCounted(node="1", offered=offered, distinct=distinct, refused=0))
    assert raw(offers(material(story)).brief) == line


def said(holder: str | None, *registries: str) -> str:
    told: dict[str, Any] = {"usd_per_second": 1.0, "microdollars": 10_000, "node": "1.1", "run": 1}
    told["since"] = "2026-01-02T03:04:05+00:00"
    doubts = {name: Unsettled(chamber=name, registry=name, **told) for name in registries}
    it: Any = SimpleNamespace(state=SimpleNamespace(doubts=doubts), holder=holder)
    return raw(unsettled(it).line or "")


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
    """By name, and never one who can tell nothing: another account or place is asked nothing."""
    assert said(holder, *registries).endswith(f"booked at the worst case; {says}")
