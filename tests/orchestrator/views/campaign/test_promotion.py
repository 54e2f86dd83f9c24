"""Who waits for a person's word is seen everywhere, with the command to type; only they can be answered."""

from pathlib import Path

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage
from tests.orchestrator.views.campaign.test_actions import inbox


@pytest.fixture
def asked(tmp_path: Path) -> Stage:
    """1.1 was declined and 1.2 accepted; 1.3 waits, and 1.4, which was interrupted while it did."""
    made = Stage(tmp_path / "another")
    story = made.story.open()
    story.baseline(1.0)
    for value, accepted, why in ((2.0, False, HOSTILE), (3.0, True, "")):
        node = story.opened("1")
        story.score(node, {"score": value})
        story.tell(e.PromotionAsked(node=node, over="1"), e.PromotionAnswered(node=node, accepted=accepted, why=why))
        story.end(node, Ending.SCORED, kept=accepted)
    for value in (5.0, 4.0):
        node = story.opened("1")
        story.score(node, {"score": value})
        story.tell(e.PromotionAsked(node=node, over="1.2"))
    story.tell(e.AttemptRequeued(node=node, ending=Ending.INTERRUPTED, why="stopped", not_before=""))
    return made


def test_status(asked: Stage) -> None:
    """Each that waits, in the order of asking, with what to type."""
    told = " ".join(asked.run("status").split())
    for node, score in (("1.3", 5), ("1.4", 4)):
        typed = f"blastdoor accept {node} {asked.folder}, or decline; blastdoor diff {node} {asked.folder}"
        assert f"{node} score={score} (best 1) waits for your word: {typed}" in told
    assert told.index("1.3 score=5") < told.index("1.4 score=4")
    assert asked.json("status")["waits"] == ["1.3", "1.4"]


def test_answers(asked: Stage) -> None:
    """Both are requests; a reason goes along."""
    assert "request 1: 1.3 is accepted at the next" in asked.run("accept", "1.3")
    assert "request 2: 1.4 is declined at the next" in asked.run("decline", "--why", " too long ", "1.4")
    assert inbox(asked) == [
        ("accept", {"node": "1.3", "why": ""}),
        ("decline", {"node": "1.4", "why": "too long"}),
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("accept", "1.2"), "1.2 does not wait for a person's word; 1.3, 1.4 does"),
        (("decline", "best"), "1 does not wait for a person's word"),
        (("accept", "1.9"), "there is no node 1.9"),
        (("decline", "--why", "x" * 501, "1.3"), "--why has at most 500 characters"),
    ],
)
def test_what_is_refused(asked: Stage, words: tuple[str, ...], line: str) -> None:
    """What does not wait cannot be answered."""
    assert line in asked.refused(*words)
    assert inbox(asked) == []


def test_show_and_report(asked: Stage) -> None:
    """What a person said stays with the node, escaped like all words of others."""
    assert "declined: [red]evil" in (text := asked.run("show", "1.1"))
    assert "\x1b" not in text
    assert "waits for an answer" in asked.run("show", "1.3")
    document = asked.run("report")
    assert "## A person's word" in document
    assert "| 1.2 | kept | `accepted` |" in document
