"""`blastdoor playbook`: versions, what they brought, and requests that are checked before they are left."""

import pytest

from orchestrator.domain import events as e
from orchestrator.playbook import raw_of
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage
from tests.orchestrator.views.campaign.test_actions import inbox

FIRST = {"notes.md": "one\n", "prompts/system.md": "You improve programs.\n"}
SECOND = {**FIRST, "notes.md": "two\n", "corrections.md": "- be brief\n"}


@pytest.fixture
def told(stage: Stage) -> Stage:
    """Two versions, a challenger on trial, and an attempt with each."""
    story = stage.story
    keep = story.keep_files
    story.tell(e.PlaybookChanged(version=1, files=keep(raw_of(FIRST)), parent=None, by="default", why="what ships"))
    story.attempt("1", 9.0, kept=True, playbook=1)
    second = keep(raw_of(SECOND))
    story.tell(e.PlaybookChanged(version=2, files=second, parent=1, by="person", why="corrected: be brief"))
    third = {"version": 3, "files": second, "parent": 2, "by": "evolver", "why": HOSTILE, "used": False}
    story.tell(e.PlaybookChanged.model_validate({**third, "level": 0.025, "pairs": 20}))
    for version in (2, 3):
        node = story.attempt("1", 9.0 if version == 3 else 0.0, playbook=version)
        story.tell(e.PlaybookGiven(node=node, version=version, challenger=3))
    return stage


def test_log(told: Stage) -> None:
    """Every version with its author, its results and its fate; the test that goes on has a line of its own."""
    said = told.run("playbook", "log")
    assert "by default" in said
    assert "by person from 1  used now" in said
    assert "by evolver from 2  is being tried" in said
    assert "1 of 1 better than what they were built on, 1 kept" in said
    assert "version 3 is tried beside version 2: evidence 1.77 in 1 pair, 40 needed" in said
    assert "\x1b[2J" not in said
    found = told.json("playbook", "log")
    assert [it["state"] for it in found] == ["", "used now", "is being tried"]
    assert found[0]["results"]["kept"] == 1
    assert [it["node"]["playbook"] for it in (told.json("show", node) for node in found[2]["given"])] == [2, 3]


def test_pages(told: Stage) -> None:
    """What one version has otherwise than another; all pages of the present version, or of another."""
    said = told.run("playbook", "diff", "1", "2")
    assert {"-one", "+two", "+- be brief"} <= {line.strip() for line in said.splitlines()}
    assert told.json("playbook", "diff", "2", "3")["diff"] == ""
    assert "  two" in told.run("playbook", "show")
    assert told.json("playbook", "show", "--version", "1") == {"version": 1, "pages": FIRST}


def test_requests(told: Stage) -> None:
    """Each says in one line what will happen and when; corrections of now are not lost by an older version."""
    said = told.run("playbook", "use", "1")
    made = "a new version is made of version 1 and the corrections of version 2, and used"
    assert said == f"request 1: {made} at the next blastdoor resume; nobody works on it now\n"
    assert "request 2: version 3 is used at the next" in told.run("playbook", "use", "3")
    told.run("playbook", "correct", "never use numba")
    told.run("playbook", "correct", "be brief", "--drop")
    assert inbox(told) == [
        ("playbook use", {"version": 1}),
        ("playbook use", {"version": 3}),
        ("playbook correct", {"text": "never use numba", "drop": False}),
        ("playbook correct", {"text": "be brief", "drop": True}),
    ]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("use", "9"), "there is no version 9 of the playbook; there are 1 to 3"),
        (("use", "2"), "version 2 is the present one already"),
        (("use", "two"), "'two' is not a valid integer"),
        (("show", "--version", "0"), "there is no version 0"),
        (("diff", "1", "9"), "there is no version 9"),
        (("diff", "2", "2"), "the same version; name two to compare"),
        (("correct", "be brief"), "is a correction already"),
        (("correct", "be nice", "--drop"), "there is no correction"),
        (("correct", " "), "one line of 1 to 500 characters"),
    ],
)
def test_refused(told: Stage, words: tuple[str, ...], line: str) -> None:
    """Each in one line, and nothing is left in the inbox."""
    assert line in told.refused("playbook", *words)
    assert inbox(told) == []


def test_no_playbook(stage: Stage) -> None:
    """A campaign whose proposer asks no model has none."""
    for words in (("log",), ("show",), ("diff", "1", "2"), ("use", "1"), ("correct", "x")):
        assert "has no playbook: its proposer (random) asks no model" in stage.refused("playbook", *words)


def test_elsewhere(told: Stage) -> None:
    """A node tells its version, and status and report where the playbook stands."""
    node = next(name for name, it in told.story.state.nodes.items() if it.playbook == 1)
    assert "version 1" in told.run("show", node)
    assert "version 2 of 3, by person; version 3 is tried" in " ".join(told.run("status").split())
    assert "## Playbook\n\nVersion 2 of 3, by person" in told.run("report")
    assert told.json("status")["playbook"]["present"] == 2
    assert told.json("report")["playbook"]["challenger"] == 3
