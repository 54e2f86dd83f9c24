"""The baseline under a profile in real chambers: by itself, called by its judge, and beside it."""

import math
from pathlib import Path

import pytest

from orchestrator.loop.profiling import Profiled
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.parts import make_parts

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


async def profiled(folder: Path, mode: str, command: list[str] | None = None, wall_s: float = math.inf) -> Profiled:
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
