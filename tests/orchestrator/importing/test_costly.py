"""Sources that were written to be slow, large or odd to read (T101): each is refused in one line, or read."""

import functools
import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator import apart
from orchestrator.discovery.needs import read_repository
from orchestrator.discovery.repository import Repository
from orchestrator.importing import source as of_source
from orchestrator.importing.source import Source
from orchestrator.task import TaskError
from orchestrator.views.cli import cli
from orchestrator.views.exits import Exit
from orchestrator.views.running import import_task
from tests.clicking import runner
from tests.orchestrator.discovery.repositories import UNITTEST
from tests.orchestrator.importing.harbor_tasks import CHECKS, FILES
from tests.orchestrator.importing.openevolve_tasks import EVALUATOR, PROGRAM
from tests.orchestrator.importing.openevolve_tasks import TASK as CALLED

pytestmark = pytest.mark.touching("importing")

EVO = {"solve.py": PROGRAM, "bench.py": EVALUATOR, ".evo/meta.json": "{}"}
EVO[".evo/config.json"] = '{"metric": "max", "target": "solve.py", "benchmark": "python bench.py {target}"}'
DEEP = 100_000


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return folder


def told(tmp_path: Path, *words: str) -> str:
    """What a command says, which is one line where it refuses, and no fault of ours."""
    result = runner().invoke(cli, [*words, str(tmp_path / "there"), *([str(tmp_path / "here")] * (len(words) > 1))])
    if result.exit_code:
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == Exit.BAD_INPUT
        lines = [it for it in result.stderr.splitlines() if it.startswith("Error: ")]
        assert len(lines) == 1
        assert result.stderr.endswith(f"{lines[0]}\n")
        assert not (tmp_path / "here").exists()
    assert "failed:" not in result.output, result.output
    assert "ended its reader" not in result.output
    return result.output


# At the head of program and evaluator.
PYTHON: dict[str, str | bytes] = {
    "odd named tuples": "P = namedtuple({[]: 1}, 'a')\nQ = namedtuple('Q', {1: []})\nR = NamedTuple('R', [[], ()])\n",
    "named tuples of calculations": f"P = namedtuple('P', {'-' * 900}1)\nQ = namedtuple('Q', 1e999 + 1j)\n",
    "a named tuple of stars": "P = namedtuple(*a, **b)\nQ = namedtuple('Q', *b)\n",
    "a test of a sum without end": f"if {'1 + ' * 3000}1:\n    pass\n",
    "attributes": f"a{'.a' * 3000}\n",
    "calls": f"a{'()' * 3000}\n",
    "parentheses": f"a = {'(' * DEEP}\n",
    "brackets": f"a = {'[' * 150}{']' * 150}\n",
    "signs": f"a = {'-' * DEEP}1\n",
    "a lambda of lambdas": f"a = {'lambda: ' * DEEP}1\n",
    "functions in functions": "".join(f"{' ' * at}def f{at}():\n" for at in range(99)) + " " * 99 + "pass\n",
    "a giant number": f"a = {'9' * 100_000}\nb = 0x{'f' * 100_000}\nc = 1e999\n",
    "a null byte": "a = '\0'\n",
    "bad UTF-8": b"a = '\xff'\n",
    "another encoding": "# -*- coding: utf-7 -*-\na = 1\n",
    "an encoding that nobody knows": "# -*- coding: nobody -*-\na = 1\n",
    "half of a character": "a = {'\\ud800': 1}\nb = '/root/\\ud800'\nc['\\udc00'] = 1\n",
    "half of a character, in bytes": b"a = '\xed\xa0\x80'\n",
    "one huge line": f"a = [{'1,' * 4_000}]\n",
    "a text of marks": f"a = '{chr(0x202E)}{chr(7)}'\nimport subprocess\nsubprocess.run(['{chr(0x202E)}'])\n",
    "classes of themselves": "class A(A, B):\n    pass\nclass B(A):\n    pass\n",
    "f-strings": "a = " + "f'{" * 50 + "}'" * 50 + "\n",
    "decorators": "@a\n" * 2000 + "def b(): pass\n",
    "a match of patterns": f"match a:\n  case {'[' * 90}{']' * 90}: pass\n",
    "elif": "if a: pass\n" + "elif a: pass\n" * 5000,
    "types": "def f(a: 'namedtuple', *, b: int = {}) -> [][0]: ...\n",
    "nothing": "",
    "a form feed": "\f\x0c\x1a\n",
}


