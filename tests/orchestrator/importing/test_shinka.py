"""What becomes of a task of ShinkaEvolve. No code of the task is run."""

from pathlib import Path

import pytest

from orchestrator.importing import Imported, ImportRequest
from orchestrator.importing.shinka import read
from orchestrator.task import TaskError
from tests.orchestrator.importing.openevolve_tasks import task_of

PROGRAM = (
    "# EVOLVE-BLOCK-START\ndef step(x):\n    return x\n# EVOLVE-BLOCK-END\n\n\ndef run(seed):\n    return step(seed)\n"
)
EVALUATE = """
from shinka.core import run_shinka_eval


def main(program_path, results_dir):
    run_shinka_eval(program_path=program_path, results_dir=results_dir, experiment_fn_name="run", num_runs=2)
"""
RUN_EVO = """
import os
from shinka.launch import LocalJobConfig

os.system("touch ran")
MESSAGE = "Let run(seed) be large."
job = LocalJobConfig(eval_program_path="evaluate.py", time="01:02:03")
evo = dict(task_sys_msg=MESSAGE, num_generations=9, llm_models=[])
"""
SETTINGS = "job_config: {time: '01:02:03'}\nevo_config: {task_sys_msg: Let run(seed) be large., num_generations: 9}\n"


def imported(folder: Path, **files: str) -> Imported:
    folder.mkdir()
    for name, text in {"initial.py": PROGRAM, "evaluate.py": EVALUATE, **files}.items():
        (folder / name).write_text(text)
    return read(ImportRequest(folder, "small"))


@pytest.mark.parametrize(
    ("name", "text"),
    [("run_evo.py", RUN_EVO), ("shinka_small.yaml", SETTINGS)],
)
def test_a_whole_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Statement, time and attempts come from the settings, in Python or YAML, which are read and never run."""
    monkeypatch.chdir(tmp_path)
    found = imported(tmp_path / "there", **{name: text})
    task = task_of(tmp_path, found)
    assert task.statement.startswith("Let run(seed) be large.\n\nA judge in another chamber calls run of initial.py.")
    assert (task.limits.wall, task.budget.attempts, task.judge.mode) == (3723, 9, "relay")
    assert task.editable == ("initial.py:EVOLVE-BLOCK",)
    assert found.files["judge/evaluate.py"] == EVALUATE.encode()
    assert "from blastdoor_shinka import judge" in found.files["judge/judge.py"].decode()
    assert not (tmp_path / "ran").exists()


def test_enumerations_of_a_file_that_both_sides_have(tmp_path: Path) -> None:
    """Their members cross; those of a file that one side has do not."""
    signs = "import enum\nclass Sign(enum.Enum):\n    GO = 1\nclass Loud(Sign):\n    pass\nclass Plain:\n    pass\n"
    found = imported(
        tmp_path / "there",
        **{
            "initial.py": f"from signs import Sign\n{PROGRAM}",
            "evaluate.py": f"from own import Own\nfrom signs import Sign\n{EVALUATE}",
            "signs.py": signs,
            "own.py": "from enum import Enum\nclass Own(Enum):\n    A = 1\n",
        },
    )
    driver = found.files["judge/judge.py"].decode()
    assert "enums=['signs.Sign', 'signs.Loud']," in driver
    assert "enums" not in imported(tmp_path / "other").files["judge/judge.py"].decode()


@pytest.mark.parametrize(
    ("why", "files"),
    [
        ("defines no main", {"evaluate.py": "def rate(path):\n    return 1\n"}),
        ("has two programs, initial.go and initial.py", {"initial.go": ""}),
        ("only run_shinka_eval of shinka.core is there", {"evaluate.py": "import shinka.llm\n" + EVALUATE}),
    ],
)
def test_bad_input(tmp_path: Path, why: str, files: dict[str, str]) -> None:
    """One line that says what is wrong."""
    with pytest.raises(TaskError, match=why):
        imported(tmp_path / "there", **files)
