"""Where an evaluator looks at a clock, and into which of its numbers that may go, as far as its text tells.

Followed are names within a function, arguments and results of its own functions, and keys of dicts, whichever dict has
them. Where a clock only decides what is done, nothing is seen.
"""

import ast
from collections.abc import Iterator, Mapping

_OF_TIME = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
_CLOCKS = {
    *(f"time.{name}{unit}" for name in _OF_TIME for unit in ("", "_ns")),
    *("timeit.timeit", "timeit.repeat", "timeit.default_timer", "?.timeit", "resource.getrusage", "os.times"),
    *("datetime.now", "datetime.utcnow", "datetime.datetime.now", "datetime.datetime.utcnow"),
}
_FILLS = ("append", "appendleft", "add", "extend", "insert", "update")
_CLOCK = "clock"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def looks(tree: ast.Module) -> list[ast.Call]:
    """All calls of a clock, also under the name that it was imported by."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {it.asname: it.name for it in node.names if it.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {it.asname or it.name: f"{node.module}.{it.name}" for it in node.names}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            first, dot, rest = dotted(node.func).partition(".")
            if names.get(first, first) + dot + rest in _CLOCKS:
                found.append(node)
    return found


def dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([*([node.id] if isinstance(node, ast.Name) else ["?"]), *reversed(parts)])


def keys_reached(tree: ast.Module) -> frozenset[str]:
    """Of its dicts and objects: those under which something may be kept that was made with what a clock said."""
    clock = {id(it) for it in looks(tree)}
    made_of = dict[tuple[int, str], set[str]]()
    goes_to = dict[str, list[str]]()
    for name, value, scope in _flows(tree):
        if (id(value), scope) not in made_of:
            made_of[id(value), scope] = _read(value, scope, clock)
        for it in made_of[id(value), scope]:
            goes_to.setdefault(it, []).append(name)
    reached, waiting = {_CLOCK}, [_CLOCK]
    while waiting:
        new = {*goes_to.get(waiting.pop(), ())} - reached
        reached |= new
        waiting += new
    return frozenset(it[2:] for it in reached if it.startswith("k "))


def _read(value: ast.AST, scope: str, clock: set[int]) -> set[str]:
    """The names that a value is made of, with their kind: "l SCOPE NAME" of a function's own, "g NAME" of the file,
    "k KEY" of dicts and objects.
    """
    found, waiting = set[str](), [value]
    while waiting:
        node = waiting.pop()
        found |= {_CLOCK} if id(node) in clock else _names_of(node, scope)
        waiting += _parts(node)
    return found


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """What a value is made of. What is kept under a key is looked for under that key, and not in all that has it."""
    if isinstance(node, ast.Dict):
        yield from (it for key, it in zip(node.keys, node.values, strict=True) if not (key and _text(key)))
    elif isinstance(node, ast.Call) and _keeps(node):
        yield from node.args
    else:
        yield from ast.iter_child_nodes(node)


def _names_of(node: ast.AST, scope: str) -> set[str]:
    if isinstance(node, ast.Name):
        return {f"l {scope} {node.id}", f"g {node.id}"}
    if isinstance(node, ast.Attribute):
        return {f"g .{node.attr}", f"k {node.attr}"}
    return {f"k {key}"} if (key := _key_of(node)) else set()


def _key_of(node: ast.AST) -> str:
    """Of `it["KEY"]` and `it.get("KEY")`."""
    if isinstance(node, ast.Subscript):
        return _text(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        return _text(node.args[0])
    return ""


def _keeps(node: ast.Call) -> bool:
    """Whether it makes a dict, or by its name an object of a class."""
    name = dotted(node.func).rpartition(".")[2]
    return name == "dict" or name[:1].isupper()


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


_Flow = tuple[str, ast.AST, str]


def _flows(tree: ast.Module) -> Iterator[_Flow]:
    """Who gets a value, the value, and the scope that its names are of: that of the outermost function, or none."""
    functions = dict[str, list[tuple[str, _Function]]]()
    scoped = list(_scoped(tree))
    for node, scope in scoped:
        if isinstance(node, _Function):
            functions.setdefault(node.name, []).append((scope, node))
    for node, scope in scoped:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _assigned(target, node.value, scope)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            yield from _assigned(node.target, node.value, scope)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            yield from _assigned(node.target, node.iter, scope)
        elif isinstance(node, ast.Dict):
            yield from (
                (f"k {_text(key)}", it, scope)
                for key, it in zip(node.keys, node.values, strict=True)
                if key and _text(key)
            )
        elif isinstance(node, _Function):
            for it in ast.walk(node):
                if isinstance(it, ast.Return | ast.Yield) and it.value:
                    yield from ((name, it.value, scope) for name in (f"g {node.name}", f"g .{node.name}"))
        elif isinstance(node, ast.Call):
            yield from _called(node, scope, functions)


def _scoped(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, scope = waiting.pop()
        if isinstance(node, _Function):
            scope = scope or f"{node.lineno}"
        yield node, scope
        waiting += [(it, scope) for it in ast.iter_child_nodes(node)]


def _assigned(target: ast.AST, value: ast.AST, scope: str) -> Iterator[_Flow]:
    if isinstance(target, ast.Name):
        yield (f"l {scope} {target.id}" if scope else f"g {target.id}"), value, scope
    elif isinstance(target, ast.Attribute):
        yield f"g .{target.attr}", value, scope
    elif isinstance(target, ast.Subscript) and (key := _text(target.slice)):
        yield f"k {key}", value, scope
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _assigned(target.value, value, scope)
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        each = parts if len(parts) == len(target.elts) else [value] * len(target.elts)
        for it, part in zip(target.elts, each, strict=True):
            yield from _assigned(it, part, scope)


def _called(node: ast.Call, scope: str, functions: Mapping[str, list[tuple[str, _Function]]]) -> Iterator[_Flow]:
    yield from ((f"k {it.arg}", it.value, scope) for it in node.keywords if it.arg and _keeps(node))
    if isinstance(node.func, ast.Attribute) and node.func.attr in _FILLS:
        for value in node.args:
            yield from _assigned(node.func.value, value, scope)
    for inside, function in functions.get(dotted(node.func).rpartition(".")[2], []):
        takes = [it.arg for it in (*function.args.posonlyargs, *function.args.args)]
        takes = takes[1:] if isinstance(node.func, ast.Attribute) and takes[:1] == ["self"] else takes
        yield from ((f"l {inside} {name}", it, scope) for name, it in zip(takes, node.args, strict=False))
        yield from ((f"l {inside} {it.arg}", it.value, scope) for it in node.keywords if it.arg)
