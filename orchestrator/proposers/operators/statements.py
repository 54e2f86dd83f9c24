"""Statements of a Python file: one is repeated, moved among its neighbours, or left out.

Names tell what cannot work: a statement that gives a name its first value is not moved below its first use, nor left
out. What ends a block (return, break, …), imports, definitions and docstrings stay where they are.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import libcst as cst

from orchestrator.proposers.operators.code import Code, Spot, is_talk
from orchestrator.proposers.operators.edit import Edit, Splice, line_of, snippet, spliced
from orchestrator.proposers.operators.hints import Hints, pick

FURTHEST = 4  # statements that one is moved past at most
_FIXED = (cst.FunctionDef, cst.ClassDef)
_ENDS = (
    cst.Return,
    cst.Raise,
    cst.Assert,
    cst.Break,
    cst.Continue,
    cst.Pass,
    cst.Global,
    cst.Nonlocal,
    cst.Import,
    cst.ImportFrom,
)
_BINDING = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.AsName, cst.NamedExpr, cst.Param)


@dataclass(frozen=True)
class Statement:
    """`start` and `end` are whole lines, with the comment lines right above."""

    code: Code
    spot: Spot
    start: int
    end: int

    @property
    def text(self) -> bytes:
        return self.code.data[self.start : self.end]

    @property
    def line(self) -> int:
        return self.code.line(self.spot)

    @cached_property
    def binds(self) -> frozenset[str]:
        return frozenset(name for name, _ in bindings(self.code, self.spot))

    @cached_property
    def names(self) -> frozenset[str]:
        inside = self.code.inside(self.spot)
        return frozenset(spot.node.value for spot in inside if isinstance(spot.node, cst.Name))


def clone(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A statement comes a second time, right after itself or a little further down."""
    found = [(block, at) for block in blocks(code) for at in range(len(block)) if _adds_up(block[at])]
    chosen = pick(rng, found, lambda it: _worth(it[0][it[1]], hints))
    if chosen is None:
        return None
    block, at = chosen
    statement = block[at]
    after = block[min(len(block) - 1, at + rng.choice((0, 0, 1, 2)))]
    if not _closed(after) or not _closed(statement):
        return None
    data = spliced(code.data, [Splice(after.end, after.end, statement.text)])
    said = f"repeated {snippet(code.text(statement.spot))} after line {_last_line(after)}"
    return Edit(data, said, statement.line, statement.spot.owner)


