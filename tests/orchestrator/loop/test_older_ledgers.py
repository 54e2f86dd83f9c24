"""Ledgers that were written when a champion was measured once, beforehand, open and go on under the rule of today."""

import tarfile
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.certify import Stand
from orchestrator.loop.certifying import evidence
from orchestrator.wiring.beginning import How
from tests.orchestrator.loop.noise import gaussian
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import scripted

# Kept 1.1 after three repeats, screened 1.2 out, and was stopped after the first repeats of 1.3.
WRITTEN = Path(__file__).parent / "data" / "champion-measured-beforehand.tar.gz"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(tmp_path / "task", filter="data")
    return tmp_path / "task"


async def test_resumed(folder: Path) -> None:
    """What was decided stays and is shown as it was; a test that was under way is opened anew, with a number and a
    level of its own, and none of its old runs counts.
    """
    script = Script()
    points = [{"value": 9}, {"value": 1}, {"value": 15}, {"value": 30}]
    async with scripted(folder, script, *points, how=How.RESUME) as session:
        state, bench = session.state, session.bench
        script.noise = gaussian(state, 0.5)
        before = evidence(state, state.nodes["1.1"], bench.ranking)
        assert before is not None
        assert (before.stand, before.repeats) == (Stand.PROVEN, 3)
        assert state.nodes["1.1"].why.endswith(before.words)
        old = state.nodes["1.3"].certification
        assert old is not None
        assert (old.number, old.blocks) == (2, 0)
        trials = state.nodes["1.3"].trials
        finished = await session.run()
        opened = session.of(e.CertificationOpened)
        assert [(it.node, it.number, it.champion) for it in opened] == [("1.3", 3, "1.1"), ("1.4", 4, "1.3")]
        assert all(it.blocks for it in opened)
        assert finished.champion == state.nodes["1.4"]
        anew = state.nodes["1.3"].certification
        assert anew is not None
        assert anew.since >= trials
        again = evidence(state, state.nodes["1.1"], bench.ranking)
        assert again == before
        assert not bench.book.accounts.holds
