"""`check` and `gate` on a real engine: what they promise holds in chambers that isolate."""

from pathlib import Path

import pytest

from orchestrator.examine.findings import Findings, Section, Sign
from orchestrator.examine.gate import Decision
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.views.judging.check import examine
from orchestrator.views.judging.evidence import evidence
from orchestrator.views.judging.gate import Change, gate
from orchestrator.wiring.backends.docker import docker_config, docker_site
from tests.orchestrator.views.judging.stage import BETTER, METRIC, WORSE, whole, write_task

pytestmark = [pytest.mark.docker, pytest.mark.attack]

GUARD = '[[guards]]\nname = "alone"\ncommand = ["sh", "-c", "! ls judge"]\n'


async def test_check_of_a_sound_task(tmp_path: Path) -> None:
    """The baseline is measured, no cheat wins, and the canary is nowhere; what the kernel tells is told."""
    folder = write_task(tmp_path / "task", METRIC, GUARD)
    settings, findings = Settings(), Findings()
    async with docker_site(docker_config(settings), settings.image) as site:
        await examine(load_task(folder), folder, site, settings, findings, runs=2)
    assert findings.good, [row for row in findings.rows if row.sign is Sign.FAIL]
    gold = [row.sign for row in findings.rows if row.section is Section.GOLD]
    assert gold == [Sign.OK, Sign.OK]
    profile = " ".join(row.text for row in findings.rows if row.section is Section.PROFILE)
    assert "processor: " in profile
    assert "not measured" not in profile
    assert any(row.text.startswith("the guard alone passes") for row in findings.rows)


@pytest.mark.parametrize(
    ("runtime", "code", "decision"),
    [("runc", BETTER, Decision.ACCEPTED), ("runsc", WORSE, Decision.REJECTED)],
)
async def test_gate(tmp_path: Path, runtime: str, code: str, decision: Decision) -> None:
    """Both decisions, with the evidence of the runtime that was asked for: no rights inside, and a list of packages."""
    folder = write_task(tmp_path / "task", METRIC, GUARD)
    text = whole(code).encode()
    settings = Settings()
    config = docker_config(settings, runtime=runtime)
    report = await gate(
        folder, Change(text, "0" * 64, len(text)), settings, lambda: docker_site(config, settings.image)
    )
    assert report.gated.decision is decision, report.gated
    found = evidence(report)
    assert found["posture"]["backend"] == f"docker/{runtime}"
    (inside,) = found["posture"]["seen_inside"].values()
    assert inside["capabilities"] == "0" * 16
    assert "0" not in inside["uid"].split()
    (image,) = found["images"]
    assert image["digest"].startswith("sha256:")
    assert {"type": "deb", "name": "tar"}.items() <= next(it for it in image["packages"] if it["name"] == "tar").items()
    assert found["ran"][0]["limits"]["memory"]["held_by"] == "engine"
