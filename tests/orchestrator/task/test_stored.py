"""A task as a run stored it: what results are read by, without all of it, and all of it."""

import json

import pytest

import orchestrator.task
from orchestrator.domain.metric import Ranking
from orchestrator.task import StoredTask, TaskError, load_task
from tests.orchestrator.task.conftest import Make

TASK = """
[[metrics]]
name = "time"
goal = "lower"
ceiling = 0.1
[[metrics]]
name = "score"
weight = 2
[ranking]
rule = "pareto"
[certify]
rule = "strict"
[search]
selection = "tournament"
[roles.verifier]
"""


def test_every_name_of_the_face_is_found() -> None:
    """Each promised name has a home, each name with a home is promised, and each can be had."""
    face = orchestrator.task
    assert set(face.__all__) == set(face.HOME_OF)
    assert all(getattr(face, name) is not None for name in face.__all__)
    with pytest.raises(AttributeError, match="Taks"):
        _ = face.Taks


def test_criteria_are_those_of_the_task(make: Make) -> None:
    """Both readings of a stored task say the same."""
    task = load_task(make(TASK))
    stored = StoredTask(task.canonical())
    assert stored.whole == task
    metrics = tuple(spec.metric() for spec in task.metrics)
    assert stored.criteria.order == Ranking(metrics, task.ranking.rule)
    assert stored.criteria.judge.mode is task.judge.mode
    assert stored.criteria.search.selection == task.search.selection == "tournament"
    assert stored.criteria.roles.verifier
    assert not stored.criteria.roles.evolver


@pytest.mark.parametrize("spoil", [{"metrics": [{"goal": "sideways"}]}, {"judge": {"mode": "guess"}}, {"ranking": 1}])
def test_a_stored_task_that_cannot_be_read(make: Make, spoil: dict[str, object]) -> None:
    """Either reading says in one line what is wrong and what to do."""
    plain = json.loads(load_task(make(TASK)).canonical()) | spoil
    stored = StoredTask(json.dumps(plain))
    with pytest.raises(TaskError, match=r"the stored task cannot be read \(.*; start a new run"):
        stored.criteria  # noqa: B018 - read when it is asked for
    with pytest.raises(TaskError, match=r"the stored task cannot be read \(.*; start a new run"):
        stored.whole  # noqa: B018 - the same
