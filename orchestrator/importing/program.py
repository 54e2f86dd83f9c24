"""The program of a task that is imported: one file, or a package whose files import one another."""

import ast
import os
from collections.abc import Sequence
from pathlib import Path

from orchestrator.change.regions import spans, split_entry
from orchestrator.importing.source import Source
from orchestrator.task import TaskError

REGION = "EVOLVE-BLOCK"
_INIT = "__init__.py"


def as_package(source: Source, patterns: Sequence[str]) -> str:
    """The file of a package that is named like one of these programs; empty where there is none."""
    found = [f"{pattern.partition('.')[0]}/{_INIT}" for pattern in patterns]
    return next((name for name in found if name in source.name_set), "")


def package_files(source: Source, program: str) -> list[str]:
    """All files of the outermost package that the program is part of; the program alone where it is in none."""
    folder = ""
    for part in program.split("/")[:-1]:
        folder = f"{folder}{part}/"
        if f"{folder}{_INIT}" in source.name_set:
            return [name for name in source.names if name.startswith(folder)]
    return [program]


def program_tree(source: Source, program: str) -> ast.Module:
    """What the program defines. A package takes functions from its other files, so these are read with it: of a name
    that it does not have in the end, nothing follows.
    """
    tree = source.python(program)
    files = package_files(source, program)
    _refuse_homeless(source, program, tree, files)
    if program.endswith(f"/{_INIT}"):
        others = [source.python(name) for name in files if name.endswith(".py") and name != program]
        tree.body = [*tree.body, *(node for other in others for node in other.body)]
    return tree


def _refuse_homeless(source: Source, program: str, tree: ast.Module, files: Sequence[str]) -> None:
    relative = [it.lineno for it in ast.walk(tree) if isinstance(it, ast.ImportFrom) and it.level]
    if relative and files == [program]:
        raise TaskError(
            f"{source.folder / program}:{relative[0]}: imports from its own package, and is in none; put it with the"
            f" files that it imports into a folder with an {_INIT}, and name that with --program, or import by name"
        )


def editable_entries(source: Source, program: str) -> list[str]:
    """What may be changed: between the marks where there are some, else all of the program's Python, or the file."""
    files = [name for name in package_files(source, program) if name.endswith(".py") or name == program]
    marked = [name for name in files if _is_marked(source, name)]
    return [f"{name}:{REGION}" for name in marked] or files


def _is_marked(source: Source, name: str) -> bool:
    data = source.read(name)
    if f"{REGION}-START".encode() not in data and f"{REGION}-END".encode() not in data:
        return False
    try:
        path, region = split_entry(f"{name}:{REGION}")
        spans(path, data, (region,) if region else ())
    except ValueError as error:
        raise TaskError(
            f"{source.folder / name}: cannot be cut at its marks: {error}; mend them, or take all of them out"
        ) from None
    return True


def chosen(source: Source, named: str | None, patterns: Sequence[str], what: str) -> str:
    if named is not None:
        if named not in source.names:
            raise TaskError(_why_not_chosen(source, named, what))
        return named
    found = next((names for pattern in patterns if (names := source.at_top(pattern))), [])
    if not found and (package := as_package(source, patterns)):
        return package
    if len(found) == 1:
        return found[0]
    if found:
        raise TaskError(f"{source.folder}: has two programs, {found[0]} and {found[1]}; choose with --{what}")
    raise TaskError(f"{source.folder}: has no {' or '.join(patterns)}; name the {what} with --{what}")


def _why_not_chosen(source: Source, named: str, what: str) -> str:
    path = source.folder / named
    here = os.path.relpath(named, source.folder)
    try:
        return _what_is_there(source, path, here, what)
    except OSError:  # a name that no file can have
        return f"{path}: is not there; name a file of {source.folder} with --{what}"


def _what_is_there(source: Source, path: Path, here: str, what: str) -> str:
    if path.is_symlink():
        return f"{path}: is a link, and none is followed; copy what it leads to"
    if path.is_dir():
        package = ", or put an __init__.py into it to make it a package" if what == "program" else ""
        return f"{path}: is a folder, and no single file; name a file in it{package}"
    if here in source.names:
        return f"{path}: is not there; --{what} is a path in {source.folder}: write --{what} {here}"
    if path.exists() or Path(source.folder, here).exists():
        return f"{path}: lies outside of {source.folder}, or in a part that is left out; put it there"
    return f"{path}: is not there; name a file of {source.folder} with --{what}"
