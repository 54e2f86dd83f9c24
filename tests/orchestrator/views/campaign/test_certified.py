"""What a candidate had to show before it was kept is told by show, status and report."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.records import Purpose
from tests.orchestrator.views.campaign.builder import COHORT, Story
from tests.orchestrator.views.campaign.conftest import Stage


def test_replayed(stage: Stage) -> None:
    """Where scores are strict: what the replay gave, and how many stood; before that nothing is said of it."""
    assert "tested" not in stage.run("status")
    assert "put to the test" not in stage.run("report")
    more = Stage(stage.folder.with_name("replayed"))
    more.story.open().baseline(1.0)
    more.story.attempt("1", 2.0, kept=True)
    more.story.score("1.1", {"score": 1.9}, purpose=Purpose.REPLAY)
    assert "replayed  1.9" in more.run("show", "1.1")
    for words in ("status", "report"):
        assert "1 candidate put to the test, 1 kept" in more.run(words)
    assert more.json("status")["certified"] == {"tested": 1, "kept": 1}


@pytest.fixture
def noisy(tmp_path: Path) -> Stage:
    """A champion measured five times, a candidate that is proven better, and one that is not."""
    made = Stage(tmp_path / "task")
    certify: dict[str, Any] = {"rule": "noisy", "repeats": 5, "champion": 5}
    made.story = Story(made.folder, task={"certify": certify}).open()
    made.story.baseline(1.0)
    for value in (0.8, 1.2, 0.9, 1.1, 1.0):
        made.story.score("1", {"score": value}, purpose=Purpose.REPEAT)
    for number, values in ((1, (0.7, 1.15)), (2, (2.0, 2.1, 2.2))):
        node = made.story.attempt("1", None)
        made.story.score(node, {"score": 2.5})
        level = 0.05 / (2 * number * (number + 1))
        test = {"number": number, "reference": 1, "against": number, "level": level}
        made.story.tell(e.CertificationOpened(node=node, champion="1", cohort=COHORT, **test))
        for value in values:
            made.story.score(node, {"score": value}, purpose=Purpose.REPEAT)
        made.story.end(node, Ending.SCORED, kept=number == 2)
    made.story.tell(e.ChampionChanged(run=1, node="1.2", cohort=COHORT, over="1"))
    return made


def test_tested(noisy: Stage) -> None:
    """Which test it was, at which level, with how much evidence, from how many measurements of both."""
    text = noisy.run("show", "1.1")
    for part in (
        "1 of the campaign, number 1 against 1",
        "0.0125 of the 0.05 that the whole campaign has",
        "in 2 repeats, 80 needed",
        "2 times; the champion 1 5 times beforehand",
        "score=1.15",
        "median of 1",
        "1.1 is tested against 1 (test 1, level 0.0125)",
    ):
        assert part in text, part
    assert "in 3 repeats" in noisy.run("show", "1.2")
    assert "number 2 of the campaign, in cohort" in noisy.run("show", "1.2")
    assert "measured 5 times, 2 tests against it" in noisy.run("show", "1")
    assert noisy.json("show", "1.2")["certified"]["level"].startswith("0.00417 ")
    assert "2 candidates put to the test, 1 kept" in noisy.run("status")
    assert noisy.json("status")["machine"] is None, "too little is known of the machine"


@pytest.fixture
def in_turn(tmp_path: Path) -> Stage:
    """A candidate that is tested in turn with the champion, on a machine that gets faster all the while."""
    made = Stage(tmp_path / "task")
    made.story = Story(made.folder, task={"certify": {"rule": "noisy"}}).open()
    made.story.baseline(1.0)
    node = made.story.attempt("1", None)
    made.story.score(node, {"score": 2.5})
    test = {"number": 1, "reference": 1, "against": 1, "level": 0.0125, "blocks": 12}
    made.story.tell(e.CertificationOpened(node=node, champion="1", cohort=COHORT, **test))
    for at in range(12):
        for place in range(2):
            off = at + place / 10
            made.story.score(node, {"score": 1.05 + off}, purpose=Purpose.REPEAT)
            made.story.score(node, {"score": 1.0 + off}, purpose=Purpose.REFERENCE, subject="1")
    made.story.end(node, Ending.SCORED, kept=False)
    return made


def test_tested_in_turn(in_turn: Stage) -> None:
    """Both medians are of the runs of the test, and a log is never the champion's. That the machine drifted is said in
    one line, and that no verdict depends on it.
    """
    assert "24 times; the champion 1 24 times, in turn" in in_turn.run("show", "1.1")
    assert in_turn.json("logs", "1.1")["trial"] == "1.1-49"
    report = in_turn.run("report").replace("\n", " ")
    for text in (in_turn.run("status"), report):
        assert "he machine drifted: 1 measured score " in text
    assert "no verdict depends on it" in report
    assert in_turn.json("status")["machine"]["p"] < 0.001
    assert in_turn.json("report")["machine"]["measured"] == 24
