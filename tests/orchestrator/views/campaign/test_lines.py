"""What is said of a campaign of which most nodes are read no further than a line is what is said of the whole."""

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.domain import events as e
from orchestrator.domain.census import Counted, take_census
from orchestrator.domain.ending import Ending
from orchestrator.domain.lines import NodeLine
from orchestrator.domain.metric import Goal, Metric
from orchestrator.domain.records import Phase, Purpose, Role
from orchestrator.domain.state import SHORT_KINDS, State
from orchestrator.ledger import Entry, Ledger
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.campaign.points import series_of
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import plain
from orchestrator.views.render.terminal import Terminal
from orchestrator.wiring.reading import read_campaign
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.kinds import KINDS, OTHERS


def shown(story: Story, state: State, place: Place) -> tuple[str, list[str]]:
    made = sections(replace(material(story), state=state, run=state.run), place)
    return json_text(record(made), None), [plain(line) for line in Terminal(100).digest(made)]


class Kept:
    """Rows as a ledger has them; `read` are those that were asked for one by one, `all_of` kinds read as a whole."""

    def __init__(self, state: State) -> None:
        self.every = {key: body for key in sorted(state.touched) if (body := state.row(key))}
        self.read: list[str] = []
        self.all_of: list[str] = []

    def row(self, kind: str, name: str) -> str | None:
        self.read.append(name)
        return self.every.get((kind, name))

    def rows(self, *kinds: str) -> dict[tuple[str, str], str]:
        self.all_of += kinds
        return {key: body for key, body in self.every.items() if key[0] in kinds}

    def glanced(self, *, dotted: bool = False) -> State:
        kinds = [*SHORT_KINDS, *(["dots"] if dotted else [])]
        rows = {key: body for key, body in self.every.items() if key[0] in kinds}
        named = State.rows_to_glance(rows, dotted=dotted)
        assert named is not None
        rows |= {(kind, name): self.every[kind, name] for kind, names in named.items() for name in names}
        return State.from_rows(rows, at_once=False, rest=self)


def assert_same(story: Story) -> None:
    kept = Kept(story.state)
    census, notable = take_census(story.state.nodes.values())
    assert story.state.counted() == Counted.of(census, notable)
    for place in Place:
        whole = shown(story, State.from_rows(kept.every), place)
        for late in (State.from_rows(kept.every, at_once=False), kept.glanced()):
            assert late.unfinished.keys() == story.state.unfinished.keys()
            assert late.asking == story.state.asking
            assert shown(story, late, place) == whole
            assert late.children == story.state.children
            assert late.branches == story.state.branches
    assert_drawn_same(kept, story.state)


def assert_drawn_same(kept: Kept, state: State) -> None:
    """From dots and from records."""
    without = {key: body for key, body in kept.every.items() if key[0] != "dots" and key != ("census", "census")}
    records = State.from_rows(without)
    assert records.dotted() is None
    late = [State.from_rows(kept.every, at_once=False), kept.glanced(dotted=True), kept.glanced(), state]
    assert all(it.dotted() for it in late if it is not late[2])
    for run in state.runs.values():
        for metric in (Metric(), Metric(name="speed"), Metric(goal=Goal.LOWER)):
            whole = series_of(records, metric, run)
            assert [series_of(it, metric, run) for it in late] == [whole] * len(late)


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS], ids=lambda kind: kind.__name__)
def test_of_each_kind(kind: Callable[[], Story]) -> None:
    """Whatever a campaign had: a control, noise, models, pruning, a held-out split, islands, parts."""
    assert_same(kind())


@pytest.mark.parametrize("seed", range(8))
def test_of_any_course(seed: int) -> None:
    """With several tasks, cohorts, runs, replays, findings and endings in any order."""
    draw = random.Random(seed)
    rule: dict[str, Any] = {"certify": {"rule": "noisy", "repeats": 5, "champion": 5}} if draw.random() < 0.5 else {}
    story = Story(task=rule).open(beside=draw.choice([None, "random"]))
    story.baseline(1.0)
    cohort, nodes = "c0ffee0000000000", ["1"]
    for _ in range(60):
        match draw.randint(0, 9):
            case 0:
                story.attempt(draw.choice(nodes), ending=draw.choice(list(Ending)))
            case 1:
                story.attempt(draw.choice(nodes))
            case 2 if cohort[0] == "c" and draw.random() < 0.3:
                cohort = "decaf00000000000"
                story.tell(e.CohortOpened(run=1, cohort=cohort, why="another machine"))
                story.score("1", {"score": 1.5}, cohort, purpose=Purpose.RERUN)
            case 3:
                again = draw.choice(nodes)
                story.score(
                    again, {"score": draw.random()}, cohort, purpose=draw.choice([Purpose.REPLAY, Purpose.REPEAT])
                )
            case 4:
                story.tell(e.AttemptQuarantined(node=story.opened("1"), ending=Ending.STALLED, why="still"))
            case _:
                told: dict[str, Any] = {"tasks": {"a": draw.random(), "b": draw.random()}} if seed % 3 else {}
                told |= {"suspect": ("score",)} if draw.random() < 0.1 else {}
                role = Role.CONTROL if draw.random() < 0.3 else Role.SEARCH
                kept = role is Role.SEARCH and draw.random() < 0.2
                value = round(draw.random(), 3)
                node = story.attempt(
                    draw.choice(nodes), value, kept=kept, role=role, cohort=cohort, verdict=told, ending=None
                )
                nodes.append(node)
                if draw.random() < 0.2:
                    story.tell(e.Reviewed(node=node, draft=1, finding=draw.choice(["flag", "pass"]), reasons=""))
    assert_same(story)


