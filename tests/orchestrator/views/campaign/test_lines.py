"""What is said of a campaign of which most nodes are read no further than a line is what is said of the whole."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain import events as e
from orchestrator.domain.ending import Ending
from orchestrator.domain.lines import NodeLine
from orchestrator.domain.records import Phase, Purpose, Role
from orchestrator.domain.state import State
from orchestrator.views.campaign.opening import json_text
from orchestrator.views.campaign.sections import Place, sections
from orchestrator.views.render.data import record
from orchestrator.views.render.layout import plain
from orchestrator.views.render.terminal import Terminal
from tests.orchestrator.views.campaign.builder import Story, material
from tests.orchestrator.views.campaign.kinds import KINDS, OTHERS


def shown(story: Story, state: State, place: Place) -> tuple[str, list[str]]:
    made = sections(replace(material(story), state=state, run=state.run), place)
    return json_text(record(made), None), [plain(line) for line in Terminal(100).digest(made)]


def assert_same(story: Story) -> None:
    rows = {(kind, name): "" for kind, records in story.state._records.items() for name in records}
    told = {key: body for key in rows if (body := story.state.row(key))}
    for place in Place:
        late = State.from_rows(told, at_once=False)
        assert late.unfinished.keys() == story.state.unfinished.keys()
        assert late.children == story.state.children
        assert shown(story, late, place) == shown(story, State.from_rows(told), place)


@pytest.mark.parametrize("kind", [*KINDS, *OTHERS], ids=lambda kind: kind.__name__)
def test_of_each_kind(kind: Callable[[], Story]) -> None:
    """Whatever a campaign had: a control, noise, models, pruning, a held-out split, islands, parts."""
    assert_same(kind())


@pytest.mark.parametrize("seed", range(12))
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
    rows = {(kind, name): "" for kind, records in story.state._records.items() for name in records}
    state = State.from_rows({key: story.state.row(key) or "" for key in rows}, at_once=False)
    shown(story, state, Place.STATUS)
    whole = [node for node in state.node_lines() if not isinstance(node, NodeLine)]
    assert all(node.phase is Phase.ENDED for node in whole)
    assert len(whole) < 10
