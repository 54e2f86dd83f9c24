"""What is read of a repository, and of what chambers say of it. Both may be hostile."""

import json
import os
from pathlib import Path

import pytest

from orchestrator.discovery.chambers import Laboratory, Seen
from orchestrator.discovery.declared import packages_of
from orchestrator.discovery.discover import discover as look
from orchestrator.discovery.profile import read_profile, read_tests
from orchestrator.discovery.suites import suites_of
from orchestrator.discovery.targets import FunctionTarget, Pool, entries, ranked, regions
from orchestrator.importing.source import Source
from orchestrator.task import TaskError
from sandbox import Bundle, Ending, Job, Limits, Outcome
from tests.clicking import runner
from tests.orchestrator.discovery.repositories import UNITTEST, WORDS, repository, write

PROJECT = """
[project]
dependencies = ["attrs>=22", "numpy>=1.26; python_version >= '3.9'", "tomli; python_version < '3.11'"]

[project.optional-dependencies]
test = ["pytest>=7", "pytest-cov", "pytest-mock", "hypothesis"]
docs = ["sphinx"]
"""
IMPORTS = ("attr", "pytest", "yaml", "hypothesis", "nobody_knows")
TEST = "".join(f"import {name}\n" for name in IMPORTS) + "\ndef test():\n    pass\n"


def discover(*words: str) -> tuple[int, str]:
    from orchestrator.views.cli import cli

    result = runner().invoke(cli, ["discover", *words], standalone_mode=False)
    return result.return_value if result.exception is None else 2, f"{result.output}{result.exception or ''}"


def test_packages(tmp_path: Path) -> None:
    """What it declares for always, what its tests import of the rest, and plugins of pytest; an import that nobody
    declares is told, and not guessed.
    """
    found = packages_of(repository(tmp_path, {"pyproject.toml": PROJECT, "test_a.py": TEST, "a.py": ""}), {})
    assert found.names == ("attrs>=22", "hypothesis", "numpy>=1.26", "pytest-mock", "pytest>=7", "pyyaml")
    assert found.unknown == ("nobody_knows",)
    named = packages_of(repository(tmp_path, {}), {"nobody_knows": "known"})
    assert "known" in named.names


@pytest.mark.parametrize("declared", ["PyHamcrest>=2", "hamcrest-python>=2", "python_hamcrest>=2"])
def test_packages_that_say_python(tmp_path: Path, declared: str) -> None:
    """A package of the tests' own declaration is the one that is imported; what only looks at style is left out."""
    cfg = f"[options.extras_require]\ntests =\n  {declared}\n  pytest-flake8\n"
    test = "import hamcrest\nimport pytest\n\ndef test():\n    pass\n"
    found = packages_of(repository(tmp_path, {"setup.cfg": cfg, "test_a.py": test, "a.py": ""}), {})
    assert {*found.names} == {declared.lower().replace("_", "-"), "pytest"}
    assert found.unknown == ()


@pytest.mark.parametrize(
    "files",
    [
        {"setup.cfg": "[options]\ninstall_requires =\n  attrs>=22\n"},
        {"setup.py": "from setuptools import setup\nsetup(install_requires=['attrs>=22'])\n"},
        {"PKG-INFO": "Name: a\nRequires-Dist: attrs (>=22)\nRequires-Dist: x; extra == 'docs'\n\nRequires-Dist: no\n"},
        {"requirements.txt": "attrs >= 22 # why\n-r other.txt\n"},
        {"pyproject.toml": "[tool.poetry.dependencies]\npython = '^3.9'\nattrs = '^22'\n"},
    ],
)
def test_where_packages_are_declared(tmp_path: Path, files: dict[str, str]) -> None:
    """Each of the usual places is read, and none of them is run."""
    names = packages_of(repository(tmp_path, {**files, "a.py": "import attr\n"}), {}).names
    assert [name.removesuffix(">=22") for name in names] == ["attrs"]


@pytest.mark.parametrize("bomb", ["x = " + "[" * 100_000, "[a]\n[a]\n", "\0"])
def test_settings_that_are_no_toml(tmp_path: Path, bomb: str) -> None:
    """One line, whatever the parser does with it."""
    with pytest.raises(TaskError, match="is not TOML that can be read"):
        packages_of(repository(tmp_path, {"pyproject.toml": bomb, "a.py": ""}), {})


