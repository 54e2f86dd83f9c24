"""`blastdoor run --combine`: both stages with one command, or the first alone where the caps leave nothing."""

import json
from pathlib import Path

import pytest

from orchestrator.views.exits import Exit
from orchestrator.views.running import session
from orchestrator.wiring.reading import read_campaign
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import HELDOUT
from tests.orchestrator.loop.test_combining import write_both
from tests.orchestrator.views.running.test_ab import blastdoor, scripted_site

WORDS = ("run", "--combine", "--proposer", "grid", "--attempts", "3", "--rate", "1000/s")


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queries: int) -> Path:
    monkeypatch.setattr(session, "open_site", scripted_site(Script()))
    return write_both(tmp_path / "task", HELDOUT.replace("step = 1", f"step = 1\nqueries = {queries}"))


def test_both_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path, monkeypatch, queries=100)
    ran = blastdoor(*WORDS, folder)
    assert ran.exit_code == Exit.OK, ran.output
    with read_campaign(folder) as campaign:
        assert campaign.state.campaign.run == 2


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_no_room_for_the_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]) -> None:
    """The first stage is told as ever, and a line says why there is no second one; its best stays the best."""
    folder = written(tmp_path, monkeypatch, queries=3)
    ran = blastdoor(*WORDS, *flags, folder)
    assert ran.exit_code == Exit.OK, ran.output
    assert "combinations are not begun: the held-out split was asked 3 of 3 times" in ran.stderr
    told = str(json.loads(ran.stdout)) if flags else ran.stdout
    assert "the held-out split was asked 3 times" in told
    with read_campaign(folder) as campaign:
        assert campaign.state.campaign.run == 1
        assert (best := campaign.state.champion())
        assert best.id != "1"
