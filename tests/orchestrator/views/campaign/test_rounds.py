"""What a round brought, for whoever looks at it before the next one."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.loop.rounds import over
from orchestrator.views.campaign.sections.rounds import round_
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import plain
from orchestrator.views.render.terminal import Terminal
from orchestrator.views.running.summary import show_summary, summary_record
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage


def told(story: Story) -> list[str]:
    """Where the work ended with the round."""
    made = story.state.campaign.round
    found = round_(replace(material(story), reason=over(made) if made else "done"))
    return list(map(plain, Terminal(None).ending([found])))


@pytest.fixture
def story(tmp_path: Path) -> Story:
    made = Stage(tmp_path / "task").story.open()
    made.tell(e.RoundStarted(run=1, number=1, size=1))
    made.baseline(1.0)
    made.attempt("1", 2.0, kept=True)
    made.tell(e.RoundStarted(run=1, number=2, size=3))
    made.attempt("1.1", 1.5, description=HOSTILE)
    made.attempt("1.1", 2.5, kept=True, description="more rows")
    made.attempt("1", None, ending=Ending.FAILED)
    return made


def test_what_a_round_brought(story: Story) -> None:
    """Its own nodes and no others, with scores against their parents, and how to look at a change. Of many nodes the
    first ones are named, and how many there are.
    """
    head, first, second, third, hint = told(story)
    assert head == "round 2: 3 attempts, 1 kept"
    assert first.startswith("  ○ 1.1.1 discarded  score=1.5 (-0.5 on 1.1)")
    assert first.isprintable()
    assert second == "  ● 1.1.2 kept  score=2.5 (+0.5 on 1.1)  more rows"
    assert third.startswith("  ✗ 1.2 failed")
    assert hint == "  blastdoor diff 1.2 'my task' shows a change, blastdoor show 1.2 'my task' all about it"
    for _ in range(30):
        story.attempt("1", 0.1)
    lines = told(story)
    assert len(lines) == 23
    assert lines[-2] == "  and 13 more; blastdoor tree --all 'my task' shows them"


def test_without_rounds(stage: Stage) -> None:
    """There is nothing to tell; nor is there in a new run."""
    assert told(stage.story) == []
    stage.story.tell(e.RoundStarted(run=1, number=1, size=1))
    stage.story.open(run=2)
    assert told(stage.story) == []
    assert record([round_(material(stage.story))])["round"] is None


def test_the_summary(story: Story, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A session that ended with its round shows it; one that ended otherwise does not."""
    story.write()
    task, made = tmp_path / "task", story.state.campaign.round
    assert made
    show_summary(task, over(made))
    assert "round 2: 3 attempts, 1 kept" in (text := capsys.readouterr().out)
    assert f"stopped: round 2 is over, to be looked at; blastdoor resume {task} goes on with the next one" in text
    show_summary(task, "Ctrl-C")
    assert "round 2" not in capsys.readouterr().out
    assert summary_record(task, "x")["round"] == {"number": 2, "nodes": ["1.1.1", "1.1.2", "1.2"]}
