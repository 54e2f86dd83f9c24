"""How attempts end: each ending of the taxonomy is on record, and charged or refunded as the table says."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Proposal
from orchestrator.domain.records import Node, Phase
from orchestrator.domain.tier import Tier
from orchestrator.loop.workbench import BaselineFailed
from orchestrator.proposers import Brief
from orchestrator.wiring.beginning import How
from sandbox import Job
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import LIMITS, Act, Point, Virtual, proposal, ran, scripted, write_task

TIGHT = '[limits]\nwall = "3s"\ngrace = "0s"\nlog_bytes = "64KiB"\n'


async def played(folder: Path, script: Script, *points: Point | Act, outside: bool = False) -> tuple[list[Node], int]:
    """The nodes after the baseline, and how many attempts were charged."""
    session = await ran(folder, script, *points, attempts=10, outside=outside)
    assert not session.accounts.holds
    return [node for name, node in session.nodes.items() if name != "1"], session.charged


@pytest.mark.parametrize(
    ("point", "ending"),
    [
        ({}, Ending.SCORED),
        ({"do": "failed"}, Ending.FAILED),
        ({"do": "build failed"}, Ending.BUILD_FAILED),
        ({"do": "out of memory"}, Ending.OUT_OF_MEMORY),
        ({"do": "too slow"}, Ending.TIMED_OUT),
        ({"do": "tampered"}, Ending.TAMPERED),
        ({"do": "nothing"}, Ending.INVALID),
        ({"do": "bad name"}, Ending.INVALID),
        ({"do": "flood"}, Ending.FAILED),
        ({"judge": "crash"}, Ending.INVALID),
        ({"judge": "silent"}, Ending.INVALID),
        ({"judge": "nan"}, Ending.INVALID),
        ({"judge": "no metric"}, Ending.INVALID),
        ({"judge": "no solution"}, Ending.INVALID),
    ],
    ids=str,
)
def test_candidate_pays(tmp_path: Path, virtual: Virtual, point: Point, ending: Ending) -> None:
    """What a candidate did itself is charged, has no score unless it was scored, and does not end the campaign."""
    folder = write_task(tmp_path / "task", trial='build = "build"', limits=TIGHT)
    (node, after), used = virtual.run(played(folder, Script(), {"value": 3, **point}, {"value": 1}))
    assert (node.ending, node.phase, node.kept) == (ending, Phase.ENDED, ending is Ending.SCORED)
    assert (node.verdict is not None and node.verdict.valid) is ending.scoreable
    assert after.ending is Ending.SCORED
    assert used == 2
    assert node.spent == node.booked


async def test_refused_change(folder: Path) -> None:
    """A change that is refused is invalid and charged; no chamber is opened for it."""
    script = Script()
    (node,), used = await played(folder, script, _forbidden)
    assert (node.ending, used) == (Ending.INVALID, 1)
    assert "refused" in node.why
    assert script.commands == ["trial", "judge"]


@pytest.mark.parametrize(
    ("point", "told"),
    [
        ({"value": 3, "vlaue": 4}, "vlaue is no parameter of the space"),
        ({"value": 13}, "13 is no value of value"),
        ({"value": 3.0}, "3.0 is no value of value"),
        ({"value": True}, "True is no value of value"),
    ],
)
async def test_point_outside_of_the_space(folder: Path, point: Point, told: str) -> None:
    """A proposer's mistake is not measured as if somebody had asked for it: it is invalid, and the key is named."""
    script = Script()

    async def astray(_: Brief) -> Sequence[Proposal]:
        return [proposal(point)]

    (node,), used = await played(folder, script, astray, outside=True)
    assert (node.ending, used) == (Ending.INVALID, 1)
    assert f"no point of the space: {told}; propose values of parameters.space" in node.why
    assert script.commands == ["trial", "judge"]


async def test_one_refused_of_several(tmp_path: Path) -> None:
    """With several drafts, the refused ones are left out and the attempt goes on with the others."""
    more = '[tune]\ntrials = 2\ncommand = ["tune"]\n'
    folder = write_task(tmp_path / "task", more)

    async def propose(brief: Brief) -> list[Proposal]:
        return [*await _forbidden(brief), proposal({"value": 2})]

    assert (await ran(folder, None, propose)).nodes["1.1"].promoted == 2


