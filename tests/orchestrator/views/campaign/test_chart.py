"""The chart shows every node once, where it belongs, within the room that it was given."""

import random

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.metric import Goal, Metric
from orchestrator.domain.records import Purpose, Role
from orchestrator.views.campaign.looks import LOOKS
from orchestrator.views.campaign.points import points_of, series_of, stair_of
from orchestrator.views.render.axis import axis_of
from orchestrator.views.render.chart import Placing, chart, visible
from orchestrator.views.render.layout import plain
from orchestrator.views.render.model import Point, Series, Step
from orchestrator.views.render.svg import svg
from tests.orchestrator.views.campaign.builder import Story, campaign


def drawn(story: Story, metric: Metric | None = None, width: int = 80, height: int = 20, unicode: bool = True) -> str:
    series = series_of(story.state, metric or Metric())
    return "\n".join(map(plain, chart(series, width=width, height=height, unicode=unicode)))


def plot(text: str) -> list[str]:
    """The rows above the axis, without their labels."""
    rows = []
    for row in text.split("\n")[1:]:
        if "└──" in row:
            break
        rows.append(row.partition("┤")[2] or row.partition("│")[2])
    return rows


@pytest.fixture
def story() -> Story:
    told = Story().open()
    told.baseline(1.0)
    return told


@pytest.mark.parametrize("scores", [[1e308], [-1e308, 1.7e308], [5e307, 2.0] * 6, [1e308] * 9])
def test_a_score_that_is_hardly_a_number(story: Story, scores: list[float]) -> None:
    """A judge may take it for a score, so nothing that draws it may break."""
    for number, score in enumerate(scores):
        story.attempt("1", score, kept=number == 0)
    assert "kept 2" in drawn(story)
    assert "<svg" in svg(series_of(story.state, Metric()))


@pytest.mark.parametrize("scores", [[0.0, 5e-324], [1e-322], [-5e-324, 0.0], [1e-310, 5e-310]])
def test_scores_that_are_hardly_more_than_nothing(scores: list[float]) -> None:
    """Likelihoods come to them; each has a row, and the labels can be told."""
    for rows in (1, 2, 18, 40):
        axis = axis_of(scores, scores, rows)
        assert all(0 <= axis.row(score) < rows for score in scores)
        assert len(axis.labels()) >= 1


def test_every_status_has_its_sign_and_count(story: Story) -> None:
    """The legend counts each kind, and each sign is drawn."""
    story.attempt("1", 2.0, kept=True)
    story.attempt("1", 1.5)
    story.attempt("1", 1.2, role=Role.CONTROL)
    story.attempt("1", ending=Ending.FAILED)
    story.attempt("1", ending=Ending.STALLED)
    text = drawn(story)
    assert drawn(story, unicode=False).isascii()
    for entry in ("● kept 2", "○ discarded 1", "◇ control 1", "✗ failed 1", "s stalled 1"):
        assert entry in text
    body = "".join(plot(text))
    assert (body.count("●"), body.count("○"), body.count("◇")) == (2, 1, 1)
    assert "✗" not in body


def test_a_missing_score_is_never_a_zero(story: Story) -> None:
    """Nodes without a score stand below the axis, even where zero would be inside it."""
    story.attempt("1", -1.0)
    story.attempt("1", ending=Ending.FAILED)
    story.attempt("1", ending=Ending.INFRASTRUCTURE)
    story.attempt("1")
    text = drawn(story)
    assert not set("✗~▸") & set("".join(plot(text)))
    (lane,) = [row for row in text.split("\n") if row.lstrip().startswith("no score")]
    assert set("✗~▸") <= set(lane)


def test_the_stair_rises_with_what_is_kept(story: Story) -> None:
    """Higher is better: the best is at the top, a better one that was not kept does not move the stair."""
    story.attempt("1", 5.0)
    story.attempt("1", 2.0, kept=True)
    story.attempt("1.2", 3.0, kept=True)
    points = points_of(story.state, Metric())
    assert [(step.node, step.score) for step in stair_of(story.state, points, Metric())] == [
        ("1", 1.0),
        ("1.2", 2.0),
        ("1.2.1", 3.0),
    ]
    assert "best 3 at 1.2.1" in drawn(story)


def test_the_stair_is_the_champions(story: Story) -> None:
    """What minimising left of the champion may score a little better, and is not the best: `best` is the champion."""
    story.attempt("1", 2.0, kept=True)
    story.attempt("1.1", 2.1, kept=True, role=Role.MINIMISED)
    assert "best 2 at 1.1" in drawn(story)
    story.tell(e.CohortOpened(run=1, cohort="new", why="another machine"))
    for node, score in (("1.1", 1.4), ("1.1.1", 1.5)):
        story.score(node, {"score": score}, "new", purpose=Purpose.RERUN)
    story.tell(e.ChampionChanged(run=1, node="1.1", cohort="new", over=None))
    story.attempt("1", 1.3, cohort="new")
    assert "best 1.4 at 1.1" in drawn(story)


