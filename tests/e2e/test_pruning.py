"""Pruning in real chambers: who is told to stop may flush, who does not listen is killed, and nothing is left alive."""

import asyncio
import os
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.state import State
from orchestrator.ledger import Artifacts
from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.wiring.backends.docker import docker_config, docker_site
from orchestrator.wiring.opening import open_campaign
from sandbox.backends.docker.backend import DockerBackend
from sandbox.backends.docker.engine import Engine
from sandbox.backends.docker.lease import OWNER_LABEL

pytestmark = [pytest.mark.docker, pytest.mark.e2e]

TASK = """
name = "stopped"
statement = "Report, and be told to stop."
editable = ["params.json"]
[trial]
command = ["python3", "-u", "trial.py"]
[judge]
command = ["python3", "judge.py"]
[limits]
wall = "60s"
grace = "5s"
[parameters]
file = "params.json"
[parameters.space]
kind = {type = "choice", values = ["good", "better", "polite", "deaf"]}
[pruning]
rule = "median"
startup = 2
spare = 0.0
"""
TRIAL = """
import json, os, signal, subprocess, sys, time
kind = json.load(open("params.json"))["kind"]
out = os.environ["BLASTDOOR_OUT"] + "/"

def flush(*_):
    open(out + "flushed.txt", "w").write(kind)
    if kind != "deaf":
        sys.exit(0)

signal.signal(signal.SIGTERM, flush)
if kind == "deaf":
    subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 300"])
good = kind in ("start", "good", "better")
print('::report {"step": 0, "value": NaN}')
for step in range(4):
    print("::report " + json.dumps({"step": step, "value": step if good else 0.0}))
deadline = time.monotonic() + (0 if good else 300)
while time.monotonic() < deadline:
    time.sleep(0.05)
open(out + "answer.txt", "w").write(kind)
"""
JUDGE = """
import json, os
answer = open(os.environ["BLASTDOOR_OUTPUTS"] + "/answer.txt").read()
scores = {"start": 0.0, "good": 1.0, "better": 2.0}
json.dump({"score": scores[answer]}, open(os.environ["BLASTDOOR_RESULT_PATH"], "w"))
"""


def write(folder: Path) -> Path:
    files = {
        "blastdoor.toml": TASK,
        "workspace/trial.py": TRIAL,
        "workspace/params.json": '{"kind": "start"}',
        "judge/judge.py": JUDGE,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


async def played(folder: Path) -> tuple[State, Artifacts, int]:
    """What came of it, and how many chambers of ours were there at its end that had got a job."""
    settings = Settings(docker_host=os.environ.get("BLASTDOOR_DOCKER_HOST"), warm=0)
    async with (
        docker_site(docker_config(settings), settings.image) as site,
        open_campaign(folder, site, flags=Flags(proposer="grid", width=1), settings=settings) as opened,
    ):
        await opened.campaign.run()
        assert isinstance(site.backend, DockerBackend)
        engine = await asyncio.to_thread(Engine, docker_config(settings).host)
        left = await engine.containers(f"{OWNER_LABEL}={site.backend.owner}")
        engine.close()
        return opened.bench.state, opened.bench.artifacts, len(left)


def test_stop_grace_and_kill(tmp_path: Path) -> None:
    """Both are pruned and charged, with what they flushed; the deaf one and its child are killed after the grace."""
    state, artifacts, left = asyncio.run(played(write(tmp_path / "task")))
    nodes = {node.params["kind"]: node for node in state.nodes.values() if node.params}
    endings = {kind: node.ending for kind, node in nodes.items()}
    scored, pruned = Ending.SCORED, Ending.PRUNED
    assert endings == {"good": scored, "better": scored, "polite": pruned, "deaf": pruned}
    for kind in ("polite", "deaf"):
        trial = state.trials[nodes[kind].submitted or ""]
        assert trial.pruning
        assert (trial.pruning.step, trial.pruning.value) == (1, 0.0)
        assert "median 1 of 2 peers" in trial.reason
        assert ("ignored the order to stop" in trial.reason) == (kind == "deaf")
        assert trial.outputs
        assert artifacts.get_files(trial.outputs) == {"flushed.txt": kind.encode()}
        assert trial.reports
        assert trial.reports.refused == 1
        assert trial.spent.milliseconds < 60_000
    assert left == 0
    champion = state.champion()
    assert champion
    assert champion.params == {"kind": "better"}
