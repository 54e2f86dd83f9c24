"""What the verifier found is seen beside its node, and what it holds can go on; the rest is in the kept files."""

from pathlib import Path

import pytest

from tests.orchestrator.views.campaign.conftest import Stage
from tests.orchestrator.views.campaign.kinds import models_and_roles


def test_what_was_found_and_what_is_held(tmp_path: Path) -> None:
    """The tree marks both, shares sum to 1, and what is held can be released like anything in quarantine."""
    stage = Stage(tmp_path / "task")
    stage.story = models_and_roles(stage.folder)
    flagged, held = [line for line in stage.run("tree").splitlines() if "1." in line]
    assert ("flagged" in flagged, "held" in held) == (True, True)
    for command in ("status", "report"):
        roles = stage.json(command)["roles"]
        assert sum(roles["shares"].values()) == pytest.approx(1.0)
        assert roles["findings"] == {"flag": 1, "hold": 1}
    assert "hold: it opens the answers" in " ".join(stage.run("show", "1.2").split())
    assert "1.2 leaves quarantine" in stage.run("release", "1.2")
