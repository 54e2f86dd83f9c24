"""What says more of an extra runs where the extra was touched, and everywhere when nobody can tell."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.touched import EVERYTHING, EXTRAS, FOUND, is_touched, left_out, touched

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")


def commit(folder: Path, name: str, date: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(name)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    environment = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date, "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run(["git", *AUTHOR, "commit", "-qm", name], cwd=folder, check=True, env=environment)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One file of long ago, one of a moment ago, one that is changed, one that git does not know."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    commit(tmp_path, "old", "2020-01-01T00:00:00Z")
    commit(tmp_path, "edited", "2020-01-02T00:00:00Z")
    commit(tmp_path, "page/new", "2099-01-01T00:00:00Z")
    (tmp_path / "edited").write_text("more")
    (tmp_path / "unknown").touch()
    return tmp_path


def test_since_a_day_ago_or_a_revision(repository: Path) -> None:
    """What was committed since then, what is not committed, and what git does not know."""
    assert touched(repository) == ["edited", "page/new", "unknown"]
    assert touched(repository, "HEAD") == ["edited", "unknown"]


def test_everything_where_nobody_can_tell(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No such revision, no commit that is old enough, no repository."""
    assert touched(repository, "nobody") == [EVERYTHING]
    young = tmp_path_factory.mktemp("young")
    subprocess.run(["git", "init", "-q", str(young)], check=True)
    commit(young, "new", "2099-01-01T00:00:00Z")
    assert touched(young) == [EVERYTHING]
    assert touched(Path("/")) == [EVERYTHING]


def test_a_place_is_a_file_or_a_folder() -> None:
    """The name of a folder is no beginning of other names."""
    changes = ("a/b/c.py", "a/b", "x.py", EVERYTHING, "a/bc.py", "a")
    assert [is_touched(["a/b", "x.py"], ["elsewhere", it]) for it in changes] == [True] * 4 + [False] * 2
    assert not is_touched(["a/b", "x.py"], [])


@pytest.mark.parametrize(
    ("changed", "is_out"), [("orchestrator/views/page/x", False), ("elsewhere", True), ("tests/test_touched.py", False)]
)
def test_left_out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, changed: str, is_out: bool) -> None:
    """Where neither what it names nor its own file was touched; what has no mark never is."""
    monkeypatch.setenv(FOUND, changed)
    assert left_out([request.node]) == []
    request.node.add_marker(pytest.mark.touching("page"))
    assert left_out([request.node]) == [request.node] * is_out


def test_extras_are_where_they_are_said_to_be() -> None:
    """A folder that moved would never be touched again, and its tests would never run."""
    tests = Path(__file__).parent
    missing = [place for places in EXTRAS.values() for place in places if not (tests.parent / place).exists()]
    assert not missing
    named = {
        name
        for path in tests.rglob("test_*.py")
        for words in re.findall(r"mark\.touching\(([^)]*)\)", path.read_text())
        for name in re.findall(r'"(\w+)"', words)
    }
    assert named == EXTRAS.keys()
