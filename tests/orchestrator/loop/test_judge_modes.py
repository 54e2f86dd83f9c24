"""A judge's mode is declared in two files, one for each floor that needs it, and nothing else asks which one it is."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.tier import Tier
from orchestrator.loop.judge_modes import JUDGE_MODES
from sandbox import Mode as JobMode

ROOT = Path(__file__).parents[3]
HOMES = {"orchestrator/domain/tier.py", "orchestrator/loop/judge_modes.py"}
STRATEGIES = {type(it).__name__ for it in JUDGE_MODES.values()}
NAMES = {tier.value for tier in Tier}


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


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


@pytest.mark.parametrize(
    "source",
    [
        "if stops and (mode := task.judge.mode) != 'data': ...",
        "mode = task.judge.mode\nif mode == 'data': ...",
        "if parts.tier is Tier.SHARED: ...",
        "x = 1 if Tier(name) is not other else 2",
        "{'data': 2}[task.judge.mode]",
        "table.get(bench.tier)",
        "match task.judge.mode:\n    case 'relay': ...",
        "isinstance(bench.judge_mode, RelayMode)",
    ],
)
def test_what_a_branch_is(source: str) -> None:
    """Each way to ask for the mode is found."""
    assert list(branches(source))


def test_no_branch_outside() -> None:
    """Nothing but the two files that declare the modes asks which of them a judge has."""
    words = ("judge.mode", "tier", "Tier", *STRATEGIES, *(f'"{name}"' for name in NAMES))
    files = [path for top in ("orchestrator", "blastdoor") for path in sorted((ROOT / top).rglob("*.py"))]
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in files}
    asking = {name: text for name, text in sources.items() if name not in HOMES and any(word in text for word in words)}
    assert [f"{name}:{line}" for name, text in asking.items() for line in branches(text)] == []


def test_every_mode_is_there_on_both_floors() -> None:
    """Each mode that a task can name has its class, and one whose judge calls talks with the candidate's chamber."""
    assert set(JUDGE_MODES) == set(Tier)
    assert len(STRATEGIES) == len(Tier)
    for tier, judge_mode in JUDGE_MODES.items():
        assert tier.terms.calls == (judge_mode.job_mode is JobMode.RELAY)
