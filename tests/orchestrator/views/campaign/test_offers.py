"""What came of asking a model, in one line."""

import pytest

from orchestrator.domain import events as e
from orchestrator.views.campaign.sections.money import offers
from orchestrator.views.render.model import raw
from tests.orchestrator.views.campaign.builder import Story, material


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
    story = Story().open()
    if offered:
        story.tell(e.OffersCounted(node="1", offered=offered, distinct=distinct, refused=0))
    assert raw(offers(material(story)).brief) == line
