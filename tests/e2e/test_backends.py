"""The same campaign, unchanged, on docker and on modal: the same verdicts, another cohort, and the judge stays home."""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import How
from tests.e2e.backends import GOLD, JUDGE, SENT, blastdoor, circle_packing, run
from tests.modal_emulator import ModalEmulator

pytestmark = [pytest.mark.docker, pytest.mark.e2e, pytest.mark.modal]


DIFF = """--- a/params.json
+++ b/params.json
@@ -1 +1 @@
-{"layout": "scattered", "rows": 5, "jitter": 0.01, "steps": 200, "growth": 0.001, "cooling": 1.0, "give": 1.0, "seed": 0}
+{"layout": "hexagonal", "rows": 4, "jitter": 0.01, "steps": 200, "growth": 0.001, "cooling": 1.0, "give": 1.0, "seed": 0}
"""  # noqa: E501 the file has it in one line


def test_on_modal(tmp_path: Path, modal_emulator: ModalEmulator) -> None:
    """Scores, endings and tree are those of docker; no cohort is shared; what was sent holds no gold and no judge."""
    on_docker = run(circle_packing(tmp_path / "docker"))
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


@pytest.mark.touching("modal", "recovery")
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


@pytest.mark.touching("modal")
def test_gate_on_modal(tmp_path: Path, modal_emulator: ModalEmulator) -> None:
    """One untrusted change is run there and judged here; the evidence names both boundaries and every caveat."""
    modal_emulator.look_for(SENT, GOLD, JUDGE)
    (tmp_path / "change.diff").write_text(DIFF)
    words = ("--backend", "modal", "--diff", tmp_path / "change.diff", "--json", circle_packing(tmp_path / "task"))
    ran = blastdoor("gate", *words)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["decision"] == "accepted"
    assert found["posture"]["backend"] == "modal"
    assert found["posture"]["judge_boundary"].startswith("docker/runc")
    assert found["posture"]["caveats"]
    held = {it["what"]: it["limits"]["pids"]["held_by"] for it in found["ran"]}
    assert held == {"trial": "guest", "judge": "engine"}
    assert modal_emulator.found() == [SENT]
    assert not modal_emulator.running()


@pytest.mark.touching("modal")
def test_live_check_of_modal(modal_emulator: ModalEmulator) -> None:
    """`doctor` says who pays and what a chamber sees, and runs rows of the contract; `exec` and `reap` work there."""
    rows = ("--only", "success_with_outputs", "--only", "non_zero_exit")
    doctor = blastdoor("doctor", "--backend", "modal", *rows, "--json")
    assert doctor.returncode == 0, doctor.stderr
    found: dict[str, Any] = json.loads(doctor.stdout)
    assert [(row["subject"], row["holds"]) for row in found["rows"]] == [("modal", True)] * 2
    assert "a second" in found["account"]["price"]
    assert found["posture"]["facts"]["capabilities"] == "0" * 16
    hello = blastdoor("exec", "--backend", "modal", "--", "python3", "-c", "print('hello')")
    assert (hello.returncode, hello.stdout) == (0, "hello\n"), hello.stderr
    assert blastdoor("reap", "--backend", "modal").stdout == "nothing was left behind\n"
    assert not modal_emulator.running()
