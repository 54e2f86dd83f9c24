"""What people read of a combination stage: its pool, what running members took, and whether it beats the best base."""

from pathlib import Path

import click
import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Combining, PoolMember, Role
from orchestrator.views.campaign.opening import chosen_node
from orchestrator.views.campaign.sections.combination import combination
from orchestrator.views.campaign.waiting import how_it_goes_on
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import plain
from orchestrator.views.render.terminal import Terminal
from orchestrator.views.running.session import how_to_mend
from tests.orchestrator.views.campaign.builder import Story, material


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """The base stage with two solutions beside its baseline, and a stage that begins."""
    made = Story(tmp_path / "task").open()
    made.baseline(1.0)
    made.attempt("1", 2.0, kept=True)
    made.attempt("1", 1.5)
    return made.open(run=2, begun={"combine": Combining(base=1, pool=2, diversity=0.5)})


def freeze(story: Story) -> None:
    nodes = story.state.nodes
    pool = [
        PoolMember(node=name, commit=nodes[name].commit or "", outputs={}, distance=None) for name in ("1.1", "1.2")
    ]
    story.tell(e.PoolFrozen(run=2, members=tuple(pool)))


def line(story: Story) -> str:
    return " ".join(map(plain, Terminal(None).ending([combination(material(story))])))


@pytest.mark.parametrize(("value", "verb"), [(3.0, "beats"), (1.5, "does not beat")])
def test_beside_the_best_base(story: Story, value: float, verb: str) -> None:
    assert "the pool of run 1 is not frozen yet" in line(story)
    freeze(story)
    story.baseline(1.2, run=2)
    story.attempt("2", value, kept=True)
    assert f"of 1.1, 1.2; 2.1 with score={value:g} {verb} the best base, 1.1 with score=2" in line(story)
    assert record([combination(material(story))])["combination"]["beats_base"] is (verb == "beats")


@pytest.mark.parametrize(("value", "verb"), [(5.0, "beats"), (4.0, "does not beat"), (3.0, "does not beat")])
def test_beside_a_better_member(tmp_path: Path, value: float, verb: str) -> None:
    """What the control found is never champion, and yet a member: a combination that only copies it beats no base."""
    story = Story(tmp_path / "task").open()
    story.baseline(1.0)
    story.attempt("1", 2.0, kept=True)
    story.attempt("1", 4.0, role=Role.CONTROL)
    story.open(run=2, begun={"combine": Combining(base=1, pool=2, diversity=0.5)})
    freeze(story)
    story.baseline(value, run=2)
    assert f"2 with score={value:g} {verb} the best base, 1.2 with score=4" in line(story)


def test_another_cohort(story: Story) -> None:
    """Scores of other limits or another machine are not set beside each other."""
    freeze(story)
    story.tell(e.CohortOpened(run=2, cohort="d" * 16, why="another machine"))
    story.baseline(9.0, run=2, cohort="d" * 16)
    assert "not comparable with the best base 1.1: they were measured in different cohorts" in line(story)


def test_runs_of_members(story: Story) -> None:
    """A stage of eight attempts may show two nodes: what its members took of them is said."""
    freeze(story)
    for count, node in enumerate(("1.1", "1.2"), 1):
        story.tell(e.MemberEnded(run=2, node=node, split="held", outputs="0" * 64))
        told = "1 run of members" if count == 1 else "2 runs of members"
        assert f"of 1.1, 1.2 ({told} on other data took an attempt each)" in line(story)
        assert record([combination(material(story))])["combination"]["member_runs"] == count


def test_a_stage_whose_baseline_failed(story: Story) -> None:
    """Its log is named, since `check` knows nothing of combinations; it is begun again by the command that began it,
    since `run` would refuse to.
    """
    freeze(story)
    assert how_to_mend(story.state.runs["1"], Path("my task")) == "blastdoor check 'my task' shows more"
    assert how_to_mend(story.state.run, Path("t")) == (
        "blastdoor logs 2 t shows more; mend it, then begin the stage again with blastdoor combine t"
    )
    story.tell(e.AttemptEnded(node="2", ending=Ending.FAILED, why="exit code 1"))
    assert how_it_goes_on(story.state) == "mend the task, then start again with blastdoor combine"


def test_the_best_of_a_stage_that_kept_nothing(story: Story) -> None:
    """What the base stage found is not lost: the line that says so names its best."""
    freeze(story)
    with pytest.raises(click.UsageError, match=r"no best node of run 2; that of run 1 is 1\.1$"):
        chosen_node(story.state, "best")
    with pytest.raises(click.UsageError, match=r"there is no best node$"):
        chosen_node(Story().open().state, "best")
