"""The same campaign, unchanged, on docker and on modal: the same verdicts, another cohort, and the judge stays home."""

from pathlib import Path

import pytest

from orchestrator.api import How
from tests.e2e.backends import GOLD, JUDGE, SENT, Campaign, circle_packing, run
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.modal]


@pytest.fixture(scope="module")
def on_docker(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return run(circle_packing(tmp_path_factory.mktemp("docker") / "task"))


def test_on_modal(tmp_path: Path, on_docker: Campaign, modal_emulator: ModalEmulator) -> None:
    """Scores, endings and tree are those of docker; no cohort is shared; what was sent holds no gold and no judge."""
    modal_emulator.look_for(SENT, GOLD, JUDGE)
    on_modal = run(circle_packing(tmp_path / "task"), backend="modal")
    assert on_modal.nodes == on_docker.nodes
    assert len(on_docker.nodes) == 4
    assert not on_modal.cohorts & on_docker.cohorts
    assert (on_modal.site.backend, on_modal.site.judge) == ("modal", "docker/runc")
    assert (on_docker.site.backend, on_docker.site.caveats) == ("docker/runc", ())
    assert on_modal.site.caveats
    assert modal_emulator.found() == [SENT]
    # Every trial had a sandbox of its own, and there was none for anything else.
    assert len(modal_emulator.sandboxes()) == on_modal.trials
    assert not modal_emulator.running()
    assert on_modal.usd > on_docker.usd == 0


def test_resumed_on_modal(tmp_path: Path, modal_emulator: ModalEmulator) -> None:
    """A run that was begun on docker goes on there; with --backend modal it goes on in a cohort of its own."""
    folder = circle_packing(tmp_path / "task")
    begun = run(folder, attempts=1)
    same = run(folder, attempts=2, how=How.RESUME)
    assert same.site == begun.site
    assert same.cohorts == begun.cohorts
    assert not modal_emulator.sandboxes()
    other = run(folder, attempts=3, how=How.RESUME, backend="modal")
    assert other.site.backend == "modal"
    assert len(other.cohorts) == 2
    assert modal_emulator.sandboxes()
    assert not modal_emulator.running()
