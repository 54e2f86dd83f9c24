"""One screen says where a campaign stands, another all about a node; both show words of others as they are."""

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose, SiteRecord
from orchestrator.views.campaign.sections.work import site_lines
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage


def test_status_on_one_screen(stage: Stage) -> None:
    """All that the kept files have fits on it; a campaign that is worked on says by whom, else how to go on."""
    text = stage.run("status")
    assert len(text.splitlines()) <= 24
    assert "nobody works on it; blastdoor resume goes on" in text
    found = stage.json("status")
    assert (found["best"]["id"], found["holder"]) == ("1.1", None)
    with stage.lock():
        assert "works on it" in (text := stage.run("status"))
        assert "pid" in text


def test_pace(stage: Stage) -> None:
    """An attempt for which nothing new was proposed did no work. The clock goes on from run to run, so the attempts of
    all of them are counted with it.
    """
    stage.story.tell(e.AttemptEnded(node="1.1.1", ending=Ending.CANCELLED, why="nothing new"))
    another = Stage(stage.folder.with_name("two runs"))
    story = another.story.open()
    story.baseline(1.0)
    story.attempt("1", 2.0)
    story.open(2)
    story.baseline(1.0, run=2)
    story.attempt("2", 2.0)
    story.attempt("2", 2.0)
    for it in (stage, another):
        assert "3 attempts ended in" in it.run("status")


def test_status_after_a_baseline_that_failed(stage: Stage) -> None:
    """Nothing is promised that a resume does not do: it would only say again that the baseline failed."""
    stage.story.tell(
        e.AttemptEnded(node="1", ending=Ending.FAILED, why="exit code 7"),
        e.CampaignStopped(reason="the baseline ended as failed: exit code 7"),
        e.SessionEnded(why="the baseline ended as failed: exit code 7"),
    )
    text = stage.run("status")
    assert "mend the task, then start again with blastdoor run; stopped: the baseline ended as failed" in text
    assert "resume goes on" not in text


def test_status_of_a_stopped_one(stage: Stage) -> None:
    """Why it stopped, that it is paused, and what waits in quarantine; a guard's answer stands with its node."""
    stage.story.guard("1.1", "tests", passed=False, reason="2 of 9 fail")
    stage.story.tell(
        e.AttemptQuarantined(node="1.1.1", ending=Ending.STALLED, why="it stalled 3 times"),
        e.PauseSet(paused=True),
        e.CampaignStopped(reason="40 attempts used"),
    )
    text = stage.run("status")
    for part in ("paused", "stopped: 40 attempts used", "Q 1.1.1 quarantined  it stalled 3 times"):
        assert part in text
    assert "does not pass: 2 of 9 fail" in stage.run("show", "1.1")
    found = stage.json("show", "best")
    assert (found["node"]["id"], found["events"][0]["kind"]) == ("1.1", "attempt opened")


@pytest.mark.parametrize(
    ("since", "says"),
    [
        ((), "docker/runc is waited for: the engine is away; blastdoor pause --off tries at once"),
        ((e.BreakerTried(),), "docker/runc answers again, and one attempt is tried: the engine is away"),
        ((e.BreakerTried(), e.BreakerClosed()), ""),
    ],
)
def test_t86_status_says_who_is_waited_for(stage: Stage, since: tuple[e.Event, ...], says: str) -> None:
    """Which provider and why, that it goes on by itself, and when it answers again."""
    opened = e.BreakerOpened(providers=("docker/runc",), why="the engine is away", wait_s=40, tries=3)
    stage.story.tell(opened, *since)
    text = " ".join(stage.run("status").split())
    assert says in text
    assert ("the engine is away" in text) is bool(says)
    assert "the next probe is in 40 s: the engine is away" in " ".join(stage.run("logs").split())


@pytest.mark.parametrize(
    ("since", "says"),
    [
        ((), True),
        ((e.ProviderHeard(provider="modal"),), False),
        ((e.BreakerOpened(providers=("modal",), why="modal does not answer", wait_s=5),), False),
    ],
)
def test_t86_status_says_who_does_not_answer(stage: Stage, since: tuple[e.Event, ...], says: bool) -> None:
    """From the first question or call on that was left without an answer, before anything waits for it."""
    stage.story.tell(e.ProviderSilent(provider="modal"), *since)
    stage.write()
    with stage.lock():
        text = " ".join(stage.run("status").split())
    assert ("modal does not answer since" in text) is says
    assert "modal does not answer" in stage.run("logs")


