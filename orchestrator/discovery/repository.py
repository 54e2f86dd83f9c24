"""What the text of a repository tells: its tests, benchmarks, scripts and parameters. Nothing of it is run here."""

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from orchestrator.importing.source import Source
from orchestrator.python_source import parse_python
from orchestrator.task import TaskError

# CPython's tree of a file takes up to a thousand times its size, so only small files are read, and one at a time.
_MAX_PYTHON_FILE = 256 << 10
MAX_PYTHON_BYTES = 8 << 20
_MAX_FILE_BYTES = 4 << 20
_MAX_BYTES = 40 << 20
_SHOWN_PARAMETERS = 200
_TEST = re.compile(r"(test_.*|.*_tests?|tests?)\.py")
BENCHMARK = re.compile(r"(^|[._/-])(bench|benchmark|benchmarks|perf)([._/-]|$)", re.IGNORECASE)
BESIDE = frozenset(["doc", "docs", "example", "examples", "tools", "scripts", "build", "dist", "ci"])


@dataclass(frozen=True)
class Parameter:
    """A number that somebody chose: a constant of a module, the default of a flag, or of an argument (`of` is its
    function). `value` has the type that the source gives it: 2 and 2.0 lead to other answers.
    """

    path: str
    line: int
    name: str
    value: int | float
    of: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.name} = {self.value:g}"


@dataclass(frozen=True)
class Definition:
    """A function of a Python file. `line` is where its code begins, decorators included; `plain` where a module's
    attribute of that name is the function. `reads` are the names in capitals that it reads, `defaults` the numbers that
    its arguments have without a caller's.
    """

    path: str
    name: str
    line: int
    end: int
    plain: bool
    reads: frozenset[str] = frozenset()
    defaults: tuple[tuple[str, int | float], ...] = ()


@dataclass(frozen=True)
class Facts:
    """What is kept of a Python file. `starts`: it has a `__main__`; `bare_tests`: tests that are functions of a module;
    `requires`: what it gives to setup(), each with its group.
    """

    imports: frozenset[str]
    starts: bool
    bare_tests: bool
    parameters: tuple[Parameter, ...]
    definitions: tuple[Definition, ...]
    requires: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, path: str, tree: ast.Module) -> "Facts":
        return cls(
            frozenset(_imported(tree)),
            any(isinstance(node, ast.If) and _names_main(node.test) for node in tree.body),
            any(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in tree.body),
            tuple(it for it, _ in zip(_parameters(path, tree), range(_SHOWN_PARAMETERS), strict=False)),
            tuple(_definitions(path, tree.body, "", plain=True)),
            tuple(_requires(tree)) if path == "setup.py" else (),
        )


