"""Signs of a Python file: comparisons, arithmetic, conditions, and factors that were not there before."""

import math
import random

import libcst as cst

from orchestrator.proposers.operators.code import Code, Spot
from orchestrator.proposers.operators.edit import Edit, Splice, snippet, spliced
from orchestrator.proposers.operators.hints import Hints, pick
from orchestrator.proposers.operators.numbers import written

_COMPARISONS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.LessThan: ("<=", "<=", ">"),
    cst.LessThanEqual: ("<", "<", ">="),
    cst.GreaterThan: (">=", ">=", "<"),
    cst.GreaterThanEqual: (">", ">", "<="),
    cst.Equal: ("!=", "<=", ">="),
    cst.NotEqual: ("==", "<", ">"),
    cst.Is: ("is not",),
    cst.IsNot: ("is",),
    cst.In: ("not in",),
    cst.NotIn: ("in",),
}
_ARITHMETIC: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Add: ("-", "-", "*"),
    cst.Subtract: ("+", "+", "*"),
    cst.Multiply: ("/", "/", "+"),
    cst.Divide: ("*", "*", "-"),
    cst.FloorDivide: ("*", "%"),
    cst.Modulo: ("//", "*"),
    cst.Power: ("*", "/"),
    cst.AddAssign: ("-=",),
    cst.SubtractAssign: ("+=",),
    cst.MultiplyAssign: ("/=",),
    cst.DivideAssign: ("*=",),
}
_OPPOSITE: dict[type[cst.CSTNode], str] = {
    cst.LessThan: ">=",
    cst.LessThanEqual: ">",
    cst.GreaterThan: "<=",
    cst.GreaterThanEqual: "<",
    cst.Equal: "!=",
    cst.NotEqual: "==",
    cst.Is: "is not",
    cst.IsNot: "is",
    cst.In: "not in",
    cst.NotIn: "in",
}
_TEXTUAL = (cst.BaseString, cst.BaseList, cst.Tuple, cst.BaseDict, cst.BaseSet)
_SCALED = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
_SCALABLE = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