def test_status_says_why_it_paused(stage: Stage) -> None:
    """A pause that nobody asked for has its reason, and says how to go on."""
    stage.story.tell(e.PauseSet(paused=True, why="3 of 4 agents stalled within 5 minutes"))
    stage.write()
    with stage.lock():
        text = " ".join(stage.run("status").split())
    assert "paused: 3 of 4 agents stalled within 5 minutes (blastdoor pause --off goes on)" in text
    assert "stalled within 5 minutes; blastdoor pause --off goes on" in " ".join(stage.run("logs").split())


def test_status_says_where_it_runs(stage: Stage) -> None:
    """Nothing where all is at home; else what holds the candidates, where the judge is, and what is weaker there."""
    here = SiteRecord(backend="docker/runc", boundary="docker/runc: namespaces", judge="docker/runc")
    assert site_lines(here) == site_lines(None) == []
    away = SiteRecord(backend="modal", boundary="modal: a sandbox", judge="docker/runc", caveats=("no seccomp\x1b[2J",))
    stage.story.tell(e.SiteOpened(site=here), e.SiteOpened(site=away))
    text = " ".join(stage.run("status").split())
    assert "candidates run on modal: a sandbox; judge, gold and agents stay on docker/runc" in text
    assert "note: no seccomp" in text
    assert "\x1b" not in text
    report = stage.run("report")
    assert "## Where it ran" in report
    assert "- `candidates run on docker/runc: namespaces`" in report
    assert [site["backend"] for site in stage.json("status")["run"]["sites"]] == ["docker/runc", "modal"]


def test_slots_of_an_earlier_run_are_not_counted(stage: Stage) -> None:
    """A second run starts with its own attempts."""
    stage.story.end("1.1.1", Ending.FAILED)
    stage.story.open(run=2, attempts=64)
    stage.story.baseline(1.0, run=2)
    stage.story.state.set_run(2, before={"attempts": 4})
    assert "0 used, 60 left of 60" in stage.run("status")


def test_show_tune_verdicts(stage: Stage) -> None:
    """Every draft has what it scored in tuning, or why it was refused, and one of them says that it was promoted."""
    story = stage.story
    node = story.opened("1")
    story.tell(e.Proposed(node=node, draft=1, operator="random", description="first", params={"rows": 1}))
    story.tell(e.Proposed(node=node, draft=2, operator="random", description="second", refused="not editable: x"))
    story.score(node, {"score": 0.7}, purpose=Purpose.TUNE)
    story.tell(e.Promoted(node=node, draft=1, why="best of 1 drafts in tuning", commit="b" * 40, diff="d" * 64))
    text = stage.run("show", node)
    assert "score=0.7" in text
    assert "promoted: best of 1 drafts in tuning" in text
    assert "refused: not editable: x" in text


@pytest.mark.parametrize(
    "words", [("show", "1.2"), ("tree", "--all"), ("status",), ("ledger", "list"), ("report",), ("logs",)]
)
def test_t57_nothing_that_others_wrote_acts(stage: Stage, words: tuple[str, ...]) -> None:
    """Control characters of a description never reach the terminal, and its markup is shown, not read."""
    stage.story.tell(e.AttemptQuarantined(node="1.1.1", ending=Ending.STALLED, why=HOSTILE))
    text = stage.run(*words)
    assert not [char for char in text if not (char.isprintable() or char == "\n")]
    assert "[red]evil[/red]" in text


@pytest.mark.parametrize(
    ("node", "line"),
    [("1.77", "there is no node 1.77"), ("../x", "write it like 1.3.2"), ("1..2", "is not a node")],
)
def test_a_node_that_is_not_there(stage: Stage, node: str, line: str) -> None:
    """One line, exit code 2; so is a folder without a campaign, with what to do."""
    assert line in stage.refused("show", node)
    (stage.campaign / "ledger.sqlite3").unlink()
    assert "start a campaign" in stage.refused("status")


def test_who_is_best_at_which_task(stage: Stage) -> None:
    """Status names the frontier, show marks the tasks at which nobody is better; JSON has both."""
    stage.story.attempt("1", 1.5, verdict={"tasks": {"easy": 1.0, HOSTILE: 0.0}})
    stage.story.attempt("1", 1.4, verdict={"tasks": {"easy": 0.5, HOSTILE: 1.0}})
    text = stage.run("status")
    assert "1.4 at easy; 1.5 at [red]evil[/red]" in text
    assert "1 (none is better)" in stage.run("show", "1.4")
    assert stage.json("status")["frontier"] == {"1.4": ["easy"], "1.5": [HOSTILE]}
    assert stage.json("show", "1.5")["best_at"] == [HOSTILE]