@dataclass(frozen=True)
class Repository:
    """`names` are the files that chambers get; `left_out` those that are too large for that. `known` are facts of them
    that were read before.
    """

    source: Source
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    known: Mapping[str, Facts] | None = None

    @classmethod
    def of(cls, source: Source) -> "Repository":
        """Raises TaskError for one that no chamber could hold."""
        sizes = {name: (source.folder / name).lstat().st_size for name in source.names}
        names = tuple(name for name, size in sizes.items() if size <= _MAX_FILE_BYTES)
        if not names:
            raise TaskError(f"{source.folder}: has no files to look at; name the folder of a repository")
        if sum(sizes[name] for name in names) > _MAX_BYTES:
            raise TaskError(
                f"{source.folder}: has more than {_MAX_BYTES >> 20} MiB of files; name the folder of one package"
            )
        return cls(source, names, tuple(name for name in sizes if name not in names))

    @cached_property
    def files(self) -> dict[str, bytes]:
        return {name: self.source.read(name) for name in self.names}

    @cached_property
    def facts(self) -> Mapping[str, Facts]:
        """Of every Python file that can be read, up to so many bytes of them together."""
        if self.known is not None:
            return self.known
        found: dict[str, Facts] = {}
        left = MAX_PYTHON_BYTES
        for name, data in self.files.items():
            if name.endswith(".py") and len(data) <= min(left, _MAX_PYTHON_FILE):
                left -= len(data)
                if tree := parse_python(data):
                    found[name] = Facts.of(name, tree)
        return found

    @property
    def unreadable(self) -> list[str]:
        return [name for name in self.names if name.endswith(".py") and name not in self.facts]

    @cached_property
    def tests(self) -> tuple[str, ...]:
        return tuple(name for name in self.facts if _TEST.fullmatch(PurePosixPath(name).name))

    @cached_property
    def benchmarks(self) -> tuple[str, ...]:
        """Python programs that say in their name that they take times."""
        return tuple(
            name for name in self.facts if BENCHMARK.search(name) and name not in self.tests and self._starts(name)
        )

    @cached_property
    def scripts(self) -> tuple[str, ...]:
        rest = set(self.facts) - set(self.tests) - set(self.benchmarks)
        return tuple(name for name in self.facts if name in rest and self._starts(name))

    @cached_property
    def code(self) -> tuple[str, ...]:
        """Python files that may be made better: none that tests, measures or documents."""
        return tuple(name for name in self.facts if self._is_code(name))

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Where its modules are imported from."""
        return ("src", ".") if any(name.startswith("src/") for name in self.facts) else (".",)

    def module_of(self, path: str) -> str:
        """The name by which tests import this file."""
        inside = path.removeprefix("src/") if "src" in self.roots else path
        return inside.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def uses_pytest(self) -> bool:
        """Whether its tests need pytest: they import it, or are functions of their own."""
        return any("pytest" in it.imports or it.bare_tests for it in map(self.facts.__getitem__, self.tests))

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        found = (it for name in self.code for it in self.facts[name].parameters)
        return tuple(it for it, _ in zip(found, range(_SHOWN_PARAMETERS), strict=False))

    def definitions(self, path: str) -> tuple[Definition, ...]:
        """In the order of their lines; none lies in another."""
        return self.facts[path].definitions

    def _is_code(self, name: str) -> bool:
        parts = name.split("/")
        beside = {*parts[:-1]} & {*BESIDE, "test", "tests", "testing"}
        special = parts[-1] in ("conftest.py", "setup.py") or ":" in name
        return not (beside or special or name in self.tests or BENCHMARK.search(name))

    def _starts(self, name: str) -> bool:
        return self.facts[name].starts


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(it, ast.Constant) and it.value == "__main__" for it in ast.walk(test))


def _imported(tree: ast.Module) -> set[str]:
    """The modules that it imports, by the first part of their names."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {it.name.partition(".")[0] for it in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _definitions(path: str, body: list[ast.stmt], within: str, *, plain: bool) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            line = min([node.lineno, *(it.lineno for it in node.decorator_list)])
            ends = node.end_lineno or node.lineno
            is_plain = plain and isinstance(node, ast.FunctionDef)
            reads = frozenset(it.id for it in ast.walk(node) if isinstance(it, ast.Name) and it.id.isupper())
            yield Definition(path, f"{within}{node.name}", line, ends, is_plain, reads, tuple(_defaults(node.args)))
        elif isinstance(node, ast.ClassDef):
            yield from _definitions(path, node.body, f"{within}{node.name}.", plain=False)


def _defaults(given: ast.arguments) -> Iterator[tuple[str, int | float]]:
    places = [*given.posonlyargs, *given.args]
    named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    for argument, value in [*zip(places[len(places) - len(given.defaults) :], given.defaults, strict=True), *named]:
        if value is not None and (number := _number(value)) is not None:
            yield argument.arg, number


def _requires(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Lists that stand in the call of setup(); what is calculated there is not known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("install_requires", "tests_require"):
            elements = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else []
            group = "" if node.arg == "install_requires" else "test"
            yield from (
                (it.value, group) for it in elements if isinstance(it, ast.Constant) and isinstance(it.value, str)
            )


def _parameters(path: str, tree: ast.Module) -> Iterator[Parameter]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, _number(node.value)
            if value is not None and name.isupper():
                yield Parameter(path, node.lineno, name, value)
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in ("add_argument", "option"):
            flags = [it.value for it in call.args if isinstance(it, ast.Constant) and isinstance(it.value, str)]
            given = {it.arg: it.value for it in call.keywords}
            value = _number(given["default"]) if "default" in given else None
            if flags and flags[0].startswith("-") and value is not None:
                yield Parameter(path, call.lineno, flags[-1][:60], value)


def _number(node: ast.expr) -> int | float | None:
    """One that a float can hold."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        try:
            return node.value if math.isfinite(node.value) else None
        except OverflowError:
            return None
    return None
