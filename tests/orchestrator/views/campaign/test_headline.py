"""Where scores are noisy, every view shows what the repeats came to, and marks what was only screened."""

import csv
import json
from pathlib import Path

import pytest

from orchestrator.domain import figures
from orchestrator.domain.ab import outcome_of
from orchestrator.domain.headline import LEGEND, Headline, headline, middle
from orchestrator.domain.metric import Metric, Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.loop import metrics_file
from orchestrator.views.cli import cli
from orchestrator.views.running.summary import show_summary, summary_record
from orchestrator.wiring.reading import read_campaign
from tests.clicking import runner
from tests.orchestrator.loop.noise import noisy, scripted_scores
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, scripted, write_task


def shown(folder: Path, *words: str) -> str:
    result = runner().invoke(cli, [*words, str(folder)])
    assert result.exit_code == 0, result.output
    return result.stdout


async def test_every_view_shows_the_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first run of 1.1 was lucky: 8, while its repeats come to 3. 1.2 is not past that, has no repeats, and is
    marked, with a legend. `verdict` stays what the first run came to; `headline` is what counts.
    """
    folder, script = write_task(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, {"value": 3}, {"value": 1}) as session:
        script.noise = scripted_scores(session.bench.state, {"1.1": (5.0, 0.0)})
        finished = await session.run()
        assert session.bench.state.nodes["1.1"].kept
    assert finished.best
    assert finished.baseline
    assert (finished.best.metrics["score"], finished.baseline.metrics["score"]) == (3.0, 0.0)
    texts = {
        words: " ".join(shown(folder, *words).split())
        for words in (("tree",), ("status",), ("report",), ("show", "1.1"), ("show", "1.2"), ("chart",))
    }
    for words in (("tree",), ("status",), ("report",), ("show", "1.1")):
        assert "score=3" in texts[words] or "| 3 | 0 | +3 |" in texts[words]
        assert words[0] == "show" or "score=8" not in texts[words]
    for words in (("tree",), ("status",), ("show", "1.2")):
        assert ("~1" in texts[words], LEGEND in texts[words]) == (True, True), words
    assert "~ screened only" in texts["chart",]
    points = json.loads(shown(folder, "chart", "--json"))
    assert [(it["node"], it["score"], it.get("screened", False)) for it in points["points"]] == [
        ("1", 0.0, False),
        ("1.1", 3.0, False),
        ("1.2", 1.0, True),
    ]
    assert [(it["node"], it["score"]) for it in points["best"]] == [("1", 0.0), ("1.1", 3.0)]
    show_summary(folder, "all is proposed")
    assert "best: score=3 at 1.1 (+3 on the baseline's 0)" in capsys.readouterr().out

    champion = json.loads(json.dumps(summary_record(folder, "over")["champion"]))
    best = json.loads(shown(folder, "status", "--json"))["best"]
    nodes = {it["id"]: it for it in json.loads(shown(folder, "tree", "--json"))}
    for node in (champion, best, nodes["1.1"], json.loads(shown(folder, "show", "--json", "1.1"))["node"]):
        assert node["verdict"]["metrics"]["score"] == 8.0
        assert (node["headline"]["metrics"]["score"], node["headline"]["screened"]) == (3.0, False)
        assert node["headline"]["runs"] > 0
    assert (nodes["1.2"]["headline"]["runs"], nodes["1.2"]["headline"]["screened"]) == (0, True)
    with read_campaign(folder) as reading:
        compared = outcome_of(reading.state, Ranking([spec.metric() for spec in reading.task.metrics]), 0)
    assert compared.steps == ((0, 0.0), (1, 3.0)), "a comparison takes the repeats"

    rows = list(csv.DictReader((folder / ".blastdoor" / "metrics.csv").open()))
    assert list(rows[0]) == ["iteration", "node", "score (higher is better)", "repeats"]
    told = {row["node"]: (float(row["score (higher is better)"]), int(row["repeats"])) for row in rows}
    assert [told["1"][0], told["1"][1] > 0, told["1.1"][0], told["1.2"]] == [0.0, True, 3.0, (1.0, 0)]
    exported = list(csv.DictReader(shown(folder, "export", "--csv", "-").splitlines()))
    assert {row["node"]: row["score"] for row in exported} == {"1": "0.0", "1.1": "3.0", "1.2": "1.0"}
    assert next(reversed(exported[0])) == "repeats"


async def test_csv_follows_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its line has all runs that were taken of it, also where they served to screen a candidate out; the file is what a
    new session would write, and lines that cannot differ are not made again.
    """
    made = []

    def counted(state: State, node: Node, cohort: str | None = None) -> Headline | None:
        made.append(node.id)
        return headline(state, node, cohort)

    monkeypatch.setattr(metrics_file, "headline", counted)
    folder = write_task(tmp_path / "task", noisy(repeats=12, champion=4))
    points: list[Point] = [{"value": -value} for value in range(1, 9)]
    async with scripted(folder, None, *points) as session:
        await session.run()
        path = folder / ".blastdoor" / "metrics.csv"
        written, count = path.read_text(), len(made)
        baseline, *others = csv.DictReader(written.splitlines())
        assert (baseline["node"], int(baseline["repeats"])) == ("1", 4)
        assert [(it["iteration"], it["repeats"]) for it in others] == [(str(at), "0") for at in range(2, 10)]
        assert count <= 2 * len(points) + 1
        metrics_file.MetricsFile(path, session.bench.ranking, session.bench.state)
        assert path.read_text() == written


