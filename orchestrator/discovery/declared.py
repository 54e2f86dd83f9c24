"""What a repository needs in its image: what it declares, as far as it imports that, and what tests need beside it.

Names come from its own declarations, where they are names of the package index, or from our table of imports; none is
guessed. Files of others are parsed within bounds and give nothing where they cannot be read.
"""

import configparser
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator import bounded_toml
from orchestrator.discovery.repository import Repository
from orchestrator.importing.packages import KNOWN, parse_requirement
from orchestrator.task import TaskError

_TEST_GROUPS = re.compile(r"tests?|testing|dev|develop|development|bench|benchmarks?")
_REQUIREMENTS = re.compile(r"(tests?/)?(requirements?|(tests?|dev|requirements?)[-_/](requirements?|tests?|dev))\.txt")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]{1,60})['"]""")
# Conditions that this machine's chambers do not meet: an older Python, another system.
_ELSEWHERE = re.compile(
    r"""python_(full_)?version\s*(<|<=|==)\s*['"]|(sys_platform|platform_system|os_name)\s*==\s*['"](win|Win|nt|darwin|Darwin)|PyPy"""
)
# Tools of pytest's that only look on, look at style, or run tests beside each other.
_NOT_NEEDED = frozenset(
    f"pytest-{it}"
    for it in (
        "black", "checkdocs", "cov", "flake8", "flakes", "html", "isort", "mypy", "pep8", "pycodestyle", "pydocstyle",
        "pylint", "randomly", "ruff", "runner", "sugar", "xdist",
    )
)  # fmt: skip
_MORE = {
    "attr": "attrs",
    "hypothesis": "hypothesis",
    "pkg_resources": "setuptools",
    "typing_extensions": "typing-extensions",
}
_MOST = 60
_LINE_CHARACTERS = 4096


@dataclass(frozen=True)
class Packages:
    """`names` are what the image gets; `unknown` are imports that nobody declares and no table knows."""

    names: tuple[str, ...]
    unknown: tuple[str, ...]


def packages_of(repository: Repository, given: Mapping[str, str]) -> Packages:
    """`given` are names on the package index by the names that a program imports, said by a person."""
    wanted, for_tests = set[str](), dict[str, str]()
    for name, version, group in _declared(repository):
        if not group:
            wanted.add(name + version)
        elif _TEST_GROUPS.fullmatch(group):
            for_tests.setdefault(name, name + version)
    own = {name.split("/")[0].removesuffix(".py") for root in repository.roots for name in _beneath(repository, root)}
    asked = [
        repository.code,
        repository.tests,
        repository.benchmarks,
        [it for it in repository.facts if "conftest" in it],
    ]
    tops = {it for names in asked for name in names for it in repository.facts[name].imports}
    unknown = []
    for top in sorted(tops - own - set(sys.stdlib_module_names) - {_stem(it) for it in repository.facts}):
        if not any(_alike(top, it) for it in wanted):
            package = given.get(top) or _for_tests(top, for_tests) or KNOWN.get(top) or _MORE.get(top)
            unknown += [] if package else [top]
            wanted |= {package} if package else set()
    plugins = {it for name, it in for_tests.items() if name.startswith("pytest-") and name not in _NOT_NEEDED}
    if repository.tests and repository.uses_pytest:
        wanted |= plugins | ({"pytest"} if not any(_alike("pytest", it) for it in wanted) else set())
    return Packages(tuple(sorted(wanted))[:_MOST], tuple(unknown))


def _for_tests(top: str, declared: Mapping[str, str]) -> str | None:
    """What is declared under the name that is imported, or under one that says Python before or behind it."""
    name = _normal(top)
    names = (name, f"py{name}", f"py-{name}", f"python-{name}", f"{name}-python")
    return next((declared[it] for it in names if it in declared), None)


def _beneath(repository: Repository, root: str) -> Iterator[str]:
    prefix = "" if root == "." else f"{root}/"
    return (name.removeprefix(prefix) for name in repository.facts if name.startswith(prefix))


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py")


def _alike(top: str, requirement: str) -> bool:
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return name in (_normal(top), KNOWN.get(top), _MORE.get(top))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _declared(repository: Repository) -> Iterator[tuple[str, str, str]]:
    """Name, version and group of each; the group of what always is needed is empty."""
    names = repository.names
    said = [
        *(_of_project(_toml(repository)) if "pyproject.toml" in names else ()),
        *(_of_metadata(_text(repository, "PKG-INFO")) if "PKG-INFO" in names else ()),
        *(_of_config(_short_lines(repository, "setup.cfg")) if "setup.cfg" in names else ()),
        *(repository.facts["setup.py"].requires if "setup.py" in repository.facts else ()),
        *_of_requirements(repository),
    ]
    for line, group in said[:1000]:
        requirement, _, condition = line.partition(";")
        if found := _EXTRA.search(condition):
            group = found[1]
        if _ELSEWHERE.search(condition):
            continue
        without_extras = re.sub(r"\[[^\]]{0,200}\]", "", requirement).replace("(", "").replace(")", "").strip()
        if parsed := parse_requirement(without_extras):
            yield _normal(parsed[0]), parsed[1], group


def _text(repository: Repository, name: str) -> str:
    return repository.files[name][: 1 << 20].decode("utf-8", "replace")


def _short_lines(repository: Repository, name: str) -> str:
    """Without rows of spaces, on which configparser works with the square of their length. Raises TaskError for a line
    that no person wrote.
    """
    text = _text(repository, name)
    if any(len(line) > _LINE_CHARACTERS for line in text.split("\n")):
        raise TaskError(
            f"{repository.source.folder / name}: has a line of more than {_LINE_CHARACTERS} characters; break it"
        )
    return re.sub(r"(?<=\S)[^\S\n]+", " ", text)


def _toml(repository: Repository) -> dict[str, Any]:
    try:
        return bounded_toml.loads(_text(repository, "pyproject.toml"))
    except (ValueError, RecursionError):
        raise TaskError(
            f"{repository.source.folder / 'pyproject.toml'}: is not TOML that can be read; mend it"
        ) from None


def _of_project(tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    project = _table(tables, "project")
    yield from ((it, "") for it in _texts(project.get("dependencies")))
    for name, lines in _table(project, "optional-dependencies").items():
        yield from ((it, name) for it in _texts(lines))
    for name, lines in _table(tables, "dependency-groups").items():
        yield from ((it, name) for it in _texts(lines))
    poetry = _table(_table(tables, "tool"), "poetry")
    yield from ((it, "") for it in _table(poetry, "dependencies") if it != "python")
    yield from ((it, "dev") for it in _table(poetry, "dev-dependencies"))
    for name, group in _table(poetry, "group").items():
        yield from ((it, name) for it in _table(group if isinstance(group, dict) else {}, "dependencies"))


def _of_metadata(text: str) -> Iterator[tuple[str, str]]:
    """Of a source distribution; what is behind the first empty line is prose."""
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key == "Requires-Dist":
            yield value.strip(), ""


def _of_config(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    for line in parser.get("options", "install_requires", fallback="").splitlines():
        yield line.strip(), ""
    if parser.has_section("options.extras_require"):
        for name, lines in parser.items("options.extras_require"):
            yield from ((line.strip(), name) for line in lines.splitlines())


def _of_requirements(repository: Repository) -> Iterator[tuple[str, str]]:
    for name in repository.names:
        if _REQUIREMENTS.fullmatch(name):
            group = "" if name == "requirements.txt" else "test"
            yield from ((it.partition("#")[0].strip(), group) for it in _text(repository, name).splitlines()[:1000])


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}


def _texts(lines: object) -> Iterable[str]:
    return [it for it in lines if isinstance(it, str)] if isinstance(lines, list) else []
