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
    "a keyword": "len(open(file=path).read())",
    "tokenize": "len(tokenize.open(path).read())",
    "linecache": "sum(map(len, linecache.getlines(path)))",
    "ast": f"{len(TEXT)} * ('import os' in ast.unparse(ast.parse(open(path).read())))",
    "inspect of the module": "len(inspect.getsource(load(path)))",
    "inspect of a function": f"{len(TEXT)} * inspect.getsource(load(path).solve).startswith('def solve(x):')",
}
LOOKING = f"{BY_SPEC}\nimport ast, inspect, io, linecache, os, pathlib, shutil, tokenize, traceback\n"
LOOKING += "from importlib.machinery import SourceFileLoader\n"


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
    evaluator = (
        f"{LOOKING}def evaluate(path):\n    load(path).solve(1)\n    return {{'combined_score': {LOOKS[how]}}}\n"
    )
    assert judge(evaluator, looks="program.py").result["score"] == len(TEXT) == text.stat().st_size


DECOY = "def solve(x):\n    return 'decoy'\n"
SHOWN = {
    "words in a string": f'NOTE = """\n{DECOY}"""\n{TEXT}',
    "marks that end no line": "# \x0c \x1c \u2028 \x0c \x1c \u2028\n" + TEXT,
    "a carriage return": TEXT.replace("\n", "\r"),
    "one in something else": f"{DECOY}\n{TEXT}\nif False:\n    {DECOY.splitlines()[0]} return 'decoy'\n",
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


# Not by `open`: no text can be put there for these.
PAST_OPEN = {
    "os": "os.read(os.open(path, os.O_RDONLY), 99)",
    "FileIO": "io.FileIO(path).read()",
    "a loader's source": "SourceFileLoader('program', path).get_source('program')",
    "a loader's data": "SourceFileLoader('program', path).get_data(path)",
}
READS = PAST_OPEN | {
    "open": "open(path).read()",
    "a part of the path": "open(os.path.join(os.path.dirname(path), os.path.basename(path))).read()",
    "tokenize": "tokenize.open(path).read()",
    "linecache": "linecache.getlines(path)",
    "inspect": "inspect.getsource(load(path))",
    "pathlib": "(pathlib.Path(path).parent / pathlib.Path(path).name).read_text()",
    "caught": "caught(path)",
}
CAUGHT = """
def caught(path):
    try:
        assert "solve" in open(path).read()
    except AssertionError as error:
        return traceback.format_exc()
"""


@pytest.mark.parametrize(("how", "looks"), [*((it, "") for it in READS), *((it, "program.py") for it in PAST_OPEN)])
def test_who_would_find_the_stub(judge: Judge, text: Path, how: str, looks: str) -> None:
    """It is a judge that broke, and one line says where, and what to do; unless that was asked for."""
    evaluator = f"{LOOKING}{CAUGHT}def evaluate(path):\n    it = {READS[how]}\n    load(path).solve(1)\n"
    evaluator += "    return {'combined_score': 2.0}\n"
    with pytest.raises(
        Exception, match=r"^evaluator\.py:\d+ reads the program's text, and finds a stub's: .*--stub-text"
    ):
        judge(evaluator, looks=looks)
    assert judge(evaluator, looks=looks, stub_text=True).result["score"] == 2.0


@pytest.mark.parametrize(
    ("body", "wanted", "why"),
    [
        ("load(path).solve(1)\n    it = open(path).read()", ["solve"], "finds a stub's"),
        ("hasattr(load(path), 'other') or open(path).read()", ["solve", "other"], "has no function other"),
    ],
)
def test_who_finds_the_stub_by_the_candidates_doing(judge: Judge, body: str, wanted: list[str], why: str) -> None:
    """The candidate has no score then: one whose answer makes the evaluator look must not break the judge, nor one that
    leaves a function out for that.
    """
    evaluator = f"{LOOKING}def evaluate(path):\n    {body}\n    return {{'combined_score': 2.0}}\n"
    result = judge(evaluator, wanted=wanted).result
    assert (result["valid"], why in result["notes"]) == (False, True)


# Beside the ways to load it in test_guest_stub.
HARMLESS = {
    "a traceback": "tried(path)",
    "a copy that nobody loads": "shutil.copy(path, path + '.kept.py') and load(path).solve(2)",
    "a copy that is loaded": "pathlib.Path(path + '.py').write_text(open(path).read()) and load(path + '.py').solve(2)",
    "a text that runs": "exec(compile(open(path).read(), path, 'exec'), globals()) or solve(2)",
    "the code of a loader": "exec(SourceFileLoader('program', path).get_code('program'), globals()) or solve(2)",
    "a text that runs elsewhere": "started(open(path).read())",
    "another file": "open(__file__).read() and load(path).solve(2)",
}
TRIED = """
import subprocess, sys
def tried(path):
    try:
        exec(compile("\\n\\n1 / 0", path, "exec"))
    except ZeroDivisionError:
        assert path in traceback.format_exc()
    return load(path).solve(2)
def started(text):
    words = [sys.executable, "-c", text + "print(solve(2))"]
    return float(subprocess.run(words, capture_output=True, check=True).stdout)
"""


@pytest.mark.parametrize("how", HARMLESS)
def test_who_reads_the_stub_and_looks_at_nothing(judge: Judge, how: str) -> None:
    """To load it, to copy it or to show a line of it is as it was."""
    evaluator = f"{LOOKING}{TRIED}def evaluate(path):\n    return {{'combined_score': {HARMLESS[how]}}}\n"
    assert judge(evaluator).result.get("score") == 4


TEXTS = {
    "there is no program.py": None,
    "more than 1 MiB": b"#" * ((1 << 20) + 1),
    "is not UTF-8": b"\xff\xfe",
}


@pytest.mark.parametrize("why", TEXTS)
def test_a_text_that_nobody_can_have(judge: Judge, text: Path, why: str) -> None:
    """It is the candidate's doing, and no solution; an empty one is empty for the evaluator, too."""
    evaluator = f"{LOOKING}def evaluate(path):\n    size = len(open(path).read())\n"
    evaluator += "    return {'combined_score': load(path).solve(1) + size}\n"
    text.write_text("")
    assert judge(evaluator, looks="program.py").result["score"] == 2
    text.unlink()
    if data := TEXTS[why]:
        text.write_bytes(data)
    result = judge(evaluator, looks="program.py").result
    assert (result["valid"], why in result["notes"]) == (False, True), result
