"""The candidate's text for an evaluator that looks at it: all ways to read it find it, and none runs it."""

from pathlib import Path

import pytest

from tests.orchestrator.judge.evaluators import BY_SPEC, Judge

TEXT = (
    '''"""A program."""
import os


async def other():
    pass


def solve(x):
    """Doubles."""
    return os.getpid() and 2 * x
'''
    + f"# {'long ' * 100}\n"
)
LOOKS = {
    "open": "len(open(path).read())",
    "with": "[len(f.read()) for f in [open(path, 'r', encoding='utf-8')]][0]",
    "bytes": "len(open(path, 'rb').read())",
    "Path": "len(pathlib.Path(path).read_text(encoding='utf-8'))",
    "Path of bytes": "len(pathlib.Path(path).read_bytes())",
    "lines": "sum(map(len, open(path)))",
    "ast": f"{len(TEXT)} * ('import os' in ast.unparse(ast.parse(open(path).read())))",
    "inspect of the module": "len(inspect.getsource(load(path)))",
    "inspect of a function": f"{len(TEXT)} * inspect.getsource(load(path).solve).startswith('def solve(x):')",
}
LOOKING = f"{BY_SPEC}\nimport ast, inspect, pathlib\n"


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "candidate").mkdir()
    monkeypatch.setenv("BLASTDOOR_CANDIDATE", str(tmp_path / "candidate"))
    path = tmp_path / "candidate" / "program.py"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize("how", LOOKS)
def test_an_evaluator_that_looks(judge: Judge, text: Path, how: str) -> None:
    """It finds the candidate's text, and what it loads is still the stub."""
    evaluator = f"{LOOKING}def evaluate(path):\n    load(path).solve(1)\n"
    evaluator += f"    return {{'combined_score': {LOOKS[how]}}}\n"
    assert judge(evaluator, looks="program.py").result["score"] == len(TEXT) == text.stat().st_size


DECOY = "def solve(x):\n    return 'decoy'\n"
SHOWN = {
    "words in a string": f'NOTE = """\n{DECOY}"""\n{TEXT}',
    "an earlier one": f"{DECOY}\n{TEXT}",
    "marks that end no line": "# \x0c \x1c \u2028 \x0c \x1c \u2028\n" + TEXT,
    "a carriage return": TEXT.replace("\n", "\r"),
    "one in something else": f"{TEXT}\nif False:\n    {DECOY.splitlines()[0]} return 'decoy'\n",
}


@pytest.mark.parametrize("how", SHOWN)
def test_the_function_that_is_shown(judge: Judge, text: Path, how: str) -> None:
    """It is the one that loading leaves, wherever others of its name seem to be."""
    text.write_bytes(SHOWN[how].encode())
    evaluator = f"{LOOKING}def evaluate(path):\n    program = load(path)\n    program.solve(1)\n"
    evaluator += "    told = inspect.getsource(program.solve)\n"
    evaluator += "    assert told.startswith('def solve(x):') and 'Doubles' in told and 'decoy' not in told, told\n"
    evaluator += "    return {'combined_score': 1.0}\n"
    assert judge(evaluator, looks="program.py").result["score"] == 1.0


RUNS = {
    "exec": "exec(open(path).read(), {})",
    "compile": "exec(compile(open(path).read(), 'its', 'exec'), {})",
    "a changed text": "exec(open(path).read() + '\\nmore = 1\\n', {})",
    "a part of it": "exec(open(path).read()[:400], {})",
    "a copy": "shutil.copy(path, path + '.copy.py'); load(path + '.copy.py').solve(1)",
}


@pytest.mark.parametrize("how", RUNS)
def test_a_text_is_not_run(judge: Judge, text: Path, how: str) -> None:
    """Not even by an evaluator that was not seen to do so."""
    text.write_text(f"import sys\nsys.modules['evaluation_module_ran'] = sys\n{TEXT}")
    evaluator = f"{LOOKING}import shutil, sys\ndef evaluate(path):\n    load(path).solve(1)\n    try:\n"
    evaluator += (
        f"        {RUNS[how]}\n    except RuntimeError as error:\n        assert 'is not run here' in str(error)\n"
    )
    evaluator += "        return {'combined_score': float('evaluation_module_ran' not in sys.modules)}\n"
    assert judge(evaluator, looks="program.py").result["score"] == 1.0


TEXTS = {
    "missing": (None, "there is no program.py"),
    "long": (b"#" * ((1 << 20) + 1), "more than 1 MiB"),
    "no text": (b"\xff\xfe", "is not UTF-8"),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_text_that_nobody_can_have(judge: Judge, text: Path, what: str) -> None:
    """It is the candidate's doing, and no solution."""
    data, why = TEXTS[what]
    text.unlink()
    if data is not None:
        text.write_bytes(data)
    evaluator = f"{LOOKING}def evaluate(path):\n    return {{'combined_score': load(path).solve(1)}}\n"
    result = judge(evaluator, looks="program.py").result
    assert (result["valid"], why in result["notes"]) == (False, True), result


def test_an_empty_text(judge: Judge, text: Path) -> None:
    """It is empty for the evaluator, too."""
    text.write_text("")
    evaluator = (
        f"{LOOKING}def evaluate(path):\n    return {{'combined_score': load(path).solve(1) + len(open(path).read())}}\n"
    )
    assert judge(evaluator, looks="program.py").result["score"] == 2
