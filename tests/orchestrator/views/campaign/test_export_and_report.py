"""Files for others: they can be read by anybody, and nothing in them can act on the reader."""

import csv
import hashlib
import html
import io
import json
import math
import re
from pathlib import Path

import pytest

from blastdoor import Campaign
from orchestrator.budget.amounts import NOTHING, Amounts
from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.ledger import LedgerError, read_head, verify_jsonl
from orchestrator.loop.metrics_file import MetricsFile
from orchestrator.views.campaign.sections.money import cost
from orchestrator.views.render.markdown import code, listing
from orchestrator.views.render.model import raw
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.conftest import Stage


def rows_of(stage: Stage) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(stage.run("export", "--csv", "-"))))


def test_nodes_as_a_table(stage: Stage) -> None:
    """One row each in the order of opening; names of columns are words that a notebook takes as they are. A missing
    score is an empty cell, never a zero.
    """
    rows = rows_of(stage)
    assert next(iter(rows[0])) == "iteration"
    assert all(name.isidentifier() for name in rows[0])
    assert [(row["node"], row["order"], row["score"], row["status"], row["kept"]) for row in rows] == [
        ("1", "1", "1.0", "kept", "yes"),
        ("1.1", "2", "2.0", "kept", "yes"),
        ("1.2", "3", "0.5", "discarded", "no"),
        ("1.3", "4", "", "failed", "no"),
        ("1.1.1", "5", "", "running", "no"),
    ]
    assert {(row["run"], row["score_goal"]) for row in rows} == {("1", "higher")}
    assert [(row["param_rows"], row["param_rate"]) for row in rows] == [("", ""), *[("3", "0.1")] * 4]


def test_the_iteration_is_the_one_of_metrics_csv(stage: Stage, tmp_path: Path) -> None:
    """In every run it counts what has a verdict, as it ended; a node without one has none."""
    story = stage.story
    late = story.opened("1")
    story.attempt("1", 0.7)
    story.tell(e.Proposed(node=late, draft=1, operator="random", description="late", params={"rows": "=9", "on": True}))
    story.promote(late, 1, story.trees["1"], "1")
    story.score(late, {"score": 0.8})
    story.end(late, Ending.SCORED)
    MetricsFile(tmp_path / "metrics.csv", Ranking([Metric()]), story.state)
    kept = list(csv.DictReader((tmp_path / "metrics.csv").open(newline="")))
    rows = rows_of(stage)
    told = {row["node"]: row["iteration"] for row in rows if row["iteration"]}
    assert told == {row["node"]: row["iteration"] for row in kept}
    assert [told[name] for name in ("1", "1.1", "1.2", "1.5", late)] == ["1", "2", "3", "4", "5"]
    [mine] = [row for row in rows if row["node"] == late]
    assert (mine["param_rows"], mine["param_on"]) == ("'=9", "True")


def test_a_metric_with_the_name_of_a_column(tmp_path: Path) -> None:
    """It is called a metric, and what is ours keeps its name."""
    made = Stage(tmp_path / "another")
    made.story = Story(made.folder, task={"metrics": [{"name": "score"}, {"name": "kept", "goal": "lower"}]})
    made.story.open().baseline(1.0, kept=4.0)
    [row] = rows_of(made)
    assert (row["kept"], row["metric_kept"], row["metric_kept_goal"]) == ("yes", "4.0", "lower")


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1"])
def test_no_cell_is_a_formula(stage: Stage, start: str) -> None:
    """A description that a spreadsheet would run is quoted, and has no control character."""
    stage.story.attempt("1", 0.1, description=start)
    cell = rows_of(stage)[-1]["description"]
    assert cell[0] not in "=+-@\t\r\n"
    assert cell.isprintable()


def test_records(stage: Stage, tmp_path: Path) -> None:
    """The exported ledger can be verified without us; as CSV every record is a row."""
    target, table = tmp_path / "out.jsonl", tmp_path / "records.csv"
    stage.run("export", "--jsonl", str(target))
    with target.open(encoding="utf-8", newline="") as stream:
        assert verify_jsonl(stream).records == len(stage.story.events)
    assert stage.json("export", "--records-csv", str(table)) == {str(table): len(stage.story.events)}
    assert len(list(csv.reader(table.open(newline="")))) == len(stage.story.events) + 1


def test_what_cannot_be_exported(stage: Stage, tmp_path: Path) -> None:
    """Nothing asked for is a mistake, and so are two things on stdout; a file that cannot be written is one line."""
    assert "nothing to export" in stage.refused("export")
    assert "only one thing" in stage.refused("export", "--csv", "-", "--jsonl", "-")
    assert "cannot be written" in stage.refused("export", "--csv", str(tmp_path / "nowhere" / "x.csv"))


def test_a_winner_as_a_folder(stage: Stage, tmp_path: Path) -> None:
    """Candidate, change, parameters, verdict, fingerprint, outputs and head, with a manifest that fits."""
    target = tmp_path / "winner"
    stage.run("export", "--artifact", str(target), "best")
    assert (target / "candidate" / "solve.py").read_text() == "print(1)\n"
    assert '+{"node": "1.1"}' in (target / "change.diff").read_text()
    assert json.loads((target / "params.json").read_text()) == {"rows": 3, "rate": 0.1}
    assert json.loads((target / "verdict.json").read_text())["metrics"] == {"score": 2.0}
    assert json.loads((target / "fingerprint.json").read_text())["cores"] == "2"
    assert (target / "outputs" / "packing.json").read_bytes() == b"[]"
    assert read_head(target / "head.json").seq == len(stage.story.events)
    manifest = json.loads((target / "artifact.json").read_text())
    for name, digest in manifest["sha256"].items():
        assert hashlib.sha256((target / name).read_bytes()).hexdigest() == digest
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".winner")] == []


