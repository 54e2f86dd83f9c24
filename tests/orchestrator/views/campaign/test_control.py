"""The sentence on the control: beaten or not, by how much, with what confidence."""

import random
from dataclasses import replace

import pytest

from orchestrator.domain.control import compare
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal, Metric, Ranking, Rule
from orchestrator.domain.records import Role
from orchestrator.views.campaign.sections.control import control, control_record
from orchestrator.views.render import terminal
from orchestrator.views.render.model import raw
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage

ONE = Ranking([Metric()])


def told(mine: list[float], theirs: list[float], beside: str = "random", ranking: Ranking = ONE) -> str:
    story = Story().open(beside=beside, attempts=500, control=500)
    story.baseline(1.0, time=9.0)
    best = 1.0
    for value in mine:
        story.attempt("1", value, kept=value > best)
        best = max(best, value)
    for value in theirs:
        story.attempt("1", value, role=Role.CONTROL)
    return raw(control(material(story, ranking)).brief)


def test_beaten() -> None:
    """By how much, after how many attempts, and how often chance alone does as well."""
    rng = random.Random(1)
    theirs = [2.0 + rng.random() / 2 for _ in range(59)] + [2.621]
    assert told([2.6 + n / 1000 for n in range(60)], theirs) == (
        "random beat the random control: best 2.659 against 2.621 (+0.038) after 60 attempts of each; "
        "of the best 12 results 12 are its own, which chance alone gives with p = 0.00013; "
        "the best itself may still be one lucky find, for blind draws get as far with p = 0.19."
    )
    far = told([9.0 + n / 1000 for n in range(60)], theirs)
    assert far.endswith("which chance alone gives with p = 0.00013.")


def test_ahead_by_luck() -> None:
    """A better best with few of the best results is not beaten yet."""
    line = told([3.0, *[1.0] * 9], [2.0 + n / 10 for n in range(10)])
    assert line.startswith("random is ahead of the random control: best 3 against 2.9 (+0.1) after 10 attempts of each")
    assert line.endswith(
        "of the best 5 results 1 are its own, but chance alone gives as much with p = 0.98: not beaten yet."
    )


@pytest.mark.parametrize(
    ("mine", "theirs", "line"),
    [
        ([1.0] * 6, [2.0] * 6, "did not beat the random control, which is ahead: best 1 against 2 (-1)"),
        ([2.0] * 6, [2.0] * 6, "Neither random nor the random control is ahead: best 2 against 2 (+0)"),
        ([2.0] * 3, [1.0] * 4, "after 3 attempts of each; too few to tell it from luck, which takes 5 of each."),
        ([], [1.0], "Nothing to compare with the control yet: one of the two has no ended attempt."),
    ],
)
def test_not_beaten(mine: list[float], theirs: list[float], line: str) -> None:
    """Each way in which it is not says so."""
    assert line in told(mine, theirs)


def test_a_grid_says_nothing_of_luck() -> None:
    """It is not drawn, so there is no chance to compare with."""
    assert told([2.0] * 9, [1.0] * 9, beside="grid").endswith("only a random control can tell it from luck.")


def test_several_metrics() -> None:
    """Each with its name and its difference; Pareto tells by the layers of what nothing dominates."""
    ranking = Ranking([Metric(), Metric("time", Goal.LOWER)], Rule.PARETO)
    story = Story().open(beside="random")
    story.baseline(1.0, time=9.0)
    for number in range(6):
        for role, base in ((Role.SEARCH, 9.0), (Role.CONTROL, 2.0)):
            node = story.opened("1", role)
            story.score(node, {"score": base + number, "time": 10 - base})
            story.end(node, Ending.SCORED)
    line = raw(control(material(story, ranking)).brief)
    assert "beat the random control: best score=14 time=1 against score=7 time=8 (score +7, time -7)" in line
    assert "of the best 5 results 5 are its own" in line


def test_for_programs() -> None:
    """The same numbers."""
    rng = random.Random(3)
    story = Story().open(beside="random")
    story.baseline(0.0)
    for _ in range(8):
        story.attempt("1", 5 + rng.random())
        story.attempt("1", rng.random(), role=Role.CONTROL)
    record = control_record(compare(story.state, ONE))
    assert record["beaten"] is True
    assert (record["attempts"], record["best_looked_at"], record["best_own"]) == (8, 5, 5)
    assert 0 < record["p"] < 0.05
    assert 0 < record["reach"] < 1


def test_t57_names_can_not_act() -> None:
    """A proposer of one's own may have any name."""
    story = Story().open(beside="random")
    run = story.state.run.model_copy(update={"proposer": HOSTILE})
    story.baseline(1.0)
    story.attempt("1", 2.0)
    story.attempt("1", 1.0, role=Role.CONTROL)
    line = terminal.text(control(replace(material(story, ONE), run=run)).brief)
    assert "[red]evil[/red]" in line
    assert line.isprintable()


def test_a_control_that_is_better_than_all_that_was_kept() -> None:
    """It is named with the commands that run it again and take it over; one that is no better is not."""
    line = told([1.5, 1.2], [2.0, 1.1])
    assert line.endswith(
        "The control's 1.3 is better than the best that was kept, but was run only once: blastdoor replay 1.3 runs it "
        "again, blastdoor apply 1.3 takes it over."
    )
    assert "apply" not in told([2.5, 1.2], [2.0, 1.1])
    assert "apply" not in told([2.0, 1.2], [2.0, 1.1])


def test_what_takes_it_over(stage: Stage) -> None:
    """A control's files are applied like any other node's, and the record names it; one too young has no numbers."""
    node = stage.story.attempt("1", 9.0, role=Role.CONTROL)
    found = stage.json("status")["control"]
    assert (found["better_than_kept"], found["p"]) == (node, None)
    assert f"blastdoor apply {node} takes it over" in " ".join(stage.run("status").split())
    assert f"{node} applied to" in stage.run("apply", node)
