"""The tree names every node, or says what it left out; the way to the best is always in it."""

import pytest

from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric
from orchestrator.domain.node import path_to
from orchestrator.domain.records import Role
from orchestrator.views.campaign.tree import Layout, family_for, tree
from tests.orchestrator.views.campaign.builder import Story, campaign


def drawn(story: Story, **layout: object) -> list[str]:
    return tree(story.state, [Metric()], Layout(**layout)).plain.split("\n")  # type: ignore[arg-type]


@pytest.fixture
def story() -> Story:
    told = Story().open()
    told.baseline(1.0)
    return told


def test_ids_signs_metrics_and_roles(story: Story) -> None:
    """A line has the id, the sign of its status, its metrics, its role where that is special, and what was done."""
    story.attempt("1", 2.0, kept=True, description="more rows")
    story.attempt("1", 0.5, role=Role.CONTROL)
    story.attempt("1.1", ending=Ending.TIMED_OUT, role=Role.INJECTED)
    lines = drawn(story)
    assert lines[0].startswith("1 ● [baseline] score=1")
    assert lines[1].startswith("├─ 1.1 ● best score=2  more rows")
    assert lines[2].startswith("│  └─ 1.1.1 t [injected] timed out")
    assert lines[3].startswith("└─ 1.2 ◇ [control] score=0.5")


def test_the_tenth_comes_after_the_ninth(story: Story) -> None:
    """Children stand in the order of their numbers."""
    for _ in range(11):
        story.attempt("1", 0.5)
    ids = [line.split()[1] for line in drawn(story)[1:]]
    assert ids == [f"1.{number}" for number in range(1, 12)]


def test_a_long_tree_is_collapsed_and_says_so() -> None:
    """What is left out is counted by status, and the best path stays."""
    story = campaign(200)
    champion = story.state.champion()
    assert champion
    lines = drawn(story, family=5)
    shown = {word for line in lines for word in line.split() if word[:1] == "1"}
    assert set(path_to(champion.id)) <= shown
    assert any(" more: " in line and "discarded" in line for line in lines)
    assert len(lines) < 201
    assert len(drawn(story)) == 201


def test_depth_cuts_and_counts(story: Story) -> None:
    """Below the wanted depth there is one line that counts all."""
    story.attempt("1", 2.0, kept=True)
    story.attempt("1.1", 0.5)
    story.attempt("1.1.1", 0.4)
    lines = drawn(story, depth=1)
    assert len(lines) == 3
    assert "2 deeper: 2 discarded" in lines[2]


def test_t57_a_description_can_not_act(story: Story) -> None:
    """Control characters are escaped, and square brackets are no markup."""
    story.attempt("1", 0.5, description="[bold red]x[/] \x1b[2J\nnew line")
    text = "\n".join(drawn(story))
    assert "[bold red]x[/]" in text
    assert "\x1b" not in text
    assert len(text.split("\n")) == 2


def test_lines_fit(story: Story) -> None:
    """A long description is cut to the width, also of wide characters."""
    story.attempt("1", 0.5, description="漢字" * 200)
    rendered = tree(story.state, [Metric()], Layout(width=60))
    assert all(line.cell_len <= 60 for line in rendered.split("\n"))


def test_ascii(story: Story) -> None:
    """Without Unicode the tree is drawn in ASCII; a run without a node has a line that says so."""
    story.attempt("1", 0.5)
    assert all(line.isascii() for line in drawn(story, unicode=False))
    begun = Story().open()
    begun.state.drop("node", "1")
    assert drawn(begun) == ["no node yet"]


def test_a_short_tree_is_whole() -> None:
    """Only what does not fit on a screen is collapsed."""
    assert (family_for(15, 30), family_for(500, 30)) == (None, 5)


def test_why_it_failed(story: Story) -> None:
    """A node without a score says why, in few words; one whose reason is its own name says it once."""
    for why in ("exit code 3", "failed", "x" * 100):
        story.end(story.attempt("1", None, description="breaks"), Ending.FAILED, why=why)
    _, first, second, third = drawn(story)
    assert first.endswith("1.1 ✗ failed (exit code 3)  breaks")
    assert second.endswith("1.2 ✗ failed  breaks")
    assert len(third) < 70
