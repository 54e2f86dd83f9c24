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


def test_a_dry_run_tells_all_that_it_may_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control, combinations and minimising come beside the attempts of the search, each with its own figure."""
    monkeypatch.setenv("BLASTDOOR_USD_PER_HOUR", "$3.6")
    folder = write_both(tmp_path / "task")
    plain = json.loads(blastdoor(*WORDS, "--no-combine", "--dry-run", "--json", folder).stdout)
    assert plain["more"] == []
    words = (*WORDS, "--control", "random", "--minimise", "--minimisation", "9", "--dry-run", folder)
    plan = json.loads(blastdoor(*words, "--json").stdout)
    assert plan["usd"] == plain["usd"]
    assert [(it["what"], it["count"]) for it in plan["more"]] == [
        ("attempts of the control", 3),
        ("attempts of combinations", 6),
        ("trials of minimising", 9),
        ("trials of minimising of the best combination", 9),
    ]
    assert plan["more"][1]["usd"] == pytest.approx(2 * plan["usd"])
    assert all(it["usd"] > 0 and it["wall_s"] > 0 for it in plan["more"])
    assert "6 attempts of combinations at worst: $" in blastdoor(*words).stdout
    assert not (folder / ".blastdoor").exists()
    file = folder / "blastdoor.toml"
    file.write_text(file.read_text().replace("combination = 6", "combination = 0"))
    assert "budget.combination is 0" in str(blastdoor(*words).exception)


@pytest.mark.parametrize(
    ("search", "told"),
    [
        ('proposer = "llm"', "the proposer llm asks a model, and there is no key"),
        ('proposer = "hybrid"\narms = ["random", "agents"]', "agents"),
        ('proposer = "thompson"', "256"),
    ],
)
def test_a_stage_that_cannot_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: str, told: str
) -> None:
    """It is told before the base stage begins, not when that is over."""
    monkeypatch.setattr(session, "open_site", scripted_site(Script()))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    folder = write_both(tmp_path / "task")
    file = folder / "blastdoor.toml"
    wide = file.read_text().replace("high = 20}", "high = 2000}")
    file.write_text(f"{wide}\n[combine.search]\n{search}\n")
    for words in (WORDS, (*WORDS, "--dry-run")):
        ran = blastdoor(*words, folder)
        assert "combinations could not be searched for: " in str(ran.exception)
        assert told in str(ran.exception)
    assert not (folder / ".blastdoor").exists()
