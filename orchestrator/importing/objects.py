"""Which objects of a program an evaluator holds: of classes that it names, and of those that functions give it."""

import ast
from collections.abc import Collection, Iterator, Sequence

from orchestrator.importing.survey import Survey

_Definition = ast.FunctionDef | ast.ClassDef


def classes_of(tree: ast.Module, functions: Sequence[str], seen: Survey) -> list[str]:
    """Those that the evaluator names, and those whose objects a function that it calls may give it: the function
    reaches the class, and the evaluator asks something for a member of this name.
    """
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    reached = _reached(own, functions)
    return [
        name
        for name, it in own.items()
        if isinstance(it, ast.ClassDef) and name[0] != "_"
        if name in seen.words or (name in reached and seen.attributes & {*methods_of(own, it), *_values(own, it)})
    ]


def fields_of(tree: ast.Module, classes: Sequence[str], seen: Survey) -> list[str]:
    """What the evaluator reads of their objects without a call, as `Class.name`."""
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    return [
        f"{name}.{value}"
        for name in classes
        for value in dict.fromkeys(_values(own, own[name]))
        if value in seen.attributes and value[0] != "_"
    ]


def methods_of(own: dict[str, _Definition], of: _Definition) -> Iterator[str]:
    for it in _members(own, of):
        if isinstance(it, ast.FunctionDef) and not _is_property(it) and it.name[0] != "_":
            yield it.name


def _reached(own: dict[str, _Definition], functions: Collection[str]) -> set[str]:
    """The functions, and all of the program that they name, directly or through others."""
    found: set[str] = set()
    left = [name for name in functions if name in own]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [it.id for it in ast.walk(own[name]) if isinstance(it, ast.Name) and it.id in own]
    return found


def _values(own: dict[str, _Definition], of: _Definition) -> Iterator[str]:
    """Annotated names of a class, properties, and what a method gives to `self`."""
    for it in _members(own, of):
        if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name):
            yield it.target.id
        elif isinstance(it, ast.FunctionDef):
            if _is_property(it):
                yield it.name
            for node in ast.walk(it):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                    yield node.attr


def _members(own: dict[str, _Definition], of: _Definition) -> Iterator[ast.stmt]:
    """Its own, and those of classes of the program that it is made of."""
    left, looked = [of], set()
    while left:
        it = left.pop()
        if isinstance(it, ast.ClassDef) and it.name not in looked:
            looked.add(it.name)
            yield from it.body
            left += [own[base.id] for base in it.bases if isinstance(base, ast.Name) and base.id in own]


def _is_property(function: ast.FunctionDef) -> bool:
    return any(
        getattr(it, "id", getattr(it, "attr", "")) in ("property", "cached_property") for it in function.decorator_list
    )


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