def test_an_artifact_needs_a_new_folder_and_a_verdict(stage: Stage, tmp_path: Path) -> None:
    """A folder that is there stays as it is."""
    assert "exists" in stage.refused("export", "--artifact", str(tmp_path), "best")
    assert "no verdict" in stage.refused("export", "--artifact", str(tmp_path / "x"), "1.3")


def test_an_output_can_not_leave_the_folder(stage: Stage, tmp_path: Path) -> None:
    """An output whose name leads out is refused, and nothing is written."""
    stage.story.attempt("1", 3.0, kept=True, outputs={"../../evil": b"x"})
    assert "no plain path" in stage.refused("export", "--artifact", str(tmp_path / "deep" / "winner"), "best")
    assert not (tmp_path / "evil").exists()
    assert list((tmp_path / "deep").iterdir()) == []


def cost_line(story: Story) -> str:
    return raw(cost(material(story)).brief)


def test_free_endings_that_cost_nothing_are_no_loss() -> None:
    """An attempt for which nothing new was proposed is not told as a stall."""
    story = Story().open()
    for spent in (NOTHING, Amounts.of(seconds=3)):
        assert "stall losses" not in cost_line(story)
        story.accounts.reserve("1.1#1", NOTHING)
        story.accounts.refund("1.1#1", spent)
    assert "stall losses: 2 free endings cost 3" in cost_line(story)


def test_the_cost_of_a_second_run() -> None:
    """Attempts are counted for the run that ended, and apart from it for all runs; the rest is the campaign's."""
    story = Story().open()
    story.baseline(1.0)
    story.attempt("1", 2.0)
    assert cost_line(story).startswith("1 attempt, $0.02,")
    story.open(2)
    story.state.set_run(2, before={"attempts": 1})
    story.baseline(1.0, run=2)
    story.attempt("2", 2.0)
    story.attempt("2", 2.0)
    assert cost_line(story).startswith("2 attempts in run 2; all 2 runs together: 3 attempts, $0.06,")


def test_the_report_goes_to_a_file(stage: Stage, tmp_path: Path) -> None:
    """--out writes it, --json gives the figures; without a control it says that nothing was compared."""
    stage.story.state.set_run(1, control=None)
    target = tmp_path / "report.md"
    assert str(target) in stage.run("report", "--out", str(target))
    assert target.read_text().startswith("# ")
    assert "No control ran beside the proposer" in target.read_text()
    assert stage.json("report")["goodput"]["useful"] == 2


@pytest.mark.parametrize("text", ["`", "``` x", "a`b``c", "| x | y |", "<img src=x>", "[a](http://x)", "# h"])
def test_words_of_others_stay_code(text: str) -> None:
    """No text ends its code span or its block, or makes a cell of a table."""
    inline = code(text)
    fence = inline[: len(inline) - len(inline.lstrip("`"))]
    assert inline.endswith(fence)
    assert fence not in inline[len(fence) : -len(fence)]
    assert "|" not in inline.replace("\\|", "")
    _, *middle, last = listing(text)
    assert last.strip("`") == ""
    assert not any(line.startswith(last) for line in middle)


def test_report_as_a_page(stage: Stage, tmp_path: Path) -> None:
    """The same sections as in Markdown, with the chart, in one file."""
    target = tmp_path / "report.html"
    assert stage.run("report", "--html", str(target)) == f"written to {target}\n"
    page = target.read_text(encoding="utf-8")
    headings = re.findall("^## (.+)$", stage.run("report"), re.MULTILINE)
    assert re.findall("<h2[^>]*>([^<]+)</h2>", page) == headings
    assert page.count("<circle") == 3
    assert stage.run("report", "--html", "-") == page


@pytest.mark.parametrize("more", ["--json", "--out=x.md"])
def test_a_page_is_a_format_of_its_own(stage: Stage, more: str) -> None:
    assert stage.refused("report", "--html", "-", more).endswith(f"leave out {more.partition('=')[0]}")


def test_in_a_notebook(stage: Stage) -> None:
    """A table with types, by node; and the report in a frame in which nothing acts."""
    stage.write()
    campaign = Campaign(stage.folder)
    frame = campaign.frame()
    assert list(frame.index) == ["1", "1.1", "1.2", "1.3", "1.1.1"]
    assert [None if math.isnan(it) else it for it in frame["score"]] == [1.0, 2.0, 0.5, None, None]
    assert frame["kept"].tolist() == [True, True, False, False, False]
    assert frame.loc["1.1", "ended"] > frame.loc["1.1", "opened"]
    shown = campaign._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert ' sandbox="" ' in shown
    assert "<script" not in shown
    assert html.unescape(shown.partition('srcdoc="')[2].partition('" sandbox')[0]) == campaign.html()
    assert repr(campaign) == f"Campaign({str(stage.folder)!r})"


def test_no_campaign_in_a_notebook(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="start a campaign first"):
        Campaign(tmp_path).frame()
