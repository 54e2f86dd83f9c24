"""[pruning]: a key that means nothing to its rule is an error, and so is a mode in which nothing can be stopped."""

import pytest

from orchestrator.task import Task, TaskError, load_task
from tests.orchestrator.task.conftest import Make


def told(make: Make, lines: str, judge: str = "") -> str:
    folder = make(f"{judge}\n[pruning]\n{lines}\n")
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("", "pruning.rule: is missing"),
        ("rule = 'medain'", "pruning.rule: "),
        ("rule = 'median'\noptions = {by = 1}", '"options" means nothing to the rule median'),
        ("rule = 'median'\noptions = {by = nan}", "pruning.options.by"),
        ("rule = 'median'\nwarmpu = 3", "pruning.warmpu: unknown key; did you mean warmup?"),
        ("rule = 'median'\nwarmup = -1", "pruning.warmup: "),
        ("rule = 'median'\nevery = 0", "pruning.every: "),
        ("rule = 'median'\nstartup = 0", "pruning.startup: "),
        ("rule = 'median'\nspare = 1.5", "pruning.spare: "),
        ("rule = 'median'\nspare = nan", "pruning.spare: "),
        ("rule = 'median'\ngoal = 'up'", "pruning.goal: "),
        ("rule = 'halving'\nreduction = 1", "pruning.reduction: "),
        ("rule = 'curve'\nthreshold = 1.0", "pruning.threshold: "),
        (
            "rule = 'median'\nreduction = 3",
            '"reduction" means nothing to the rule median, which knows warmup, every',
        ),
        ("rule = 'median'\nthreshold = 0.1", '"threshold" means nothing to the rule median'),
        ("rule = 'halving'\nwarmup = 3", '"warmup" means nothing to the rule halving, which knows reduction, least'),
        ("rule = 'wilcoxon'\nleast = 3", '"least" means nothing to the rule wilcoxon'),
        ("rule = 'curve'\nreduction = 3", '"reduction" means nothing to the rule curve'),
    ],
)
def test_what_is_wrong(make: Make, line: str, text: str) -> None:
    """One line with file, line, key and what is wrong."""
    assert text in told(make, line)


def test_shared_judge(make: Make) -> None:
    """Where judge and candidate share a chamber, nothing can be told to stop."""
    text = told(make, "rule = 'median'", judge="mode = 'shared'")
    assert text.endswith(
        'pruning.rule: needs judge.mode = "data": with "shared" no trial can be told to stop; take one of them out'
    )


@pytest.mark.parametrize(
    "line",
    [
        "rule = 'median'\nwarmup = 3\nevery = 2\ngoal = 'lower'\nspare = 0",
        "rule = 'halving'\nreduction = 3\nleast = 2",
        "rule = 'wilcoxon'\nthreshold = 0.05\nwarmup = 3",
        "rule = 'curve'\nthreshold = 0.01\nevery = 5\nspare = 1",
    ],
)
def test_what_is_right(make: Make, line: str) -> None:
    """Each rule with its own keys."""
    task = load_task(make(f"[pruning]\n{line}\n"))
    assert task.pruning
    assert task.pruning.startup == 5


def test_options_came_later(make: Make) -> None:
    """The digest of a task that uses none is what it was before there were any."""
    task = load_task(make("[pruning]\nrule = 'median'\n"))
    assert "options" not in task.plain()["pruning"]
    assert Task.from_canonical(task.canonical()) == task
