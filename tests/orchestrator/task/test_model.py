"""A task as a value: stored and restored exactly, compared key by key."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.change import Policy
from orchestrator.domain.metric import Goal, Metric
from orchestrator.domain.verdict import Mode
from orchestrator.task import (
    Bool,
    Budget,
    Choice,
    Float,
    GuardSpec,
    Int,
    JudgeSpec,
    MetricSpec,
    Parameters,
    Repository,
    Task,
    TaskError,
    Trial,
    Tune,
    diff_of,
    load_task,
)
from sandbox import Gpu, Limits
from tests.orchestrator.task.conftest import Make

TASK = Task(
    name="sample",
    statement="Do it.\n\u00e9\u2028",
    editable=("solve.py", "src/**"),
    hidden=("secret.py",),
    trial=Trial(command=("python3", "solve.py"), env={"B": "2", "A": "1"}),
    inputs={"digits": "data/digits.csv"},
    limits=Limits(wall=90, gpu=Gpu(kind="A100", count=2)),
    judge=JudgeSpec(command=("python3", "judge.py")),
    metrics=(MetricSpec(name="error", goal=Goal.LOWER, target=0.1),),
)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text("abc", min_size=1, max_size=5)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
INTS = st.integers(-(2**53), 2**53 - 1).map(lambda low: Int(low=low, high=2**53))
FLOATS = st.tuples(FINITE, FINITE).filter(lambda pair: pair[0] < pair[1]).map(lambda p: Float(low=p[0], high=p[1]))
VALUES = st.one_of(st.booleans(), st.integers(-5, 5), FINITE, TEXTS)
CHOICES = st.lists(VALUES, min_size=1, max_size=5, unique_by=json.dumps).map(lambda v: Choice(values=tuple(v)))
SPACES = st.dictionaries(WORDS, st.one_of(INTS, FLOATS, CHOICES, st.just(Bool())), min_size=1, max_size=5)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    return Task(
        name=draw(WORDS),
        statement=draw(TEXTS),
        workspace=draw(st.one_of(WORDS, st.builds(Repository, repository=WORDS, folder=WORDS))),
        editable=tuple(draw(st.lists(WORDS, min_size=1, max_size=3))),
        trial=Trial(command=("x", draw(TEXTS)), env=draw(st.dictionaries(WORDS, TEXTS, max_size=3))),
        limits=Limits(wall=draw(st.floats(1e-3, 1e5)), cpus=draw(st.floats(0.01, 64))),
        judge=JudgeSpec(command=(draw(WORDS),), gold=draw(st.none() | WORDS)),
        metrics=(MetricSpec(name=draw(WORDS), weight=draw(st.floats(1e-9, 1e9)), target=draw(st.none() | FINITE)),),
        parameters=draw(st.none() | st.builds(Parameters, file=WORDS, space=SPACES)),
        tune=draw(st.none() | st.builds(Tune, command=st.just(("quick",)), limits=st.none() | st.just(Limits(wall=1)))),
        guards=tuple(draw(st.lists(st.builds(GuardSpec, name=WORDS, command=st.just(("x",))), max_size=2))),
        budget=Budget(usd=draw(st.none() | st.floats(0, 1e6)), seconds=draw(st.none() | st.floats(0.1, 1e6))),
    )


@given(tasks())
def test_round_trip(task: Task) -> None:
    """What is stored is restored to an equal value with the same text, whatever the numbers are."""
    text = task.canonical()
    back = Task.from_canonical(text)
    assert back == task
    assert back.canonical() == text
    assert back.plain() == task.plain()
    assert (back.digest, hash(back)) == (task.digest, hash(task))
    assert diff_of(task, back) == []


def test_round_trip_keeps_the_order_of_parameters() -> None:
    """A grid goes through the parameters in one order, before and after a restart, however they were written."""
    space = {"b": Bool(), "a": Int(low=1, high=2)}
    task = TASK.model_copy(update={"parameters": Parameters(file="solve.py", space=space)})
    back = Task.from_canonical(task.canonical())
    assert task.parameters
    assert back.parameters
    assert list(task.parameters.space) == list(back.parameters.space) == ["a", "b"]


def test_rate_round_trip(make: Make) -> None:
    """A rate is stored with its unit, as a bare number would be refused."""
    task = load_task(make("[budget]\nrate = '100/h'"))
    assert json.loads(task.canonical())["budget"]["rate"] == f"{100 / 3600!r}/s"
    assert Task.from_canonical(task.canonical()).budget.rate == 100 / 3600
    assert task.budget.model_dump()["rate"] == 100 / 3600


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"name": "x"}', TASK.canonical()[:-1]])
def test_what_is_no_stored_task(text: str) -> None:
    """A damaged record is one line, not a trace."""
    with pytest.raises(TaskError, match=r"^the stored task cannot be read .*; start a new run$"):
        Task.from_canonical(text)


def test_differences() -> None:
    """The keys that changed, dotted, as in the message that asks for a new run."""
    new = TASK.model_copy(
        update={
            "judge": JudgeSpec(command=("python3", "other.py")),
            "limits": Limits(wall=60, gpu=None),
            "trial": Trial(command=TASK.trial.command, env={"A": "1", "C": "3"}),
            "metrics": (MetricSpec(name="error"),),
            "tune": Tune(command=("quick",)),
        }
    )
    changed = "trial.env.B trial.env.C limits.wall limits.gpu judge.command metrics tune"
    assert diff_of(TASK, new) == changed.split()


def test_number_and_text_differ() -> None:
    """1, 1.0, true and "1" are four values."""
    values = [Choice(values=(value,)) for value in (1, 1.0, True, "1")]
    made = [TASK.model_copy(update={"parameters": Parameters(file="solve.py", space={"a": value})}) for value in values]
    assert len({task.digest for task in made}) == 4
    assert diff_of(made[0], made[1]) == ["parameters.space.a.values"]


def test_what_others_make_of_it() -> None:
    """What an agent may change comes from the task, and verdicts are ranked by its metrics."""
    assert TASK.policy() == Policy(editable=("solve.py", "src/**"), hidden=("secret.py",))
    assert TASK.metrics[0].metric() == Metric(name="error", goal=Goal.LOWER, target=0.1)


def test_target_of_tune() -> None:
    """Tune replaces what it names; variables and inputs name by name. Without a cheaper target it runs the real one."""
    tune = Tune(env={"B": "9"}, inputs={"digits": "data/few.csv"}, judge=("j",))
    target = TASK.model_copy(update={"tune": tune}).target(Mode.TUNE)
    assert (target.command, target.judge, target.limits) == (TASK.trial.command, ("j",), TASK.limits)
    assert (target.env, target.inputs) == ({"A": "1", "B": "9"}, {"digits": "data/few.csv"})
    assert TASK.target(Mode.TUNE) == TASK.target(Mode.SUBMIT)
    assert TASK.target(Mode.SUBMIT).command == ("python3", "solve.py")


def test_digest_knows_no_folder(make: Make, tmp_path: Path) -> None:
    """The same task has the same digest wherever it lies."""
    folder = make()
    before = load_task(folder).digest
    assert load_task(folder.rename(tmp_path / "moved")).digest == before
