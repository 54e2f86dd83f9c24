"""What the money and the time of a campaign are said to have gone to."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import CallEnding, ModelRole, Tokens
from orchestrator.domain.records import Purpose, SiteRecord, Spent
from orchestrator.views.page import pages
from tests.orchestrator.views.campaign.builder import TRIAL, Story
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.page.conftest import followed

_STEP_S = 2.0  # between two events of a story


@pytest.fixture
def made(tmp_path: Path) -> Stage:
    """A baseline at a site; then an attempt that asked a model, and had two trials."""
    stage = Stage(tmp_path / "task")
    story = stage.story.open(proposer="llm")
    story.tell(e.SiteOpened(site=SiteRecord(backend="modal", boundary="a sandbox", judge="docker/runc")))
    story.baseline(1.0)
    node = story.opened("1")
    called(story, node, 1.25)
    story.score(node, {"score": 2.0})
    story.score(node, {"score": 2.5}, purpose=Purpose.REPEAT)
    story.end(node, Ending.SCORED)
    return stage


def called(story: Story, node: str, seconds: float) -> None:
    of: dict[str, Any] = {"node": node, "call": f"c{len(story.events)}", "role": ModelRole.USER, "model": "a-model"}
    spent = Spent(microdollars=300)
    ended = e.ModelCallEnded(**of, ending=CallEnding.COMPLETE, tokens=Tokens(), spent=spent, seconds=seconds)
    story.tell(e.ModelCallIntended(**of, worst=spent), ended)


def told(stage: Stage) -> Any:
    return pages.view(followed(stage), "money", None)


def lived(stage: Stage) -> float:
    nodes = [node for node in stage.story.state.nodes.values() if node.ended_at]
    passed = [datetime.fromisoformat(it.ended_at) - datetime.fromisoformat(it.opened_at) for it in nodes]
    return sum(it.total_seconds() for it in passed)


def test_the_parts_of_an_attempts_life_add_up(made: Stage) -> None:
    """Two trials and the baseline's: what a chamber was held for is `run`, what a trial took beyond it `provision`. A
    replay of a node that ended long ago is not its time, nor is what has not ended.
    """
    before = lived(made)
    made.story.score("1.1", {"score": 2.0}, purpose=Purpose.REPLAY)
    made.story.trial(made.story.opened("1"))
    time, held = told(made)["time"], TRIAL.milliseconds / 1000
    assert (time["models"], time["run"], time["provision"]) == (1.25, 3 * held, 3 * (2 * _STEP_S - held))
    assert sum(time.values()) == pytest.approx(before)


def test_a_call_that_says_it_took_longer_than_there_was(made: Stage) -> None:
    """Several at once, or a clock that was set: no part is negative, and the sum is still the attempt's time."""
    node = made.story.opened("1")
    called(made.story, node, 1e6)
    made.story.score(node, {"score": 2.0})
    made.story.end(node, Ending.SCORED)
    time = told(made)["time"]
    assert min(time.values()) >= 0
    assert sum(time.values()) == pytest.approx(lived(made))


def test_dollars_by_provider(made: Stage) -> None:
    """Chambers by the site of their run, models, and what stood ready: together all that was spent."""
    found = {it["provider"]: it["microdollars"] for it in told(made)["providers"]}
    assert found == {"modal": 3 * TRIAL.microdollars, "models": 300}
    assert sum(found.values()) == sum(it.spent.microdollars for it in made.story.state.nodes.values())