def test_a_line_without_end(tmp_path: Path) -> None:
    """configparser works on a row of spaces with the square of its length: none reaches it."""
    with pytest.raises(TaskError, match="more than 4096 characters"):
        packages_of(repository(tmp_path, {"setup.cfg": f"[options]\na{' ' * 8000}b\n", "a.py": ""}), {})
    rows = f"[options]\ninstall_requires{' ' * 4000} =\n    attrs{chr(9) * 50}>= 22\n"
    assert packages_of(repository(tmp_path, {"setup.cfg": rows, "a.py": "import attr\n"}), {}).names == ("attrs>=22",)


def test_python_that_takes_too_much_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree takes up to a thousand times the size of its file: large files are told and not read, nor too many."""
    found = repository(tmp_path, {"a.py": "a\n" * 200_000, "b.py": "B = 1\n", "c.py": "C = 1\n"})
    assert found.unreadable == ["a.py"]
    monkeypatch.setattr("orchestrator.discovery.repository.MAX_PYTHON_BYTES", 8)
    assert repository(tmp_path, {}).unreadable == ["a.py", "c.py"]


def test_rows_of_a_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each belongs to the definition that its line lies in, and no more than so many are looked at."""
    text = "def one():\n    return [\n        1\n    ]\n\nX = 1\n\n@dec\ndef two():\n    pass\n"
    there = repository(tmp_path, {"a.py": text})
    rows = [["a.py", line, "x", 1, 0.1, 0.1] for line in (0, 1, 3, 4, 6, 8, 10, 11)]
    profile = read_profile({"rows": rows}, there)
    assert [(it.definition.name, round(it.own_s, 6)) for it in profile.spots] == [("one", 0.3), ("two", 0.2)]
    monkeypatch.setattr("orchestrator.discovery.profile.MOST_ROWS", 2)
    assert [it.definition.name for it in read_profile({"rows": rows}, there).spots] == ["one"]


def test_kinds_of_files(tmp_path: Path) -> None:
    """Tests, benchmarks and scripts are told from code by their names and what they do."""
    main = 'if __name__ == "__main__":\n    pass\n'
    files = {"words.py": WORDS, "benchmarks/speed.py": main, "cli.py": main + "p.add_argument('-n', default=3)\n"}
    found = repository(tmp_path, {**UNITTEST, **files, "docs/conf.py": "A = 1\n", "setup.py": "B = 2\n"})
    assert found.tests == ("tests/test_words.py",)
    assert found.benchmarks == ("benchmarks/speed.py",)
    assert found.scripts == ("cli.py",)
    assert set(found.code) == {"words.py", "cli.py", "tests/__init__.py"} - {"tests/__init__.py"}
    assert [str(it) for it in found.parameters] == ["cli.py:3 -n = 3", "words.py:3 LIMIT = 64"]
    assert [it.name for it in suites_of(found)] == ["the tests", "benchmarks/speed.py"]


def test_a_deep_tree(tmp_path: Path) -> None:
    """A tree that no chamber could hold is refused in one line."""
    here = Path.cwd()
    try:
        os.chdir(tmp_path)
        for _ in range(80):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)
    with pytest.raises(TaskError, match="folders in folders"):
        Source.of(tmp_path)


def test_a_large_file_is_left_out(tmp_path: Path) -> None:
    """And told; a repository that is large as a whole is refused."""
    there = write(tmp_path, {"a.py": ""})
    (there / "large.bin").write_bytes(bytes(5 << 20))
    assert repository(there, {}).left_out == ("large.bin",)
    for number in range(11):
        (there / f"{number}.bin").write_bytes(bytes(4 << 20))
    with pytest.raises(TaskError, match="more than 40 MiB"):
        repository(there, {})


HOSTILE = [
    {},
    {"rows": 3, "edges": "x", "tests": [], "seconds": "long"},
    {"rows": [["words.py"], ["nowhere.py", 1, "f", 1, 1, 1], [1, 2, 3, 4, 5, 6], ["../../x", 24, "top", 1, 1, 1]]},
    {"rows": [["words.py", -5, "top", "many", None, 1e999]], "edges": [0, 99, -1, 0, True, None, 0]},
]


