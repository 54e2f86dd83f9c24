"""Which objects of a program an evaluator holds: of classes that it names, and of those that functions give it."""

import ast
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from orchestrator.importing.survey import Survey

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
# The class of functions, as Python calls it: what a function gives may be a function of its own.
FUNCTION = "function"


def classes_of(tree: ast.Module, functions: Sequence[str], seen: Survey) -> list[str]:
    """Those that the evaluator names, and those whose objects a function that it calls may give it: the function
    reaches the class, and its objects can be called, or the evaluator asks something for a member of this name.
    """
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    reached = _reached(own, functions)
    plain = named_tuples([tree], seen)
    named = [
        name
        for name, it in own.items()
        if isinstance(it, ast.ClassDef) and name[0] != "_" and name not in plain
        if name in seen.words or (name in reached and _may_be_used(own, it, seen))
    ]
    gives_functions = any(map(_gives_function, (own[name] for name in sorted(reached))))
    return [*named, FUNCTION] if gives_functions else named


def _may_be_used(own: dict[str, _Definition], of: ast.ClassDef, seen: Survey) -> bool:
    methods = {it.name for it in _members(own, of) if isinstance(it, _Function) and not _is_property(it)}
    return "__call__" in methods or bool(seen.attributes & {*methods, *_values(own, of)})


def _gives_function(definition: _Definition) -> bool:
    """Whether it answers with a function that it makes."""
    within = [it for it in ast.walk(definition) if it is not definition]
    made = {it.name for it in within if isinstance(it, ast.FunctionDef)}
    answers = [it.value for it in within if isinstance(it, ast.Return)]
    return isinstance(definition, _Function) and any(
        isinstance(it, ast.Lambda) or (isinstance(it, ast.Name) and it.id in made) for it in answers
    )


def named_tuples(trees: Iterable[ast.Module], seen: Survey) -> dict[str, list[str]]:
    """Classes of named tuples with their fields. One with a method that the evaluator asks for is like any class."""
    found: dict[str, list[str]] = {}
    for node in (it for tree in trees for it in tree.body):
        if isinstance(node, ast.ClassDef) and any(_last_name(it) == "NamedTuple" for it in node.bases):
            methods = {it.name for it in node.body if isinstance(it, _Function)}
            fields = [
                it.target.id for it in node.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
            ]
            if not methods & seen.attributes:
                found.setdefault(node.name, fields)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name, fields = _made_tuple(node.value)
            if any(isinstance(to, ast.Name) and to.id == name for to in node.targets):
                found.setdefault(name, fields)
    return found


def _made_tuple(call: ast.Call) -> tuple[str, list[str]]:
    """Of `namedtuple("Point", "x y")` and of `NamedTuple("Point", [("x", int)])`; no name for anything else."""
    if _last_name(call.func) not in ("namedtuple", "NamedTuple") or len(call.args) < 2:
        return "", []
    name, fields = _text(call.args[0]), call.args[1]
    if not isinstance(fields, ast.List | ast.Tuple):
        words = _text(fields)
        return ("", []) if words is None else (name or "", words.replace(",", " ").split())
    texts = [_text(it.elts[0] if isinstance(it, ast.Tuple) and it.elts else it) for it in fields.elts]
    words_of = [it for it in texts if it is not None]
    return (name or "", words_of) if len(words_of) == len(texts) else ("", [])


def _text(node: ast.expr) -> str | None:
    """Of a text that stands there; whatever else it is, nobody calculates it here."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def coroutines_of(tree: ast.Module, functions: Collection[str], classes: Collection[str]) -> list[str]:
    """The async functions among these, also under another name, and async methods of these classes."""
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    awaited = {name for name, it in own.items() if isinstance(it, ast.AsyncFunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.value, "id", None) in awaited:
            awaited |= {to.id for to in node.targets if isinstance(to, ast.Name)}
    methods = [
        f"{name}.{it.name}"
        for name in classes
        if name in own
        for it in _members(own, own[name])
        if isinstance(it, ast.AsyncFunctionDef)
    ]
    return [*(name for name in functions if name in awaited), *dict.fromkeys(methods)]


def bases_of(tree: ast.Module, classes: Collection[str]) -> dict[str, list[str]]:
    """Of these classes, those that one is made of, directly or through others."""
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    among = {*classes}
    found = {
        name: [it for it in _lineage(own, own[name]) if it != name and it in among] for name in classes if name in own
    }
    return {name: bases for name, bases in found.items() if bases}


def _lineage(own: dict[str, _Definition], of: _Definition) -> list[str]:
    left, found = deque([of]), dict[str, None]()
    while left:
        it = left.popleft()
        if isinstance(it, ast.ClassDef) and it.name not in found:
            found[it.name] = None
            left += [own[base.id] for base in it.bases if isinstance(base, ast.Name) and base.id in own]
    return list(found)


def fields_of(tree: ast.Module, classes: Sequence[str], seen: Survey) -> list[str]:
    """What the evaluator reads of their objects without a call, as `Class.name`."""
    own = {it.name: it for it in tree.body if isinstance(it, _Definition)}
    return [
        f"{name}.{value}"
        for name in classes
        if name in own
        for value in dict.fromkeys(_values(own, own[name]))
        if value in seen.attributes and value[0] != "_"
    ]


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
        elif isinstance(it, _Function):
            if _is_property(it):
                yield it.name
            for node in ast.walk(it):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                    yield node.attr


def _members(own: dict[str, _Definition], of: _Definition) -> Iterator[ast.stmt]:
    """Its own, and those of classes of the program that it is made of."""
    for name in _lineage(own, of):
        yield from own[name].body


def _is_property(function: _Function) -> bool:
    return any(
        getattr(it, "id", getattr(it, "attr", "")) in ("property", "cached_property") for it in function.decorator_list
    )


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
