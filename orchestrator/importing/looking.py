"""Whether an evaluator that reads the program's text only looks at it, or runs it as one more way to load it.

An evaluator whose files have nothing that could run a text is given the candidate's; of any other it cannot be told.
"""

import ast
from collections.abc import Collection, Iterator, Mapping

from orchestrator.importing.clocks import dotted
from orchestrator.importing.survey import lines_of

_RUN = ("exec", "eval", "compile", "types.FunctionType", "types.CodeType")
# By these a text gets to where a loader finds it; at the path that the evaluator has, every loader finds the stub.
_WRITTEN = ("write", "writelines", "write_text", "write_bytes", "write_source", "copy", "copy2", "copyfile", "copytree")
_STARTED = ("Popen", "run", "call", "check_call", "check_output", "system", "popen", "create_subprocess_exec")
_OF_STARTED = ("subprocess", "os", "asyncio")
_SOURCES = ("inspect.getsource", "inspect.getsourcelines")
_READERS = ("read", "readlines", "read_text", "read_bytes", "open")
_FOLLOWED = 20


def looked_at(tree: ast.Module, paths: Collection[str]) -> str:
    """Lines in which it looks at the text of the program at one of these paths, as "12 and 40"; or nothing."""
    names, texts = _names_of(tree, paths)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.expr) and _is_text(node, names, texts)]
    functions = {it.name for it in parents if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)}
    return lines_of(node for node in found if _is_looked_at(node, parents, names, texts, functions))


def runs_a_text(trees: Mapping[str, ast.Module]) -> str:
    """What could run a text in one of these files, as "evaluator.py:12 exec"; or nothing."""
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and (what := _running(node)):
                return f"{name}:{node.lineno} {what}"
    return ""


def _running(node: ast.Call) -> str:
    called = dotted(node.func)
    first, _, last = called.rpartition(".")
    if called in _RUN or last in _WRITTEN:
        return last
    return last if last in _STARTED and first.partition(".")[0] in _OF_STARTED else ""


def _names_of(tree: ast.Module, paths: Collection[str]) -> tuple[set[str], set[str]]:
    """Names of the path or of the open file, and names of the text."""
    names, texts = set(paths), set[str]()
    for _ in range(_FOLLOWED):
        before = len(names) + len(texts)
        for target, value in _bound(tree):
            if _is_text(value, names, texts):
                texts.add(target)
            elif _is_path(value, names):
                names.add(target)
        if len(names) + len(texts) == before:
            break
    return names, texts


def _bound(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given: also those of arguments, where a function of the file is called."""
    functions = {it.name: it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((it.id, node.value) for it in targets if isinstance(it, ast.Name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = functions.get(node.func.id)
            if given:
                yield from zip((it.arg for it in given.args.args), node.args, strict=False)
                yield from ((it.arg, it.value) for it in node.keywords if it.arg)
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            yield node.optional_vars.id, node.context_expr


def _is_path(node: ast.expr, names: Collection[str]) -> bool:
    """A path, `Path(path)`, `open(path)` and the like: no call of anything else is followed."""
    if isinstance(node, ast.Name):
        return node.id in names
    if not isinstance(node, ast.Call):
        return False
    last = dotted(node.func).rpartition(".")[2]
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    if last in ("open", "Path", "resolve", "absolute", "abspath", "realpath", "fspath", "str"):
        return any(_is_path(it, names) for it in [*node.args[:1], *([of] if of else [])])
    return False


def _is_text(node: ast.expr, names: Collection[str], texts: Collection[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in texts and isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call):
        return False
    if dotted(node.func) in _SOURCES:
        return True
    of = node.func.value if isinstance(node.func, ast.Attribute) else None
    return of is not None and dotted(node.func).rpartition(".")[2] in _READERS[:-1] and _is_path(of, names)


def _is_looked_at(
    node: ast.expr,
    parents: Mapping[ast.AST, ast.AST],
    names: Collection[str],
    texts: Collection[str],
    functions: Collection[str],
) -> bool:
    """Whether something else is done with it than to name it, to hand it on in the file, to run it or to load it."""
    parent = parents.get(node)
    if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Expr | ast.withitem):
        return False
    if isinstance(parent, ast.Call) and node in parent.args:
        return not _running(parent) and dotted(parent.func) not in functions
    return not (isinstance(parent, ast.expr) and _is_text(parent, names, texts))
