"""Each way to ask for a judge's mode; each mode is there on both floors."""

import pytest

from orchestrator.domain.tier import Tier
from orchestrator.loop.judge_modes import JUDGE_MODES
from rules.judge_modes import STRATEGIES, branches
from sandbox import Mode as JobMode


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


def test_every_mode_is_there_on_both_floors() -> None:
    """Each mode that a task can name has its class, and one whose judge calls talks with the candidate's chamber."""
    assert set(JUDGE_MODES) == set(Tier)
    assert len(STRATEGIES) == len(Tier)
    for tier, judge_mode in JUDGE_MODES.items():
        assert tier.terms.calls == (judge_mode.job_mode is JobMode.RELAY)
