"""Requests are checked before they are left, and say in one line what will happen and when."""

import contextlib
import json
from pathlib import Path

import click
import pytest

from orchestrator.change import Refusal
from orchestrator.change.forms import parse
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.proposal import BROUGHT, Proposal
from orchestrator.examine.gate import refused
from orchestrator.ledger import Ledger
from orchestrator.loop.candidate import next_tree
from orchestrator.views.campaign import asking
from orchestrator.views.campaign.asking import person
from orchestrator.views.campaign.diff import tree_of
from orchestrator.wiring.reading import read_campaign
from tests.orchestrator.views.campaign.conftest import Stage

DIFF = '--- a/params.json\n+++ b/params.json\n@@ -1 +1 @@\n-{}\n+{"rows": 9}\n'


def inbox(stage: Stage) -> list[tuple[str, dict[str, object]]]:
    with Ledger.open(stage.campaign / "ledger.sqlite3", read_only=True) as ledger:
        found = [(request.kind, json.loads(request.body)) for request in ledger.requests()]
    assert {body.pop("by") for _, body in found} <= {person()}
    return found


def test_pause_and_go_on(stage: Stage) -> None:
    """Both are requests to whoever works on it; a campaign that nobody works on does not need them."""
    assert "nobody works on it" in stage.refused("pause")
    with stage.lock():
        assert "within a second; pid" in stage.run("pause")
        stage.run("pause", "--off")
    assert inbox(stage) == [("pause", {"paused": True}), ("pause", {"paused": False})]


def test_inject_a_change(stage: Stage, tmp_path: Path) -> None:
    """The text travels whole, with the node and a description; without a node the best of then is meant."""
    change = tmp_path / "change.diff"
    change.write_text(DIFF)
    line = stage.run("inject", "--diff", str(change), "--on", "1", "--describe", "nine rows")
    assert line == "request 1: the change becomes a node on 1, at the next blastdoor resume; nobody works on it now\n"
    stage.run("inject", "--diff", "-", stdin=DIFF)
    first, second = inbox(stage)
    assert first == ("inject", {"text": DIFF, "on": "1", "description": "nine rows"})
    assert second[1]["on"] is None
    assert "nowhere.diff cannot be read" in stage.refused("inject", "--diff", "nowhere.diff")


HUNK = '@@ -1 +1,4 @@\n-{}\n+{\n+\n+"rows": 9\n+}\n'
ODD = [
    "--- a/params.json\n+++ b/params.json\n" + HUNK,
    "diff --git a/params.json b/params.json\nindex 1..2 100644\n"
    f"--- a/params.json\n+++ b/params.json\n{HUNK}-- \n2.30\n",
    "--- a/params.json\r\n+++ b/params.json\r\n" + HUNK.replace("\n", "\r\n"),
    "--- a/params.json\n+++ b/params.json\n@@ -1 +1 @@\n-{}\n+[]\n\\ No newline at end of file\n",
    "--- a/params.json\n+++ b/params.json\n@@ -1,9 +1,9 @@\n-{}\n+[]\n",
    "--- a/params.json\n+++ b/params.json\n@@ @@\n-{}\n+[]\n",
    "```diff\n--- a/params.json\n+++ b/params.json\n@@ -1 +1 @@\n-{}\n+[]\n```\n",
    "params.json\n<<<<<<< SEARCH\n{}\n=======\n[]\n>>>>>>> REPLACE\n",
    "file: params.json\n```\n[]\n```\n",
    'diff --git "a/params.json" "b/params.json"\nold mode 100644\nnew mode 100755\n',
]


@pytest.mark.parametrize("text", ODD)
def test_a_change_that_is_brought_is_read_in_one_way(stage: Stage, text: str) -> None:
    """Cut off at any line, or within one: gate, inject and the campaign itself take it or refuse it alike."""
    stage.write()
    lines = text.splitlines(keepends=True)
    cuts = ["".join(lines[:count]) for count in range(len(lines) + 1)]
    taken = []
    with read_campaign(stage.folder) as reading:
        policy, tree = reading.task.policy(), tree_of(reading, reading.state.nodes["1"])
        for cut in dict.fromkeys([*cuts, *(it[:-1] for it in cuts), *(it[:-3] for it in cuts)]):
            answers = [refused(tree, cut.encode(), policy) is None, False, False]
            with contextlib.suppress(click.UsageError):
                answers[1] = bool(asking.inject(reading, cut, "1", "by hand"))
            with contextlib.suppress(Refusal):
                brought = Proposal(operator=BROUGHT, description="", text=cut)
                answers[2] = bool(next_tree(tree, brought, policy, None))
            assert len(set(answers)) == 1, (cut, answers)
            taken.append(answers[0])
    assert not all(taken)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        (DIFF, ("--on", "1.1"), "lines not found"),
        (DIFF.replace("params.json", "judge.txt"), ("--on", "1"), "not editable"),
        (DIFF.replace("params.json", "judge.txt"), (), "not editable"),
        (DIFF.replace("params.json", "../judge.txt"), (), "unsafe name"),
        (DIFF.replace("params.json", ".git/config"), (), "reserved name"),
        ("hello", (), "no change found"),
        ("", (), "text is empty"),
        ("x" * 2_000_000, (), "more than 1MiB"),
        (DIFF, ("--describe", "  "), "--describe needs 1 to 500"),
        (DIFF, ("--on", "1.9"), "there is no node 1.9"),
    ],
)
def test_inject_refuses(stage: Stage, tmp_path: Path, text: str, words: tuple[str, ...], line: str) -> None:
    """What the orchestrator would refuse is refused at once, and nothing is left in the inbox."""
    change = tmp_path / "change.diff"
    change.write_text(text)
    assert line in stage.refused("inject", "--diff", str(change), *words)
    assert inbox(stage) == []


