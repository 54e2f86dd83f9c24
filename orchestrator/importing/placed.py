"""Folders that an evaluator looks for outside of its own: what it reaches of them lies in the judge's folder, in a home
of its own where the evaluator looks beneath `~`.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from orchestrator.importing.source import Source
from orchestrator.importing.survey import mentions
from orchestrator.task import TaskError

# The evaluator's home folder, in the judge's.
HOME = "home"
MAX_BYTES = 64 << 20
_WHERE = re.compile(r"(~/)?[A-Za-z0-9_][A-Za-z0-9_. -]*(/[A-Za-z0-9_][A-Za-z0-9_. -]*)*")


@dataclass(frozen=True)
class Import:
    """`names` are what is taken of a module, and may be modules of their own."""

    module: str
    names: tuple[str, ...]
    line: int
    optional: bool


def imports_of(tree: ast.Module, package: str | None = None) -> Iterator[Import]:
    """Relative ones only where it is known which package it is of."""
    optional = {id(it) for node in ast.walk(tree) if _may_fail(node) for it in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, (), node.lineno, id(node) in optional)
        elif isinstance(node, ast.ImportFrom) and (not node.level or package is not None):
            parts = package.split(".")[: 1 - node.level or None] if node.level and package else []
            module = ".".join([*parts, *([node.module] if node.module else [])])
            yield Import(module, tuple(it.name for it in node.names), node.lineno, id(node) in optional)


def _may_fail(node: ast.AST) -> bool:
    """Whether a missing module is caught: a try whose handler names the error."""
    if not isinstance(node, ast.Try):
        return False
    caught = [name for it in node.handlers for name in ast.walk(it.type or ast.Pass()) if isinstance(name, ast.Name)]
    return any(name.id in ("ImportError", "ModuleNotFoundError") for name in caught)


@dataclass(frozen=True)
class Placed:
    """`where` the evaluator looks for it: beneath `~`, or beneath its own folder."""

    where: str
    source: Source
    reached: set[str] = field(default_factory=set)

    @property
    def at(self) -> str:
        """In the judge's folder."""
        return self.where.replace("~", HOME, 1) if self.where.startswith("~/") else self.where

    def has(self, module: str) -> bool:
        return bool(self.source.module_files(module))

    def follow(self, found: Import) -> list[Import]:
        """Keep the files of a module and of all that these import here; what they import from elsewhere."""
        elsewhere: list[Import] = []
        waiting = [found]
        while waiting:
            found = waiting.pop()
            for name in self._files(found):
                if name in self.reached:
                    continue
                self.reached.add(name)
                tree = self.source.python(name)
                self.reached.update(self._named(name, tree))
                package = (
                    name.removesuffix("/__init__.py") if name.endswith("/__init__.py") else name.rpartition("/")[0]
                )
                for it in imports_of(tree, package.replace("/", ".")):
                    (waiting if self.has(it.module.partition(".")[0]) else elsewhere).append(it)
        return elsewhere

    def _files(self, found: Import) -> Iterator[str]:
        """Of the module, of the packages that it is in, and of the modules that are taken from it."""
        parts = found.module.split(".")
        dotted = [parts[:many] for many in range(1, len(parts) + 1)] + [[*parts, name] for name in found.names]
        for path in map("/".join, dotted):
            yield from (it for it in (f"{path}.py", f"{path}/__init__.py") if it in self.source.name_set)

    def _named(self, name: str, tree: ast.Module) -> frozenset[str]:
        """Files beside a module that its texts name."""
        folder = name.rpartition("/")[0]
        named = (f"{folder}/{it}".lstrip("/") for it in mentions(tree) if not it.endswith(".py"))
        return self.source.name_set.intersection(named)

    def files(self) -> dict[str, bytes]:
        """What was reached by imports; all of it where nothing is imported. Raises TaskError where that is too much."""
        found, size = {}, 0
        for name in sorted(self.reached or self.source.names):
            found[f"{self.at}/{name}"] = data = self.source.read(name)
            size += len(data)
            if size > MAX_BYTES:
                raise TaskError(f"{self.source.folder}: has more than {MAX_BYTES >> 20} MiB; name a part of it")
        return found


def placed_of(given: Mapping[str, Path]) -> list[Placed]:
    """Raises TaskError for a place that no evaluator of a chamber can look at."""
    for where in given:
        path = PurePosixPath(where)
        if not _WHERE.fullmatch(where) or ".." in path.parts or path.parts[0] == HOME:
            raise TaskError(f"--place {where}: say where the evaluator looks, beneath ~/ or beneath its own folder")
    return [Placed(where, Source.of(folder)) for where, folder in given.items()]


def refuse_overlaps(files: Mapping[str, bytes], placed: Sequence[Placed]) -> None:
    """Raises TaskError where a place is one that the evaluator's own files have."""
    for it in placed:
        taken = [
            name for name in files if name == it.at or name.startswith(f"{it.at}/") or it.at.startswith(f"{name}/")
        ]
        if taken:
            raise TaskError(
                f"--place {it.where}: {taken[0]} of the evaluator's own folder is there; name another place"
            )
