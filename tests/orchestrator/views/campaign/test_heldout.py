"""What a person reads about a held-out split that is used up; how development runs away is in the kept files."""

from orchestrator.domain import events as e
from tests.orchestrator.views.campaign.conftest import Stage


def test_used_up(stage: Stage) -> None:
    """When it was asked as often as it may be, that is said plainly; who was not better is told as such."""
    for query, node in enumerate(("1", "1.2"), 1):
        asked = e.HeldOutAsked(node=node, query=query, cohort="held", better=False, released=0.9, step=0.1)
        stage.story.tell(e.HeldOutIntended(node=node, query=query, queries=2), asked)
    status = " ".join(stage.run("status").split())
    assert "Asked 2 of 2 times, all that heldout.queries allows: nothing more is promoted past a gate" in status
    assert "have not drifted apart by more than a step" in status
    assert "| 1.2 | | 0.5 | not better than 0.9 | within a step |" in " ".join(stage.run("report").split())
    assert stage.json("show", "1.2")["heldout"]["query"] == 2
