"""Languages of which no single function is asked: their own benchmark or test command, timed as a whole. What a build
tool of theirs would start is started in a chamber only, and without a network.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.discovery.repository import BENCHMARK, Repository
from orchestrator.importing.tools import TOOLCHAINS

_MOST_FILES = 40
_MAKE_BYTES = 1 << 18
_TARGET = re.compile(r"^(bench|benchmark|perf|test|tests|check)[ \t]*:(?!=)", re.MULTILINE)
_TEST = re.compile(r"(^|[/_.-])(tests?|spec|t)([/_.-]|$)", re.IGNORECASE)


@dataclass(frozen=True)
class OtherCommand:
    """`command` is timed, `tests` guard; `tests` is empty where the tests are what is timed."""

    language: str
    command: tuple[str, ...]
    tests: tuple[str, ...]
    path: str
    editable: tuple[str, ...]
    apt: tuple[str, ...]


@dataclass(frozen=True)
class _Language:
    name: str
    suffixes: tuple[str, ...]
    tools: tuple[str, ...]
    commands: Callable[[Repository, Sequence[str]], tuple[tuple[str, ...], tuple[str, ...]] | None]


def other_commands(repository: Repository) -> tuple[OtherCommand, ...]:
    """At most one for each language that has tests or a benchmark which can be started."""
    found = []
    for it in _LANGUAGES:
        files = [name for name in repository.names if name.endswith(it.suffixes)]
        commands = it.commands(repository, files) if files else None
        editable = tuple(name for name in files if not _TEST.search(name) and not BENCHMARK.search(name))[:_MOST_FILES]
        if commands and editable:
            benchmark, tests = commands
            apt = tuple(package for tool in it.tools for package in TOOLCHAINS[tool])
            timed, guard = (benchmark, tests) if benchmark else (tests, ())
            found.append(OtherCommand(it.name, timed, guard, files[0], editable, apt))
    return tuple(found)


def _cargo(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    tested = any(b"#[test]" in repository.files[name] for name in files)
    if "Cargo.toml" not in repository.names or not tested:
        return None
    return (), ("env", "CARGO_HOME=/tmp/cargo", "CARGO_TARGET_DIR=/tmp/target", "cargo", "test", "--offline", "--quiet")


def _go(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    tests = [name for name in files if name.endswith("_test.go")]
    if "go.mod" not in repository.names or not tests:
        return None
    go = ("env", "GOCACHE=/tmp/go", "GOFLAGS=-mod=mod", "GOPROXY=off", "HOME=/tmp", "go", "test", "-count=1")
    measured = any(b"func Benchmark" in repository.files[name] for name in tests)
    bench = (*go, "-run=^$", "-bench=.", "-benchtime=50x", "./...") if measured else ()
    return bench, (*go, "./...")


def _ruby(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    del repository
    return _each(files, ("ruby", "-Ilib", "-Itest"))


def _lua(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    del repository
    return _each(files, ("lua5.4",))


def _perl(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    tests = [name for name in repository.names if name.endswith(".t")]
    return ((), ("prove", "-l", *tests[:_MOST_FILES])) if tests and files else None


def _each(files: Sequence[str], runner: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Files that run themselves."""
    tests = [name for name in files if _TEST.search(name)][:_MOST_FILES]
    measured = [name for name in files if BENCHMARK.search(name)][:1]
    line = ("sh", "-c", 'for it do {} "$it" || exit 1; done'.format(" ".join(runner)), "tests")
    if not tests and not measured:
        return None
    return (*runner, *measured) if measured else (), (*line, *tests) if tests else ()


def _make(repository: Repository, files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """By the targets of a Makefile; what was built is kept nowhere."""
    del files
    name = next((it for it in ("Makefile", "makefile", "GNUmakefile") if it in repository.names), "")
    text = repository.files[name][:_MAKE_BYTES].decode("utf-8", "replace") if name else ""
    targets = _TARGET.findall(text)
    bench = next((it for it in targets if it in ("bench", "benchmark", "perf")), "")
    tests = next((it for it in targets if it in ("test", "tests", "check")), "")
    if not bench and not tests:
        return None
    return ("make", "-s", bench) if bench else (), ("make", "-s", tests) if tests else ()


_LANGUAGES = (
    _Language("Rust", (".rs",), ("cargo",), _cargo),
    _Language("Go", (".go",), ("go",), _go),
    _Language("Ruby", (".rb",), ("ruby",), _ruby),
    _Language("Perl", (".pm", ".pl"), ("perl",), _perl),
    _Language("Lua", (".lua",), ("lua",), _lua),
    _Language("C", (".c", ".cc", ".cpp", ".h", ".hpp"), ("make", "gcc", "g++"), _make),
)
