"""Regions in the task file: what is read, what is refused, and where they hold."""

import pytest

from orchestrator.change import Refusal, Tree
from orchestrator.change.canonical import difference
from orchestrator.domain.proposal import Proposal
from orchestrator.examine.gate import refused
from orchestrator.loop.candidate import next_tree
from orchestrator.minimise.pieces import Pieces
from orchestrator.task import Task, TaskError, load_task
from orchestrator.task.snapshot import snapshot
from tests.orchestrator.task.conftest import Make

MARKED = "CASES = [1]\n# X-START\nprint(1)\n# X-END\n\n\ndef solve(x):\n    return x\n"


def with_editable(make: Make, entries: str, text: str = MARKED, more: str = "") -> Task:
    folder = make(more, replaced=('["solve.py", "params.json"]', entries))
    (folder / "workspace" / "solve.py").write_text(text, newline="")
    task = load_task(folder)
    snapshot(task, folder)
    return task


def test_read_and_kept(make: Make) -> None:
    """Both spellings are read, and stand in the stored task as they were written; a task without regions says what it
    always said. A part of a file cannot be hidden: the entry is a path there.
    """
    task = with_editable(make, '["solve.py:X", "solve.py::solve"]')
    assert Task.from_canonical(task.canonical()) == task
    assert (set(task.policy().regions), task.warnings) == ({"solve.py"}, ())
    assert load_task(make()).plain()["editable"] == ["solve.py", "params.json"]
    with pytest.raises(TaskError, match="unsafe name"):
        load_task(make(replaced=("[trial]", 'hidden = ["solve.py:X"]\n[trial]')))


@pytest.mark.parametrize(
    ("entries", "text", "told"),
    [
        ('["solve.py:X"]', "print(1)\n", "it has no marks X-START and X-END"),
        ('["solve.py:X"]', "# X-START\n# X-START\n# X-END\n", "is followed by another one in line 2"),
        ('["solve.py:X"]', "# X-START\n", "has no X-END behind it"),
        ('["solve.py::run"]', MARKED, "it has no function or class run"),
        ('["solve.py::solve"]', "def solve(): 1\ndef solve(): 2\n", "more than once, in the lines 1 and 2"),
        ('["solve.py::solve"]', "def solve(\n", "it cannot be read as Python"),
        ('["solve.py:X"]', "# X-START\r# X-END\n", "carriage return within a line"),
        ('["solve.py:X", "solve.py"]', MARKED, "is editable as a whole too"),
        ('["gone.py:X"]', MARKED, '"gone.py" is not in the workspace; a region is in a file that is'),
        ('["*.py:X"]', MARKED, "write its exact path before the colon"),
        ('["solve.c::x"]', MARKED, "functions are found in Python files only"),
    ],
)
def test_refused(make: Make, entries: str, text: str, told: str) -> None:
    """One line with file, line and key, and what is wrong."""
    with pytest.raises(TaskError) as caught:
        with_editable(make, entries, text)
    message = str(caught.value)
    assert told in message
    assert "blastdoor.toml:3: editable" in message
    assert "\n" not in message


SPACE = """
[parameters]
file = "params.json"
[parameters.space.a]
type = "int"
low = 1
high = 9
"""


def test_parameters_are_written_whole(make: Make) -> None:
    """The file of the parameters has no regions; and where a stored task has one, a point is refused."""
    folder = make(SPACE, replaced=('"params.json"', '"params.json:X"'))
    (folder / "workspace" / "params.json").write_text("// X-START\n// X-END\n")
    with pytest.raises(TaskError, match="written as a whole"):
        load_task(folder)
    task = load_task(make(SPACE)).model_copy(update={"editable": ("params.json:X",)})
    tree = Tree.of({"params.json": "// X-START\n// X-END\n"})
    with pytest.raises(Refusal, match=r"not editable: params\.json"):
        next_tree(tree, Proposal(operator="grid", description="a=2", params={"a": 2}), task.policy(), task.parameters)


def test_minimising_keeps_to_regions(make: Make) -> None:
    """A selection of a winner's edits that reaches out of the region is none."""
    policy = with_editable(make, '["solve.py:X"]').policy()
    old = Tree.of({"solve.py": "a = 1\n# X-START\nb = 1\n# X-END\nc = 1\n"})
    new = Tree.of({"solve.py": "a = 2\n# X-START\nb = 2\n# X-END\nc = 1\n"})
    free, kept = Pieces(old, new), Pieces(old, new, policy=policy)
    outside, inside = frozenset([0]), frozenset([1])
    assert [free.tree(it) is None for it in (outside, inside)] == [False, False]
    assert [kept.tree(it) is None for it in (outside, inside)] == [True, False]


COMBINED = """
[combine]
editable = ["vote.py:X"]
trial = {command = ["python3", "vote.py"]}
"""


@pytest.mark.parametrize("text", ["# X-START\n# X-END\n", "print(1)\n"])
def test_combinations_have_regions_of_their_own(make: Make, text: str) -> None:
    """They are looked for in the combination's own workspace, and hold for its task."""
    folder = make(COMBINED)
    (folder / "combine").mkdir()
    (folder / "combine" / "vote.py").write_text(text)
    if "X-START" in text:
        task = load_task(folder)
        assert (set(task.policy().regions), set(task.combination().policy().regions)) == (set(), {"vote.py"})
    else:
        with pytest.raises(TaskError, match=r"combine\.editable.*it has no marks X-START and X-END"):
            load_task(folder)


def test_T93_a_gate_refuses_what_is_outside(make: Make) -> None:
    """The diff of a stranger is rejected before anything runs, and the line says what it touched."""
    policy = with_editable(make, '["solve.py:X"]').policy()
    tree = Tree.of({"solve.py": MARKED})
    inside, outside = (tree_with(it) for it in (("print(1)", "print(2)"), ("CASES = [1]", "CASES = []")))
    assert refused(tree, difference(tree, inside).encode(), policy) is None
    gated = refused(tree, difference(tree, outside).encode(), policy)
    assert gated is not None
    assert "not editable: solve.py: line 1 of the new file is outside its regions and differs" in gated.why


def tree_with(replaced: tuple[str, str]) -> Tree:
    return Tree.of({"solve.py": MARKED.replace(*replaced)})
