"""A campaign of a hundred thousand nodes: it is shown whole, and neither the server nor an answer grows without end."""

import json
import sqlite3
import tracemalloc

import pytest

from orchestrator.wiring.ledgers import FILE
from tests.orchestrator.views.campaign.conftest import Stage, stage
from tests.orchestrator.views.page.conftest import Site, asked

__all__ = ["stage"]  # a fixture, of commands

COUNT = 100_000


@pytest.mark.slow
async def test_a_hundred_thousand_nodes(stage: Stage) -> None:
    """Every node is on the board; the board is some megabytes, packed a few hundred kilobytes, and all else is bounded
    by rows. What the server keeps for it is less than the rows themselves.
    """
    stage.write()
    body = json.loads(stage.story.state.row(("node", "1.2")) or "")
    with sqlite3.connect(stage.campaign / FILE) as database:
        made = (("node", f"1.{at}", json.dumps({**body, "id": f"1.{at}", "parent": "1"})) for at in range(4, COUNT + 4))
        database.executemany("INSERT INTO projection (kind, id, body) VALUES (?, ?, ?)", made)
    async with Site(stage.folder) as site:
        (row,) = await site.get("/api/campaigns")
        tracemalloc.start()
        target = f"/api/campaign/{row['id']}"
        board = await asked(site.app, f"{target}/board", headers=[*site.headers, ("accept-encoding", "gzip")])
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert board.status == 200
        assert len(board.body) < 3_000_000
        assert kept < 150_000_000
        plain = await site.get(f"{target}/board")
        assert plain["count"] == COUNT + 5
        found = await site.get(f"{target}/search?text=evil")
        assert found["count"] >= COUNT
        assert len(found["places"]) <= 20_000
        for view in ("/node/1", "/rows?nodes=" + ",".join(f"1.{at}" for at in range(4, 1000)), "/live"):
            answer = await asked(site.app, f"{target}{view}", headers=site.headers)
            assert (answer.status, len(answer.body) < 500_000) == (200, True), view
