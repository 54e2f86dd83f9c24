"""The baseline under a profile in real chambers: by itself, called by its judge, and beside it; and in rented ones."""

import dataclasses
import json
import math
from pathlib import Path

import pytest

from orchestrator.api import read_campaign
from orchestrator.domain.profile import Profile
from orchestrator.loop.profiling import Profiled
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts
from sandbox import Backend
from tests.e2e.backends import GOLD, JUDGE, SENT, blastdoor, circle_packing
from tests.modal_emulator import ModalEmulator
from tests.sandbox.skypilot.connecting import connected, settings
from tests.sandbox.skypilot.grounds import ThisMachine
from tests.sandbox.skypilot.yard import Yard, YardProvisioner

pytestmark = pytest.mark.docker

SOLVE = """def dead(x):
    return x + 1


def solve(n):
    waste = 0
    for at in range(n):
        waste = waste + at * at
    if n < 0:
        return dead(n)
    return n


if __name__ == "__main__":
    import os
    from pathlib import Path

    Path(os.environ["BLASTDOOR_OUT"], "answer").write_text(str(solve(2_000_000)))
"""
JUDGES = {
    "data": "from blastdoor_judge import publish\npublish(1.0)\n",
    "relay": """
from blastdoor_judge import publish
from blastdoor_relay import relay

with relay() as candidate:
    candidate.call("solve", 2_000_000)
    publish(1.0)
""",
    "shared": """
import os, sys
sys.path.insert(0, os.environ["BLASTDOOR_CANDIDATE"])
from blastdoor_judge import publish
from solve import solve
solve(2_000_000)
publish(1.0)
""",
}
ENDLESS = "import itertools, solve; any(solve.solve(1000) < 0 for _ in itertools.count())"
COMMANDS = {"relay": ["python3", "-m", "blastdoor_candidate", "solve.py"]}


async def profiled(
    folder: Path, mode: str, command: list[str] | None = None, wall_s: float = math.inf, rented: Backend | None = None
) -> Profiled:
    command = command or COMMANDS.get(mode, ["python3", "solve.py"])
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace/solve.py").write_text(SOLVE)
    (folder / "judge").mkdir()
    (folder / "judge/judge.py").write_text(JUDGES[mode])
    (folder / "blastdoor.toml").write_text(
        f'name = "profiled"\nstatement = "Be quick."\neditable = ["solve.py"]\n[trial]\ncommand = {command}\n'
        f'[limits]\nwall = "120s"\n[judge]\nmode = "{mode}"\ncommand = ["python3", "judge.py"]\n'
        'limits = {wall = "120s"}\n'
    )
    task = load_task(folder)
    settings = Settings()
    async with docker_site(docker_config(settings, inputs_folder=folder / "cache"), settings.image) as site:
        site = dataclasses.replace(site, backend=rented) if rented else site
        parts = await make_parts(task, snapshot(task, folder), site)
        return await parts.judge_mode.profile(parts, parts.jobs.snapshot.tree, wall_s)


@pytest.mark.parametrize("mode", ["data", "relay", "shared"])
async def test_profile_of_a_real_run(tmp_path: Path, mode: str) -> None:
    """What was reached and what was not, and that most of the time is the loop's."""
    found = await profiled(tmp_path, mode)
    told = found.profile.files["solve.py"]
    assert told.reaches(6, 8) is True
    assert told.reaches(2, 2) is False
    assert told.share(7, 8) > 0.5
    assert found.profile.is_timed
    assert found.spent.milliseconds > 0


async def test_python_that_loads_nothing_of_ours(tmp_path: Path) -> None:
    """It runs as it would, and tells nothing."""
    found = await profiled(tmp_path, "data", ["python3", "-I", "solve.py"])
    assert not found.profile.files


async def test_run_that_is_stopped(tmp_path: Path) -> None:
    """What it told until then counts, and what it had not come to is unknown."""
    found = await profiled(tmp_path, "data", ["python3", "-c", ENDLESS], wall_s=6)
    assert found.profile.cut
    assert found.profile.files["solve.py"].reaches(6, 8) is True
    assert not found.profile.files["solve.py"].never
    assert found.why == "the run with it ended as stopped"


@pytest.mark.modal
@pytest.mark.e2e
@pytest.mark.touching("modal")
def test_on_modal(tmp_path: Path, modal_emulator: ModalEmulator) -> None:
    """Where somebody asks for it, a campaign takes it in a sandbox of its own, which is paid for, and nothing of the
    judge goes there.
    """
    modal_emulator.look_for(SENT, GOLD, JUDGE)
    folder = circle_packing(tmp_path / "task")
    words = ("--backend", "modal", "--proposer", "operators", "--hints", "reached", "--attempts", "1", "--seed", "7")
    ran = blastdoor("run", *words, "--json", folder)
    assert ran.returncode == 0, ran.stderr
    assert not [line for line in ran.stderr.splitlines() if "without a profile" in line]
    with read_campaign(folder, Settings()) as reading:
        told = Profile.model_validate(json.loads(reading.artifacts.get(str(reading.state.run.profile))))
        assert told.files["solve.py"].reached
        assert len(modal_emulator.sandboxes()) == len(reading.state.trials) + 1
    assert modal_emulator.found() == [SENT]
    assert not modal_emulator.running()


@pytest.mark.touching("skypilot")
async def test_on_skypilot(tmp_path: Path) -> None:
    """There a run cannot be stopped and is not limited to what a hint is worth by that, but by its wall."""
    yard = Yard(ThisMachine)
    backend = await connected(YardProvisioner(yard), settings(tmp_path), paper=False)
    try:
        found = await profiled(tmp_path / "task", "data", rented=backend, wall_s=100)
        late = await profiled(tmp_path / "late", "data", ["python3", "-c", ENDLESS], rented=backend, wall_s=4)
    finally:
        await backend.close()
    assert found.profile.files["solve.py"].reaches(6, 8) is True
    assert found.profile.files["solve.py"].reaches(2, 2) is False
    assert late.why == "the run with it ended as timed out"
    assert not yard.clusters
