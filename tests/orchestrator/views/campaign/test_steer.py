"""`steer`: checked before it is left, shown wherever it matters, and never said to nobody."""

import json
from pathlib import Path

import pytest

from orchestrator.domain import events as e
from tests.orchestrator.views.campaign.conftest import HOSTILE, Stage
from tests.orchestrator.views.campaign.test_actions import inbox


@pytest.fixture
def steered(tmp_path: Path) -> Stage:
    """Two instructions, with a node before, between and after them."""
    made = Stage(tmp_path / "another")
    story = made.story.open(proposer="llm")
    story.baseline(1.0)
    story.attempt("1", 2.0, kept=True)
    story.tell(e.Steered(text="use a heap"))
    story.attempt("1", 0.5)
    story.tell(e.Steered(text=HOSTILE))
    story.attempt("1", 0.6)
    return made


def test_steer(steered: Stage) -> None:
    """The text travels whole, without the white space around it, and it is said when it counts. While nobody works it
    is listed as waiting, is not taken twice, and the status counts it.
    """
    line = steered.run("steer", " no more than\n40 lines ")
    told = "all who propose from now on are told at the next blastdoor resume; nobody works on it now"
    assert line == f"request 1: {told}\n"
    assert "40 lines (waits for the next blastdoor resume)" in steered.run("steer", "--list").splitlines()[-1]
    assert [it["waits"] for it in steered.json("steer", "--list")] == [False, False, True]
    assert "said last" in steered.refused("steer", "no more than\n40 lines")
    assert "1 steer; taken within a second of work, or at the next blastdoor resume" in steered.run("status")
    assert steered.json("status")["asked"] == ["steer"]
    with steered.lock():
        assert "told within a second; pid" in steered.run("steer", "again")
    assert inbox(steered) == [("steer", {"text": "no more than\n40 lines"}), ("steer", {"text": "again"})]


def test_nobody_would_read_it(stage: Stage) -> None:
    """Where the proposer asks no model, the command says so and leaves nothing."""
    line = stage.refused("steer", "use a heap")
    assert "the proposer random reads no instructions, only llm, llm-params, agent do; blastdoor inject" in line
    assert inbox(stage) == []


@pytest.mark.parametrize(
    ("options", "heard"),
    [({"arms": []}, False), ({"arms": ["tpe", "operators"]}, False), ({"arms": ["tpe", "llm"]}, True), ({}, True)],
)
def test_arms_that_ask_no_model(tmp_path: Path, options: dict[str, object], heard: bool) -> None:
    """Where no arm of several proposers asks a model, the same line comes; a run that does not say what its arms are
    may have one that does.
    """
    made = Stage(tmp_path / "another")
    made.story.open(proposer="hybrid").tell(e.LimitsSet(limits={}, options=json.dumps(options)))
    if heard:
        assert "request 1: all who propose" in made.run("steer", "use a heap")
    else:
        assert "no arm of the proposer hybrid reads instructions, only llm" in made.refused("steer", "use a heap")
        assert inbox(made) == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "what should be done?"),
        (("use", "a", "heap"), "goes into quotes"),
        (("--list", "use a heap"), "--list takes the task's folder and no text"),
        (("  ",), "needs words"),
        (("x" * 2001,), "at most 2,000 characters, not 2,001"),
        ((HOSTILE,), "said last"),
    ],
)
def test_what_is_refused(steered: Stage, words: tuple[str, ...], line: str) -> None:
    """Bad input is one line that says what to do, and nothing is left in the inbox."""
    assert line in steered.refused("steer", *words)
    assert inbox(steered) == []


def test_list(steered: Stage, stage: Stage) -> None:
    """Every instruction with its time and how many nodes came since; nothing in it can act on a terminal."""
    first, second = steered.run("steer", "--list").splitlines()
    assert first.endswith(" use a heap (2 nodes since)")
    assert second.isprintable()
    assert second.endswith("second line (1 node since)")
    assert [(it["text"], it["nodes"]) for it in steered.json("steer", "--list")] == [
        ("use a heap", ["1.2", "1.3"]),
        (HOSTILE, ["1.3"]),
    ]
    assert stage.run("steer", "--list").startswith("nothing was said so far")


def test_show(steered: Stage, stage: Stage) -> None:
    """A node shows what had been said by the time that it was proposed, and no more."""
    assert "instructions" not in steered.run("show", "1.1")
    assert "use a heap" in steered.run("show", "1.2")
    assert [steered.json("show", node)["steering"] for node in ("1.1", "1.2", "1.3")] == [
        [],
        ["use a heap"],
        ["use a heap", HOSTILE],
    ]
    stage.story.tell(e.Steered(text="be bold"))
    stage.story.attempt("1", 0.7)
    assert "instructions" not in stage.run("show", "1.4"), "random reads none"
