"""The proposer: draws an operator and a place until something new comes of it."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from orchestrator.change import File, Policy, Refusal, Tree
from orchestrator.change.applying import apply_text
from orchestrator.change.canonical import difference
from orchestrator.domain.proposal import Proposal
from orchestrator.meta.chooser import IN_SIGHT, Chooser
from orchestrator.offload import offload
from orchestrator.proposers.base import Brief, Computed, Exhausted
from orchestrator.proposers.operators.code import read_code
from orchestrator.proposers.operators.edit import Edit, read_description, told_path
from orchestrator.proposers.operators.files import Target, editable_texts
from orchestrator.proposers.operators.ground import UNREACHED, Ground
from orchestrator.proposers.operators.hints import Donor, Hints, pick
from orchestrator.proposers.operators.lines import Page
from orchestrator.proposers.operators.meaning import is_python, means_else
from orchestrator.proposers.operators.memory import Memory
from orchestrator.proposers.operators.numbers import LEAST_STEP, MOST_STEP
from orchestrator.proposers.operators.table import ON_CODE, ON_LINES, OnCode, OnLines

DRAWS = 80  # for one proposal, and twenty more for each further one
_IDLE = 2
_NOT_AGAIN = 0.3  # how much less likely a direction becomes with each step in it that did not help
_HOT_FIRST = 0.5  # share of draws that leave out what takes the time, until that was seen to fail
_CUTS = {"delete": 2.0, "loop": 1.0}
_BOLD = 2 / 3  # after so much of the draws, nothing that was learnt counts any more


class Operators(Computed):
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
        self._tables = Tables(on_code, on_lines)
        self._memory = Memory()
        self._turn = asyncio.Lock()

    def exhausted(self, number: int) -> str | None:
        del number  # only a tree tells
        return None

    async def propose(self, brief: Brief) -> Sequence[Proposal]:
        """In a thread, since it is the candidates that made the files; one at a time, since they share a memory."""
        async with self._turn:
            return await offload(self._drawn, brief)

    def _drawn(self, brief: Brief) -> Sequence[Proposal]:
        targets = editable_texts(brief.tree, self._policy, self._left_out)
        if not targets:
            raise Exhausted("no editable file is text, so there is nothing for operators to change")
        self._memory.learn(brief.past.ended)
        # Not for secrets: the seed is in the ledger.
        rng = random.Random(f"operators/{brief.seed}/{brief.number}/{brief.again}")  # noqa: S311
        drawing = Drawing(brief, targets, self._tables, rng)
        found: dict[str, Proposal] = {}
        draws = DRAWS + 20 * (brief.count - 1)
        for draw in range(draws):
            is_bold = not self._adaptive or draw >= _BOLD * draws
            drawn = drawing.draw(Memory() if is_bold else self._memory, bold=is_bold)
            made = self._proposal(brief, drawn) if drawn else None
            if made and not brief.past.knows(made[0]):
                found.setdefault(*made)
            if len(found) == brief.count:
                break
        if not found:
            raise Exhausted(f"operators found nothing new on {brief.parent} in {draws} draws")
        return list(found.values())

    def _proposal(self, brief: Brief, one: "Draw") -> tuple[str, Proposal] | None:
        """With the digest of the tree that it makes; None where nothing comes of it."""
        path, edit = one.path, one.edit
        before = brief.tree[path]
        if not means_else(path, before.data, edit.data):
            return None
        text = difference(brief.tree, Tree({**brief.tree, path: File(edit.data, before.executable)}))
        try:
            made = apply_text(brief.tree, text, self._policy)
        except Refusal:
            return None  # too large, or lines that look like another form of change
        said = edit.description(path)
        return made.digest, Proposal(operator=one.operator, description=said, text=text, drawn=one.chooser.drawn)


@dataclass(frozen=True)
class Tables:
    on_code: Mapping[str, OnCode]
    on_lines: Mapping[str, OnLines]


@dataclass(frozen=True)
class Draw:
    """A file, an operator and what it makes of it; the chooser knows how that came about."""

    path: str
    operator: str
    edit: Edit
    chooser: Chooser


class Drawing:
    """The draws for one brief. An operator that finds nothing to do in a file, twice, is not asked there again."""

    def __init__(self, brief: Brief, targets: Sequence[Target], tables: Tables, rng: random.Random) -> None:
        self._brief = brief
        self._targets = targets
        self._tables = tables
        self._rng = rng
        self._idle: Counter[tuple[str, str]] = Counter()
        self._grounds: dict[str, Ground | None] = {}

    @cached_property
    def _under_way(self) -> Counter[tuple[str, str]]:
        """How many attempts that have not ended change each place; of the last ones, where there are very many."""
        told = (read_description(it.description) for it in self._brief.past.running[-IN_SIGHT:])
        return Counter((it.path, it.owner) for it in told)

    def draw(self, memory: Memory, *, bold: bool) -> Draw | None:
        """`bold`: whatever operators were worth of late."""
        chooser = self._brief.chooser.fork()
        cuts = self._cuts(None if bold else chooser)
        target = pick(self._rng, self._targets, lambda it: self._weight(it, memory, cuts=cuts))
        if target is None:
            return None
        ground = self._ground(target)
        hints = self._hints(target.path, memory, chooser)
        if cuts and ground:
            hints = replace(hints, heat=ground.heat)
        code = (
            read_code(target.data, target.path, target.regions)
            if self._tables.on_code and is_python(target.path)
            else None
        )
        table = self._tables.on_lines if code is None else self._tables.on_code
        if cuts:
            name = chooser.choose("operator", {it: weight for it, weight in _CUTS.items() if it in table}, self._rng)
        else:
            name = self._operator(target.path, table, chooser, bold=bold)
        if name is None:
            return None
        edit = (
            self._tables.on_lines[name].work(Page(target.path, target.data, target.regions), self._rng, hints)
            if code is None
            else self._tables.on_code[name].work(code, self._rng, hints)
        )
        if edit is None:
            self._idle[target.path, name] += not cuts
            return None
        if ground and self._rng.random() >= ground.chance(edit.data):
            return None
        if chooser.learns and self._rng.random() >= self._hope(memory, target.path, edit.owner):
            return None
        return Draw(target.path, name, edit, chooser)

    def _cuts(self, chooser: Chooser | None) -> bool:
        """Whether this draw leaves out some of what takes the time: less and less where that does not help."""
        profile = self._brief.profile
        if not self._brief.hot or profile is None or not profile.is_timed:
            return False
        if not any((ground := self._ground(it)) and ground.is_hot for it in self._targets):
            return False
        worth = max(chooser.lately.quality("operator", name) for name in _CUTS) if chooser else 1.0
        return self._rng.random() < _HOT_FIRST * min(1.0, worth)

    def _weight(self, target: Target, memory: Memory, *, cuts: bool) -> float:
        ground = self._ground(target)
        if cuts:
            return float(ground is not None and ground.is_hot)
        reached = 1.0 if ground is None or ground.is_loaded else UNREACHED
        return reached * target.weight * memory.of_file(told_path(target.path))

    def _ground(self, target: Target) -> Ground | None:
        """None where nothing is known of a file: there is no profile, it was cut and does not tell of it, it is no
        Python, or the root has none like it.
        """
        if target.path not in self._grounds:
            profile, before = self._brief.profile, None
            if profile and profile.tells_of(target.path) and is_python(target.path):
                before = _file(self._brief, self._brief.parent.partition(".")[0], target.path)
            self._grounds[target.path] = (
                Ground(profile.files.get(target.path), before, target.data) if profile and before is not None else None
            )
        return self._grounds[target.path]

    def _hope(self, memory: Memory, path: str, owner: str) -> float:
        """Joins operator and place: a place that seems dead is left out, whichever operator comes upon it."""
        place = told_path(path), owner
        return memory.hope(*place, self._under_way[place])

    def _operator(
        self, path: str, table: Mapping[str, OnCode] | Mapping[str, OnLines], chooser: Chooser, *, bold: bool
    ) -> str | None:
        weights = {name: it.weight for name, it in table.items() if self._idle[path, name] < _IDLE}
        return chooser.choose("operator", weights, self._rng, lately=not bold)

    def _hints(self, path: str, memory: Memory, chooser: Chooser) -> Hints:
        brief, rng, told = self._brief, self._rng, told_path(path)

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
            step=lambda kind: _step(chooser, memory, told, kind),
            favour=lambda owner: memory.of_owner(told, owner),
            dull=lambda owner, number: memory.dull(told, owner, number),
            donors=donors,
            before=_file(brief, earlier, path) if earlier is not None else None,
        )


def _step(chooser: Chooser, memory: Memory, path: str, kind: str) -> float:
    return chooser.knob(f"step of {kind}", memory.step(path, kind), LEAST_STEP, MOST_STEP)


def _file(brief: Brief, node: str, path: str) -> bytes | None:
    try:
        file = brief.past.tree(node).get(path)
    except LookupError:
        return None
    return file.data if file else None