def test_lower_is_better_falls(story: Story) -> None:
    """The axis stays as it is; the stair goes down."""
    story.attempt("1", 0.5, kept=True)
    text = drawn(story, Metric(goal=Goal.LOWER))
    assert "lower is better" in text
    assert "best 0.5 at 1.1" in text
    rows = plot(text)
    assert rows[0].startswith("●")
    assert "●" in rows[-1]


def test_it_fits() -> None:
    """No line is longer than the width, no picture higher than the height, whatever there is to show."""
    story = Story().open(attempts=300)
    story.baseline(1.0)
    draw = random.Random(1)
    for _ in range(300):
        story.attempt("1", draw.uniform(0, 1), description="x" * 300)
    for width, height in ((40, 12), (80, 24), (100, 30), (200, 60)):
        for unicode in (True, False):
            text = drawn(story, width=width, height=height, unicode=unicode)
            assert max(map(len, text.split("\n"))) <= width
            assert len(text.split("\n")) <= height


def test_thousands_are_binned() -> None:
    """Two thousand nodes take the width of the screen, and each is counted."""
    text = drawn(campaign(2000), width=100, height=30)
    assert "2,001 nodes" in text
    assert max(map(len, text.split("\n"))) <= 100
    # One column holds several dots.
    columns = [{row[at] for row in plot(text) if at < len(row)} & set("●○◇") for at in range(80)]
    assert any(len(signs) >= 2 for signs in columns)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_hidden_is_left_out(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points that later ones hide make no difference to the picture: not their row, look, mark or edge."""
    draw = random.Random(seed)
    points = []
    for order in range(1, draw.randint(2, 3000)):
        score = draw.choice([None, round(draw.gauss(0.0, 1.0), draw.randint(0, 3)), draw.gauss(0.0, 40.0)])
        points.append(Point(f"1.{order}", order, draw.choice(LOOKS), score, "c", draw.random() < 0.3))
    steps = [Step(1, 0.0, "1.1", fresh=True)]
    series = Series("score", draw.choice(list(Goal)), 1, points, steps)
    pictures = []
    for which in (visible, lambda points, *_: points):
        monkeypatch.setattr("orchestrator.views.render.chart.visible", which)
        pictures.append([chart(series, width=width, height=24) for width in (40, 100, 200)])
    assert pictures[0] == pictures[1]
    assert len(visible([points[0]] * 9, axis_of([0.0], [], 9), Placing(9, 40))) == 1


def test_one_run_at_a_time(story: Story) -> None:
    """Scores of another run are not in the picture, unless that run is asked for."""
    story.attempt("1", 2.0, kept=True)
    story.open(run=2)
    story.baseline(700.0, run=2)
    assert "run 2, 1 node," in drawn(story)
    series = series_of(story.state, Metric(), story.state.runs["1"])
    first = "\n".join(map(plain, chart(series, width=80, height=20)))
    assert "run 1, 2 nodes" in first
    assert "700" not in first


def test_a_new_cohort_starts_anew(story: Story) -> None:
    """Another cohort is marked, and its stair starts from the champion as it was run again there."""
    story.attempt("1", 2.0, kept=True)
    story.tell(e.CohortOpened(run=1, cohort="new", why="another machine"))
    story.score("1.1", {"score": 1.4}, "new", purpose=Purpose.RERUN)
    story.tell(e.ChampionChanged(run=1, node="1.1", cohort="new", over=None))
    story.attempt("1", 1.6, kept=True, cohort="new")
    points = points_of(story.state, Metric())
    steps = stair_of(story.state, points, Metric())
    assert [(step.node, step.score, step.fresh) for step in steps] == [
        ("1", 1.0, True),
        ("1.1", 2.0, False),
        ("1.1", 1.4, True),
        ("1.2", 1.6, False),
    ]
    text = drawn(story)
    assert "2 cohorts" in text
    assert "┊" in text


def test_an_absurd_score_does_not_flatten_the_rest(story: Story) -> None:
    """One score of 1e12 is drawn at the edge; the axis is made for the others."""
    for number in range(20):
        story.attempt("1", 1.0 + number / 100)
    story.attempt("1", 1e12)
    scores = [point.score for point in points_of(story.state, Metric()) if point.score is not None]
    axis = axis_of(scores, [1.0], 20)
    assert axis.high < 2.0
    assert axis.row(1e12) == 0
    assert len({row for row in plot(drawn(story)) if "○" in row}) > 5


def test_what_lies_beyond_the_axis_is_marked(story: Story) -> None:
    """A dot at the edge that belongs further out has a sign of its own, and the legend says how many and how far."""
    for value in (0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 50.0, 70.0, -40.0):
        story.attempt("1", value)
    for unicode, above, below in ((True, "▲", "▼"), (False, "^", "_")):
        text = drawn(story, unicode=unicode, width=120)
        assert f"{above} beyond the axis 2 (up to 70)" in text
        assert f"{below} beyond the axis 1 (down to -40)" in text
        assert text.splitlines()[1].count(above) == 2
    assert "beyond" not in drawn(Story().open())