async def test_strict(tmp_path: Path) -> None:
    """Where scores repeat, nothing is marked, and the file of metrics has no column more."""
    folder = write_task(tmp_path / "task")
    async with scripted(folder, None, {"value": 3}) as session:
        await session.run()
        found = headline(session.bench.state, session.bench.state.nodes["1.1"])
    assert found
    assert (dict(found.metrics), found.runs, found.screened) == ({"score": 3.0}, 0, False)
    assert (folder / ".blastdoor" / "metrics.csv").read_text().startswith("iteration,node,score (higher is better)\n")
    assert LEGEND not in shown(folder, "tree")


def test_medians() -> None:
    """That of one value is the value, also where a float can hardly tell it from nothing or holds no more."""
    for values, wanted in (([5e-324], 5e-324), ([1.5e-323] * 3, 1.5e-323), ([1.0, 2.0], 1.5), ([1.7e308] * 2, 1.7e308)):
        assert middle(values) == wanted


async def test_scores_that_a_float_can_hardly_tell(tmp_path: Path) -> None:
    """A candidate may bring its judge to them; a median of two of them is a number all the same, in every view."""
    folder, script = write_task(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, {"value": 1.7e308}) as session:
        script.noise = scripted_scores(session.bench.state, {})
        await session.run()
        found = headline(session.bench.state, session.bench.state.nodes["1.1"])
    assert found
    assert found.runs % 2 == 0
    assert found.metrics["score"] == 1.7e308
    for words in (("status",), ("status", "--json"), ("tree", "--json"), ("show", "1.1"), ("chart",), ("report",)):
        assert "inf" not in shown(folder, *words).lower().replace("info", "")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"score": 2.0, "speedup": 2.0, "time": 1.0}, "speedup=2 time=1"),
        ({"score": 3.0, "speedup": 2.0}, "speedup=2 score=3"),
        ({"score": 3.0}, "score=3"),
    ],
)
def test_a_score_that_only_repeats(values: dict[str, float], text: str) -> None:
    """A score that nobody declared is shown where it says more than the first metric; a declared one always."""
    assert figures.metrics(values, [Metric(name="speedup")]) == text
    both = [Metric(name="speedup"), Metric(name="score")]
    assert figures.metrics({"score": 2.0, "speedup": 2.0}, both) == "speedup=2 score=2"
