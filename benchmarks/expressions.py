"""Runs small functions without running Python: a file is parsed, and a few kinds of statements are worked out by hand.

Searches can be measured on it by the thousand, in process: whatever a candidate says, there is nothing it could do.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping

STEPS = 2_000
_MOST = 1e12
_SIGNS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: math.pow(a, b),
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "abs": abs, "sqrt": math.sqrt}


class Unknown(Exception):
    """Something that this does not know, or that has no value."""


class Function:
    """The first function of a file, with the constants above it."""

    def __init__(self, source: str) -> None:
        try:
            self._module = ast.parse(source)
            self._function = next(node for node in self._module.body if isinstance(node, ast.FunctionDef))
        except (SyntaxError, ValueError, RecursionError, StopIteration) as error:
            raise Unknown from error

    def __call__(self, *args: float) -> float:
        names = [arg.arg for arg in self._function.args.args]
        self._left = STEPS
        values: dict[str, float] = {}
        try:
            self._run([node for node in self._module.body if isinstance(node, ast.Assign)], values)
            values |= dict(zip(names, args, strict=True))
            result = self._run(self._function.body, values)
        except (ArithmeticError, ValueError, TypeError, RecursionError) as error:
            raise Unknown from error
        if result is None or not abs(result) < _MOST:
            raise Unknown
        return result

    def _run(self, body: list[ast.stmt], values: dict[str, float]) -> float | None:
        """What is returned, if anything is."""
        for node in body:
            self._count()
            match node:
                case ast.Return(value=ast.expr() as value):
                    return self._value(value, values)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = self._value(value, values)
                case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                    values[name] = self._calculated(
                        op, self._value(ast.Name(target.id), values), self._value(value, values)
                    )
                case ast.If():
                    branch = node.body if self._value(node.test, values) else node.orelse
                    if (result := self._run(branch, values)) is not None:
                        return result
                case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[stop])):
                    for turn in range(int(self._value(stop, values))):
                        values[name] = turn
                        if (result := self._run(node.body, values)) is not None:
                            return result
                case _:
                    raise Unknown
        return None

    def _value(self, node: ast.expr, values: Mapping[str, float]) -> float:
        self._count()
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.BinOp(left=left, op=op, right=right):
                return self._calculated(op, self._value(left, values), self._value(right, values))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self._value(inner, values)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return not self._value(inner, values)
            case ast.BoolOp(op=op, values=sides):
                found = [bool(self._value(side, values)) for side in sides]
                return all(found) if isinstance(op, ast.And) else any(found)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return _COMPARISONS[type(op)](self._value(left, values), self._value(right, values))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._value(body if self._value(test, values) else orelse, values)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(self._value(arg, values) for arg in args))
        raise Unknown

    def _calculated(self, op: ast.operator, left: float, right: float) -> float:
        value = _SIGNS[type(op)](left, right) if type(op) in _SIGNS else math.inf
        if not abs(value) < _MOST:
            raise Unknown
        return value

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Unknown
