"""Evaluators that look at the program's text, as far as their own tells."""

import ast
import tomllib
from pathlib import Path

import pytest

from orchestrator.importing import ImportRequest
from orchestrator.importing.looking import looked_at
from orchestrator.importing.openevolve import read
from orchestrator.task import TaskError
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR, write

LOOKS = {
    "a word": ("if 'import os' in open(path).read(): return {}", "2"),
    "a name": ("text = open(path).read()\n    if 'import os' in text: return {}", "3"),
    "a file": ("with open(path) as file:\n        code = file.read()\n    size = len(code)", "4"),
    "a path": ("text = Path(path).read_text()\n    tree = ast.parse(text)", "3"),
    "inspect": ("size = len(inspect.getsource(program))", "2"),
    "a function of its own": ("check(open(path).read())\ndef check(text):\n    return text.count('x')", "4"),
    "the path handed on": ("check(path)\ndef check(where):\n    return len(open(where).read())", "4"),
    "loaded": ("exec(open(path).read(), {})", ""),
    "loaded by a name": ("text = open(path).read()\n    exec(compile(text, path, 'exec'), {})", ""),
    "copied": ("shutil.copy(path, other)\n    other.write_text(open(path).read())", ""),
    "another file": ("text = open('words.txt').read()\n    size = len(text)", ""),
}


@pytest.mark.parametrize("how", LOOKS)
def test_where_it_looks(how: str) -> None:
    """A text that is looked at is told from one that is only loaded."""
    body, lines = LOOKS[how]
    assert looked_at(ast.parse(f"def evaluate(path):\n    {body}\n"), {"path"}) == lines


LOOKING = EVALUATOR.replace("    spec =", "    assert 'import os' not in open(program_path).read()\n    spec =")


def test_it_gets_the_text_as_data(tmp_path: Path) -> None:
    """The task says which file is put beside the judge, and the driver where it is found."""
    imported = read(ImportRequest(write(tmp_path / "there", evaluator__py=LOOKING), "small"))
    assert tomllib.loads(imported.files["blastdoor.toml"].decode())["judge"]["looks"] == ["initial_program.py"]
    assert b"looks='initial_program.py'" in imported.files["judge/judge.py"]
    assert any("finds the candidate's, beside the judge as data" in line for line in imported.findings)
    assert not any("finds that of a stub" in line for line in imported.findings)


def test_one_that_could_run_the_text(tmp_path: Path) -> None:
    """It is not given the text, and is not imported as if its check meant anything, unless somebody says so."""
    evaluator = LOOKING + "\ndef other(text):\n    exec(text)\n"
    source = write(tmp_path / "there", evaluator__py=evaluator)
    with pytest.raises(TaskError, match=r"looks at the program's text.*evaluator.py:\d+ exec.*--stub-text"):
        read(ImportRequest(source, "small"))
    imported = read(ImportRequest(source, "small", stub_text=True))
    assert "looks" not in tomllib.loads(imported.files["blastdoor.toml"].decode())["judge"]
    assert any("a check of the source says nothing here" in line for line in imported.findings)
