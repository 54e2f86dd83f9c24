"""Calls of a Python file: a function for a related one that takes the same arguments."""

import random
import re

import libcst as cst

from orchestrator.proposers.operators.code import Code, Spot
from orchestrator.proposers.operators.edit import Edit, Splice, snippet, spliced
from orchestrator.proposers.operators.hints import Hints, pick

# By the last part of the name: `math.floor`, `np.floor` and `self.floor` all have a `ceil` beside them.
_SAME_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "min": ("max",),
    "max": ("min",),
    "any": ("all",),
    "all": ("any",),
    "floor": ("ceil",),
    "ceil": ("floor",),
    "sin": ("cos",),
    "cos": ("sin",),
    "log": ("log1p", "log2"),
    "log1p": ("log",),
    "log2": ("log",),
    "exp": ("expm1",),
    "expm1": ("exp",),
    "sinh": ("tanh",),
    "mean": ("median",),
    "median": ("mean",),
    "fmean": ("median",),
    "argmin": ("argmax",),
    "argmax": ("argmin",),
    "minimum": ("maximum",),
    "maximum": ("minimum",),
    "nlargest": ("nsmallest",),
    "nsmallest": ("nlargest",),
    "uniform": ("triangular",),
    "triangular": ("uniform",),
    "bisect_left": ("bisect_right",),
    "bisect_right": ("bisect_left",),
    "popleft": ("pop",),
}
# Only without a module in front: others of that name mean something else.
_BUILT_IN: dict[str, tuple[str, ...]] = {"int": ("round",), "round": ("int",), "sum": ("max", "math.fsum")}
# Whole calls, with {0} and {1} for the arguments and {f} for what stands before the last part of the name.
_REWRITTEN: dict[tuple[str, int], tuple[str, ...]] = {
    ("sqrt", 1): ("(({0}) ** 0.5)", "(({0}) ** 0.4)", "(({0}) ** 0.6)"),
    ("hypot", 2): ("(abs({0}) + abs({1}))", "max(abs({0}), abs({1}))"),
    ("fsum", 1): ("sum({0})",),
    ("abs", 1): ("({0})", "(({0}) ** 2)"),
    ("gauss", 2): ("{f}uniform(({0}) - ({1}), ({0}) + ({1}))",),
    ("uniform", 2): ("{f}gauss((({0}) + ({1})) / 2, (({1}) - ({0})) / 4)",),
    ("sorted", 1): ("sorted({0}, reverse=True)",),
    ("pow", 2): ("(({0}) ** ({1}))",),
    ("tanh", 1): ("({0})",),
}
_PLACE = re.compile(r"\{(\w)\}")


def call(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """One function for another that knows what to do with the arguments."""
    found: list[tuple[Spot, bytes]] = []
    for spot in code.of(cst.Call, cst.BinaryOperation):
        found += [(spot, new) for new in _others(code, spot)]
    chosen = pick(rng, found, lambda it: hints.favour(it[0].owner))
    if chosen is None:
        return None
    spot, new = chosen
    said = f"turned {snippet(code.text(spot))} into {snippet(new)}"
    return Edit(spliced(code.data, [Splice(spot.start, spot.end, new)]), said, code.line(spot), spot.owner)


def _others(code: Code, spot: Spot) -> list[bytes]:
    match spot.node:
        case cst.BinaryOperation(operator=cst.Power(), left=base, right=cst.Float(value="0.5")):
            under = code.child(spot, base)
            return [b"math.sqrt(" + code.text(under) + b")"] if under and b"import math\n" in code.data else []
        case cst.Call(func=func):
            named = code.child(spot, func)
            return _other_calls(code, spot, named) if named else []
    return []


def _other_calls(code: Code, spot: Spot, named: Spot) -> list[bytes]:
    full = code.text(named)
    before, dot, name = full.decode().rpartition(".")
    if not name.isidentifier() or not isinstance(spot.node, cst.Call):
        return []
    rest = code.data[named.end : spot.end]
    others = [f"{before}{dot}{other}".encode() + rest for other in _SAME_ARGUMENTS.get(name, ())]
    if not dot:
        wanted = (it for it in _BUILT_IN.get(name, ()) if not it.startswith("math.") or b"import math" in code.data)
        others += [other.encode() + rest for other in wanted]
    args = [code.child(spot, arg) for arg in spot.node.args if not (arg.keyword or arg.star)]
    if len(args) == len(spot.node.args):
        texts = [_argument(code, arg) for arg in args if arg]
        for form in _REWRITTEN.get((name, len(texts)), ()):
            others.append(_filled(form, texts, f"{before}{dot}"))
    return others


def _argument(code: Code, spot: Spot) -> str:
    """A generator has brackets of its own, unless it is the only argument."""
    text = code.text(spot).decode()
    bare = isinstance(spot.node, cst.Arg) and isinstance(spot.node.value, cst.GeneratorExp)
    return f"({text})" if bare and not text.startswith("(") else text


def _filled(form: str, texts: list[str], before: str) -> bytes:
    """Each place by what belongs there, all at once: the arguments are a candidate's words, and never a form."""
    parts = {str(at): text for at, text in enumerate(texts)} | {"f": before}
    return _PLACE.sub(lambda place: parts[place[1]], form).encode()
