"""What pruning saved, and whether it was right, as a person reads it."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose, Spent
from orchestrator.domain.reports import BadReport, Look, Reports
from orchestrator.domain.savings import savings
from orchestrator.domain.tier import Tier
from orchestrator.domain.verdict import Mode, Verdict
from orchestrator.views.campaign.sections.pruning import pruning
from orchestrator.views.render import markdown
from orchestrator.views.render.model import Section, raw
from tests.orchestrator.views.campaign.builder import COHORT, Story, material
from tests.orchestrator.views.campaign.conftest import Stage

CUT: dict[str, Any] = {"step": 4, "value": 0.2, "why": "step 4: 0.2 at best, below the median 0.5 of 5 peers"}


def watched(story: Story, *, took: int, kept: bool = False, pruned: bool = False, **look: Any) -> str:
    """A node whose trial took so many seconds, and what the rule said of it."""
    node = story.opened("1")
    trial = f"{node}-1"
    story.tell(
        e.TrialIntended(trial=trial, node=node, purpose=Purpose.SUBMIT, draft=0),
        e.TrialEnded(
            trial=trial,
            ending=Ending.PRUNED if pruned else None,
            spent=Spent(milliseconds=1000 * took, microdollars=100_000 * took),
            reports=Reports(points=((0, 0.1), (4, 0.2)), count=5, bad={BadReport.UNREADABLE: 2, BadReport.AGAIN: 1}),
            pruning=Look(**look),
        ),
    )
    if not pruned:
        verdict = Verdict(metrics={"score": 2.0}, tier=Tier.DATA, mode=Mode.SUBMIT, cohort=COHORT)
        story.tell(e.JudgingEnded(trial=trial, judging=f"{trial}/judge", verdict=verdict))
    story.end(node, Ending.PRUNED if pruned else Ending.SCORED, kept=kept)
    if kept:
        story.tell(e.ChampionChanged(run=1, node=node, cohort=COHORT, over="1"))
    return node


RULE = {"pruning": {"rule": "median"}}


@pytest.fixture
def story() -> Story:
    story = Story(task=RULE).open()
    story.baseline()
    return story


def section(story: Story) -> Section:
    return pruning(material(story))


def line(story: Story) -> str:
    return raw(section(story).brief)


def told(story: Story) -> str:
    return markdown.document([Section("head"), section(story)])


def test_saved(story: Story) -> None:
    """Saved is what was left of the median length of those that ran to their end; it is never less than nothing."""
    for took in (9, 10, 30):
        watched(story, took=took)
    watched(story, took=4, pruned=True, **CUT)
    watched(story, took=12, pruned=True, **CUT)
    found = savings(story.state)
    assert (found.watched, found.pruned, found.basis) == (5, 2, 3)
    assert (found.seconds, found.dollars) == (6.0, 0.6)
    assert line(story) == "2 of 5 watched trials pruned, about 6.0s of chambers and $0.6000 saved"
    assert f"{line(story)}." in told(story)
    assert "what was left of the median length of the 3 watched trials that ran to the end" in told(story)
    assert "No trial was spared" in told(story)


def test_spared_and_right(story: Story) -> None:
    """Spared trials that the rule would have ended, and that came to nothing, speak for it."""
    watched(story, took=9, spared=True, **CUT)
    watched(story, took=9, spared=True)
    winner = watched(story, took=9, kept=True)
    assert "Of 2 spared trials it would have ended 1; none of them was kept in the end." in told(story)
    assert f"It would not have ended the winner {winner}: it watched it and let it live." in told(story)


def test_it_would_have_killed_the_winner(story: Story) -> None:
    """A spared winner that the rule would have ended is named, in the sentence and in the status."""
    winner = watched(story, took=9, kept=True, spared=True, **CUT)
    text = told(story)
    assert f"kept in the end: {winner}. The rule is too strict here." in text
    assert f"It would have ended the winner {winner} at step 4, which is there only because it was spared." in text
    assert winner in line(story)


def test_done_before_the_order_came(story: Story) -> None:
    """A trial that was quicker than the order is no pruned one."""
    winner = watched(story, took=9, kept=True, **CUT)
    found = savings(story.state)
    assert (found.pruned, found.late, found.misjudged) == (0, 1, (winner,))
    assert "it was done before the order came" in told(story)


def test_the_baseline_is_not_watched(story: Story) -> None:
    """Where the baseline is the best, the rule had no say in it."""
    watched(story, took=9)
    assert "The best, 1, was not watched" in told(story)


def test_show(tmp_path: Path) -> None:
    """What the candidate reported, and what the rule said of it; how often it pruned is told by status and report."""
    stage = Stage(tmp_path / "task")
    stage.story = Story(stage.folder, task=RULE).open()
    stage.story.baseline()
    node = watched(stage.story, took=4, pruned=True, **CUT)
    for command in ("status", "report"):
        assert stage.json(command)["pruning"]["pruned"] == 1
        assert "1 of 1 watched trial pruned" in stage.run(command)
    shown = " ".join(stage.run("show", node).split())
    assert "5 reports, 0.1 at step 0 to 0.2 at step 4; 3 bad: 2 not a step from 0 on and a finite value" in shown
    assert "the rule said stop at step 4" in shown
    assert stage.json("show", node)["trials"][0]["reports"]["count"] == 5
