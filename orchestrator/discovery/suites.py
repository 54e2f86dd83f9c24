"""What can be run of a repository to see where its time goes: its tests, its benchmarks, else its scripts."""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.discovery.profile import Tests
from orchestrator.discovery.repository import Repository

_MOST_PATHS = 60
_MOST_DESELECTED = 60
_MOST_SCRIPTS = 2


@dataclass(frozen=True)
class Suite:
    """`runner` is what our guest knows: "pytest", "unittest", "script" or "module"."""

    name: str
    runner: str
    arguments: tuple[str, ...]
    paths: tuple[str, ...] = ()

    @property
    def is_tests(self) -> bool:
        return self.runner in ("pytest", "unittest")

    @property
    def plan(self) -> dict[str, object]:
        return {"runner": self.runner, "arguments": list(self.arguments)}

    def without(self, tests: Tests) -> "Suite":
        """Only what passes. Of unittest's, whole files are left out: it knows no other way."""
        if self.runner == "pytest":
            out = [f"--ignore={it}" for it in tests.broken] + [f"--deselect={it}" for it in tests.failed]
            return _pytest(self.name, self.paths, out[:_MOST_DESELECTED])
        wrong = [*tests.failed, *tests.broken]
        kept = [it for it in self.paths if not any(_module(it) in name for name in wrong)]
        return Suite(self.name, self.runner, tuple(kept), tuple(kept))

    def command(self, roots: Sequence[str]) -> tuple[str, ...]:
        """As a guard runs it."""
        module = ("-m", self.runner) if self.is_tests else ("-m",) if self.runner == "module" else ()
        return ("env", f"PYTHONPATH={':'.join(roots)}", "python3", *module, *self.arguments)


def suites_of(repository: Repository) -> list[Suite]:
    """Tests first; scripts only where there is nothing else."""
    found = []
    if repository.tests:
        paths = _paths(repository.tests)
        if repository.uses_pytest:
            found.append(_pytest("the tests", paths, ()))
        else:
            files = repository.tests[:_MOST_PATHS]
            found.append(Suite("the tests", "unittest", files, files))
    found += [_script(it, repository) for it in repository.benchmarks[:_MOST_SCRIPTS]]
    return found or [_script(it, repository) for it in repository.scripts[:_MOST_SCRIPTS]]


def _script(path: str, repository: Repository) -> Suite:
    """One that lies in a package is run as a module of it, as its own imports expect."""
    if f"{path.rpartition('/')[0]}/__init__.py" in repository.names:
        return Suite(path, "module", (repository.module_of(path),), (path,))
    return Suite(path, "script", (path,), (path,))


def _pytest(name: str, paths: Sequence[str], more: Sequence[str]) -> Suite:
    """Without the repository's own flags, which ask for plugins, coverage or more processes."""
    ours = ("-q", "-o", "addopts=", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    return Suite(name, "pytest", (*ours, *more, *paths), tuple(paths))


def _paths(tests: Sequence[str]) -> tuple[str, ...]:
    """Folders of tests as a whole, other tests by their files."""
    found = dict.fromkeys(_folder(name) or name for name in tests)
    return tuple(found) if len(found) <= _MOST_PATHS else (".",)


def _folder(name: str) -> str:
    parts = name.split("/")
    at = next((at for at, part in enumerate(parts[:-1]) if part in ("test", "tests")), None)
    return "" if at is None else "/".join(parts[: at + 1])


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
