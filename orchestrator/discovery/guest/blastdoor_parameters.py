"""Numbers of a repository that a search chooses: where a module is loaded, they stand in the place of its own. Standard
library only, Python 3.9 up.

It lies in the workspace as blastdoor_parameters/sitecustomize.py, so that every Python with that folder on its path
begins with it: the one that is judged, and the one that runs the tests. `PLACES` says which name of the file of
parameters is which constant, or which argument's default of which function.
"""

from __future__ import annotations

import ast
import importlib.machinery
import json
import os
from pathlib import Path
from typing import Any

PLACES: dict[str, tuple[str, str, str]] = {}  # name: (file, function or "", constant or argument)

_ROOT = Path(__file__).resolve().parent.parent
_VALUES = json.loads(Path(__file__).with_name("point.json").read_text(encoding="utf-8"))


def _chosen() -> dict[str, list[tuple[str, str, float]]]:
    found: dict[str, list[tuple[str, str, float]]] = {}
    for name, (path, function, what) in PLACES.items():
        if name in _VALUES:
            found.setdefault(os.path.realpath(_ROOT / path), []).append((function, what, _VALUES[name]))
    return found


def _changed(tree: ast.Module, chosen: list[tuple[str, str, float]]) -> ast.Module:
    for function, what, value in chosen:
        if not function:
            for node in tree.body:
                # What is worked out of it later stays so.
                if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
                    continue
                if [getattr(it, "id", "") for it in node.targets] == [what]:
                    node.value = ast.copy_location(ast.Constant(value), node.value)
        else:
            for given in _named(tree.body, function.split(".")):
                _set_default(given.args, what, value)
    return tree


def _named(body: list[Any], parts: list[str]) -> list[Any]:
    found = [it for it in body if getattr(it, "name", "") == parts[0]]
    return found if len(parts) == 1 else [one for it in found for one in _named(it.body, parts[1:])]


def _set_default(given: ast.arguments, what: str, value: float) -> None:
    places = [*given.posonlyargs, *given.args]
    for at in range(len(given.defaults)):
        if places[len(places) - len(given.defaults) + at].arg == what:
            given.defaults[at] = ast.copy_location(ast.Constant(value), given.defaults[at])
    for at, argument in enumerate(given.kwonlyargs):
        if argument.arg == what and given.kw_defaults[at] is not None:
            given.kw_defaults[at] = ast.copy_location(ast.Constant(value), argument)


def _install() -> None:
    chosen = _chosen()
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        path = os.path.realpath(self.get_filename(name))
        if path not in chosen:
            return usual(self, name)
        tree = _changed(ast.parse(Path(path).read_bytes(), path), chosen[path])
        return compile(tree, path, "exec", dont_inherit=True)

    setattr(importlib.machinery.SourceFileLoader, "get_code", get_code)  # noqa: B010  # only for this process


_install()