@pytest.mark.parametrize("report", HOSTILE)
def test_reports_of_strangers(tmp_path: Path, report: dict[str, object]) -> None:
    """What a report says wrongly counts as not said; bytes that are no table are no report."""
    assert not entries(read_profile(report, repository(tmp_path, UNITTEST)), 10)
    odd: list[object] = [None, [], {"passed": "all", "failed": 7, "broken": [1, None]}, {"passed": -3}]
    for told in odd:
        assert (read_tests(told).passed, [*read_tests(told).failed]) == (0, [])
    for data in (b"", b"[]", b"{", b'{"a": NaN}', b"[" * 100_000, b'{"a":' * 50 + b"1" + b"}" * 50):
        assert Seen(Outcome(Ending.COMPLETED, outputs={"profile.json": data})).report("profile.json") is None


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        ({"passed": 0, "cut": True}, "no test had passed when their time was over; raise --wall"),
        ({"passed": 0, "failed": ["a::b"]}, "no test passes as it is: a::b"),
    ],
)
async def test_no_test_passed(tmp_path: Path, tests: dict[str, object], told: str) -> None:
    """Whether they failed or only took too long is told apart."""
    there = repository(tmp_path, UNITTEST)
    report = json.dumps({"code": 0, "tests": tests}).encode()

    async def run(job: Job, bundle: Bundle) -> Outcome:
        del job, bundle
        return Outcome(Ending.COMPLETED, outputs={"profile.json": report})

    found = await look(there, Laboratory(run, "none", there.files, there.roots, Limits()), lambda _: None)
    assert not found.targets
    assert found.notes[0].startswith(told)


def test_regions_reach_through_comprehensions(tmp_path: Path) -> None:
    """What a comprehension calls is called by the function around it."""
    text = "def inner(x):\n    return x\n\n\ndef outer(x):\n    return [inner(it) for it in x]\n"
    there = repository(tmp_path, {"a.py": text})
    rows = [
        ["a.py", 5, "outer", 1, 0.1, 1.0],
        ["a.py", 6, "<listcomp>", 1, 0.1, 0.9],
        ["a.py", 1, "inner", 9, 0.8, 0.8],
    ]
    profile = read_profile({"rows": rows, "edges": [0, 1, 1, 2]}, there)
    assert regions(profile, 0) == ("a.py::outer", "a.py::inner")


def test_short_calls_are_a_hole() -> None:
    """Where a question must be asked again and again to be timed, that is said, and ranks lower."""

    def target(seconds: float, share: float = 0.5) -> FunctionTarget:
        return FunctionTarget("m", "f", "m.py", share, 9, ("m.py::f",), (), Pool(b"", 10, 100, (seconds,), 90))

    assert (target(1.0).holes, target(1.0).doubts) == ([], [])
    assert target(1.0).pool.repeat == 1
    assert "a cache of answers would gain" in target(0.0005).holes[0]
    assert "less than bringing it to another chamber" in target(0.0005).doubts[0]
    assert target(0.0005).worth < target(1.0).worth
    small, short = target(1.0, share=0.001), target(0.0005)
    assert small.worth < short.worth
    assert ranked([short, small]) == [small, short], "a hole is worse than a small share"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "has no files to look at"),
        ({"a.py": "def broken(:\n"}, "has a syntax error or is too large, and no other Python file can be read"),
        ({"a.py": "X = 1\n"}, "has no tests, benchmarks or scripts to run"),
        ({"main.go": "package main\n"}, "has no tests or benchmarks of a language that is known here"),
        ({"a.py": "", "pyproject.toml": "x = ["}, "is not TOML that can be read"),
    ],
)
def test_nothing_to_look_at(tmp_path: Path, files: dict[str, str], told: str) -> None:
    """One line before any chamber is opened, and nothing is written."""
    there = write(tmp_path / "there", files)
    there.mkdir(exist_ok=True)
    if "pyproject.toml" in files:
        write(there, {"test_a.py": TEST})
    code, output = discover(str(there), "--target", "1", "--into", str(tmp_path / "task"))
    assert (code, told in output) == (2, True), output
    assert not (tmp_path / "task").exists()


def test_flags_that_do_not_fit(tmp_path: Path) -> None:
    """They are refused before anything is looked at."""
    there = str(write(tmp_path, UNITTEST))
    assert "is no folder" in discover(str(tmp_path / "nowhere"))[1]
    assert "belong together" in discover(there, "--target", "1")[1]
    assert "is not an empty folder" in discover(there, "--target", "1", "--into", there)[1]
    assert "write it as IMPORT=NAME" in discover(there, "--package", "x")[1]
    # What is rented is refused before anything is opened: looking has no budget.
    code, output = discover(there, "--backend", "modal")
    assert (code, "discover has no budget, and chambers of modal cost money" in output) == (2, True), output