def comparison(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """One comparison for another: the edge in or out, or the other way round."""
    return _swapped(code, rng, hints, _COMPARISONS)


def arithmetic(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """One operation for another, its operands the other way round, or one of them left out."""
    if rng.random() < 0.75:
        return _swapped(code, rng, hints, _ARITHMETIC)
    spots = [spot for spot in code.of(cst.BinaryOperation) if _is_numeric(spot)]
    spot = pick(rng, spots, lambda it: hints.favour(it.owner))
    if spot is None or not isinstance(spot.node, cst.BinaryOperation):
        return None
    left, right = (code.child(spot, node) for node in (spot.node.left, spot.node.right))
    if left is None or right is None:
        return None
    if isinstance(spot.node.operator, cst.Subtract | cst.Divide | cst.Power) and rng.random() < 0.5:
        return _exchanged(code, spot, spot.node, left, right)
    kept = rng.choice((left, left, right))
    data = spliced(code.data, [Splice(spot.start, spot.end, _bracketed(code, kept))])
    said = f"left only {snippet(code.text(kept))} of {snippet(code.text(spot))}"
    return Edit(data, said, code.line(spot), spot.owner)


def condition(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A condition turned round, `and` for `or`, or one side of them left out. Never a `while`: it would not end."""
    tests = [spot for spot in code.reachable if _is_test(spot)]
    joined = code.of(cst.BooleanOperation)
    spot = pick(rng, [*tests, *joined], lambda it: hints.favour(it.owner))
    if spot is None:
        return None
    if isinstance(spot.node, cst.BooleanOperation) and (spot not in tests or rng.random() < 0.6):
        return _rejoined(code, spot, spot.node, rng)
    old = code.text(spot)
    new = _negated(code, spot)
    data = spliced(code.data, [Splice(spot.start, spot.end, new)])
    said = f"turned {snippet(old)} into {snippet(new)}"
    return Edit(data, said, code.line(spot), spot.owner)


def factor(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A value of a calculation gets a factor, which can be tuned from then on."""
    spots = [spot for spot in code.of(*_SCALED) if _takes_factor(spot)]
    spot = pick(rng, spots, lambda it: hints.favour(it.owner))
    number = written(math.exp(rng.gauss(0.0, max(0.1, hints.step("factor")))), 1.0, 0.1)
    above = spot.above.node if spot and spot.above else None
    if spot is None or number is None or not isinstance(above, cst.BinaryOperation):
        return None
    bare = isinstance(above.operator, cst.Add | cst.Subtract) or (
        isinstance(above.operator, cst.Multiply) and above.left is spot.node
    )
    product = f"{number} * ".encode() + _bracketed(code, spot)
    data = spliced(code.data, [Splice(spot.start, spot.end, product if bare else b"(" + product + b")")])
    return Edit(data, f"multiplied {snippet(code.text(spot))} by {number}", code.line(spot), spot.owner)


def _swapped(
    code: Code, rng: random.Random, hints: Hints, table: dict[type[cst.CSTNode], tuple[str, ...]]
) -> Edit | None:
    spots = [spot for spot in code.of(*table) if not _asks_for_main(code, spot) and _is_numeric(spot.above)]
    spot = pick(rng, spots, lambda it: hints.favour(it.owner))
    whole = spot.above if spot else None
    if spot is None or whole is None:
        return None
    if isinstance(whole.node, cst.ComparisonTarget) and whole.above:
        whole = whole.above
    old, new = b" ".join(code.text(spot).split()).decode(), rng.choice(table[type(spot.node)])
    data = spliced(code.data, [Splice(spot.start, spot.end, new.encode())])
    said = f"swapped {old} for {new} of {snippet(code.text(whole))}"
    return Edit(data, said, code.line(spot), spot.owner)


def _is_numeric(spot: Spot | None) -> bool:
    """Not where a text or a list is put together: to subtract those is an error and nothing else."""
    match spot.node if spot else None:
        case cst.BinaryOperation(left=left, right=right):
            return not isinstance(left, _TEXTUAL) and not isinstance(right, _TEXTUAL)
        case cst.AugAssign(value=value):
            return not isinstance(value, _TEXTUAL)
    return True


def _asks_for_main(code: Code, spot: Spot) -> bool:
    return any(isinstance(it.node, cst.Comparison) and code.text(it).startswith(b"__name__") for it in spot.ancestors())


def _is_test(spot: Spot) -> bool:
    above = spot.above.node if spot.above else None
    if isinstance(above, cst.If | cst.IfExp | cst.CompIf) and above.test is spot.node:
        return not (isinstance(spot.node, cst.Comparison) and _is_dunder(spot.node.left))
    return False


def _is_dunder(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "__name__"


def _negated(code: Code, spot: Spot) -> bytes:
    match spot.node:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            beneath = code.child(spot, inner)
            return _bracketed(code, beneath) if beneath else b"not (" + code.text(spot) + b")"
        case cst.Comparison(comparisons=[target]) if type(target.operator) in _OPPOSITE:
            sign = code.spot(target.operator)
            if sign is not None:
                opposite = _OPPOSITE[type(target.operator)].encode()
                return code.data[spot.start : sign.start] + opposite + code.data[sign.end : spot.end]
    return b"not (" + code.text(spot) + b")"


def _rejoined(code: Code, spot: Spot, node: cst.BooleanOperation, rng: random.Random) -> Edit | None:
    left, right, sign = (code.child(spot, it) for it in (node.left, node.right, node.operator))
    if left is None or right is None or sign is None:
        return None
    if rng.random() < 0.5:
        new = b"or" if isinstance(node.operator, cst.And) else b"and"
        data = spliced(code.data, [Splice(sign.start, sign.end, new)])
        said = f"swapped {code.text(sign).decode()} for {new.decode()} of {snippet(code.text(spot))}"
        return Edit(data, said, code.line(sign), spot.owner)
    kept = rng.choice((left, right))
    data = spliced(code.data, [Splice(spot.start, spot.end, _bracketed(code, kept))])
    said = f"left only {snippet(code.text(kept))} of {snippet(code.text(spot))}"
    return Edit(data, said, code.line(spot), spot.owner)


def _exchanged(code: Code, spot: Spot, node: cst.BinaryOperation, left: Spot, right: Spot) -> Edit | None:
    sign = code.child(spot, node.operator)
    if sign is None:
        return None
    turned = _bracketed(code, right) + b" " + code.text(sign) + b" " + _bracketed(code, left)
    data = spliced(code.data, [Splice(spot.start, spot.end, turned)])
    return Edit(data, f"turned {snippet(code.text(spot))} into {snippet(turned)}", code.line(spot), spot.owner)


def _bracketed(code: Code, spot: Spot) -> bytes:
    """An expression that can stand beside any sign. A node's bytes leave its own brackets out, so they come back."""
    plain = isinstance(spot.node, cst.Name | cst.Integer | cst.Float | cst.Attribute | cst.Subscript | cst.Call)
    return code.text(spot) if plain else b"(" + code.text(spot) + b")"


def _takes_factor(spot: Spot) -> bool:
    """A value in a sum or product, unless it is a place in a list, or has a number beside it that can be tuned."""
    above = spot.above.node if spot.above else None
    if not isinstance(above, cst.BinaryOperation) or not isinstance(above.operator, _SCALABLE):
        return False
    if spot.within(cst.Index, cst.Slice) or not _is_numeric(spot.above):
        return False
    beside = above.right if above.left is spot.node else above.left
    product = isinstance(above.operator, cst.Multiply | cst.Divide)
    return not (product and isinstance(beside, cst.Integer | cst.Float))
