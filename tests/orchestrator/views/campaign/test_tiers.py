"""A score that a candidate can forge is called so wherever it is shown."""

from pathlib import Path

import pytest

from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.tier import Tier
from orchestrator.views.live.picture import Picture
from orchestrator.views.live.scene import Caps
from orchestrator.views.live.tally import Tally
from orchestrator.views.running.summary import show_summary
from tests.orchestrator.views.campaign.builder import Story
from tests.orchestrator.views.campaign.conftest import Stage

CAVEAT = "judge and candidate are in one chamber, so a candidate can forge its score"


@pytest.fixture
def shared(tmp_path: Path) -> Stage:
    made = Stage(tmp_path / "shared task")
    made.story = Story(made.folder, task={"judge": {"command": ["python3", "judge.py"], "mode": "shared"}})
    made.story.open().baseline(1.0)
    made.story.attempt("1", 2.0, kept=True, verdict={"tier": Tier.SHARED}, description="quick")
    return made


def test_tree_and_status(shared: Stage) -> None:
    """Each score is marked, and the status says what the mark means."""
    assert "score=2 [shared]" in shared.run("tree")
    status = shared.run("status")
    assert CAVEAT in " ".join(status.split())
    assert status.count("score=2 [shared]") == 2
    assert shared.json("status")["best"]["headline"]["tier"] == "shared"
    assert f"- **tier**: shared: {CAVEAT}" in shared.run("report")


def test_summary(shared: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """What a session ends with names the tier beside the winner."""
    shared.write()
    show_summary(shared.folder, "done")
    told = capsys.readouterr().out
    assert "best: score=2 [shared] at 1.1" in told
    assert CAVEAT in " ".join(told.split())


def test_picture(shared: Stage) -> None:
    """The picture marks the best."""
    story = shared.story
    scene = Tally(story.state, story.accounts, Ranking([Metric()]), Caps(2)).scene()
    assert any("score=2 [shared]" in line.plain for line in Picture().lines(scene, 100, 30, 0.0))


def test_a_better_tier_needs_no_mark(stage: Stage) -> None:
    """Where judge and candidate are apart, nothing is said."""
    assert "[" not in stage.run("tree").split("1.1")[1].splitlines()[0]
    assert "forge" not in stage.run("status")
