"""The portfolio example: packings are counted, what is none is refused, and a pool is combined instance by instance."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Role
from orchestrator.task import load_task
from orchestrator.wiring.reading import read_campaign
from tests.examples.judging import EXAMPLES, check_refused, judged, module_of
from tests.started import completed

FOLDER = EXAMPLES / "portfolio"
DEV = FOLDER / "inputs/dev/instances.json"
PARAMS = json.loads((FOLDER / "workspace/params.json").read_text())


INSTANCES: list[dict[str, Any]] = json.loads(DEV.read_text())


def packings(**params: object) -> dict[str, list[list[int]]]:
    pack = module_of(FOLDER / "workspace/pack.py")
    return {it["name"]: pack.packed(it["sizes"], it["capacity"], PARAMS | params, it["name"]) for it in INSTANCES}


def test_task_file_is_good() -> None:
    """Both stages are read without a warning, and each baseline names every parameter of its space."""
    task = load_task(FOLDER)
    assert task.warnings == ()
    stage = task.combination()
    assert task.parameters
    assert stage.parameters
    assert set(task.parameters.space) == set(PARAMS)
    assert set(stage.parameters.space) == set(json.loads((FOLDER / "combine/params.json").read_text()))
    assert (stage.judge, stage.metrics, stage.heldout) == (task.judge, task.metrics, task.heldout)
    assert (stage.budget.attempts, stage.budget.patience, stage.search.proposer) == (20, 15, "random")


def test_data_can_be_drawn_again() -> None:
    """Development and held-out instances are what the program draws, and differ."""
    drawn = [module_of(FOLDER / "make_data.py").instances(random.Random(seed)) for seed in (1, 2)]
    assert drawn == [INSTANCES, json.loads((FOLDER / "inputs/held/instances.json").read_text())]


def test_fullness_is_counted(tmp_path: Path) -> None:
    """Every heuristic leaves packings, and a score for each instance."""
    result = judged("portfolio", {"packings.json": json.dumps(packings(order="falling"))}, tmp_path, str(DEV))
    assert 0.85 < result["score"] < 0.95
    assert set(result["tasks"]) == {it["name"] for it in INSTANCES}


WRONG = {
    "an item twice": ([[0], [0]], "every item once"),
    "too full": ([list(range(60))], "holds too much"),
    "an empty bin": ([[]], "no list of bins"),
    "a truth value": ([[True], [1]], "every item once"),
    "nothing": (None, "no list of bins"),
}


def test_no_packing(tmp_path: Path) -> None:
    """No solution, and the judge says why."""
    wrong = {name: ({**packings(), "uniform-1": it}, why) for name, (it, why) in WRONG.items()}
    check_refused("portfolio", "packings.json", wrong, tmp_path, str(DEV))


def test_best_of_each_instance() -> None:
    """The fullest of the members' packings is taken for each instance; one that is none is passed over."""
    portfolio = module_of(FOLDER / "combine/portfolio.py")
    pool: list[dict[str, Any]] = [
        packings(order="falling"),
        packings(order="thirds"),
        {name: [["x"], None] for name in packings()},
    ]
    params = {"choice": "fullest", "members": 3, "emptied": 0, "rounds": 0}
    for instance in INSTANCES:
        name = instance["name"]
        assert len(portfolio.chosen(instance, pool, params)) == min(len(pool[0][name]), len(pool[1][name]))
        mended = portfolio.chosen(instance, pool, params | {"emptied": 4, "rounds": 5})
        assert portfolio.is_packing(mended, instance["sizes"], instance["capacity"])


@pytest.mark.touching("examples")
@pytest.mark.docker
def test_both_stages(tmp_path: Path) -> None:
    """`run --combine` searches bases, freezes two of them, runs those on the held-out instances, and combines them: one
    command, from which `replay` and `export` go on. A combination that names a member which is not in the pool finds no
    such file, fails, and pays for its attempt.
    """
    folder = shutil.copytree(FOLDER, tmp_path / "task")
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace("pool = 5", "pool = 2").replace("combination = 20", "combination = 4"))

    def told(*words: str | Path) -> Any:
        ran = completed(*words)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    summary = told("run", "--combine", "--attempts", "3", "--proposer", "random", "--json", folder)
    stage = summary["combination"]
    assert len(stage["members"]) == 2
    assert {split for it in stage["members"] for split in it["outputs"]} == {"submit", "heldout"}
    assert stage["beats_base"] is not None
    assert summary["best"]["id"].startswith("2")
    assert told("replay", "best", "--json", folder)
    assert completed("export", "--artifact", tmp_path / "winner", "best", folder).returncode == 0
    assert {it.name for it in (tmp_path / "winner/members").iterdir()} == {it["node"] for it in stage["members"]}
    change = tmp_path / "stranger.txt"
    old = '    names = json.loads((pool / "members.json").read_text())["members"]\n'
    change.write_text(f'portfolio.py\n<<<<<<< SEARCH\n{old}=======\n    names = ["1.99"]\n>>>>>>> REPLACE\n')
    assert completed("inject", "--diff", change, folder).returncode == 0
    told("resume", "--attempts", "5", "--json", folder)
    with read_campaign(folder) as reading:
        [stranger] = [node for node in reading.state.nodes.values() if node.role is Role.INJECTED]
        assert (stranger.ending, stranger.why) == (Ending.FAILED, "exit code 1")
        trial = reading.state.trials[stranger.submitted or ""]
        assert trial.log
        assert b"/inputs/pool/1.99/packings.json" in reading.artifacts.get(trial.log)
