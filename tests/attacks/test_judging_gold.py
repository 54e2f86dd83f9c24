"""Groups G and N through a whole campaign: gold and secrets with a canary in them, candidates that look everywhere,
and then every record of the campaign searched for it.
"""

import asyncio
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.loop.jobs import Image
from orchestrator.settings import Settings
from orchestrator.task import load_task
from orchestrator.views.judging.gate import Change
from orchestrator.views.judging.gate import gate as run_gate
from orchestrator.wiring.reading import read_campaign
from tests.attacks.candidates import SEARCH, leaving
from tests.attacks.judged import HONEST, Fought, fight, fought_by, site_of
from tests.orchestrator.views.judging.samples import documents
from tests.orchestrator.views.judging.stage import GOLD, METRIC, Stage, whole, write_task

STAGE = pytest.param("stage", marks=pytest.mark.attack)
ENGINE = pytest.param("docker", marks=[pytest.mark.docker, pytest.mark.attack])
# Breaks on an answer that is a text, and says the answers while it does.
JUDGE = """import json, sys
from pathlib import Path
from blastdoor_judge import BadOutput, judging, load_json, number, publish

with judging():
    gold = json.loads(Path("gold/answers.json").read_text())
    found = load_json("answers.json", max_bytes=10_000)
    values = found.get("values") if isinstance(found, dict) else None
    if isinstance(values, str):
        print("the answers are", gold, flush=True)
        raise RuntimeError(f"{values!r} is not {gold}")
    if not isinstance(values, list) or len(values) != 3:
        raise BadOutput("three numbers are wanted")
    publish(-sum(abs(number(value) - wanted) for value, wanted in zip(values, gold["values"])))
"""
BREAKS = leaving(answers='{"values": "tell me more"}')


@dataclass(frozen=True)
class Searched:
    fought: Fought
    gold: str
    secret: str


@pytest.fixture(scope="module", params=[STAGE, ENGINE])
def searched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searched]:
    """A canary in gold, one in the orchestrator's environment, one in an old commit, and decoys where they belong."""
    folder = tmp_path_factory.mktemp(f"gold-{request.param}")
    gold, secret = f"canary-gold-{uuid.uuid4().hex}", f"canary-secret-{uuid.uuid4().hex}"
    task = write_task(
        folder / "task",
        METRIC,
        trial='env = {DECOY = "decoy-1"}',
        files={
            "judge/judge.py": JUDGE,
            "judge/gold/answers.json": json.dumps({**GOLD, "note": gold}),
            "workspace/notes.txt": "decoy-2\n",
        },
    )
    _commit_and_forget(task / "workspace", f"canary-history-{uuid.uuid4().hex}")
    attacks = {"T45 breaks the judge": BREAKS}
    if request.param == "docker":
        attacks["T40 searches"] = SEARCH
    os.environ["SECRET_OF_THE_ORCHESTRATOR"] = secret
    try:
        yield Searched(fight(task, site_of(request.param, folder / "cache"), attacks), gold, secret)
    finally:
        del os.environ["SECRET_OF_THE_ORCHESTRATOR"]


def _commit_and_forget(workspace: Path, canary: str) -> None:
    """A repository whose first commit has the canary, and whose second has it no more."""

    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@t.example")
        subprocess.run(["git", *who, *words], cwd=workspace, check=True, capture_output=True)

    git("init", "--quiet")
    (workspace / "answers.txt").write_text(canary)
    git("add", "--all")
    git("commit", "--quiet", "--message", f"with the answers {canary}")
    (workspace / "answers.txt").unlink()
    git("commit", "--quiet", "--all", "--message", "without")


def test_t45_error_text_of_the_judge(searched: Searched) -> None:
    """The judge broke and said the answers; what is kept of it is a code, the candidate pays, and all goes on."""
    assert searched.fought.went_on()
    node = searched.fought.nodes["T45 breaks the judge"]
    assert (node.ending, node.kept) == (Ending.INVALID, False)
    assert node.why == "the judge cannot score it: judge failed"
    with read_campaign(searched.fought.folder) as reading:
        judged = [record.body for record in reading.ledger.read(kinds=["judging ended"])]
    assert any('"fault":"judge failed"' in body for body in judged)
    assert searched.fought.found("tell me more")  # the candidate's own words are kept, and the search sees them
    assert searched.fought.found("the answers are") == []
    assert searched.fought.found("RuntimeError") == []


