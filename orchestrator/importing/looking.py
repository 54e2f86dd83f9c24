"""Whether an evaluator that reads the program's text only looks at it, or runs it as one more way to load it.

An evaluator whose files have nothing that could run a text is given the candidate's wherever it reads any file, since
that harms nothing. Any other is refused where its own text tells that it looks; what is not seen so is noticed when it
runs (blastdoor_source).
"""

import ast
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from orchestrator.importing.clocks import dotted
from orchestrator.importing.survey import lines_of

_RUN = ("exec", "eval", "compile", "types.FunctionType", "types.CodeType")
# By these a text gets to where a loader finds it; at the path that the evaluator has, every loader finds the stub.
_WRITTEN = (
    "write", "writelines", "write_text", "write_bytes", "write_source", "copy", "copy2", "copyfile", "copyfileobj",
    "copytree",
)  # fmt: skip
_STARTED = ("Popen", "run", "call", "check_call", "check_output", "system", "popen", "create_subprocess_exec")
_OF_STARTED = ("subprocess", "os", "asyncio")
_OPENERS = ("open", "FileIO", "fdopen")
_SOURCES = ("getsource", "getsourcelines", "get_source")
_READERS = ("read", "readline", "readlines", "read_text", "read_bytes", "getline", "getlines", "get_data")
_SAME_PATH = ("Path", "resolve", "absolute", "abspath", "realpath", "fspath", "str", "basename", "expanduser")
_NAMED = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.Expr | ast.withitem
_FOLLOWED = 20


def looked_at(tree: ast.Module, paths: Collection[str]) -> str:
    """Lines in which it looks at the text of the program at one of these paths, as "12 and 40"; or nothing."""
    known = _known(tree, paths)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    functions = {it.name for it in parents if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)}
    found = (it for it in ast.walk(tree) if isinstance(it, ast.expr) and (known.is_text(it) or known.is_handle(it)))
    return lines_of(it for it in found if _is_looked_at(it, parents, known, functions))


def reads_files(trees: Collection[ast.Module]) -> bool:
    """Whether these files have any word by which a file could be read: which one it is, is not asked."""
    words = {*_OPENERS, *_SOURCES, *_READERS, "linecache", "tokenize", "fileinput"}
    found = (
        dotted(it).split(".") for tree in trees for it in ast.walk(tree) if isinstance(it, ast.Name | ast.Attribute)
    )
    imported = (it.name.split(".") for tree in trees for it in ast.walk(tree) if isinstance(it, ast.alias))
    return any(words.intersection(it) for it in chain(found, imported))


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


@dataclass
class _Known:
    """Names of the path, of what is open there, and of the text."""

    paths: set[str]
    handles: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)

    def is_path(self, node: ast.expr) -> bool:
        """The path however it is written: what is made of it and begins with it alone, a folder say, is another."""
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in self.paths:
            return True
        of: list[ast.expr] = []
        if isinstance(node, ast.Call):
            called, given = dotted(node.func).rpartition(".")[2], node.args
            of = given[-1:] if called == "join" else given[:1] if called in _SAME_PATH else []
            if isinstance(node.func, ast.Attribute) and called in _SAME_PATH:
                of = [*of, node.func.value]
        elif isinstance(node, ast.BinOp):
            of = [node.right]
        elif isinstance(node, ast.JoinedStr):
            of = node.values[-1:]
        elif isinstance(node, ast.List | ast.Tuple):
            of = node.elts
        elif isinstance(node, ast.FormattedValue | ast.Subscript | ast.Starred | ast.Attribute):
            of = [node.value] if getattr(node, "attr", "name") == "name" else []
        return any(map(self.is_path, of))

    def is_handle(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.handles and isinstance(node.ctx, ast.Load)
        return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _OPENERS and self._is_of(node)

    def is_text(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.texts and isinstance(node.ctx, ast.Load)
        if not isinstance(node, ast.Call):
            return False
        last = dotted(node.func).rpartition(".")[2]
        return last in _SOURCES or (last in _READERS and self._is_of(node))

    def _is_of(self, node: ast.Call) -> bool:
        """Whether a call is one of the path, or of what is open there, or has it."""
        of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        return any(
            self.is_path(it) or self.is_handle(it) for it in [*of, *node.args, *(it.value for it in node.keywords)]
        )


def _known(tree: ast.Module, paths: Collection[str]) -> _Known:
    known = _Known(set(paths))
    for _ in range(_FOLLOWED):
        before = len(known.paths) + len(known.handles) + len(known.texts)
        for target, value in _bound(tree):
            if known.is_text(value):
                known.texts.add(target)
            elif known.is_handle(value):
                known.handles.add(target)
            elif known.is_path(value):
                known.paths.add(target)
        if len(known.paths) + len(known.handles) + len(known.texts) == before:
            break
    return known


def _bound(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are given: also those of arguments, where a function of the file is called."""
    functions = {it.name: it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((dotted(it), node.value) for it in targets if isinstance(it, ast.Name | ast.Attribute))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = functions.get(node.func.id)
            if given:
                yield from zip((it.arg for it in given.args.args), node.args, strict=False)
                yield from ((it.arg, it.value) for it in node.keywords if it.arg)
        elif isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            yield node.optional_vars.id, node.context_expr


def _is_looked_at(
    node: ast.expr, parents: Mapping[ast.AST, ast.AST], known: _Known, functions: Collection[str]
) -> bool:
    """Whether something else is done with it than to name it, to hand it on in the file, to run it or to load it."""
    parent = parents.get(node)
    if isinstance(parent, _NAMED):
        return False
    if isinstance(parent, ast.Call) and node in parent.args:
        handed_on = known.is_handle(parent) or known.is_text(parent) or dotted(parent.func) in functions
        return not (handed_on or _running(parent))
    if isinstance(parent, ast.Attribute):  # a method of it, whose answer is looked at in its turn
        call = parents.get(parent)
        is_called = isinstance(call, ast.Call) and call.func is parent
        return not (is_called and isinstance(call, ast.Call) and (known.is_text(call) or parent.attr == "close"))
    return True
