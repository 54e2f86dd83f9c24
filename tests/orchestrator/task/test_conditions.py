"""Conditions of parameters in the task file: what cannot be is told in one line."""

import pytest

from orchestrator.task import Task, load_task
from tests.orchestrator.task.conftest import NEXT, Make
from tests.orchestrator.task.test_crosschecks import told

HEAD = """[parameters]
file = "params.json"
[parameters.space]
layout = {type = "choice", values = ["hex", "rings", 1]}
rows = {type = "int", low = 1, high = 9, step = 2, when = {layout = ["hex", 1]}}
rate = {type = "float", low = 0.0, high = 1.0}
flag = {type = "bool"}
"""
LINE = NEXT + HEAD.count("\n")

BAD = [
    ("{type = 'bool', when = {lay = ['hex']}}", ".lay: is no parameter of the space; did you mean layout?"),
    ("{type = 'bool', when = {zzzz = ['hex']}}", ".zzzz: is no parameter of the space; name one of them"),
    ("{type = 'bool', when = {a = [true]}}", ".a: is the parameter itself; name another one"),
    ("{type = 'bool', when = {rate = [0.5]}}", ".rate: is a float, which has no values to list; name a choice, "
     "an int or a bool"),
    ("{type = 'bool', when = {layout = ['hexagon']}}", '.layout: "hexagon" is no value of layout; write one that it '
     "can have"),
    ("{type = 'bool', when = {layout = [1.0]}}", ".layout: 1.0 is no value of layout; write one that it can have"),
    ("{type = 'bool', when = {rows = [2]}}", ".rows: 2 is no value of rows; write one that it can have"),
    ("{type = 'bool', when = {rows = [true]}}", ".rows: true is no value of rows; write one that it can have"),
    ("{type = 'bool', when = {flag = [1]}}", ".flag: 1 is no value of flag; write one that it can have"),
    ("{type = 'bool', when = {rows = [3], layout = ['rings']}}", ": can never hold: it asks for different values of "
     "layout at once; change one of them"),
    ("{type = 'bool', when = {layout = []}}", ".layout: is too short; the least is 1"),
    ("{type = 'bool', when = {layout = 'hex'}}", '.layout: must be a list in brackets, not "hex"'),
    ("{type = 'bool', when = ['layout']}", ": must be a table, not a list"),
]  # fmt: skip


@pytest.mark.parametrize(("parameter", "message"), BAD)
def test_conditions_that_can_not_be(make: Make, parameter: str, message: str) -> None:
    """What names nothing, can never hold or is of the wrong kind: its line, its key, and what to do."""
    assert told(make(f"{HEAD}a = {parameter}\n")) == f"blastdoor.toml:{LINE}: parameters.space.a.when{message}"


def test_conditions_in_a_circle(make: Make) -> None:
    """The way round is told."""
    more = (
        'a = {type = "bool", when = {b = [true]}}\nb = {type = "bool", when = {c = [true]}}\n'
        'c = {type = "bool", when = {a = [true], flag = [true]}}\n'
    )
    assert told(make(HEAD + more)) == (
        f"blastdoor.toml:{LINE}: parameters.space.a.when: goes in a circle (a needs b needs c needs a); "
        "remove one of the conditions"
    )


def test_conditions_that_go_too_deep(make: Make) -> None:
    """A chain has an end."""
    chain = "".join(f'b{at:02} = {{type = "bool", when = {{b{at - 1:02} = [true]}}}}\n' for at in range(1, 20))
    said = told(make(HEAD + 'b00 = {type = "bool"}\n' + chain))
    assert said.endswith("parameters.space.b17.when: depends on 17 others; 16 are the most, so use fewer")


def test_conditions_are_stored_with_the_task(make: Make) -> None:
    """A stored task reads back as the same, and one that was stored before there were conditions has none."""
    task = load_task(make(HEAD))
    assert task.parameters
    assert task.parameters.space["rows"].when == {"layout": ("hex", 1)}
    assert Task.from_canonical(task.canonical()) == task
    old = task.canonical().replace('"when":{},', "").replace(',"when":{}', "")
    assert '"when":{}' not in old
    assert Task.from_canonical(old) == task
