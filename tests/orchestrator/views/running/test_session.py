"""What `run` says of a baseline that is no solution."""

from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.views.running.session import notes_on_baseline


def bench(**verdict: Any) -> Any:
    told = Verdict(cohort="c", tier=Tier.DATA, mode=Mode.SUBMIT, metrics={}, **verdict)
    run, nodes = SimpleNamespace(root="1"), {"1": SimpleNamespace(verdict=told)}
    return SimpleNamespace(state=SimpleNamespace(run=run, nodes=nodes))


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        ({"valid": False, "notes": "no function solve;\n there are: \x1b[2Jf"}, ": no function solve; there are: "),
        ({"valid": False}, ""),
        ({"valid": True, "notes": "fine"}, ""),
    ],
)
def test_the_judges_notes_are_told(verdict: dict[str, Any], text: str) -> None:
    """In one printable line, and only where the judge refused it."""
    told = notes_on_baseline(bench(**verdict))
    assert told.startswith(text)
    assert bool(told) is bool(text)
    assert told.isprintable()
