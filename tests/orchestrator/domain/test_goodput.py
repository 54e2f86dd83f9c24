"""Goodput counts what can be compared, and says nothing where nothing was spent."""

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.goodput import Goodput, comparable, goodput, gpus, in_order
from orchestrator.domain.records import Purpose, Role, Trial
from orchestrator.views.campaign.sections.results import pace
from tests.orchestrator.views.campaign.builder import Story, material


@pytest.fixture
def story() -> Story:
    told = Story().open()
    told.baseline(1.0)
    return told


def measured(story: Story, usd: int = 2_000_000, elapsed_s: float = 7200.0) -> Goodput:
    return goodput(story.state, usd=usd, elapsed_s=elapsed_s)


def test_useful_is_scored_and_comparable(story: Story) -> None:
    """Failures, suspects, other cohorts and the baseline are no useful results; kept and discarded scores are."""
    story.attempt("1", 1.5, kept=True)
    story.attempt("1", 0.5)
    story.attempt("1", 99.0, verdict={"suspect": ("score",)})
    story.attempt("1", 1.2, cohort="elsewhere")
    story.attempt("1", ending=Ending.TIMED_OUT)
    story.attempt("1", ending=Ending.STALLED)
    story.attempt("1")
    found = measured(story)
    assert (found.useful, found.ended, found.charged, found.scored, found.kept) == (2, 6, 5, 4, 1)
    assert found.endings == {"scored": 4, "timed out": 1, "stalled": 1}


def test_what_minimising_left_is_no_attempt(story: Story) -> None:
    """It is paid for from an account of its own, and is the winner once more; its trials count."""
    story.attempt("1", 1.5, kept=True)
    before = measured(story)
    story.attempt("1.1", 1.5, kept=True, role=Role.MINIMISED)
    found = measured(story)
    assert (found.useful, found.ended, found.charged, found.scored, found.kept) == (1, 1, 1, 1, 1)
    assert found.trials == before.trials + 1
    assert found.chamber_hours > before.chamber_hours
    assert "1 attempt ended" in str(pace(material(story)).line)


def test_rates_are_per_dollar_and_hour(story: Story) -> None:
    """Two results for two dollars in two hours are one for each; of what was not used there is no rate."""
    story.attempt("1", 1.5)
    story.attempt("1", 0.5)
    rates = measured(story).rates
    assert rates.per_dollar == pytest.approx(1.0)
    assert rates.per_hour == pytest.approx(1.0)
    # Three nodes, each with 1.5 s of a trial and 0.5 s of judging.
    assert rates.per_chamber_hour == pytest.approx(2 * 3600 / 6.0)
    free = measured(story, usd=0)
    assert (free.rates.per_dollar, free.rates.per_gpu_hour, free.gpu_hours) == (None, None, 0.0)


def test_a_second_run_has_its_own_dollars_and_hours(story: Story) -> None:
    """What the first run cost does not count against the second one, nor the other way round."""
    story.attempt("1", 1.5)
    story.tell(e.CampaignStopped(reason="enough"))
    first_s = story.state.campaign.elapsed_s
    story.open(2, usd_before=1_500_000)
    story.baseline(1.0, run=2)
    story.attempt("2", 1.5)
    assert story.state.runs["2"].began_s >= first_s > 0
    usd, elapsed_s = 2_000_000, story.state.runs["2"].began_s + 1800.0
    second = goodput(story.state, usd=usd, elapsed_s=elapsed_s)
    assert (second.useful, second.dollars) == (1, 0.5)
    assert second.hours == pytest.approx(0.5)
    assert second.rates.per_dollar == pytest.approx(2.0)
    earlier = goodput(story.state, usd=usd, elapsed_s=elapsed_s, run=story.state.runs["1"])
    assert (earlier.useful, earlier.dollars) == (1, 1.5)
    assert earlier.hours == pytest.approx(story.state.runs["2"].began_s / 3600)


def test_a_guard_that_fails_makes_a_result_useless(story: Story) -> None:
    """What is better and wrong is not useful."""
    node = story.opened("1")
    story.tell(e.Proposed(node=node, draft=1, operator="random", description="x", params={}))
    story.score(node, {"score": 2.0})
    story.guard(node, "tests", passed=False)
    story.end(node, Ending.SCORED)
    assert measured(story).useful == 0


def test_a_node_that_was_run_again_counts_once_in_the_new_cohort(story: Story) -> None:
    """A re-run gives a node a verdict in the present cohort; it is one result, not two."""
    node = story.attempt("1", 1.5, kept=True)
    story.tell(e.CohortOpened(run=1, cohort="new", why="another machine"))
    assert measured(story).useful == 0
    story.score(node, {"score": 1.4}, "new", purpose=Purpose.RERUN)
    verdict = comparable(story.state.nodes[node], story.state.run)
    assert verdict
    assert verdict.metrics == {"score": 1.4}
    assert measured(story).useful == 1


def test_gpu_hours_follow_what_the_chamber_saw(story: Story) -> None:
    """Two GPUs for one second are two GPU-seconds."""
    trial = Trial(id="1-1", node="1", purpose=Purpose.SUBMIT, draft=1, started_at="")
    assert gpus(trial) == 0
    assert gpus(trial.model_copy(update={"fingerprint": {"gpu": "NVIDIA H200; NVIDIA H200"}})) == 2


def test_order_is_that_of_opening(story: Story) -> None:
    """1.10 comes after 1.9, and a child after its elder cousin."""
    for _ in range(10):
        story.attempt("1", 1.0)
    story.attempt("1.2", 1.0)
    names = [node.id for node in in_order(story.state, story.state.run)]
    assert names == ["1", *(f"1.{number}" for number in range(1, 11)), "1.2.1"]
