"""Python as its syntax tree has it: no comments, no docstrings, one layout, locals by the order in which they come."""

import ast

from orchestrator.python_source import parse_python

# A parse holds the interpreter from beginning to end: this much takes some hundredths of a second.
MOST_CHARACTERS = 64 << 10
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def python_form(text: str, kept: frozenset[str] | None) -> str | None:
    """The same for all writings of one program; None for what is no Python, or too much. `kept` is as for tokens."""
    tree = parse_python(text) if len(text) <= MOST_CHARACTERS else None
    if tree is None:
        return None
    try:
        for node in ast.walk(tree):
            if isinstance(node, _FUNCTIONS | ast.ClassDef | ast.Module):
                _drop_docstring(node)
        if kept is not None:
            _Numbering(kept).visit(tree)
        return ast.unparse(tree)
    except (RecursionError, ValueError, MemoryError):
        return None


def _drop_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) -> None:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        rest = node.body[1:]
        node.body = rest if rest or isinstance(node, ast.Module) else [ast.Pass()]


class _Numbering(ast.NodeVisitor):
    """Of each outermost function: what is assigned to in it is its own, unless it is known by name elsewhere, too."""

    def __init__(self, kept: frozenset[str]) -> None:
        self._kept = kept

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._number(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._number(node)

    def _number(self, function: ast.AST) -> None:
        names: list[ast.Name] = []
        own: set[str] = set()
        others = set(self._kept)
        for node in ast.walk(function):
            match node:
                case ast.Name():
                    names.append(node)
                    own |= {node.id} if isinstance(node.ctx, ast.Store) else set()
                case ast.arg():
                    others.add(node.arg)
                case ast.Global() | ast.Nonlocal():
                    others.update(node.names)
                case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                    others.add(name)
                case ast.MatchMapping(rest=str(rest)):
                    others.add(rest)
                case ast.alias():
                    others.add(node.asname or node.name.partition(".")[0])
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    others.add(node.name)
        own -= others
        numbers: dict[str, str] = {}
        for found in names:
            if found.id in own:
                found.id = numbers.setdefault(found.id, f"_{len(numbers)}_")
