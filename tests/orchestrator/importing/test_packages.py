"""What a folder says of the packages that its program needs."""

import os
from pathlib import Path

import pytest

from orchestrator.importing.packages import needs_of, versions_of
from orchestrator.importing.source import Source
from orchestrator.task import TaskError


def versions(folder: Path, text: str) -> dict[str, str]:
    (folder / "requirements.txt").write_text(text)
    return versions_of(Source.of(folder))


LINES = {
    "numpy": {"numpy": ""},
    "numpy >= 1.26 , < 3 , # why": {"numpy": ">=1.26,<3"},
    "Scikit_Learn==1.5.2": {"scikit-learn": "==1.5.2"},
    "odd==1!2.0+cpu": {"odd": "==1!2.0+cpu"},
    "numpy>=1,,<3": {},
    "numpy=1": {},
    "numpy>=1 2": {},
    "numpy>=1; python_version < '3.9'": {},
    "numpy @ https://example.org/numpy.whl": {},
    "-r other.txt": {},
    "numpy>=1" + ",<3" * 200: {},
    # It can be cut into clauses in many ways, and is read in one pass: else 2 ** 240 steps.
    "a==1" + "!1" * 240 + ";\nnumpy==2": {"numpy": "==2"},
}


def test_requirements(tmp_path: Path) -> None:
    """Names and versions are taken over; a line of another kind is not."""
    for line, found in LINES.items():
        assert versions(tmp_path, line + "\n") == found


def test_imports_do_not_go_through_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many imports there are, a module's files are asked for once."""
    asked: list[str] = []
    module_files = Source.module_files

    def noted(self: Source, module: str) -> list[str]:
        asked.append(module)
        return module_files(self, module)

    monkeypatch.setattr(Source, "module_files", noted)
    (tmp_path / "tools").mkdir()
    (tmp_path / "start.py").write_text("import alone, tools.a, tools.b\nimport tools\n")
    (tmp_path / "alone.py").write_text("import tools, alone\n")
    for name in "abcdefgh":
        (tmp_path / "tools" / f"{name}.py").write_text("import alone, tools.a, tools.b, tools.c\n")
    (tmp_path / "tools" / "data.csv").write_text("1")
    names = Source.of(tmp_path).names
    assert needs_of(Source(tmp_path, names), "start.py", {}).files == set(names)
    assert sorted(asked) == ["alone", "tools"]


def test_a_file_goes_before_a_folder(tmp_path: Path) -> None:
    """As a module is found: by its file, else in its folder; a name that only begins alike is another module."""
    source = Source(tmp_path, ("a.py", "a/b.py", "c/__init__.py", "c/d/e.py", "cc/f.py", "g/c/h.py"))
    assert source.module_files("a") == ["a.py"]
    assert source.module_files("c") == ["c/__init__.py", "c/d/e.py"]
    assert source.module_files("d") == []


def test_a_file_that_becomes_a_link_is_not_read(tmp_path: Path) -> None:
    """What is checked is what is read: neither a file nor a folder on the way may turn into a link, or a pipe."""
    (tmp_path / "secret").write_text("secret")
    folder = tmp_path / "there"
    (folder / "inner").mkdir(parents=True)
    for name in ("a.py", "b.py", "inner/c.py"):
        (folder / name).write_text("1\n")
    source = Source.of(folder)
    (folder / "a.py").unlink()
    (folder / "a.py").symlink_to(tmp_path / "secret")
    (folder / "b.py").unlink()
    os.mkfifo(folder / "b.py")
    (folder / "inner").rename(folder / "away")
    (folder / "inner").symlink_to(folder / "away")
    for name in ("a.py", "b.py", "inner/c.py"):
        with pytest.raises(TaskError, match="cannot be read"):
            source.read(name)
    assert source.read("away/c.py") == b"1\n"
