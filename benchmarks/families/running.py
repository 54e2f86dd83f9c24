"""Runs small programs in this process, within a budget of steps, and counts them.

What runs here are programs of ours that our own operators changed: nobody else had a word in it. A change may still
loop for ever or make a huge number, so every loop and call counts, and what grows is bounded.
"""

import ast
import builtins
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import Any

STEPS = 60_000
_MOST = 10_000_000
_NAMES = ("abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "len", "list")
_MORE = ("max", "min", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip")


class Broken(Exception):
    """It cannot be run, raised something, or took too long."""


class Running:
    """One program. `steps` is how many it took so far."""

    def __init__(self, source: str, steps: int = STEPS) -> None:
        self.steps = 0
        self._most = steps
        names = {name: getattr(builtins, name) for name in (*_NAMES, *_MORE)}
        self._names: dict[str, Any] = {
            "__builtins__": {**names, "range": self._range},
            "_tick": self._tick,
            "_grow": self._grow,
        }
        try:
            for part in _parts(source):
                exec(_counted(part), self._names)  # noqa: S102  # see above
        except Exception as error:
            raise Broken from error

    def call(self, name: str, *args: object) -> Any:
        try:
            return self._names[name](*args)
        except Exception as error:
            raise Broken from error

    def _tick(self) -> None:
        self.steps += 1
        if self.steps > self._most:
            raise TimeoutError

    def _range(self, *args: int) -> range:
        found = range(*args)
        if len(found) > self._most:
            raise OverflowError
        return found

    def _grow(self, kind: str, left: Any, right: Any) -> Any:
        """What can become huge in one step."""
        self._tick()
        sizes = [abs(it) if isinstance(it, int | float) else len(it) for it in (left, right)]
        if kind != "*" and (sizes[0] > _MOST or sizes[1] > 64):
            raise OverflowError
        if sizes[0] * sizes[1] > _MOST and not isinstance(left, int | float):
            raise OverflowError
        operators: dict[str, Callable[[Any, Any], Any]] = {
            "*": lambda a, b: a * b,
            "**": lambda a, b: a**b,
            "<<": lambda a, b: a << b,
        }
        found = operators[kind](left, right)
        if isinstance(found, int) and abs(found) > 1 << 256:
            raise OverflowError
        return found


def _parts(source: str) -> list[str]:
    """The statements of the file, one by one; those that share a line stay together. Of a program that was changed in
    one place, all others are known already.
    """
    lines = source.splitlines(keepends=True)
    starts: list[int] = []
    last = 0
    for statement in ast.parse(source).body:
        if statement.lineno > last:
            starts.append(statement.lineno - 1)
        last = max(last, statement.end_lineno or 0)
    return ["".join(lines[one:other]) for one, other in pairwise([*starts, len(lines)])]


@lru_cache(maxsize=4096)
def _counted(part: str) -> CodeType:
    return compile(ast.fix_missing_locations(_Counted().visit(ast.parse(part))), "f.py", "exec")


_GROWING: dict[type[ast.operator], str] = {ast.Mult: "*", ast.Pow: "**", ast.LShift: "<<"}


class _Counted(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> ast.AST:
        return self._count(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._count(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._count(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        raise Broken(ast.dump(node))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        kind = _GROWING.get(type(node.op))
        if kind is None:
            return node
        return ast.Call(ast.Name("_grow", ast.Load()), [ast.Constant(kind), node.left, node.right], [])

    def _count(self, node: ast.For | ast.While | ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, ast.Expr(ast.Call(ast.Name("_tick", ast.Load()), [], [])))
        return node
