"""What came of asking a model, in one line."""

import pytest

from orchestrator.domain.records import Campaign
from orchestrator.views.campaign.offers import offers_line


@pytest.mark.parametrize(
    ("offered", "distinct", "line"),
    [
        (0, 0, ""),
        (1, 0, "0 of 1 change that was offered is new (0%)"),
        (3, 1, "1 of 3 changes that were offered are new (33%)"),
    ],
)
def test_offers(offered: int, distinct: int, line: str) -> None:
    """One is one; nothing is said where nobody was asked."""
    assert offers_line(Campaign(id="c", name="n", version="1", offered=offered, distinct=distinct)) == line
