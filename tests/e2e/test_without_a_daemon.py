"""The same campaign without a daemon: the same tree, endings and scores, in a cohort of its own."""

from pathlib import Path

import pytest

from orchestrator.api import How
from tests.e2e.backends import circle_packing, run

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.slow]


def test_on_runc(tmp_path: Path) -> None:
    """The judge runs there, too; a run that was begun on an engine goes on without one, in another cohort."""
    on_docker = run(circle_packing(tmp_path / "docker"))
    on_runc = run(circle_packing(tmp_path / "runc"), backend="runc")
    assert on_runc.nodes == on_docker.nodes
    assert not on_runc.cohorts & on_docker.cohorts
    assert (on_runc.site.backend, on_runc.site.caveats) == ("runc", ())
    moved = run(tmp_path / "docker", attempts=4, how=How.RESUME, backend="runc")
    assert moved.site.backend == "runc"
    assert len(moved.cohorts) == 2