def test_the_status_makes_few_nodes() -> None:
    """Of those that ended it makes what it names, and of the others their lines."""
    story = Story().open()
    story.baseline(1.0)
    for number in range(50):
        story.attempt("1", 2.0, kept=number == 0)
    kept = Kept(story.state)
    shown(story, kept.glanced(), Place.STATUS)
    assert kept.all_of == []
    assert len(kept.read) < 20
    state = State.from_rows(kept.every, at_once=False)
    shown(story, state, Place.STATUS)
    whole = [node for node in state.node_lines() if not isinstance(node, NodeLine)]
    assert all(node.phase is Phase.ENDED for node in whole)
    assert len(whole) < 10


@pytest.mark.parametrize("told", [{}, {"tasks": {"a": 1.0}}], ids=["plain", "tasks"])
def test_the_chart_reads_few_nodes(told: dict[str, Any]) -> None:
    """Of most no more than a dot: those that a stair is made of, and those that are at work or were run again."""
    story = Story().open()
    story.baseline(1.0)
    for number in range(50):
        story.attempt("1", 2.0, kept=number == 0, verdict=told)
    story.attempt("1")
    story.score("1.7", {"score": 1.0}, purpose=Purpose.REPLAY)
    kept = Kept(story.state)
    drawn = kept.glanced(dotted=True)
    assert set(drawn.unfinished) == {"1.51"}
    assert series_of(drawn, Metric()) == series_of(story.state, Metric())
    assert kept.all_of == []
    assert set(kept.read) == {"1", "1.1", "1.7-1", "1.7-2"}


def test_the_chart_of_an_old_ledger() -> None:
    """Where openings were not numbered, all nodes are read, in the order of the clock."""
    story = Story()
    story.unnumbered = True
    story.open().baseline(1.0)
    for number in range(12):
        story.attempt("1", 2.0 + number, kept=number % 3 == 0)
    kept = Kept(story.state)
    drawn = kept.glanced(dotted=True)
    assert drawn.dotted() is None
    series = series_of(drawn, Metric())
    assert series == series_of(State.from_rows(kept.every), Metric())
    assert [point.node for point in series.points[:4]] == ["1", "1.1", "1.2", "1.3"]
    assert kept.all_of == ["node"]


def test_numbers_that_stand_twice() -> None:
    """They do not say which was opened first, so the clock does."""
    story = Story().open()
    story.baseline(1.0)
    for _ in range(3):
        story.attempt("1", 2.0)
    story.state.set_node("1.3", opened_order=story.state.nodes["1.1"].opened_order)
    assert story.state.dotted()
    assert [point.node for point in series_of(story.state, Metric()).points] == ["1", "1.1", "1.3", "1.2"]


@pytest.mark.parametrize("censused", [True, False])
def test_a_glance_at_a_ledger(tmp_path: Path, censused: bool) -> None:
    """It tells what all rows tell. One that an older version wrote, which kept no census, is read as a whole; else a
    row that nobody looks at is not read, and is found to be damaged when somebody does.
    """
    story = Story(tmp_path).open()
    story.baseline(1.0)
    for number in range(30):
        story.attempt("1", 2.0, kept=number == 0)
    if not censused:
        story.state.touched -= {key for key in story.state.touched if key[0] in ("census", "notable", "dots")}
    story.write()
    with read_campaign(tmp_path, glance=True) as some, read_campaign(tmp_path) as whole:
        assert (some.head, some.accounts) == (whole.head, whole.accounts)
        assert shown(story, some.state, Place.STATUS) == shown(story, whole.state, Place.STATUS)
        assert some.state.nodes.keys() == whole.state.nodes.keys()
        assert dict(some.state.trials) == dict(whole.state.trials)
    with Ledger.open(tmp_path / ".blastdoor" / "ledger.sqlite3") as ledger:
        ledger.seize("who damages it")
        ledger.append([Entry("noted", "{}")], {("node", "1.7"): "{"}, "then")
    opens = nullcontext() if censused else pytest.raises(ValidationError)
    with opens, read_campaign(tmp_path, glance=True) as some:
        shown(story, some.state, Place.STATUS)
        assert "1.7" in some.state.nodes
        assert "1.70" not in some.state.nodes
        with pytest.raises(ValidationError):
            some.state.node_lines()
        with pytest.raises(ValidationError):
            some.state.nodes["1.7"]
