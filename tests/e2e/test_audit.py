"""`audit` on a real engine: a hole of a judge that is given outputs, and of one that calls; and a judge without one."""

from pathlib import Path

import pytest

from orchestrator.examine.audit import AuditReport, audit
from orchestrator.examine.findings import Findings
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from tests.leaky.auditing import PAIRS

pytestmark = pytest.mark.docker
LEAKY = {name: (by, write) for name, by, write in PAIRS}
# Mended, these no longer ask what the attack would answer: nothing is left to be tried.
NOTHING_LEFT = {"class-grades-itself", "fixed-seed", "graded-by-itself"}
# Each kind of judge with its hole, one without, and at the door the first alone.
FEW = (("nan-geometry", False),)
TOUCHED = (("checked-once", False), ("missing-is-skipped", True))


async def audited(folder: Path, cache: Path, by: str) -> AuditReport:
    task, settings = load_task(folder), Settings()
    async with docker_site(docker_config(settings, inputs_folder=cache), settings.image) as site:
        parts = await make_parts(task, snapshot(task, folder), site)
        return await audit(parts, Findings(), runs=2, only=[by], width=2)


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        *FEW,
        *(pytest.param(name, fixed, marks=pytest.mark.touching("audit")) for name, fixed in TOUCHED),
        *(pytest.param(name, fixed, marks=pytest.mark.slow) for name in LEAKY for fixed in (False, True)),
    ],
)
async def test_a_judge(tmp_path: Path, name: str, fixed: bool) -> None:
    """The hole is found where it is, and only there."""
    by, write = LEAKY[name]
    folder = write(tmp_path / "task", fixed=fixed)
    for file in (folder / "workspace").rglob("*.py"):  # long beside what a busy machine adds to it
        file.write_text(file.read_text().replace("time.sleep(0.01)", "time.sleep(0.1)"))
    report = await audited(folder, tmp_path / "cache", by)
    assert bool(report.found) is not fixed, report.why
    assert bool(report.tried) is not (fixed and name in NOTHING_LEFT)
    assert not report.untried
