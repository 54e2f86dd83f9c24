"""A line that answers what it was given, and a task to ask about; what was asked is kept to be looked at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.change import Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.domain.ending import Ending
from orchestrator.domain.model_use import Tokens
from orchestrator.domain.proposal import Proposal, Value
from orchestrator.llm.line import Answer, App
from orchestrator.proposers import Brief, Tried
from orchestrator.task import Task

SOLVE = "def solve(x):\n    total = 0\n    for one in x:\n        total += one\n    return total\n"
NOTES = "Do not touch.\n"


@dataclass(frozen=True)
class Asked:
    system: tuple[str, ...]
    messages: tuple[Mapping[str, Any], ...]
    max_tokens: int
    model: str | None = None
    temperature: float | None = None
    thinking: int | None = None

    @property
    def last(self) -> str:
        return str(self.messages[-1]["content"])

    @property
    def text(self) -> str:
        return "\n".join([*self.system, *(str(it["content"]) for it in self.messages)])


class ScriptedLine:
    """Gives one entry an asking: a text, a whole answer, or an error that is raised."""

    token = "a token of its own"
    unanswered = False
    refusal = None
    barred = None
    models: Sequence[str] = ("claude-test",)

    def __init__(self, *entries: str | Answer | Exception) -> None:
        self._entries = list(entries)
        self.asked: list[Asked] = []

    @property
    def app(self) -> App:
        raise NotImplementedError

    async def ask(
        self,
        *,
        system: Sequence[str],
        messages: Sequence[Mapping[str, Any]],
        max_tokens: int,
        model: str | None = None,
        thinking: int | None = None,
        temperature: float | None = None,
    ) -> Answer:
        self.asked.append(Asked(tuple(system), tuple(messages), max_tokens, model, temperature, thinking))
        entry = self._entries.pop(0)
        if isinstance(entry, Exception):
            raise entry
        return entry if isinstance(entry, Answer) else answer(entry)


def answer(text: str, stop: str = "end_turn") -> Answer:
    return Answer(text=text, model="claude-test", stop=stop, tokens=Tokens(input=100, output=20))


def block(old: str, new: str, path: str = "solve.py") -> str:
    return f"{path}\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n"


def change(said: str, old: str, new: str, path: str = "solve.py") -> str:
    return f"=== change: {said}\n{block(old, new, path)}\n"


def make_task(**more: Any) -> Task:
    plain: dict[str, Any] = {
        "name": "sums",
        "statement": "Add the numbers up, fast.",
        "editable": ["*.py"],
        "hidden": ["secret_*.py"],
        "trial": {"command": ["python3", "solve.py"]},
        "judge": {"command": ["python3", "judge_of_gold.py"]},
        "metrics": [{"name": "error", "goal": "lower"}],
        **more,
    }
    return Task.model_validate(plain)


TREE = Tree.of({"solve.py": SOLVE, "notes.txt": NOTES, "secret_answers.py": "GOLD = 42\n"})
ROOT = Tried("1", 1, "", "", "", None, (-12.345678,), None, kept=True, ending=Ending.SCORED)


class Past:
    """What a test says was tried."""

    def __init__(self, *ended: Tried, running: Sequence[Tried] = (), trees: Mapping[str, Tree] | None = None) -> None:
        self.ended, self.running = list(ended), list(running)
        self._trees = trees or {}

    def knows(self, digest: str) -> bool:
        del digest
        return False

    def tree(self, node: str) -> Tree:
        return self._trees[node]


def tried(
    number: int,
    said: str = "a change",
    merit: float | None = None,
    *,
    parent: str = "1",
    operator: str = "improve",
    ending: Ending | None = None,
    fault: str = "",
    params: Mapping[str, Value] | None = None,
) -> Tried:
    return Tried(
        node=f"{parent}.{number}",
        number=number,
        parent=parent,
        operator=operator,
        description=said,
        params=params,
        merits=None if merit is None else (merit,),
        parent_merits=(-12.0,),
        ending=ending or (Ending.SCORED if merit is not None else Ending.FAILED),
        fault=fault,
    )


def brief_of(task: Task, line: ScriptedLine | None = None, **changes: Any) -> Brief:
    tree = changes.pop("tree", TREE)

    def refusal(proposal: Proposal) -> str | None:
        try:
            if proposal.text is not None:
                apply_text(tree, proposal.text, task.policy())
        except Refusal as refused:
            return str(refused)
        return None

    fixed = {"node": "1.9", "parent": "1", "number": 9, "seed": 7, "tree": tree, "lineage": [ROOT], "line": line}
    return Brief(**{**fixed, "refusal": refusal, **changes})
