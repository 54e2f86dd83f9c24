"""A score that a candidate can forge is called so wherever it is shown, also beyond what the kept files have."""

from pathlib import Path

import pytest

from orchestrator.domain.metric import Metric, Ranking
from orchestrator.views.live.picture import Picture
from orchestrator.views.live.scene import Caps
from orchestrator.views.live.tally import Tally
from orchestrator.views.running.summary import show_summary
from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.campaign.kinds import judged_in_one_chamber


def test_a_shared_tier_is_marked(tmp_path: Path, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """In the tree, for programs, at the end of a session and in the picture; a better tier needs no mark."""
    shared = Stage(tmp_path / "shared task")
    story = shared.story = judged_in_one_chamber(shared.folder)
    assert "score=2 [shared]" in shared.run("tree")
    assert shared.json("status")["best"]["headline"]["tier"] == "shared"
    show_summary(shared.folder, "done")
    told = " ".join(capsys.readouterr().out.split())
    assert "best: score=2 [shared] at 1.1" in told
    assert "judge and candidate are in one chamber, so a candidate can forge its score" in told
    scene = Tally(story.state, story.accounts, Ranking([Metric()]), Caps(2)).scene()
    assert any("score=2 [shared]" in line.plain for line in Picture().lines(scene, 100, 30, 0.0))
    assert "[" not in stage.run("tree").split("1.1")[1].splitlines()[0]
