"""News of whole campaigns, on the fake backend."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import How, read_campaign, search
from orchestrator.budget import Accounts
from orchestrator.domain import events as e
from orchestrator.domain.state import State
from orchestrator.notify import News, Topic
from orchestrator.notify.reporter import Reporter
from orchestrator.settings import Settings
from orchestrator.wiring.notifying import notifying
from orchestrator.wiring.resuming import CannotOpen
from tests.orchestrator.loop.scripted import Proposing
from tests.orchestrator.notify.receiving import lines_of, writing_program
from tests.orchestrator.test_api import folder

__all__ = ["folder"]
AT = "2026-01-02T03:04:05.000000Z"


def points(*values: int) -> Proposing:
    return Proposing(*({"value": value} for value in values))


def settings_for(tmp_path: Path, topics: str = "champion,attempt,stopped,waiting,breaker,cap") -> tuple[Settings, Path]:
    program, into = writing_program(tmp_path)
    return Settings(notify=(f"command:{topics}={program}",)), into


async def test_a_whole_campaign(folder: Path, tmp_path: Path) -> None:
    """Who became the best, how every attempt ended, a cap that is nearly used, and why it stopped; a resume tells
    nothing twice.
    """
    settings, into = settings_for(tmp_path)
    await search(folder, proposer=points(3, 1, 5, 2, 4, 9), attempts=5, rate=1e6, width=1, settings=settings)
    told = lines_of(into)
    assert [(it["node"], it["data"]["metrics"]) for it in told if it["topic"] == "champion"] == [
        ("1.1", {"score": 3.0}),
        ("1.3", {"score": 5.0}),
    ]
    ended = [it for it in told if it["topic"] == "attempt"]
    assert [it["node"] for it in ended] == ["1", "1.1", "1.2", "1.3", "1.4", "1.5"]
    assert ended[3]["data"]["parameters"] == {"value": 5}
    assert [it["text"] for it in told if it["topic"] == "cap"] == [
        "scripted: 80% of a cap is used: 4 attempts of 5 attempts"
    ]
    assert told[-1]["text"] == "scripted: stopped: 5 of 5 attempts are used; the best is 1.3: score 5"
    before = len(told)
    again = points(3, 1, 5, 2, 4, 9)
    await search(folder, how=How.RESUME, proposer=again, attempts=6, settings=settings)
    assert [(it["topic"], it["node"]) for it in lines_of(into)[before:]] == [
        ("attempt", "1.6"),
        ("champion", "1.6"),
        ("stopped", ""),
    ]


async def test_no_word_of_a_candidate(folder: Path, tmp_path: Path) -> None:
    """Descriptions, reasons and logs stay in the ledger; the address is neither in it nor in its rows."""
    program, into = writing_program(tmp_path)
    topics = "champion,attempt,stopped,waiting,breaker,cap"
    settings = Settings(notify=(f"command:{topics}={program}", "webhook=http://127.0.0.1:1/s3cret"))
    hostile: dict[str, Any] = {"value": 3, "do": "exit 3", "says": "<!channel> S3CRET"}
    await search(folder, proposer=Proposing(hostile), attempts=1, rate=1e6, settings=settings)
    assert "scripted" in into.read_text()
    with read_campaign(folder) as campaign:
        assert "S3CRET" in campaign.state.nodes["1.1"].description
    told = [it for it in lines_of(into) if it["topic"] == "attempt"][-1]
    assert "S3CRET" not in told["text"]
    assert {name for name, value in told["data"].items() if "S3CRET" in str(value)} <= {"parameters"}
    files = [it for it in (folder / ".blastdoor").rglob("*") if it.is_file()]
    assert files
    assert not [it for it in files if b"s3cret" in it.read_bytes()]


async def test_a_person_is_waited_for(folder: Path, tmp_path: Path) -> None:
    settings, into = settings_for(tmp_path, "waiting")
    await search(folder, proposer=points(3), attempts=1, rate=1e6, settings=settings, ask=True, wall="2s")
    assert [(it["node"], it["data"]) for it in lines_of(into)] == [("1.1", {"for": "promotion"})]


@pytest.mark.parametrize("spec", ["webhok=https://hooks.example/s3cret", "command=/nonexistent/s3cret"])
async def test_bad_target_before_anything_begins(folder: Path, spec: str) -> None:
    with pytest.raises(CannotOpen, match="notify: the ") as caught:
        await search(folder, proposer=points(3), attempts=1, settings=Settings(notify=(spec,)))
    assert "s3cret" not in str(caught.value)
    assert not (folder / ".blastdoor").exists()


async def test_a_fault_of_ours_ends_no_campaign(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where news cannot be made, the campaign comes to its end, and it is said."""

    def broken(*_: object) -> list[News]:
        raise ZeroDivisionError("no news today")

    said: list[str] = []
    monkeypatch.setattr(Reporter, "news_of", broken)
    monkeypatch.setattr("orchestrator.api.notifying", lambda opened, settings: notifying(opened, settings, said.append))
    settings, _ = settings_for(tmp_path)
    finished = await search(folder, proposer=points(3), attempts=1, rate=1e6, settings=settings)
    assert finished.champion
    assert said == ["notify: ZeroDivisionError: no news today"]


def test_breaker_and_pause() -> None:
    """An outage is told once, however often it is probed, and so is its end; a pause that a person asked for is not."""
    state = State()
    e.CampaignOpened(campaign="c0ffee", name="scripted", version="1").apply(state, AT)
    reporter = Reporter(state, Accounts())
    opened = e.BreakerOpened(providers=("docker",), why="S3CRET words of a provider", wait_s=5)
    happened: list[e.Event] = [opened, opened.model_copy(update={"tries": 2}), e.BreakerClosed(), e.BreakerClosed()]
    happened += [e.PauseSet(paused=True), e.PauseSet(paused=True, why="the disk is full"), e.PauseSet(paused=False)]
    told = [news for event in happened for news in reporter.news_of(event, AT)]
    assert [(it.topic, it.data) for it in told] == [
        (Topic.BREAKER, {"open": True, "providers": ["docker"]}),
        (Topic.BREAKER, {"open": False, "providers": []}),
        (Topic.WAITING, {"for": "pause"}),
    ]
    assert "S3CRET" not in "".join(it.text for it in told)
