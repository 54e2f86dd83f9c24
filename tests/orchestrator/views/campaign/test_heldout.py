"""What a person reads about the held-out split: the count, the answers, and whether development runs away from it."""

from orchestrator.domain import events as e
from tests.orchestrator.views.campaign.conftest import Stage


def ask(stage: Stage, node: str, query: int, better: bool, released: float, queries: int = 10) -> None:
    stage.story.tell(
        e.HeldOutIntended(node=node, query=query, queries=queries),
        e.HeldOutAsked(node=node, query=query, cohort="held", better=better, released=released, step=0.1),
    )


def test_never_asked(stage: Stage) -> None:
    """A campaign without one does not speak of it beyond a line in the report."""
    assert "held-out" not in stage.run("status")
    assert "held-out" not in stage.run("show", "1.1")
    assert "no held-out split, or it was not asked yet" in stage.run("report")
    assert stage.json("status")["heldout"] is None
    assert stage.json("report")["heldout"] is None
    assert stage.json("show", "1.1")["heldout"] is None


def test_overfitting_is_said(stage: Stage) -> None:
    """Report, status and show say by how much the gap grew, and call it by its name; so does JSON."""
    ask(stage, "1", 1, False, 0.9)
    ask(stage, "1.1", 2, True, 1.2)
    report = " ".join(stage.run("report").split())
    assert "Asked 2 of 10 times; of 1 candidate that development would keep, 1 were better there." in report
    assert "At 1.1 development runs 0.7 further ahead of the held-out split than at the baseline" in report
    assert "more than a step (0.1): that gain is overfitting" in report
    assert "| 1.1 | kept | 2 | 1.2 | +0.7, overfitting |" in report
    assert "| 1 | kept | 1 | 0.9 | |" in report
    assert "overfitting" in " ".join(stage.run("status").split())
    shown = " ".join(stage.run("show", "1.1").split())
    assert "+0.7, overfitting" in shown
    assert "1.1 on the held-out split (query 2): better; the ladder stands at 1.2" in shown
    assert stage.json("status")["heldout"]["overfits"] == "1.1"
    assert stage.json("report")["heldout"]["nodes"][0]["released"] == 1.2
    assert stage.json("show", "1.1")["heldout"]["query"] == 2


def test_used_up(stage: Stage) -> None:
    """When it was asked as often as it may be, that is said plainly; who was not better is told as such."""
    ask(stage, "1", 1, False, 0.9, queries=2)
    ask(stage, "1.2", 2, False, 0.9, queries=2)
    status = " ".join(stage.run("status").split())
    assert "Asked 2 of 2 times, all that heldout.queries allows: nothing more is promoted past a gate" in status
    assert "have not drifted apart by more than a step" in status
    assert "| 1.2 | | 0.5 | not better than 0.9 | within a step |" in " ".join(stage.run("report").split())
