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
    "lines": ("with open(path) as f:\n        for line in f: check(line)", "3"),
    "lines at once": ("return any('x' in it for it in open(path)), list(open(path))", "2"),
    "tokens": ("return list(tokenize.tokenize(open(path, 'rb').readline))", "2"),
    "a keyword": ("return len(open(file=path).read())", "2"),
    "a text with the path": ("return len(open(f'{path}').read())", "2"),
    "a join": ("return len(open(os.path.join(HERE, path)).read())", "2"),
    "an argument": ("args = [path]\n    return len(open(args[0]).read())", "3"),
    "a field": ("self.p = path\n    return len(open(self.p).read())", "3"),
    "its parts": ("p = Path(path)\n    return len((p.parent / p.name).read_text())", "3"),
    "a descriptor": ("return len(os.read(os.open(path, 0), 9))", "2"),
    "linecache": ("return len(linecache.getlines(path))", "2"),
    "a loader": ("return len(SourceFileLoader('m', path).get_source('m'))", "2"),
    "getsource": ("return len(getsource(program))", "2"),
    "json": ("return json.load(open(path))", "2"),
    "beside it": ("other = os.path.join(os.path.dirname(path), 'x')\n    return len(open(other).read())", ""),
    "copied by hand": ("with open(path) as f, open(other, 'w') as g:\n        shutil.copyfileobj(f, g)", ""),
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


MAY_READ = {
    "a helper": (
        "    assert not checks.bad(program_path)\n",
        {"checks.py": "def bad(it): return 'x' in open(it).read()\n"},
    ),
    "a name that is not followed": ("    assert 'x' not in DO(program_path)\n", {}),
    "nothing": ("", {}),
}


@pytest.mark.parametrize("how", MAY_READ)
def test_one_that_may_read_it(tmp_path: Path, how: str) -> None:
    """It gets the text as soon as any of its files could read one, since it could run none."""
    line, others = MAY_READ[how]
    evaluator = EVALUATOR.replace("    spec =", f"{line}    spec =").replace("import ", "import checks, ", bool(others))
    evaluator += "\nDO = lambda it: Path(it).read_text()\n" * ("DO(" in line)
    source = write(tmp_path / "there", evaluator__py=evaluator)
    for name, text in others.items():
        (source / name).write_text(text)
    assert (b"looks='initial_program.py'" in read(ImportRequest(source, "small")).files["judge/judge.py"]) is bool(line)


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
