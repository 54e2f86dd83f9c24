"""Where scores are noisy, every view shows what the repeats came to, and marks what was only screened."""

import csv
import json
from pathlib import Path

import pytest

from orchestrator.domain.ab import outcome_of
from orchestrator.domain.headline import LEGEND, Headline, _middle, headline
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import Node
from orchestrator.domain.state import State
from orchestrator.loop import metrics_file
from orchestrator.loop.campaign import Finished
from orchestrator.views.cli import cli
from orchestrator.views.running.summary import show_summary, summary_record
from orchestrator.wiring.reading import read_campaign
from tests.clicking import runner
from tests.orchestrator.loop.noise import noisy, scripted_scores
from tests.orchestrator.loop.script import Script
from tests.orchestrator.loop.scripted import Point, scripted, write_task

# The first run of 1.1 was lucky: 8, while its repeats come to 3. 1.2 is not past that, and has no repeats.
LUCKY, CERTIFIED, SCREENED = "score=8", "score=3", "score=~1"


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    folder, _ = await _campaign(tmp_path)
    return folder


async def _campaign(tmp_path: Path) -> tuple[Path, Finished]:
    folder, script = write_task(tmp_path / "task", noisy(repeats=12, champion=2)), Script()
    async with scripted(folder, script, {"value": 3}, {"value": 1}) as session:
        script.noise = scripted_scores(session.bench.state, {"1.1": (5.0, 0.0)})
        finished = await session.run()
        assert session.bench.state.nodes["1.1"].kept
    return folder, finished


def shown(folder: Path, *words: str) -> str:
    result = runner().invoke(cli, [*words, str(folder)])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("words", [("tree",), ("status",), ("report",), ("show", "1.1")])
async def test_text(folder: Path, words: tuple[str, ...]) -> None:
    """The median, never the lucky first run as the node's value."""
    text = shown(folder, *words)
    assert CERTIFIED in text or "| 3 | 0 | +3 |" in text
    if words[0] != "show":
        assert LUCKY not in text


@pytest.mark.parametrize("words", [("tree",), ("status",), ("show", "1.2")])
async def test_mark(folder: Path, words: tuple[str, ...]) -> None:
    """One run is marked, and a legend says what the mark means."""
    text = " ".join(shown(folder, *words).split())
    assert "~1" in text
    assert LEGEND in text


async def test_chart(folder: Path) -> None:
    """Dots stand at the medians; one that is only screened is drawn as the mark."""
    points = json.loads(shown(folder, "chart", "--json"))
    assert [(it["node"], it["score"], it.get("screened", False)) for it in points["points"]] == [
        ("1", 0.0, False),
        ("1.1", 3.0, False),
        ("1.2", 1.0, True),
    ]
    assert [(it["node"], it["score"]) for it in points["best"]] == [("1", 0.0), ("1.1", 3.0)]
    picture = shown(folder, "chart")
    assert "~ screened only" in picture


async def test_winner_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the end of a run."""
    show_summary(folder, "all is proposed")
    assert "best: score=3 at 1.1 (+3 on the baseline's 0)" in capsys.readouterr().out


async def test_json(folder: Path) -> None:
    """`verdict` stays what the first run came to; `headline` is what counts."""
    champion = json.loads(json.dumps(summary_record(folder, "over")["champion"]))
    best = json.loads(shown(folder, "status", "--json"))["best"]
    nodes = {it["id"]: it for it in json.loads(shown(folder, "tree", "--json"))}
    for node in (champion, best, nodes["1.1"], json.loads(shown(folder, "show", "--json", "1.1"))["node"]):
        assert node["verdict"]["metrics"]["score"] == 8.0
        assert (node["headline"]["metrics"]["score"], node["headline"]["screened"]) == (3.0, False)
        assert node["headline"]["runs"] > 0
    assert (nodes["1.2"]["headline"]["runs"], nodes["1.2"]["headline"]["screened"]) == (0, True)


async def test_a_comparison_takes_the_repeats(folder: Path) -> None:
    """Of a campaign that is compared with another, what its repeats came to, never the lucky first run."""
    with read_campaign(folder) as reading:
        found = outcome_of(reading.state, Ranking([spec.metric() for spec in reading.task.metrics]), 0)
    assert found.steps == ((0, 0.0), (1, 3.0))


async def test_csv(folder: Path, tmp_path: Path) -> None:
    """Metrics in the columns where they always were; how many repeats are behind them in one more at the end."""
    rows = list(csv.DictReader((folder / ".blastdoor" / "metrics.csv").open()))
    assert list(rows[0]) == ["iteration", "node", "score (higher is better)", "repeats"]
    told = {row["node"]: (float(row["score (higher is better)"]), int(row["repeats"])) for row in rows}
    assert told["1"][0] == 0.0
    assert told["1"][1] > 0
    assert told["1.1"][0] == 3.0
    assert told["1.2"] == (1.0, 0)
    exported = list(csv.DictReader(shown(folder, "export", "--csv", "-").splitlines()))
    assert {row["node"]: row["score"] for row in exported} == {
        "1": "0.0",
        "1.1": "3.0",
        "1.2": "1.0",
    }
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


async def test_python(tmp_path: Path) -> None:
    """The result of a search has both values."""
    _, finished = await _campaign(tmp_path)
    assert finished.champion
    assert finished.best
    assert finished.baseline
    assert (finished.best.metrics["score"], finished.baseline.metrics["score"]) == (3.0, 0.0)


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
    """That of one value is the value."""
    for values, middle in (([5e-324], 5e-324), ([1.5e-323] * 3, 1.5e-323), ([1.0, 2.0], 1.5), ([1.7e308] * 2, 1.7e308)):
        assert _middle(values) == middle


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
