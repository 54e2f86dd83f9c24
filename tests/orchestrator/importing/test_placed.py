"""Folders that an evaluator looks for elsewhere: what goes along, where it lies, and what is refused."""

from pathlib import Path

import pytest

from orchestrator.importing import Imported, ImportRequest, harbor
from orchestrator.importing.openevolve import read
from orchestrator.task import TaskError
from orchestrator.views.cli import cli
from tests.clicking import runner
from tests.orchestrator.importing.harbor_tasks import write as write_harbor
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR, write

REPOSITORY = {
    "tasks/__init__.py": "",
    "tasks/base.py": "import orjson\nfrom .within import deep\nfrom tasks import beside\nOPEN = 'settings.yaml'\n",
    "tasks/beside.py": "def late():\n    import an_odd_one\n",
    "tasks/within/__init__.py": "",
    "tasks/within/deep.py": "from ..far import away\n",
    "tasks/far.py": "away = 1\n",
    "tasks/settings.yaml": "a: 1\n",
    "tasks/other.py": "import torch\n",
    "results/large.csv": "1,2\n",
}
IMPORTS = "import sys\ntry:\n    from tasks.base import OPEN\nexcept ImportError:\n    OPEN = ''\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in REPOSITORY.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "repository"


def imported(tmp_path: Path, placed: dict[str, Path], evaluator: str = IMPORTS + EVALUATOR) -> Imported:
    source = write(tmp_path / "there", evaluator__py=evaluator)
    return read(ImportRequest(source, "small", placed=placed))


def test_what_is_reached_goes_along(tmp_path: Path, repository: Path) -> None:
    """Modules that are imported, by whatever name, and files beside them that they name; nothing else of it."""
    found = imported(tmp_path, {"~/github/Ours": repository})
    names = {it.removeprefix("judge/home/github/Ours/tasks/") for it in found.files if it.startswith("judge/home/")}
    assert names == {
        "__init__.py", "base.py", "beside.py", "far.py", "settings.yaml", "within/__init__.py", "within/deep.py",
    }  # fmt: skip
    assert "home='home'" in found.files["judge/judge.py"].decode()
    assert any(line == "packages by what is imported and started: orjson" for line in found.mapped)
    assert "the package of an_odd_one, which ~/github/Ours imports" in found.left_out
    assert any(line.startswith(f"~/github/Ours is {repository}, 7 files of it") for line in found.mapped)


def test_a_folder_of_data_goes_along_whole(tmp_path: Path, repository: Path) -> None:
    """Where nothing is imported from it; beneath the evaluator's own folder it needs no home."""
    found = imported(tmp_path, {"data/raw": repository / "results"}, EVALUATOR)
    assert found.files["judge/data/raw/large.csv"] == b"1,2\n"
    assert "home=" not in found.files["judge/judge.py"].decode()


HOME_PATH = "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path.home() / 'github' / 'Ours'))\n"


def test_a_module_that_is_looked_for_elsewhere(tmp_path: Path, repository: Path) -> None:
    """Where it must be there and is not, the import names what brings it; else that would lead nowhere."""
    evaluator = HOME_PATH + "from tasks.base import OPEN\n" + EVALUATOR
    with pytest.raises(TaskError, match=r"imports tasks, .*--package tasks=NAME, or import it with --place WHERE=FOLD"):
        imported(tmp_path, {}, evaluator)
    assert "judge/home/github/Ours/tasks/base.py" in imported(tmp_path, {"~/github/Ours": repository}, evaluator).files
    with pytest.raises(TaskError, match=r"--package tasks=NAME$"):
        imported(tmp_path, {}, evaluator.replace(HOME_PATH, ""))


OUTSIDE = {
    "open('../shared/x.json')": True,
    "open('/data/x')": True,
    "os.path.join(HERE, '..', 'x')": True,
    "open('/tmp/x')": False,
    "open('/dev/null')": False,
    "open('/proc/self/status')": False,
    "run(['/usr/bin/time', 'x'])": False,
    "open('data/x..json')": False,
    "print('and/or ...', '/', '//', 'https://a.org/b', '/ 2', '../')": False,
}


@pytest.mark.parametrize("call", OUTSIDE)
def test_paths_that_lead_out_of_the_folder(tmp_path: Path, call: str) -> None:
    """They are told, but for places that every chamber has."""
    found = imported(tmp_path, {}, f"{EVALUATOR}\ndef other():\n    {call}\n")
    assert any("looks for files outside of its folder" in it for it in found.findings) is OUTSIDE[call]


@pytest.mark.parametrize("where", ["/data", "~", "~/../x", "../x", "a//b", "home/x", "evaluator.py", "judge.py/x", ""])
def test_places_that_are_refused(tmp_path: Path, repository: Path, where: str) -> None:
    """Outside of the judge's folder, or where a file of its own lies."""
    with pytest.raises(TaskError, match="--place"):
        imported(tmp_path, {where: repository})


def test_too_much(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.importing.placed.MAX_BYTES", 3)
    with pytest.raises(TaskError, match="name a part of it"):
        imported(tmp_path, {"data": repository / "results"}, EVALUATOR)


def test_by_the_command(tmp_path: Path, repository: Path) -> None:
    """One line and exit code 2 for a place that is not written as one, that is not there, or that no format takes."""
    source = write(tmp_path / "there")
    for place, why in (("~/x", "write it as WHERE=FOLDER"), (f"~/x={tmp_path / 'gone'}", "is no folder")):
        ran = runner().invoke(cli, ["import", "openevolve", str(source), str(tmp_path / "here"), "--place", place])
        assert (ran.exit_code, why in ran.output, (tmp_path / "here").exists()) == (2, True, False)
    with pytest.raises(TaskError, match="leave --place out"):
        harbor.read(ImportRequest(write_harbor(tmp_path / "harbor"), "small", placed={"~/x": repository}))