@pytest.mark.parametrize("what", PYTHON)
def test_t101_odd_python(tmp_path: Path, what: str) -> None:
    """No Python, however it is made, ends an import with a trace."""
    text = PYTHON[what]
    data = text if isinstance(text, bytes) else text.encode()
    written(tmp_path / "there", {it: data + CALLED[it].encode() for it in ("evaluator.py", "initial_program.py")})
    told(tmp_path, "import", "openevolve")


# Of config.yaml of OpenEvolve.
YAML = {
    "deep": "[" * 2000,
    "deep tables": "{a: " * 2000,
    "aliases": "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
    "a key twice": "max_iterations: 1\nmax_iterations: 2\n",
    "keys that are none": "? {a: b}\n: 1\n",
    "keys of lists": "[1, 2]: 3\n",
    "keys of numbers": f"0x{'f' * 900}: 1\n1:1:1:1: 2\nnull: 3\n2020-01-01: 4\n",
    "a text of half": 'prompt: {system_message: "\\uD800"}\n',
    "a date": "max_iterations: 2020-01-01\nevaluator: {timeout: 2020-99-99}\n",
    "a Python object": "a: !!python/object/apply:os.system [id]\n",
    "bytes": "max_iterations: !!binary aGFsbG8=\n!!binary aGFsbG8=: 1\n",
    "sets": "evaluator: !!set {a, b}\nprompt: !!omap [a: 1]\n",
    "infinity": "max_iterations: .inf\nevaluator: {timeout: .nan, cascade_thresholds: [.inf, 1e999]}\n",
    "two documents": "a: 1\n---\nb: 2\n",
    "a null": "\0",
    "a directive": "%YAML 9.9\n---\n{}\n",
    "one huge text": f"a: {'x' * 100_000}\n",
    "spaces": " " * 100_000,
    "stars": "*" * 10_000,
    "merges": "<<: {a: 1}\n<<: [{b: 1}, 3]\n",
}


@pytest.mark.parametrize("what", YAML)
def test_t101_odd_yaml(tmp_path: Path, what: str) -> None:
    """No config does, either."""
    written(tmp_path / "there", {**CALLED, "config.yaml": YAML[what]})
    told(tmp_path, "import", "openevolve")


JSON: dict[str, str | bytes] = {
    "deep": "[" * DEEP,
    "deep tables": '{"a": ' * DEEP,
    "a table in a table's place": '{"active": {"a": [NaN, 1e999]}}',
    "giant numbers": f'{{"active": {"9" * 5000}}}',
    "half of a character": '{"active": "\\ud800"}',
    "a null": '{"active": "a\\u0000b"}',
    "a long name": f'{{"active": "{"a" * 5000}"}}',
    "no text": b"\xff\xfe{",
}


@pytest.mark.parametrize("what", JSON)
def test_t101_odd_json(tmp_path: Path, what: str) -> None:
    """Nor does what evo keeps."""
    for name in ("meta", "config"):
        folder = tmp_path / f"of {name}"
        written(folder / "there", {**EVO, f".evo/{name}.json": JSON[what]})
        told(folder, "import", "evo")