def move(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A statement comes before some of those above it."""
    chosen = pick(rng, _moves(code), lambda it: _worth(it[1], hints))
    if chosen is None:
        return None
    before, statement = chosen
    if not _closed(statement):
        return None
    data = spliced(code.data, [Splice(before.start, before.start, statement.text), _gone(statement)])
    if data == code.data:  # the same statement twice
        return None
    said = f"moved {snippet(code.text(statement.spot))} before line {before.line}"
    return Edit(data, said, statement.line, statement.spot.owner)


def delete(code: Code, rng: random.Random, hints: Hints) -> Edit | None:
    """A statement is left out, where others are left and no name loses its first value."""
    statement = pick(rng, _spare(code), lambda it: _worth(it, hints) * hints.heat(it.spot.start, it.spot.end))
    if statement is None:
        return None
    said = f"left out {snippet(code.text(statement.spot))}"
    return Edit(spliced(code.data, [_gone(statement)]), said, statement.line, statement.spot.owner)


@lru_cache(maxsize=16)
def _moves(code: Code) -> Sequence[tuple[Statement, Statement]]:
    """Pairs of statements: the second may come before the first, and that can make a difference."""
    return [
        (block[to], block[at])
        for block in blocks(code)
        for at in range(len(block))
        for to in range(max(0, at - FURTHEST), at)
        if _may_pass(block[at], block[to:at])
    ]


@lru_cache(maxsize=16)
def _spare(code: Code) -> Sequence[Statement]:
    """Every name that such a one binds had a value before, or is not used elsewhere."""
    found = [statement for block in blocks(code) if len(block) > 1 for statement in block]
    return [it for it in found if not _first_bound(it) or not _first_bound(it) & _names_elsewhere(it)]


@lru_cache(maxsize=16)
def blocks(code: Code) -> Sequence[list[Statement]]:
    """Runs of statements that may change places: those of one block, between what stays where it is."""
    return list(_blocks(code))


def _blocks(code: Code) -> Iterator[list[Statement]]:
    for spot in code.of(cst.IndentedBlock, cst.Module):
        run: list[Statement] = []
        for at, node in enumerate(spot.node.body if isinstance(spot.node, cst.IndentedBlock | cst.Module) else ()):
            statement = _statement(code, code.child(spot, node))
            if statement is not None and not (at == 0 and _is_docstring(node)) and _is_movable(node):
                run.append(statement)
                continue
            if run:
                yield run
            run = []
        if run:
            yield run


def bindings(code: Code, outer: Spot) -> Iterator[tuple[str, int]]:
    """Names that get a value inside, and where."""
    for spot in code.inside(outer):
        if isinstance(spot.node, cst.Name) and _is_bound(spot):
            yield spot.node.value, spot.start


def _statement(code: Code, spot: Spot | None) -> Statement | None:
    if spot is None:
        return None
    data = code.data
    start = data.rfind(b"\n", 0, spot.start) + 1
    if data[start : spot.start].strip(b" \t\f"):
        return None  # something else stands on its line
    for line in reversed(getattr(spot.node, "leading_lines", ())):
        if line.comment is None:
            break
        start = data.rfind(b"\n", 0, start - 1) + 1
    end = data.find(b"\n", spot.end)
    return Statement(code, spot, start, len(data) if end < 0 else end + 1)


def _is_docstring(node: cst.CSTNode) -> bool:
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.BaseString())]):
            return True
    return False


def _is_movable(node: cst.CSTNode) -> bool:
    match node:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=func))]) if is_talk(func):
            return False
        case cst.SimpleStatementLine(body=body):
            return not any(isinstance(it, _ENDS) for it in body)
        case cst.If(test=cst.Comparison(left=cst.Name(value="__name__"))):
            return False
    return isinstance(node, cst.BaseCompoundStatement) and not isinstance(node, _FIXED)


def _is_bound(spot: Spot) -> bool:
    """Whether the name is a target: of an assignment, a loop, a parameter. `a[i] = …` binds neither a nor i."""
    beneath = spot
    for above in spot.ancestors():
        node = above.node
        if isinstance(node, _BINDING):
            target = getattr(node, "target", None) or getattr(node, "name", None)
            return target is beneath.node
        if not isinstance(node, cst.Tuple | cst.List | cst.Element | cst.StarredElement):
            return False
        beneath = above
    return False


def _first_bound(statement: Statement) -> frozenset[str]:
    """Names that have no value before this."""
    first = _first_values(statement.code, _home(statement))
    return frozenset(name for name in statement.binds if first.get(name, -1) >= statement.spot.start)


@lru_cache(maxsize=512)
def _first_values(code: Code, home: Spot) -> dict[str, int]:
    """Where each name of a function gets its first value."""
    found: dict[str, int] = {}
    for name, at in bindings(code, home):
        found[name] = min(at, found.get(name, at))
    return found


def _names_elsewhere(statement: Statement) -> frozenset[str]:
    spot = statement.spot
    inside = statement.code.inside(_home(statement))
    elsewhere = (it for it in inside if not spot.start <= it.start < spot.end)
    return frozenset(it.node.value for it in elsewhere if isinstance(it.node, cst.Name))


def _home(statement: Statement) -> Spot:
    """The function around it, or the module."""
    above = list(statement.spot.ancestors())
    return next((spot for spot in above if isinstance(spot.node, cst.FunctionDef)), above[-1])


def _may_pass(statement: Statement, others: list[Statement]) -> bool:
    """Whether it can come before the others and that can make a difference: they have a name in common."""
    if any(_first_bound(other) & statement.names for other in others):
        return False
    return any((other.binds & statement.names) | (statement.binds & other.names) for other in others) or any(
        _has_call(other) and _has_call(statement) for other in others
    )


def _adds_up(statement: Statement) -> bool:
    """Whether doing it twice is more than doing it once: `x = 1` is not, `x += 1` and a call are."""
    match statement.spot.node:
        case cst.SimpleStatementLine(body=[cst.Assign(value=value)]):
            read = {it.value for it in _names_beneath(statement.code, value)}
            return bool(statement.binds & read) or not statement.binds or _has_call(statement)
        case cst.SimpleStatementLine(body=[cst.AnnAssign()]):
            return False
    return True


def _names_beneath(code: Code, node: cst.BaseExpression) -> list[cst.Name]:
    spot = code.spot(node)
    inside = [spot, *code.inside(spot)] if spot else []
    return [it.node for it in inside if isinstance(it.node, cst.Name)]


def _has_call(statement: Statement) -> bool:
    return any(isinstance(spot.node, cst.Call) for spot in statement.code.inside(statement.spot))


def _worth(statement: Statement, hints: Hints) -> float:
    return hints.favour(statement.spot.owner) * (1.0 if statement.spot.owner else 0.3)


def _gone(statement: Statement) -> Splice:
    return Splice(statement.start, statement.end, b"")


def _closed(statement: Statement) -> bool:
    """The last line of a file may have no end; what comes after it would stand on the same line."""
    return statement.text.endswith(b"\n")


def _last_line(statement: Statement) -> int:
    return line_of(statement.code.data, statement.end - 1)
