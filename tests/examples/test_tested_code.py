"""The tested_code example: the judge takes the time, the tests of the code guard it, and neither is the candidate's."""

import sys

import pytest

from orchestrator.change import File, Refusal, Tree
from orchestrator.loop.guards import Checked, guard_record, run_guard
from orchestrator.loop.rehearsal import Rehearsal, rehearse
from orchestrator.task import load_task
from orchestrator.task.snapshot import snapshot
from orchestrator.wiring.parts import make_parts
from tests.examples.judging import EXAMPLES
from tests.orchestrator.views.judging.stage import Stage

FOLDER = EXAMPLES / "tested_code/.ci/speed"
SLOW = (EXAMPLES / "tested_code/words.py").read_text()
FAST = """from collections import Counter


def top(text: str, count: int) -> list[tuple[str, int]]:
    if count < 0:
        raise ValueError("count must be 0 or more")
    return sorted(Counter(text.lower().split()).items(), key=lambda pair: (-pair[1], pair[0]))[:count]
"""
CARELESS = FAST.replace('    if count < 0:\n        raise ValueError("count must be 0 or more")\n', "")
WRONG = FAST.replace("-pair[1]", "pair[1]")


async def tried(words: str) -> tuple[Rehearsal, Checked]:
    """The judge's word and the guard's; the programs really run."""
    task = load_task(FOLDER)
    taken = snapshot(task, FOLDER)
    tree = Tree({**taken.tree, "words.py": File(words.encode())})
    async with Stage(instead={"python3": sys.executable}).site() as site:
        parts = await make_parts(task, taken, site)
        return await rehearse(parts, tree=tree), await run_guard(parts, guard_record(task.guards[0]), tree, {})


def test_task_file_is_good() -> None:
    """It is read without a warning; judge and task are not in the workspace, and only the code is editable."""
    task = load_task(FOLDER)
    assert (task.warnings, task.judge.mode) == ((), "relay")
    assert set(snapshot(task, FOLDER).tree) == {"README.md", "words.py", "tests/test_words.py"}
    task.policy().check("words.py")
    for path in ("tests/test_words.py", ".ci/speed/judge/judge.py", "conftest.py"):
        with pytest.raises(Refusal):
            task.policy().check(path)


@pytest.mark.parametrize(
    ("words", "right", "passes"),
    [(SLOW, True, True), (FAST, True, True), (CARELESS, True, False), (WRONG, False, False)],
    ids=["slow", "fast", "careless", "wrong"],
)
async def test_judge_and_guard(words: str, right: bool, passes: bool) -> None:
    """What the judge never asks for, the tests do; what is wrong has no time."""
    judged, guard = await tried(words)
    assert bool(judged.verdict and judged.verdict.valid) is right
    assert guard.passed is passes, guard.log
    if right and judged.verdict:
        assert judged.verdict.metrics["seconds"] > 0