# Of the files of a task of Harbor.
HARBOR: dict[str, dict[str, str | bytes]] = {
    "dotted keys": {"task.toml": f"{'.'.join('a' * 500_000)} = 1\n"},
    "dotted keys in a table": {"task.toml": f"[environment]\nx = {{{' . '.join('a' * 100_000)} = 1}}\n"},
    "a deep table": {"task.toml": f"[{'.'.join('a' * 500_000)}]\n"},
    "deep lists": {"task.toml": "x = " + "[" * DEEP},
    "a key twice": {"task.toml": "x = 1\nx = 2\n"},
    "giant numbers": {"task.toml": f"[environment]\nmemory_mb = 0x{'f' * 9000}\ndocker_image = 0x{'f' * 9000}\n"},
    "a number of too many digits": {"task.toml": f"x = {'9' * 9000}\n"},
    "numbers that are none": {"task.toml": "[environment]\nmemory_mb = nan\ncpus = inf\n[agent]\ntimeout_sec = -inf\n"},
    "dates": {"task.toml": "[environment]\nmemory = 2020-01-01\nworkdir = 2020-01-01\n"},
    "lists in the place of tables": {"task.toml": "environment = [1]\nverifier = 2\nagent = 'a'\n"},
    "variables": {"task.toml": "[verifier.env]\n'a b' = 'x\ty'\n'\u202e' = '\u202e'\n'' = ''\n"},
    "copies times files": {
        "environment/Dockerfile": "WORKDIR /app\n" + "".join(f"COPY . /app/{at}\n" for at in range(1000))
    },
    "copies of patterns": {"environment/Dockerfile": "WORKDIR /app\n" + f"COPY {'*a' * 5000} /app/\n"},
    "continued without end": {"environment/Dockerfile": "RUN a \\\n" * 10_000},
    "a here-document": {"environment/Dockerfile": "RUN <<EOF\necho\nEOF\nCOPY <<EOF /app/a\nb\nEOF\n"},
    "variables of variables": {"environment/Dockerfile": "ENV A=xx\n" + "ENV A=$A$A$A$A\n" * 500 + "WORKDIR /app\n"},
    "stages": {"environment/Dockerfile": "FROM a\nFROM b\n"},
    "a repository": {
        "environment/Dockerfile": "WORKDIR /app\nCOPY data/numbers.txt .git/config\nCOPY data/numbers.txt .git/HEAD\n"
    },
    "a null in a name": {"environment/Dockerfile": "WORKDIR /app\nCOPY data/numbers.txt a\0b\n"},
    "a name of half": {"environment/Dockerfile": 'WORKDIR /app\nCOPY ["data/numbers.txt", "a\\ud800"]\n'},
    "deep folders": {"environment/Dockerfile": f"WORKDIR /app\nCOPY data/numbers.txt {'a/' * 1500}\n"},
    "a file in the place of a folder": {
        "environment/Dockerfile": "WORKDIR /app\nCOPY data/numbers.txt a\nCOPY data/numbers.txt a/b\n"
    },
    "quotes": {"environment/Dockerfile": 'ENV A=\'\nRUN "\nCOPY ["a\nCOPY [1, {}]\nADD\nWORKDIR\nFROM\n'},
    "a copy of deep JSON": {"environment/Dockerfile": "COPY " + "[" * DEEP + "\n"},
    "marks": {"environment/Dockerfile": "WORKDIR /\u202e\n", "instruction.md": "\0\u202e\ud800"},
    "bad UTF-8": {"environment/Dockerfile": b"\xff"},
    "words without end": {"tests/test.sh": "a=1 " * 20_000},
    "substitutions": {"tests/test.sh": "$(" * 200_000},
    "numbers of streams": {"tests/test.sh": "1>" * 20_000},
    "backslashes": {"tests/test.sh": "\\" * 50_000},
    "quotes without end": {"tests/test.sh": "'" * 50_001},
    "odd tests": {"tests/test_outputs.py": f"a = {'[' * 150}{']' * 150}\nimport {'a.' * 900}b\n{CHECKS}"},
}


@pytest.mark.parametrize("what", HARBOR)
def test_t101_odd_tasks_of_harbor(tmp_path: Path, what: str) -> None:
    """Nor does a task of Harbor."""
    written(tmp_path / "there", {**FILES, **HARBOR[what]})
    told(tmp_path, "import", "harbor")


def test_t101_a_source_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no bound of ours foresaw is ended all the same, and the file is named."""
    monkeypatch.setattr(import_task, "read_apart", functools.partial(apart.read_apart, seconds=1))
    written(tmp_path / "there", {**CALLED, "evaluator.py": f"a = [{'1,' * 300_000}]\n{EVALUATOR}"})
    said = told(tmp_path, "import", "openevolve")
    assert f"{tmp_path}/there: reading evaluator.py takes more than 1 s of processor; make it smaller" in said


def test_t101_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders without end are not walked to their end, whatever is left out of them."""
    written(tmp_path / "there", {**CALLED, **{f"many/.{at}": "" for at in range(30)}})
    told(tmp_path, "import", "openevolve")
    monkeypatch.setattr(of_source, "MAX_ENTRIES", 20)
    with pytest.raises(TaskError, match="has more than 20 entries; name a smaller folder"):
        Source.of(tmp_path / "there")


def test_t101_large_tests(tmp_path: Path) -> None:
    """The tests of a task of Harbor are copied as they are, up to a bound of all files together."""
    folder = written(tmp_path / "there", FILES)
    for at in range(3):
        with (folder / f"tests/{at}.bin").open("wb") as file:
            file.truncate(30 << 20)
    assert "has more than 64 MiB to read; leave large data out of it" in told(tmp_path, "import", "harbor")