def test_cancel_what_is_under_way(stage: Stage) -> None:
    """An open node can be cancelled, an ended one not. A program gets the number of the request."""
    told = {"request": 1, "kind": "cancel", "body": {"node": "1.1.1"}, "holder": None}
    assert stage.json("cancel", "1.1.1") == told
    assert "1.1.1 (open) is cancelled" in stage.run("cancel", "1.1.1")
    assert "has ended already: scored" in stage.refused("cancel", "1.1")
    assert inbox(stage) == [("cancel", {"node": "1.1.1"})] * 2


def test_release_needs_quarantine(stage: Stage) -> None:
    """Only what is in quarantine can leave it."""
    stage.story.tell(e.AttemptQuarantined(node="1.1.1", ending=Ending.STALLED, why="3 stalls"))
    assert "leaves quarantine" in stage.run("release", "1.1.1")
    assert "is not in quarantine; it is scored" in stage.refused("release", "1.1")
    assert inbox(stage) == [("release", {"node": "1.1.1"})]


def test_requeue_only_what_was_free(stage: Stage) -> None:
    """What was charged is not run again; what ended free, waits or is in quarantine is."""
    free = stage.story.attempt("1", ending=Ending.INFRASTRUCTURE)
    assert "is run again" in stage.run("requeue", free)
    assert "1.3 is failed, and only what ended free" in stage.refused("requeue", "1.3")
    assert "1.1.1 is at work" in stage.refused("requeue", "1.1.1")


def test_only_the_present_run_is_worked_on(stage: Stage) -> None:
    """A node of an earlier run is over, whatever its state."""
    stage.story.end("1.1.1", Ending.STALLED)
    stage.story.open(run=2)
    assert "1.1.1 belongs to run 1, which is over; run 2 is worked on" in stage.refused("requeue", "1.1.1")


def test_inject_a_plain_file(stage: Stage, tmp_path: Path) -> None:
    """A file that is no diff replaces the one of its name, or the one that is named, whatever it holds."""
    mine = tmp_path / "solve.py"
    mine.write_text("TEXT = 1\n```\nprint(2)")
    stage.run("inject", "--file", str(mine), "--on", "1")
    stage.run("inject", "--file", str(mine), "--as", "new.py")
    texts = [str(body["text"]) for _, body in inbox(stage)]
    edits = [parse(text).edits for text in texts]
    assert [[(edit.path, edit.data) for edit in each] for each in edits] == [
        [("solve.py", b"TEXT = 1\n```\nprint(2)\n")],
        [("new.py", b"TEXT = 1\n```\nprint(2)\n")],
    ]
    assert inbox(stage)[0][1]["description"] == "by hand: solve.py"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "give the change: either --diff FILE, or --file FILE"),
        (("--diff", "FILE", "--file", "FILE"), "give the change: either --diff FILE, or --file FILE"),
        (("--diff", "FILE", "--as", "solve.py"), "--as belongs to --file"),
        (("--file", "FILE"), "mine.txt is no file of the workspace; say which with --as PATH"),
        (("--file", "FILE", "--as", "judge.txt", "--on", "1"), "not editable"),
        (("--diff", "FILE"), "; a plain file goes in with --file"),
    ],
)
def test_a_plain_file_that_cannot_be_placed(stage: Stage, tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    """Each is told with the flag to use, and nothing is left in the inbox."""
    (tmp_path / "mine.txt").write_text("print(3)\n")
    told = stage.refused("inject", *(word.replace("FILE", str(tmp_path / "mine.txt")) for word in words))
    assert line in told
    assert inbox(stage) == []