async def _forbidden(_: Brief) -> list[Proposal]:
    """A change to a file that nobody may touch."""
    text = "--- /dev/null\n+++ b/other.txt\n@@ -0,0 +1 @@\n+mine\n"
    return [Proposal(operator="forbidden", description="", text=text)]


async def test_change_without_effect(folder: Path) -> None:
    """Files that were measured already are not measured again; nobody pays."""
    (node,), used = await played(folder, Script(), {"value": 0})
    assert (node.ending, used) == (Ending.CANCELLED, 0)
    assert "1 has the same files" in node.why


async def test_too_large_a_bundle(tmp_path: Path) -> None:
    """A candidate that does not fit into its chamber is invalid, and pays."""
    limits = LIMITS + 'bundle_bytes = "8KiB"\n'
    folder = write_task(tmp_path / "task", limits=limits)
    (node,), used = await played(folder, Script(), {"value": 3, "fat": "x" * 20_000})
    assert (node.ending, used) == (Ending.INVALID, 1)


@pytest.mark.parametrize("point", [{"do": "failed"}, {"judge": "no solution"}, {"judge": "crash"}], ids=str)
async def test_baseline_that_does_not_work(folder: Path, point: Point) -> None:
    """The campaign ends with a line, uncharged; a resume says it again at once, and runs nothing."""
    (folder / "workspace" / "params.json").write_text(json.dumps({"value": 0, **point}))
    async with scripted(folder, None, {"value": 1}) as session:
        with pytest.raises(BaselineFailed, match="baseline"):
            await session.run()
        assert (session.charged, dict(session.accounts.holds)) == (0, {})
        campaign = session.state.campaign
        assert "the baseline ended as" in campaign.stopped, "nobody is told that it died at its work"
        assert not campaign.session_open
    async with scripted(folder, None, {"value": 1}, how=How.RESUME) as session:
        with pytest.raises(BaselineFailed, match="baseline"):
            await session.run()
        assert session.script.commands == []


async def test_ceiling(tmp_path: Path) -> None:
    """A score beyond the ceiling is recorded, flagged and never kept (T38)."""
    folder = write_task(tmp_path / "task", '[[metrics]]\nname = "score"\nceiling = 10.0\n')
    (high, low), used = await played(folder, Script(), {"value": 11}, {"value": 9})
    assert (high.ending, high.kept, low.kept, used) == (Ending.SCORED, False, True, 2)
    assert high.verdict is not None
    assert high.verdict.suspect == ("score",)


async def test_what_was_spent_is_booked(folder: Path) -> None:
    """The seconds in the accounts are those of all nodes, to the millisecond."""
    session = await ran(folder, None, {"value": 1, "takes": 0.05}, {"value": 2, "do": "failed"})
    spent = sum(node.spent.milliseconds for node in session.nodes.values())
    assert session.accounts.used(Account.SECONDS) == spent
    assert session.nodes["1.1"].spent.milliseconds >= 50
    assert [event.ending for event in session.of(e.AttemptEnded)] == ["scored", "scored", "failed"]


def test_pruned(folder: Path, virtual: Virtual) -> None:
    """A trial that is ended early on our own order is pruned: charged, and without a score."""

    async def on_open(_: Job) -> None:
        script.stop_after = 0.5 if len(script.commands) >= 2 else None  # not the baseline

    script = Script(on_open=on_open)
    (node,), used = virtual.run(played(folder, script, {"value": 3, "do": "wait"}))
    assert (node.ending, node.verdict, used) == (Ending.PRUNED, None, 1)


async def test_shared_judge(folder: Path) -> None:
    """A judge beside the candidate gives verdicts of the lowest tier, from one chamber a trial."""
    path = folder / "blastdoor.toml"
    path.write_text(path.read_text().replace('command = ["judge"]', 'command = ["judge"]\nmode = "shared"'))
    script = Script()
    (good, bad), _ = await played(folder, script, {"value": 3}, {"value": 4, "judge": "nan"})
    assert good.verdict is not None
    assert (good.verdict.tier, good.kept, bad.ending) == (Tier.SHARED, True, Ending.INVALID)
    assert script.commands == ["judge"] * 4
