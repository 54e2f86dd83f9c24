"""A judge's mode is declared in two files, one for each floor that needs it, and nothing else asks which one it is."""

import ast
from collections.abc import Iterator

from orchestrator.domain.tier import Tier
from orchestrator.loop.judge_modes import JUDGE_MODES

FOLDERS = ("blastdoor", "orchestrator")
HOMES = {"orchestrator/domain/tier.py", "orchestrator/loop/judge_modes.py"}
STRATEGIES = {type(it).__name__ for it in JUDGE_MODES.values()}
NAMES = {tier.value for tier in Tier}


def is_mode(node: ast.expr) -> bool:
    """Whether an expression stands for the judge's mode: judge.mode, anything.tier, Tier(…), or one of these named."""
    match node:
        case ast.NamedExpr():
            return is_mode(node.value)
        case ast.Call():
            return isinstance(node.func, ast.Name) and node.func.id == "Tier"
        case ast.Attribute(attr="mode"):
            return last_name(node.value) == "judge"
    return last_name(node) == "tier"


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_name_of_mode(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in NAMES


def is_branch(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="Tier")):
            return node.attr in Tier.__members__
        case ast.Name():
            return node.id in STRATEGIES
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return any(map(is_mode, sides)) or any(is_name_of_mode(it) for side in sides for it in ast.walk(side))
        case ast.Match():
            return is_mode(node.subject)
        case ast.Subscript():
            return is_mode(node.slice)
        case ast.Call(func=ast.Attribute(attr="get")):
            return any(map(is_mode, node.args))
    return False


def branches(source: str) -> Iterator[int]:
    """Lines on which the code asks which mode it is."""
    yield from (getattr(node, "lineno", 0) for node in ast.walk(ast.parse(source)) if is_branch(node))


def findings(name: str, source: str) -> Iterator[tuple[int, str]]:
    """Branches outside of the two files that declare the modes."""
    if name not in HOMES:
        yield from ((line, "asks for the judge's mode: give JudgeMode a method") for line in branches(source))
