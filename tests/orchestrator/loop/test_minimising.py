"""A winner without ballast: what does nothing for its score is left out, and the rest is told with its worth."""

from pathlib import Path

from orchestrator.budget import Account
from orchestrator.domain.records import Role
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.scripted import scripted, write_task

WINNER = {"value": 7, "noise": 1, "ballast": 2, "more": 3, "idle": 4}


async def test_point_without_ballast(tmp_path: Path) -> None:
    """Of five values, of which the judge looks at one, that one is left; nothing is drawn from attempts."""
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, WINNER, attempts=1) as session:
        await session.run()
        assert session.bench.state.champion().id == "1.1"
    async with scripted(folder, None, WINNER, how=How.RESUME) as session:
        session.campaign.minimise("1.1")
        finished = await session.run()
        state, accounts = session.bench.state, session.bench.book.accounts
        node = state.nodes["1.1.1"]
        assert (node.role, node.parent, node.kept) == (Role.MINIMISED, "1.1", True), node.why
        assert [(part.where, part.worth) for part in node.minimal.kept] == [("params.json: value", {"score": 0.0})]
        assert len(node.minimal.dropped) == 4
        assert node.verdict.metrics == {"score": 7.0}
        assert state.champion().id == "1.1"
        assert accounts.used(Account.ATTEMPTS) == 1
        assert 1 <= accounts.used(Account.MINIMISATION) <= 10
        assert "taken apart" in finished.reason
