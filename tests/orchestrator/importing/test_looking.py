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
    "if 'import os' in open(path).read(): return {}": "2",
    "text = open(path).read()\n    if 'import os' in text: return {}": "3",
    "with open(path) as file:\n        code = file.read()\n    size = len(code)": "4",
    "text = Path(path).read_text()\n    tree = ast.parse(text)": "3",
    "size = len(inspect.getsource(program))": "2",
    "check(path)\ndef check(where):\n    return len(open(where).read())": "4",
    "with open(path) as f:\n        for line in f: check(line)": "3",
    "return list(tokenize.tokenize(open(path, 'rb').readline))": "2",
    "return len(open(file=f'{path}').read())": "2",
    "return len(open(os.path.join(HERE, path)).read())": "2",
    "self.p = path\n    return len(open(self.p).read())": "3",
    "p = Path(path)\n    return len((p.parent / p.name).read_text())": "3",
    "return len(os.read(os.open(path, 0), 9))": "2",
    "return len(linecache.getlines(path))": "2",
    "return len(SourceFileLoader('m', path).get_source('m'))": "2",
    "return json.load(open(path))": "2",
    "other = os.path.join(os.path.dirname(path), 'x')\n    return len(open(other).read())": "",
    "with open(path) as f, open(other, 'w') as g:\n        shutil.copyfileobj(f, g)": "",
    "text = open(path).read()\n    exec(compile(text, path, 'exec'), {})": "",
    "shutil.copy(path, other)\n    other.write_text(open(path).read())": "",
    "text = open('words.txt').read()\n    size = len(text)": "",
}


@pytest.mark.parametrize("body", LOOKS)
def test_where_it_looks(body: str) -> None:
    """A text that is looked at is told from one that is only loaded or copied, by the line where it is."""
    assert looked_at(ast.parse(f"def evaluate(path):\n    {body}\n"), {"path"}) == LOOKS[body]


LOOKING = EVALUATOR.replace("    spec =", "    assert 'import os' not in open(program_path).read()\n    spec =")


def test_it_gets_the_text_as_data(tmp_path: Path) -> None:
    """The task says which file is put beside the judge, and the driver where it is found."""
    imported = read(ImportRequest(write(tmp_path / "there", evaluator__py=LOOKING), "small"))
    assert tomllib.loads(imported.files["blastdoor.toml"].decode())["judge"]["looks"] == ["initial_program.py"]
    assert b"looks='initial_program.py'" in imported.files["judge/judge.py"]
    assert any("finds the candidate's, beside the judge as data" in line for line in imported.findings)
    assert not any("finds that of a stub" in line for line in imported.findings)


def test_one_that_may_read_it(tmp_path: Path) -> None:
    """It gets the text as soon as any of its files could read one, since it could run none."""
    line = "    assert not checks.bad(program_path)\n    spec ="
    evaluator = EVALUATOR.replace("    spec =", line).replace("import ", "import checks, ")
    source = write(
        tmp_path / "there", evaluator__py=evaluator, checks__py="def bad(it): return 'x' in open(it).read()\n"
    )
    assert b"looks='initial_program.py'" in read(ImportRequest(source, "small")).files["judge/judge.py"]
    assert b"looks=" not in read(ImportRequest(write(tmp_path / "other"), "small")).files["judge/judge.py"]


def test_one_that_could_run_the_text(tmp_path: Path) -> None:
    """It is not given the text, and is not imported as if its check meant anything, unless somebody says so."""
    evaluator = LOOKING + "\ndef other(text):\n    exec(text)\n"
    source = write(tmp_path / "there", evaluator__py=evaluator)
    with pytest.raises(TaskError, match=r"looks at the program's text.*evaluator.py:\d+ exec.*--stub-text"):
        read(ImportRequest(source, "small"))
    imported = read(ImportRequest(source, "small", stub_text=True))
    assert "looks" not in tomllib.loads(imported.files["blastdoor.toml"].decode())["judge"]
    assert any("a check of the source says nothing here" in line for line in imported.findings)
    assert b"stub_text=True" in imported.files["judge/judge.py"]
