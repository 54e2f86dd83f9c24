"""What a repository has to be run, in all languages, and what the image for that must have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.apart import read_apart
from orchestrator.discovery.commands import OtherCommand, other_commands
from orchestrator.discovery.declared import Packages, packages_of
from orchestrator.discovery.node import NodePackage, node_package
from orchestrator.discovery.repository import Facts, Parameter, Repository
from orchestrator.importing.source import Source
from orchestrator.task import TaskError


@dataclass(frozen=True)
class Needs:
    """What a repository has beside Python, and what its image must have."""

    pip: tuple[str, ...]
    apt: tuple[str, ...]
    unknown: tuple[str, ...]
    package: NodePackage | None
    others: tuple[OtherCommand, ...]
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Reading:
    """All that the text of a repository tells, as plain data."""

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    facts: dict[str, Facts]
    needs: Needs


def read_repository(folder: Path, given: Mapping[str, str], left_out: Sequence[str]) -> tuple[Repository, Needs]:
    """Raises TaskError for one in which nothing can be run, or that takes too much to read."""

    def read() -> Reading:
        found = Repository.of(Source.of(folder))
        return Reading(found.names, found.left_out, dict(found.facts), needs_of(found, given, left_out))

    it = read_apart(read, Reading, folder, TaskError)
    return Repository(Source(folder, (*it.names, *it.left_out)), it.names, it.left_out, it.facts), it.needs


def needs_of(repository: Repository, given: Mapping[str, str], left_out: Sequence[str]) -> Needs:
    """Raises TaskError for a repository in which nothing can be run."""
    package = node_package(repository, given)
    others = () if package or repository.tests or repository.benchmarks else other_commands(repository)
    _refuse_nothing(repository, package, others)
    named = packages_of(repository, given) if repository.facts else Packages((), ())
    apt = dict.fromkeys([*(package.apt if package else ()), *(it for other in others for it in other.apt)])
    return Needs(
        tuple(it for it in named.names if not _is_named(it, left_out)),
        tuple(it for it in apt if it not in left_out),
        named.unknown,
        package,
        others,
        (*repository.parameters, *(package.parameters if package else ())),
    )


def _refuse_nothing(repository: Repository, package: NodePackage | None, others: tuple[OtherCommand, ...]) -> None:
    """What can be said before a chamber is opened."""
    folder = repository.source.folder
    if package or others:
        return
    if repository.facts:
        if not (repository.tests or repository.benchmarks or repository.scripts):
            raise TaskError(
                f"{folder}: has no tests, benchmarks or scripts to run; write one that calls what should be faster"
            )
        return
    if repository.unreadable:
        path = folder / repository.unreadable[0]
        raise TaskError(f"{path}: has a syntax error or is too large, and no other Python file can be read; mend it")
    raise TaskError(
        f"{folder}: has no tests or benchmarks of a language that is known here; write a task that runs its benchmark:"
        " blastdoor init"
    )


def _is_named(requirement: str, names: Sequence[str]) -> bool:
    return any(requirement == it or requirement.startswith(tuple(f"{it}{sign}" for sign in "=<>!~")) for it in names)
