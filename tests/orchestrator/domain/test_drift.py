"""Drift between development and held-out split, from what the ladder released and nothing else."""

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.drift import Asked, asked_about, drift
from orchestrator.domain.metric import Goal, Metric
from tests.orchestrator.views.campaign.builder import Story

SCORE = Metric()


def asked(story: Story, node: str, better: bool, released: float | None, *, cohort: str = "held") -> None:
    query = story.state.campaign.asked + 1
    story.tell(
        e.HeldOutIntended(node=node, query=query, queries=10),
        e.HeldOutAsked(node=node, query=query, cohort=cohort, better=better, released=released, step=0.1),
    )


@pytest.fixture
def story() -> Story:
    """A baseline of 1.0 in development and 0.8 on the held-out split."""
    made = Story().open()
    asked(made, "1", False, 0.8)
    made.baseline(1.0)
    return made


def growth(found: Asked | None) -> float:
    assert found is not None
    assert found.growth is not None
    return found.growth


def test_gained_on_both(story: Story) -> None:
    """What is gained on both is no drift, within a step of rounding."""
    node = story.attempt("1", 1.3, kept=True)
    asked(story, node, True, 1.0)
    found = drift(story.state, SCORE)
    assert found is not None
    assert (found.asked, found.askable, found.worst, found.refused) == (2, 10, None, 0)
    assert growth(found.nodes[0]) == pytest.approx(0.1)
    assert found.baseline is not None
    assert (found.baseline.development, found.baseline.released, found.baseline.growth) == (1.0, 0.8, None)


def test_gained_in_development_only(story: Story) -> None:
    """A gap that grew by more than a step is overfitting, and the node is named."""
    first, second = story.attempt("1", 1.3, kept=True), story.attempt("1", 1.9, kept=True)
    asked(story, first, True, 1.0)
    asked(story, second, True, 1.2)
    found = drift(story.state, SCORE)
    assert found is not None
    assert found.worst == found.nodes[1]
    assert growth(found.worst) == pytest.approx(0.5)
    assert found.record()["overfits"] == second


def test_not_better_there(story: Story) -> None:
    """Of one that is not better nobody knows the value; it is a step above the released one at most."""
    node = story.attempt("1", 1.3)
    asked(story, node, False, 0.8)
    assert growth(asked_about(story.state, story.state.nodes[node], SCORE)) == pytest.approx(0.2)
    slight = story.attempt("1", 1.15)
    asked(story, slight, False, 0.8)
    found = asked_about(story.state, story.state.nodes[slight], SCORE)
    assert found is not None
    assert not found.overfits


def test_lower_is_better() -> None:
    """For a metric to be brought down, a gain is a fall, and drift is a fall in development alone."""
    story = Story().open()
    asked(story, "1", False, 0.8)
    story.baseline(1.0)
    node = story.attempt("1", 0.4, kept=True)
    asked(story, node, True, 0.6)
    found = asked_about(story.state, story.state.nodes[node], Metric(goal=Goal.LOWER))
    assert growth(found) == pytest.approx(0.4)


def test_other_hardware(story: Story) -> None:
    """Where the baseline has no value on the same terms, or nothing was asked, nothing is said of drift."""
    node = story.attempt("1", 1.9)
    asked(story, node, False, None, cohort="elsewhere")
    found = asked_about(story.state, story.state.nodes[node], SCORE)
    assert found is not None
    assert (found.growth, found.overfits) == (None, False)
    assert drift(Story().open().state, SCORE) is None
