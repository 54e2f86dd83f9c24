"""The proposer: draws an operator and a place until something new comes of it."""

import random
from collections.abc import Mapping, Sequence

from orchestrator.change import File, Policy, Refusal, Tree, apply_text, difference
from orchestrator.domain.proposal import Proposal
from orchestrator.proposers.base import Brief, Exhausted
from orchestrator.proposers.operators.code import read_code
from orchestrator.proposers.operators.edit import Edit, told_path
from orchestrator.proposers.operators.files import Target, editable_texts
from orchestrator.proposers.operators.hints import Donor, Hints, pick
from orchestrator.proposers.operators.lines import Page
from orchestrator.proposers.operators.meaning import is_python, means_else
from orchestrator.proposers.operators.memory import Memory
from orchestrator.proposers.operators.table import ON_CODE, ON_LINES, OnCode, OnLines

DRAWS = 60  # for one proposal, and twenty more for each further one
_CURIOUS = 0.25  # share of draws that asks nobody which operator does well
_NOT_AGAIN = 0.3  # how much less likely a direction becomes with each step in it that did not help
_BOLD = 2 / 3  # after so much of the draws, nothing that was learnt counts any more


class Operators:
    """Not serial: a proposal costs milliseconds, and branches that do not wait for each other find more by the hour.

    What is under way is known as well, so that none is proposed twice.
    """

    serial = False
    branching = True

    def __init__(
        self,
        policy: Policy,
        left_out: str | None = None,
        *,
        adaptive: bool = True,
        on_code: Mapping[str, OnCode] = ON_CODE,
        on_lines: Mapping[str, OnLines] = ON_LINES,
    ) -> None:
        """`left_out` is the file of [parameters], which samplers look after. The rest is for comparisons."""
        self._policy = policy
        self._left_out = left_out
        self._adaptive = adaptive
        self._on_code, self._on_lines = on_code, on_lines
        self._memory = Memory()

    def exhausted(self, number: int) -> str | None:
        del number  # only a tree tells
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        targets = editable_texts(brief.tree, self._policy, self._left_out)
        if not targets:
            raise Exhausted("no editable file is text, so there is nothing for operators to change")
        self._memory.learn(brief.past.ended if self._adaptive else ())
        # Not for secrets: the seed is in the ledger.
        rng = random.Random(f"operators/{brief.seed}/{brief.number}/{brief.again}")  # noqa: S311
        found: dict[str, Proposal] = {}
        draws = DRAWS + 20 * (brief.count - 1)
        for draw in range(draws):
            drawn = self._draw(brief, targets, rng, bold=draw >= _BOLD * draws)
            if drawn and not brief.past.knows(drawn[0]) and drawn[0] not in found:
                found[drawn[0]] = drawn[1]
            if len(found) == brief.count:
                break
        if not found:
            raise Exhausted(f"operators found nothing new on {brief.parent} in {draws} draws")
        return list(found.values())

    def _draw(
        self, brief: Brief, targets: Sequence[Target], rng: random.Random, *, bold: bool
    ) -> tuple[str, Proposal] | None:
        """A proposal and the digest of the tree that it makes; None where a draw comes to nothing."""
        memory = Memory() if bold else self._memory
        target = pick(rng, targets, lambda it: it.weight * memory.of_file(told_path(it.path)))
        if target is None:
            return None
        name, edit = self._edited(brief, target, memory, rng)
        if edit is None or not means_else(target.path, target.data, edit.data):
            return None
        description = edit.description(target.path)
        new = Tree({**brief.tree, target.path: File(edit.data, brief.tree[target.path].executable)})
        text = difference(brief.tree, new)
        try:
            made = apply_text(brief.tree, text, self._policy)
        except Refusal:
            return None  # too large, or lines that look like another form of change
        return made.digest, Proposal(operator=name, description=description, text=text)

    def _edited(self, brief: Brief, target: Target, memory: Memory, rng: random.Random) -> tuple[str, Edit | None]:
        hints = self._hints(brief, target.path, memory, rng)
        code = read_code(target.data) if self._on_code and is_python(target.path) else None
        if code is not None:
            name = _chosen(self._on_code, memory, rng)
            return name, self._on_code[name].work(code, rng, hints)
        name = _chosen(self._on_lines, memory, rng)
        return name, self._on_lines[name].work(Page(target.path, target.data), rng, hints)

    def _hints(self, brief: Brief, path: str, memory: Memory, rng: random.Random) -> Hints:
        told = told_path(path)

        def donors() -> list[Donor]:
            known = pick(rng, memory.donors(brief.parent), lambda _: 1.0)
            data = _file(brief, known.node, path) if known else None
            if known is None or data is None:
                return []
            return [Donor(known.node, data, _file(brief, known.parent, path))]

        earlier = memory.improving_parent(brief.parent)
        if rng.random() > _NOT_AGAIN ** memory.went_on(brief.parent):
            earlier = None
        return Hints(
            step=lambda kind: memory.step(told, kind),
            favour=lambda owner: memory.of_owner(told, owner),
            dull=lambda owner, number: memory.dull(told, owner, number),
            donors=donors,
            before=_file(brief, earlier, path) if earlier is not None else None,
        )


def _chosen(table: Mapping[str, OnCode] | Mapping[str, OnLines], memory: Memory, rng: random.Random) -> str:
    names = list(table)
    asks = rng.random() >= _CURIOUS
    name = pick(rng, names, lambda it: table[it].weight * (memory.of_operator(it) if asks else 1.0))
    return name or names[0]


def _file(brief: Brief, node: str, path: str) -> bytes | None:
    try:
        file = brief.past.tree(node).get(path)
    except LookupError:
        return None
    return file.data if file else None
