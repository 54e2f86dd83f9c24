"""A combination stage: its pool is chosen, frozen and delivered, and the same loop runs combinations of it."""

from pathlib import Path

from orchestrator.budget import Account
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import Point, scripted, write_task

POINTS: list[Point] = [{"value": value} for value in (3, 1, 7, 5)]
COMBINE = """
[combine]
pool = 3
diversity = 0
editable = ["params.json"]
[combine.trial]
command = ["combination"]
[combine.parameters]
file = "params.json"
[combine.parameters.space]
value = {type = "int", low = 1, high = 20}

[budget]
combination = 3
"""


def write_both(folder: Path, *more: str, combine: str = COMBINE) -> Path:
    write_task(folder, *more, combine)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    return folder


async def test_one_line_through(tmp_path: Path) -> None:
    """The best of run 1 are frozen, and a combination is a node of run 2 with the judge of the base stage."""
    folder = write_both(tmp_path / "task")
    async with scripted(folder, None, *POINTS) as base:
        await base.run()

    async with scripted(folder, None, {"value": 9}, {"value": 8}, how=How.COMBINE) as stage:
        finished = await stage.run()
        state = stage.bench.state
        (frozen,) = stage.of(e.PoolFrozen)
        assert [member.node for member in frozen.members] == ["1.3", "1.4", "1.1"]
        assert state.run.pool == frozen.members
        assert state.nodes["2"].ending is Ending.SCORED
        assert finished.champion
        assert finished.champion.id == "2.1"
        assert state.nodes["2.1"].verdict.cohort == state.nodes["1.3"].verdict.cohort
        accounts = stage.bench.book.accounts
        assert (accounts.used(Account.ATTEMPTS), accounts.used(Account.COMBINATION)) == (4, 2)
