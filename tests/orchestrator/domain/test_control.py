"""The proposer is compared with the control at an equal number of attempts."""

from typing import Any

import pytest

from orchestrator.domain.control import Ahead, compare
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal, Metric, Ranking
from orchestrator.domain.records import Role
from tests.orchestrator.views.campaign.builder import Story

HIGHER = Ranking([Metric()])
LOWER = Ranking([Metric(goal=Goal.LOWER)])
SUSPECT = {"suspect": ("score",)}


@pytest.fixture
def story() -> Story:
    told = Story().open(beside="random")
    told.baseline(1.0)
    return told


def mine(value: float | None = None, **more: Any) -> tuple[float | None, dict[str, Any]]:
    return value, more


def its(value: float, **more: Any) -> tuple[float | None, dict[str, Any]]:
    return value, {"role": Role.CONTROL, **more}


@pytest.mark.parametrize(
    ("attempts", "ahead", "proposer", "control"),
    [
        ([mine(1.1), its(1.3), mine(9.0)], Ahead.CONTROL, 1.1, 1.3),
        ([mine(ending=Ending.STALLED), mine(ending=Ending.FAILED), mine(5.0), its(1.3)], Ahead.CONTROL, None, 1.3),
        ([mine(7.0, role=Role.INJECTED), mine(1.2), its(9.0, verdict=SUSPECT)], Ahead.PROPOSER, 1.2, None),
        ([mine(9.0, cohort="elsewhere"), mine(1.1), its(1.3)], Ahead.CONTROL, 1.1, 1.3),
        ([mine(1.2), its(1.2)], Ahead.NEITHER, 1.2, 1.2),
    ],
    ids=["more attempts", "failed and stalled", "injected and suspect", "another cohort", "a tie"],
)
def test_who_is_ahead(
    story: Story, attempts: list[Any], ahead: Ahead, proposer: float | None, control: float | None
) -> None:
    """Of equally many charged attempts: one that took more than the control had does not count yet, a failed one does,
    a stalled one does not. What a person brought is no merit of the proposer, and what nobody believes is none either.
    """
    for value, more in attempts:
        story.attempt("1", value, **more)
    found = compare(story.state, HIGHER)
    assert (found.attempts, found.ahead) == (1, ahead)
    for side, score in ((found.proposer, proposer), (found.control, control)):
        assert (side.verdict.metrics["score"] if side else None) == score


def test_nothing_to_compare(story: Story) -> None:
    """Without an attempt of each there is no answer; with one, the metric's direction decides."""
    story.attempt("1", 1.2)
    found = compare(story.state, HIGHER)
    assert (found.attempts, found.ahead) == (0, None)
    story.attempt("1", 1.3, role=Role.CONTROL)
    assert compare(story.state, LOWER).ahead is Ahead.PROPOSER


def test_beaten_takes_more_than_a_better_best(story: Story) -> None:
    """Ahead by the one best attempt of ten is luck; with all of the best results it is not."""
    for number in range(10):
        story.attempt("1", 9.0 if number == 4 else 1.0 + number / 100)
        story.attempt("1", 2.0 + number / 100, role=Role.CONTROL)
    found = compare(story.state, HIGHER)
    assert (found.ahead, found.beaten) == (Ahead.PROPOSER, False)
    assert found.lead
    assert (found.lead.looked_at, found.lead.own) == (5, 1)
    for number in range(10):
        story.attempt("1", 10.0 + number)
        story.attempt("1", 1.5, role=Role.CONTROL)
    assert compare(story.state, HIGHER).beaten


def test_a_grid_is_no_chance() -> None:
    """Beside a grid, who is ahead is told, and nothing of luck."""
    story = Story().open(beside="grid")
    story.baseline(1.0)
    for number in range(6):
        story.attempt("1", 5.0 + number)
        story.attempt("1", 1.0, role=Role.CONTROL)
    found = compare(story.state, HIGHER)
    assert (found.ahead, found.lead, found.beaten) == (Ahead.PROPOSER, None, False)
