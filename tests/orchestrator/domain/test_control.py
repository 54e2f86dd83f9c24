"""The proposer is compared with the control at an equal number of attempts."""

import pytest

from orchestrator.domain.control import Ahead, compare
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal, Metric, Ranking
from orchestrator.domain.records import Role
from tests.orchestrator.views.campaign.builder import Story

HIGHER = Ranking([Metric()])
LOWER = Ranking([Metric(goal=Goal.LOWER)])


@pytest.fixture
def story() -> Story:
    told = Story().open(beside="random")
    told.baseline(1.0)
    return told


def test_only_equally_many_attempts_count(story: Story) -> None:
    """A better score that took more attempts than the control had does not count yet."""
    story.attempt("1", 1.1)
    story.attempt("1", 1.3, role=Role.CONTROL)
    story.attempt("1", 9.0)
    found = compare(story.state, HIGHER)
    assert found.attempts == 1
    assert found.ahead is Ahead.CONTROL
    assert found.proposer
    assert found.proposer.verdict.metrics["score"] == 1.1


def test_lower_may_be_better(story: Story) -> None:
    """The metric's direction decides."""
    story.attempt("1", 1.1)
    story.attempt("1", 1.3, role=Role.CONTROL)
    assert compare(story.state, LOWER).ahead is Ahead.PROPOSER


def test_failures_are_attempts_and_stalls_are_not(story: Story) -> None:
    """A failed attempt was charged and counts; a stalled one was not and does not."""
    story.attempt("1", ending=Ending.STALLED)
    story.attempt("1", ending=Ending.FAILED)
    story.attempt("1", 5.0)
    story.attempt("1", 1.3, role=Role.CONTROL)
    found = compare(story.state, HIGHER)
    assert found.attempts == 1
    assert found.proposer is None
    assert found.ahead is Ahead.CONTROL


def test_injected_and_suspect_scores_are_nobodys(story: Story) -> None:
    """What a person brought is no merit of the proposer, and what nobody believes is none either."""
    story.attempt("1", 7.0, role=Role.INJECTED)
    story.attempt("1", 1.2)
    story.attempt("1", 9.0, role=Role.CONTROL, verdict={"suspect": ("score",)})
    found = compare(story.state, HIGHER)
    assert found.ahead is Ahead.PROPOSER
    assert found.control is None


def test_a_tie_is_nobodys(story: Story) -> None:
    """Equal scores put neither ahead."""
    story.attempt("1", 1.2)
    story.attempt("1", 1.2, role=Role.CONTROL)
    assert compare(story.state, HIGHER).ahead is Ahead.NEITHER


def test_nothing_to_compare(story: Story) -> None:
    """Without an attempt of each there is no answer."""
    story.attempt("1", 1.2)
    found = compare(story.state, HIGHER)
    assert (found.attempts, found.ahead) == (0, None)


def test_other_cohorts_are_left_out(story: Story) -> None:
    """A score from another machine is not compared, and its attempt not counted."""
    story.attempt("1", 9.0, cohort="elsewhere")
    story.attempt("1", 1.1)
    story.attempt("1", 1.3, role=Role.CONTROL)
    found = compare(story.state, HIGHER)
    assert found.attempts == 1
    assert found.ahead is Ahead.CONTROL


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
