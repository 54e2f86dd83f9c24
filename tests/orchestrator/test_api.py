"""search(): a proposer by its name, or an instance of somebody's own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from orchestrator import api
from orchestrator.api import How, read_campaign, search
from orchestrator.wiring.resuming import CannotOpen
from orchestrator.wiring.site import Site
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import HELDOUT, Proposing, make_site, write_task
from tests.orchestrator.loop.test_combining import BUDGET, COMBINE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task whose chambers are scripted, wherever they are asked for."""

    @asynccontextmanager
    async def site(*_: object) -> AsyncIterator[Site]:
        made = make_site(Script())
        try:
            yield made
        finally:
            await made.backend.close()

    monkeypatch.setattr(api, "open_site", site)
    return write_task(tmp_path / "task")


async def test_an_instance(folder: Path) -> None:
    """It searches, stands in the ledger under its class's name, and goes on where it is handed over again."""
    points = [{"value": value} for value in (3, 5, 7)]
    finished = await search(folder, proposer=Proposing(*points), attempts=2, rate=1e6)
    assert finished.champion
    assert finished.champion.params == {"value": 5}
    with read_campaign(folder) as campaign:
        assert campaign.state.run.proposer == "Proposing"
    finished = await search(folder, how=How.RESUME, proposer=Proposing(*points), attempts=3)
    assert finished.champion
    assert finished.champion.params == {"value": 7}


async def test_by_name(folder: Path) -> None:
    """A text is the name of one that is known; a run does not go on with another."""
    finished = await search(folder, proposer="grid", attempts=1, rate=1e6)
    assert finished.reason == "1 of 1 attempt is used"
    with pytest.raises(CannotOpen, match="run 1 was begun with the proposer grid, not random; go on with that one, or"):
        await search(folder, how=How.RESUME, proposer="random")


async def test_combinations_without_room(folder: Path) -> None:
    """Where the base stage used up what both share, its own end is returned, and its champion stays the best."""
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text() + HELDOUT.replace("step = 1", "step = 1\nqueries = 3") + COMBINE + BUDGET)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    finished = await search(folder, proposer="grid", attempts=3, combine=True, rate=1e6, width=1)
    assert "; combinations are not begun: the held-out split was asked 3 of 3 times" in finished.reason
    assert finished.reason.startswith("the held-out split was asked 3 times")
    assert finished.champion
    with read_campaign(folder) as campaign:
        assert campaign.state.champion() == finished.champion
        assert campaign.state.campaign.run == 1


async def test_combinations_follow(folder: Path) -> None:
    """With `combine`, the same call goes on with combinations of what it found, and so does a resume of its run."""
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text() + COMBINE + BUDGET)
    (folder / "combine").mkdir()
    (folder / "combine" / "params.json").write_text('{"value": 2}\n')
    with pytest.raises(CannotOpen, match="a pool needs 2 members"):
        await search(folder, proposer="random", attempts=2, combine=True, rate=1e6, wall="1ms")
    finished = await search(folder, how=How.RESUME, attempts=2, wall="1h")
    assert finished.champion
    with read_campaign(folder) as campaign:
        run = campaign.state.run
        assert run.combine
        assert (run.number, run.combine.base) == (2, 1)
        assert finished.champion.id.startswith("2")
