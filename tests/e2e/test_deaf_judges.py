"""`check` on a real engine: a judge that never looks at the candidate is not ready, in any mode; one that looks is.

Without an engine the same is tried in every mode (`tests/orchestrator/examine`): here, one of each kind tells whether
anything is different on one, and `make thorough` tries all.
"""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.examine.findings import Findings, Row, Sign
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.views.judging.check import examine
from orchestrator.wiring.backends.docker import docker_config, docker_site
from tests.attacks import relay_candidates as r
from tests.orchestrator.examine.test_calls import IGNORES, NEVER_CALLS, NO_CEILING, write
from tests.orchestrator.examine.test_checkup import SHARED
from tests.orchestrator.views.judging.stage import METRIC, write_task

pytestmark = pytest.mark.docker

DEAF = "from blastdoor_judge import publish\npublish(-1.0)\n"
MODES = ("data", "shared", "relay")
DEPENDS_NOT = "it does not depend on the candidate"


def modes(*few: str) -> list[Any]:
    """The first of these always, the others where judges or examinations were touched, all at length."""
    always, touched = few[:1], few[1:]
    marks = {it: [pytest.mark.touching("audit")] if it in touched else [pytest.mark.slow] for it in MODES}
    return [it if it in always else pytest.param(it, marks=marks[it]) for it in MODES]


async def failures(folder: Path, cache: Path) -> list[Row]:
    findings, settings = Findings(), Settings()
    async with docker_site(docker_config(settings, inputs_folder=cache), settings.image) as site:
        await examine(load_task(folder), folder, site, settings, findings, runs=1)
    return [row for row in findings.rows if row.sign is Sign.FAIL]


@pytest.mark.parametrize("mode", modes("data", "shared"))
async def test_a_judge_that_never_looks(tmp_path: Path, mode: str) -> None:
    """Whatever a candidate leaves, is or answers, the score is the same: one failure, and what to do about it."""
    folder = tmp_path / "task"
    if mode == "relay":
        write(folder, NO_CEILING, IGNORES)
    else:
        write_task(folder, METRIC, judge=f'mode = "{mode}"', files={"judge/judge.py": DEAF})
    [row] = await failures(folder, tmp_path / "cache")
    assert row.text.endswith(DEPENDS_NOT)
    assert row.advice.startswith("let the score come from what the candidate did")


@pytest.mark.touching("audit")
async def test_a_judge_that_never_calls(tmp_path: Path) -> None:
    """Where it is to call, that alone is a failure."""
    [row] = await failures(write(tmp_path / "task", NO_CEILING, NEVER_CALLS), tmp_path / "cache")
    assert row.text == "the judge never calls the candidate: the score cannot depend on it"


@pytest.mark.touching("audit")
@pytest.mark.parametrize("mode", modes("relay"))
async def test_a_judge_that_looks(tmp_path: Path, mode: str) -> None:
    """Nothing is found where cheats are refused, or score otherwise than the baseline."""
    folder = tmp_path / "task"
    if mode == "relay":
        write(folder, judge=r.JUDGE)
    else:
        files = {"judge/judge.py": SHARED} if mode == "shared" else {}
        write_task(folder, METRIC, judge=f'mode = "{mode}"', files=files)
    assert await failures(folder, tmp_path / "cache") == []