def test_t101_large_data_that_nobody_takes(tmp_path: Path) -> None:
    """Only what is read counts: results that lie beside an evaluator are no reason to refuse it."""
    folder = written(tmp_path / "there", CALLED)
    for at in range(3):
        with (folder / f"{at}.bin").open("wb") as file:
            file.truncate(40 << 20)
    assert "Next:" in told(tmp_path, "import", "openevolve")


@pytest.mark.parametrize(
    "name", ["tests/odd", "environment/odd", "task.toml", "tests/test.sh", "environment/Dockerfile"]
)
@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "link out", "link to itself", "unreadable", "folder"])
def test_t101_odd_files(tmp_path: Path, name: str, kind: str) -> None:
    """What is no plain file is neither opened nor waited for, and no link leads out."""
    (tmp_path / "secret").write_text("a canary")
    path = written(tmp_path / "there", FILES) / name
    path.unlink(missing_ok=True)
    links = {"device": Path("/dev/zero"), "link out": tmp_path / "secret", "link to itself": path}
    if kind in links:
        path.symlink_to(links[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    elif kind == "unreadable":
        path.write_text("x = 1\n")
        path.chmod(0)
    else:
        path.mkdir()
    told(tmp_path, "import", "harbor")
    taken = [it.read_text() for it in (tmp_path / "here").rglob("*") if it.is_file()]
    assert not any("a canary" in it for it in taken)


# Of a repository that is looked at; a file that is refused there does not keep the next one from its reader.
REPOSITORY: dict[str, dict[str, str | bytes]] = {
    "Python": {f"odd{at}.py": text for at, text in enumerate(PYTHON.values())},
    "dotted keys": {"pyproject.toml": f"{'.'.join('a' * 500_000)} = 1\n"},
    "a package of dotted keys": {"pyproject.toml": f"[tool.poetry.dependencies]\n{'.'.join('a' * 30_000)} = 1\n"},
    "lists in the place of tables": {"pyproject.toml": "project = [1]\ntool = 2\ndependency-groups = 'a'\n"},
    "giant numbers": {"pyproject.toml": f"[project]\ndependencies = [0x{'f' * 9000}]\n[tool.poetry]\ngroup = 1\n"},
    "deep JSON": {"package.json": "[" * DEEP},
    "half of a character": {"package.json": '{"name": "\\ud800"}'},
    "odd settings": {"setup.cfg": "[options]\ninstall_requires = %(a)s\n[options.extras_require]\n= \n%(b)s = c\n"},
    "settings without a head": {"setup.cfg": "a = b\n[\n[options\n"},
    "others": {
        "requirements.txt": "a" + "==1" * 10_000 + "\n" + "\0\u202e" * 1000 + "\n",
        "PKG-INFO": "Requires-Dist: " + "(" * 10_000 + "\n" + ":" * 10_000,
        "setup.py": f"setup(install_requires=[0x{'f' * 9000}, *a], tests_require={'-' * 900}1)\n",
        "a.py": f"A = 0x{'f' * 9000}\nB = -1\nC = 1e999\nD = 1e308\nE = {10**200}\n",
    },
}


@pytest.mark.parametrize("what", REPOSITORY)
def test_t101_odd_repositories(tmp_path: Path, what: str) -> None:
    """`discover` reads what it is given in the same way."""
    folder = written(tmp_path / "there", {**UNITTEST, **REPOSITORY[what]})
    try:
        found, needs = read_repository(folder, {}, ())
    except TaskError as error:
        said = str(error)
    else:
        said = ""
        assert {*found.facts} <= {*found.names}
        assert needs.parameters == (*found.parameters, *needs.parameters[len(found.parameters) :])
    assert "failed:" not in said
    assert "ended its reader" not in said


def test_what_is_read_apart_is_what_is_there(tmp_path: Path) -> None:
    """The way through another process changes nothing: numbers keep their kind, names their order."""
    folder = written(tmp_path / "there", {**UNITTEST, "a.py": "A = 2\nB = 2.0\ndef f(C=3, *, D=1e22): return A\n"})
    there = Repository.of(Source.of(folder))
    found, _ = read_repository(folder, {}, ())
    assert [repr(it) for it in found.parameters] == [repr(it) for it in there.parameters]
    assert (found.facts, found.names, found.left_out) == (there.facts, there.names, there.left_out)
    assert found.files == there.files
