"""What each choice of a search was worth, as a person and a program read it."""

from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import Arm, Drawn
from orchestrator.views.campaign.sections.credit import credit
from orchestrator.views.render import markdown
from orchestrator.views.render.data import record
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage


def chosen(name: str) -> Drawn:
    return Drawn(arms={"operator": Arm(option=name, p=0.5, among={"move": 1.0, "delete": 1.0})})


def told(story: Story, attempts: int = 12) -> Story:
    """Every other attempt moves something and is better; all that delete fail."""
    for number in range(attempts):
        moves = number % 2 == 0
        name = "move" if moves else "delete"
        ending = None if moves else Ending.FAILED
        story.attempt("1", 2.0 + number if moves else None, ending=ending, operator=name, drawn=chosen(name))
    return story


def test_arms_side_by_side() -> None:
    """Each arm with both credits, its attempts and cost; the best one in the line."""
    story = Story().open()
    story.baseline()
    section = credit(material(told(story)))
    (arms,) = [record([section])["credit"]["arms"]]
    assert [(it["arm"], it["attempts"], it["better"]) for it in arms] == [("move", 6, 6), ("delete", 6, 0)]
    assert arms[0]["lift"] > 0 > arms[1]["lift"]
    assert all(it["share"] is None for it in arms)
    assert markdown.document([section]).count("delete") == 1


def test_no_best_where_nothing_got_better() -> None:
    """The arm that lost least is not called the best. A ledger of before, which has no choices on record, still tells
    operators apart.
    """
    story = Story().open()
    story.baseline(5.0)
    story.attempt("1", 2.0, operator="move", drawn=chosen("move"))
    story.attempt("1", ending=Ending.FAILED, operator="delete", drawn=chosen("delete"))
    assert credit(material(story)).line == "no choice made anything better yet"
    older = Story().open()
    older.baseline()
    older.attempt("1", 2.0, operator="tpe")
    older.attempt("1", ending=Ending.STALLED, operator="tpe")
    assert [(it["arm"], it["attempts"]) for it in record([credit(material(older))])["credit"]["arms"]] == [("tpe", 1)]


def test_command(stage: Stage) -> None:
    """The same by `blastdoor credit`, as text and as JSON; words of others in it are harmless."""
    told(stage.story)
    stage.story.attempt("1", 0.5, operator=HOSTILE[:40])
    shown = stage.run("credit")
    assert "move" in shown
    assert "\x1b[2J" not in shown
    found = stage.json("credit")["credit"]
    assert found["learning"] == "off"
    assert found["attempts"] == 16
    assert "there is no run 9" in stage.refused("credit", "--run", "9")