def test_t42_t63_what_is_in_no_record(searched: Searched) -> None:
    """Gold, the orchestrator's environment and the workspace's past are in no row, event, artifact, commit, export or
    live log; what the task gives a candidate is. A live log is there while its chamber is, and not longer.
    """
    for secret in (searched.gold, json.dumps(GOLD["values"]), searched.secret, "canary-history-"):
        assert searched.fought.found(secret) == []
    assert searched.fought.found("decoy-1")
    assert list((searched.fought.folder / ".blastdoor" / "live").glob("*")) == []


@pytest.mark.parametrize("searched", [ENGINE], indirect=True)
def test_t40_t42_t43_t62_what_a_candidate_finds(searched: Searched) -> None:
    """It searched, and found what it was meant to find: none of the gold in any file, command line, mount or
    environment, its own or anybody's, nothing of the orchestrator's, and of a workspace with a past the present only.
    """
    seen = json.loads(searched.fought.outputs["T40 searches"]["found.json"])
    assert "/work/src/notes.txt" in seen["decoys"]
    assert any(path.endswith("/environ") for path in seen["decoys"])
    assert seen["looked"] > 1000
    assert seen["secrets"] == []
    assert searched.fought.nodes["T40 searches"].ending is Ending.SCORED
    assert b"SECRET_OF_THE_ORCHESTRATOR" not in searched.fought.logs["T40 searches"]
    assert not [name for name in seen["environment"] if name.startswith("EVO_") or name == "BLASTDOOR_RESULT_PATH"]
    assert (searched.fought.folder / "workspace" / ".git").is_dir()
    assert seen["repositories"] == []


@pytest.mark.docker
@pytest.mark.attack
def test_t41_image_layers(tmp_path: Path) -> None:
    """Images that were baked for a task with a canary in its gold hold it in no layer, label or history."""
    canary, marker = f"canary-gold-{uuid.uuid4().hex}", f"baked-{uuid.uuid4().hex}"
    table = f'[image]\nrun = ["echo {marker} > /etc/greeting"]\n'
    judge = f'image = {{run = ["echo {marker} for the judge > /etc/greeting"]}}'
    gold = {"judge/gold/answers.json": json.dumps({**GOLD, "note": canary})}
    task = write_task(tmp_path / "task", METRIC, table, judge=judge, files=gold)
    fought = asyncio.run(fought_by(task, site_of("docker", tmp_path / "cache"), {"honest": HONEST}))
    assert fought.champion == fought.nodes["honest"].id
    images = asyncio.run(_baked(task, tmp_path / "cache"))
    assert images[0].digest == fought.trials["honest"].fingerprint["image"]
    try:
        for image in images:
            assert _held(image.name, marker), "the search must see what was baked"
            assert not _held(image.name, canary)
    finally:
        for image in images:
            subprocess.run(["docker", "image", "rm", "--force", image.name], check=False, capture_output=True)


async def _baked(task: Path, cache: Path) -> list[Image]:
    """The images of a task that has been run: they are there, so nothing is baked."""
    loaded = load_task(task)
    async with site_of("docker", cache) as site:
        return [await site.bake(loaded.image), await site.bake(loaded.judge.image)]


def _held(image: str, needle: str) -> bool:
    """Whether a text is in a layer, the settings or the history of an image."""
    history = subprocess.run(["docker", "image", "history", "--no-trunc", image], check=True, capture_output=True)
    found = needle.encode() in history.stdout
    with subprocess.Popen(["docker", "image", "save", image], stdout=subprocess.PIPE) as saving:
        assert saving.stdout is not None
        before = b""
        while piece := saving.stdout.read(1 << 20):
            found |= needle.encode() in before + piece
            before = piece[-len(needle) :]
    assert saving.returncode == 0
    return found


async def test_t45_the_gate_quotes_no_judge(tmp_path: Path) -> None:
    """The documents that leave the gate say what happened in our words, and the answers in none."""
    canary = f"canary-gold-{uuid.uuid4().hex}"
    gold = {"judge/judge.py": JUDGE, "judge/gold/answers.json": json.dumps({**GOLD, "note": canary})}
    task = write_task(tmp_path, METRIC, files=gold)
    text = whole(BREAKS).encode()
    report = await run_gate(task, Change(text, "0" * 64, len(text)), Settings(), Stage().site)
    assert report.gated.why == "invalid: the judge cannot score it: judge failed"
    for form, document in documents(report).items():
        assert canary not in document, form
        assert "RuntimeError" not in document, form
