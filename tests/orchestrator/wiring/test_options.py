"""E10: a flag wins over the campaign, that over the task, the user, the default; and each says where it is from."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from orchestrator.run_options import Flags
from orchestrator.settings import Settings
from orchestrator.task import Task, TaskError, load_task, write_template
from orchestrator.wiring.options import resolve


@pytest.fixture
def task(tmp_path: Path) -> Task:
    write_template(tmp_path / "t")
    loaded = load_task(tmp_path / "t")
    return loaded.model_copy(update={"budget": loaded.budget.model_copy(update={"attempts": 40})})


def test_order_of_places(task: Task) -> None:
    """Each place wins over all that come after it."""
    user = Settings(attempts=7)
    bare = task.model_copy(update={"budget": task.budget.model_copy(update={"attempts": None})})
    cases = [
        (resolve(Flags(attempts=1), task, user, {"attempts": 2}), 1, "flag"),
        (resolve(Flags(), task, user, {"attempts": 2}), 2, "campaign"),
        (resolve(Flags(), task, user), 40, "task"),
        (resolve(Flags(), bare, user), 7, "user"),
        (resolve(Flags(), bare, Settings()), 20, "default"),
    ]
    assert [(options["attempts"], options.sources["attempts"]) for options, _, _ in cases] == [
        (value, source) for _, value, source in cases
    ]


def test_said_place_by_place(task: Task) -> None:
    """What was typed is said first, what nobody chose last; width and depth are said with their reason elsewhere."""
    lines = resolve(Flags(seed=3, width=2), task, Settings(backend="docker")).inherited()
    assert lines[0] == "flag: seed 3"
    assert [line.split(":")[0] for line in lines] == ["flag", "task", "user", "default"]
    assert "attempts 40" in lines[1]
    assert lines[2] == "user: backend docker"


def test_what_a_flag_said_stays_with_the_campaign(task: Task) -> None:
    """A resume without flags goes on with what the run was started with."""
    started = resolve(Flags(attempts=3, width=2), task, Settings())
    again = resolve(Flags(width=5), task, Settings(), started.given())
    assert (again["attempts"], again.sources["attempts"]) == (3, "campaign")
    assert (again["width"], again.sources["width"]) == (5, "flag")


def test_zero_is_a_value(task: Task) -> None:
    """A cap of nothing is a cap."""
    assert resolve(Flags(tunes=0, usd=0.0), task, Settings())["usd"] == 0.0


def test_arms_that_do_not_exist(task: Task) -> None:
    """They are told of before an engine is looked for, wherever they were said, with the nearest name."""
    in_task = task.model_copy(update={"search": task.search.model_copy(update={"arms": ("tpe", "operatrs")})})
    for flags, said in ((Flags(arms=("operatrs",)), task), (Flags(), in_task)):
        with pytest.raises(TaskError, match=r'^search\.arms: .*not "operatrs"; did you mean "operators"\?$'):
            resolve(flags, said, Settings())
    with pytest.raises(ValidationError, match="names nothing; write names with commas between them"):
        Flags.model_validate({"arms": " , "})
