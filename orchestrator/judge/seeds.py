"""Generators that a judge starts from a fixed seed, by reading its Python. It proves nothing, and runs nothing."""

import ast
from collections.abc import Mapping

from orchestrator.python_source import parse_python

_LARGEST = 1 << 20
_SEEDED = frozenset({"seed", "Random", "default_rng", "RandomState", "manual_seed", "PRNGKey", "SeedSequence"})


def seeded_places(code: Mapping[str, bytes]) -> list[str]:
    """As path and line, where a generator gets a constant."""
    found: list[str] = []
    for path, data in code.items():
        tree = parse_python(data) if path.endswith(".py") and len(data) <= _LARGEST else None
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] if tree else []
        found += [f"{path}:{it.lineno}" for it in calls if _name(it.func) in _SEEDED and _has_constant(it)]
    return found


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _has_constant(call: ast.Call) -> bool:
    given = [*call.args, *(it.value for it in call.keywords if it.arg == "seed")]
    return any(isinstance(it, ast.Constant) and isinstance(it.value, int | str | bytes) for it in given[:1])
