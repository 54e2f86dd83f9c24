"""Capture of a judge that calls the candidate, through a whole campaign: on the stage, where only what crosses is seen,
and on an engine with each runtime. Each attack ran, gained nothing, and the campaign went on.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.tier import Tier
from orchestrator.settings import Settings
from orchestrator.wiring.backends.docker import docker_config, docker_site
from tests.attacks import relay_candidates as r
from tests.attacks.judged import Fought, fought_by, site_of

STAGE = pytest.param("stage", marks=pytest.mark.attack)
ENGINE = pytest.param("runc", marks=[pytest.mark.docker, pytest.mark.attack])
GVISOR = pytest.param(
    "runsc", marks=[pytest.mark.docker, pytest.mark.attack, pytest.mark.touching("docker", "members")]
)
AT_LENGTH = pytest.param("runc, all of them", marks=[pytest.mark.docker, pytest.mark.attack, pytest.mark.slow])
# What crosses is the same everywhere, and all of it is tried on the stage: on an engine, a few of each kind tell
# whether anything is different there.
FEWEST = ("lacks the function", "prints into the channel", "T24 exit at import", "T27 patched clock")
FEW = (*FEWEST, "T25 equal to all", "T81 twice")


def candidates(kind: str) -> dict[str, str]:
    every = {name: text for name, (text, _) in r.INVALID.items()}
    every |= {name: text for name, (text, *_) in r.ENDED.items()} | r.LOST | {"T27 patched clock": r.PATCHED_CLOCK}
    if kind in ("runc", "runsc"):
        every = {name: every[name] for name in (FEW if kind == "runc" else FEWEST)}
    if kind != "stage":
        every |= r.ISOLATED | {"out of memory": r.MEMORY}
    return {"honest": r.HONEST, "wrong": r.WRONG, **every, "last": r.LAST}


def write(folder: Path) -> Path:
    files = {
        "blastdoor.toml": r.TASK,
        "workspace/solve.py": r.BASELINE,
        "judge/judge.py": r.JUDGE,
        "judge/gold/marker.txt": r.MARKER,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module", params=[STAGE, ENGINE, GVISOR, AT_LENGTH])
def fought(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fought:
    kind: str = request.param
    runtime, _, _ = kind.partition(",")
    folder = tmp_path_factory.mktemp(f"relay-{runtime}")
    site = site_of("stage", folder)
    if kind != "stage":
        settings = Settings()
        site = docker_site(docker_config(settings, runtime=runtime, inputs_folder=folder / "cache"), settings.image)
    return asyncio.run(fought_by(write(folder / "task"), site, candidates(kind)))


def present(fought: Fought, names: Mapping[str, object]) -> list[str]:
    found = [name for name in names if name in fought.nodes]
    assert found, "none of them was tried"
    return found


def test_the_campaign_goes_on(fought: Fought) -> None:
    """Honest ones score, the wrong one loses, and after all attacks the best is still found."""
    honest, wrong, last = (fought.nodes[name] for name in ("honest", "wrong", "last"))
    assert honest.kept
    assert last.kept
    assert fought.champion == last.id
    assert [node.verdict.metrics["score"] for node in (honest, wrong, last) if node.verdict] == [-50, -900, 0]
    assert {node.verdict.tier for node in fought.nodes.values() if node.verdict} == {Tier.RELAY}
    assert all(node.phase == "ended" for node in fought.nodes.values())


def test_answers_that_are_none(fought: Fought) -> None:
    """What is no plain value, no number or no answer at all is no solution, and the note says what was wrong."""
    for name in present(fought, r.INVALID):
        node = fought.nodes[name]
        assert (node.ending, node.kept) == (Ending.INVALID, False), name
        assert node.verdict, name
        assert node.verdict.valid is False, name
        assert r.INVALID[name][1] in node.verdict.notes, name


def test_what_gains_nothing(fought: Fought) -> None:
    """Prints go to the log, and what a candidate does to its own chamber changes nothing in the judge's."""
    for name in present(fought, r.LOST):
        node = fought.nodes[name]
        assert (node.ending, node.kept) == (Ending.SCORED, False), (name, node.why)
        assert node.verdict, name
        assert node.verdict.metrics["score"] <= -900 or "T37" in name, name


def test_what_was_found(fought: Fought) -> None:
    """The attacks really ran, and found no gold, no frame, no seed and no descriptor."""
    told = {
        "prints into the channel": b"a stray line",
        "writes to stdout": b"raw bytes on one",
        "T28 patched library": b"patched 0",
        "T29 walks the frames": b"frames with gold: 0",
        "T30 walks the heap": b"gold on the heap: 0",
        "T31 a child's descriptors": b"child has []",
        "looks everywhere": b"files with gold: 0",
    }
    for name in present(fought, told):
        assert told[name] in fought.logs[name], name


def test_t37_nothing_to_cache(fought: Fought) -> None:
    """Every call has numbers of its own, so the answer of an earlier one is wrong."""
    if "T37 the answer of the first call" in fought.nodes:
        verdict = fought.nodes["T37 the answer of the first call"].verdict
        assert verdict
        assert verdict.metrics["score"] < 0
    seeds = [trial.calibration.seed for trial in fought.trials.values() if trial.calibration]
    assert len(set(seeds)) == len(seeds) > 5


def test_endings_of_its_own(fought: Fought) -> None:
    """Exits, faults and forged frames end the trial by a typed ending that the candidate pays; none is scored."""
    for name in present(fought, r.ENDED):
        node = fought.nodes[name]
        _, ending, why = r.ENDED[name]
        assert (node.ending, node.verdict) == (ending, None), (name, node.why)
        assert node.why.startswith(why), name


def test_t27_patched_clock(fought: Fought) -> None:
    """Five calls that each sleep 50 ms took at least 250 ms, whatever the candidate's clock says."""
    verdict = fought.nodes["T27 patched clock"].verdict
    assert verdict
    assert verdict.metrics["seconds"] >= 0.25


@pytest.mark.parametrize("fought", [ENGINE, GVISOR], indirect=True)
def test_out_of_memory(fought: Fought) -> None:
    """A candidate that swells in a call pays for it. In gVisor's kernel that is slow, and may end as a crash."""
    own = [Ending.OUT_OF_MEMORY]
    if fought.trials["honest"].fingerprint["backend"] == "docker/runsc":
        own += [Ending.FAILED, Ending.TIMED_OUT]
    assert fought.nodes["out of memory"].ending in own


def test_nothing_of_the_gold_is_on_record(fought: Fought) -> None:
    """Neither the ledger nor a log, artifact or export has the gold; the attacks' own texts spell it backwards."""
    assert fought.found(r.MARKER) == []
