"""Acts through the page on campaigns at work: what they come to, and who asked, is in the ledger."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.loop import campaign
from orchestrator.views.campaign.asking import person
from orchestrator.views.campaign.history import read_moments
from orchestrator.views.page.pages import VIEWS
from orchestrator.wiring.beginning import How
from private_postgres import PrivatePostgres
from tests.orchestrator.loop.scripted import scripted, write_task
from tests.orchestrator.views.page.conftest import Site
from tests.orchestrator.views.page.test_acting import Hand

# What the views ask for of a campaign whose best is 1.1.
TARGETS = (
    "",
    "/rows?nodes=1,1.1",
    "/search?text=1.1",
    "/node/1.1",
    "/compare?nodes=1,1.1",
    "/parameters",
    "/diff?node=1.1",
    "/text?what=trial&name=1.1-1",
    "/live",
    *(f"/view/{name}" for name in (*VIEWS, "credit", "report")),
)
DIFF = '--- a/params.json\n+++ b/params.json\n@@ -1,3 +1,3 @@\n {\n-  "value": 0\n+  "value": 7\n }\n'


async def test_a_campaign_at_work_does_what_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paused, given a change, one cancelled, and gone on with, by two people; the second cancel is too late."""
    monkeypatch.setattr(campaign, "POLL_S", 0.01)
    folder = write_task(tmp_path / "task")
    async with (
        asyncio.timeout(300),
        scripted(folder, None, {"value": 9, "do": "wait"}, {"value": 2}, attempts=3) as session,
        Site(folder, control=True) as site,
    ):
        waits, taken = asyncio.Event(), asyncio.Queue[e.RequestTaken]()
        session.when(e.TrialIntended, lambda event: waits.set() if event.node == "1.1" else None)
        session.when(e.RequestTaken, taken.put_nowait)
        running = asyncio.create_task(session.run())
        await waits.wait()
        hand = await Hand.at(site)
        for kind, body, answer in (
            ("pause", {}, "paused"),
            ("inject", {"text": DIFF, "on": "1", "description": "seven"}, "queued"),
            ("cancel", {"node": "1.1"}, "being ended"),
            ("go-on", {}, "going on"),
        ):
            said = await hand.act(kind, {**body, "name": "ada"})
            assert said.status == 200, said.body
            event = await taken.get()
            assert (event.answer, event.by) == (answer, f"ada, at the page of {person()}")
        await running
        nodes = session.bench.state.nodes
        assert nodes["1.1"].ending is Ending.CANCELLED
        assert [it.description for it in nodes.values()].count("seven") == 1
        assert "has ended already" in (await hand.act("cancel", {"node": "1.1"})).json()["error"]


@pytest.mark.postgres
async def test_one_whose_ledger_is_in_a_database(tmp_path: Path, database: PrivatePostgres) -> None:
    """It is found, shown in each view and asked like any other, and the next session takes what was asked."""
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, {"value": 3}) as session:
        await session.run()
    async with Site(folder, control=True) as site:
        assert (await site.campaign("/board"))["count"] == 2
        for target in TARGETS:
            assert await site.campaign(target), target
        chain = await site.campaign("/chain")
        assert chain["verified"] == chain["head"] > 0
        assert (await site.get("/api/campaigns"))[0]["best_node"] == "1.1"
        said = await (await Hand.at(site)).act("inject", {"text": DIFF, "on": "1", "description": "seven"})
        assert said.status == 200, said.body
    async with scripted(folder, None, {"value": 3}, how=How.RESUME) as session:
        await session.run()
        asked = [event for _, event in read_moments(session.bench.book.ledger) if isinstance(event, e.RequestTaken)]
    assert [(it.asked, it.answer, it.by) for it in asked] == [
        ("inject", "queued", f"somebody, at the page of {person()}")
    ]
