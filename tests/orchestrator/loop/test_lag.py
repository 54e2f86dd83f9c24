"""T82: what a candidate, its judge or a change sends keeps nobody else on the event loop of a campaign waiting."""

from pathlib import Path

import pytest

from benchmarks.hostile import HOSTILE, opened_campaign
from orchestrator.domain.ending import Ending
from tests.lag import watched_turns

# An honest attempt has turns of some tens of milliseconds: two of them at once, on a slow machine, and some room.
MOST_S = 0.4
TENTH = 10


@pytest.mark.parametrize("name", HOSTILE)
async def test_t82_beside(tmp_path: Path, name: str) -> None:
    """The hostile attempt ends, its honest neighbour is scored, and no turn of the loop is long."""
    async with opened_campaign(tmp_path, HOSTILE[name](TENTH)) as opened:
        with watched_turns() as turns:
            await opened.campaign.run()
        nodes = opened.bench.state.nodes
    assert nodes["1.2"].ending is Ending.SCORED
    expected = (Ending.SCORED, Ending.TAMPERED, Ending.INVALID, Ending.FAILED)
    assert nodes["1.1"].ending in ((Ending.PRUNED,) if "curves" in name else expected)
    assert turns.longest_s < MOST_S, turns
