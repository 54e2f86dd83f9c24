"""What a model is told: the same bytes for the same brief, within a budget of tokens, what changes least first.

`system` has four parts for the provider's cache: rules and task hold for a whole campaign, the parent's files as long
as changes are tried on it, and what else was tried only grows. The question itself comes last. Where the budget is
short, whole things are left out and the model is told which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.change import Policy, Refusal, Tree, shown
from orchestrator.change.canonical import difference
from orchestrator.domain.metric import Metric
from orchestrator.proposers.base import Brief, Tried
from orchestrator.proposers.llm.prompts import guidance
from orchestrator.proposers.llm.results import experiment_line, noted
from orchestrator.proposers.llm.words import framed, mark_for, quoted, shown_file, tokens
from orchestrator.text import printable, short

_BASE = "blastdoor"
# The last part may change with every question and is not cached; so there is always one.
_NOTHING_ELSE = "Nothing is told here of what else was tried."
_STEP = 16  # experiments are left out in such steps, so that what is before them stays the same for a while
_BEST = 5
_NAMES = 40
_INSTRUCTION = 4_000
_LEFT_OUT, _LEFT_OUT_WIDTH = 6, 80

# Headings, and the line that says what was left out.
_OVERHEAD = 250
# Shares of what rules, task and question leave of the budget.
_GUIDANCE, _LINEAGE, _FAILED, _OTHERS = 0.3, 0.15, 0.2, 0.15


@dataclass(frozen=True)
class Fixed:
    """What belongs to a task and never changes in a campaign: the rules, then the task itself."""

    rules: str
    task: str

    @property
    def tokens(self) -> int:
        return tokens(self.rules) + tokens(self.task)


@dataclass(frozen=True)
class Context:
    system: tuple[str, ...]
    question: str
    left_out: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return sum(map(tokens, self.system)) + tokens(self.question)


class Telling:
    """Makes the context of one brief. `files` says whether the parent's files are part of it."""

    def __init__(
        self, fixed: Fixed, brief: Brief, policy: Policy, metrics: Sequence[Metric], budget: int, *, files: bool = True
    ) -> None:
        self._fixed = fixed
        self._brief = brief
        self._policy = policy
        self._metrics = metrics
        self._budget = budget
        self._files = files
        self._left_out: list[str] = []

    def context(self, question: str, *, failed: str | None = None, others: bool = True) -> Context:
        """`failed` is the sibling whose change did not come to a score."""
        asked = _joined(self._steering(), question)
        purse = Purse(self._budget - self._fixed.tokens - tokens(asked) - _OVERHEAD)
        whole = purse.left
        guided = self._guidance(purse, int(_GUIDANCE * whole))
        broken = self._failed_change(failed, purse, int(_FAILED * whole)) if failed else ""
        spared = int(_OTHERS * whole) if others and self._brief.past.ended else 0
        parent = self._parent(purse, int(_LINEAGE * whole), spared)
        tried = (self._others(purse) if others else "") or _NOTHING_ELSE
        system = (self._fixed.rules, _joined(self._fixed.task, guided), parent, tried)
        question = _joined(broken, self._told_left_out(), asked)
        return Context(system, question, tuple(self._left_out))

    def _told_left_out(self) -> str:
        told = [short(it, _LEFT_OUT_WIDTH) for it in self._left_out[:_LEFT_OUT]]
        told += [f"{more} more"] if (more := len(self._left_out) - _LEFT_OUT) > 0 else []
        return f"Left out, because all of it would be too long: {'; '.join(told)}." if told else ""

    def _steering(self) -> str:
        """The user's instructions since the campaign began; the newest counts most."""
        told = [printable(text.strip()[:_INSTRUCTION], keep="\n\t") for text in self._brief.steering if text.strip()]
        kept: list[str] = []
        for text in reversed(told):
            if sum(map(tokens, (*kept, text))) > self._budget // 4:
                self._left_out.append(f"{len(told) - len(kept)} earlier instructions")
                break
            kept.insert(0, text)
        listed = "\n".join(f"- {text}" for text in kept)
        said = "The user says, and this comes before all that was said above; where they differ, the last one holds:"
        return f"{said}\n{listed}" if kept else ""

    def _guidance(self, purse: "Purse", most: int) -> str:
        found: dict[str, str] = {}
        own = Purse(min(most, purse.left))
        for name, text in reversed(given := guidance(self._brief.playbook)):
            if own.take(text):
                purse.take(text)
                found[name] = text
            else:
                self._left_out.append(f"{name} of the playbook")
        return "\n\n".join(f"# {name}\n{found[name]}" for name, _ in given if name in found)

    def _failed_change(self, node: str, purse: "Purse", most: int) -> str:
        change = difference(self._brief.tree, self._brief.past.tree(node))
        lines, _ = shown_file(change.encode("utf-8", "surrogateescape")) or ("it cannot be shown", 0)
        tried = next((it for it in reversed(self._brief.past.ended) if it.node == node), None)
        lines += noted(tried) if tried else ""
        text = framed("change", mark_for(_BASE, [lines]), lines, f"of={node}")
        if tokens(text) > most or not purse.take(text):
            self._left_out.append(f"the change of {node}")
            return ""
        return text

    def _parent(self, purse: "Purse", lineage: int, spared: int) -> str:
        brief = self._brief
        lines = [experiment_line(it, self._metrics) + noted(it) for it in brief.lineage]
        way = _fitting(lines, min(lineage, purse.left))
        if missing := len(brief.lineage) - len(way):
            self._left_out.append(f"{missing} steps between the root and {brief.parent}")
        purse.take("\n".join(way))
        files = self._shown_files(purse, spared) if self._files else []
        mark = mark_for(_BASE, [*way, *(body for _, body, _ in files)])
        told = [f"# From the root to {brief.parent}, which you build on\n{framed('results', mark, chr(10).join(way))}"]
        if self._files:
            shown_ones = [framed("file", mark, body, f"path={path}{note}") for path, body, note in files]
            told.append("\n".join([f"# The files of {brief.parent} that you may change", *shown_ones]))
            told += self._other_names(purse)
        return _joined(*told)

    def _shown_files(self, purse: "Purse", spared: int) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        for path in editable_paths(self._brief.tree, self._policy):
            told = quoted(path, 300)
            lines = shown_file(self._brief.tree[path].data)
            if lines is None:
                self._left_out.append(f"{told}, which is no text")
                continue
            body, changed = lines
            note = f" ({changed} lines have escapes that stand for other characters)" if changed else ""
            if purse.left - tokens(body) < spared or not purse.take(framed("file", _BASE, body, f"path={told}{note}")):
                self._left_out.append(f"{told} of {len(body)} characters")
                continue
            found.append((told, body, note))
        return found

    def _other_names(self, purse: "Purse") -> list[str]:
        """Files that are there and can be read by the program, but not changed."""
        editable = set(editable_paths(self._brief.tree, self._policy))
        names = [path for path in self._brief.tree if path not in editable and not self._policy.hides(path)]
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        told = f"Also there, and not to be changed: {', '.join(shown(it) for it in names[:_NAMES])}{more}"
        return [told] if names and purse.take(told) else []

    def _others(self, purse: "Purse") -> str:
        """Every other experiment in the order in which they ended. Of those that do not fit, the best are told."""
        known = {it.node for it in self._brief.lineage}
        ended = [it for it in self._brief.past.ended if it.node not in known]
        running = [it for it in self._brief.past.running if it.node not in (*known, self._brief.node)]
        if not ended and not running:
            return ""
        start, best = self._window(ended, int(0.8 * purse.left))
        lines = [experiment_line(it, self._metrics) for it in (*ended[start:], *best, *running)]
        while lines and tokens("\n".join(lines)) > purse.left:
            lines.pop(0)
        heading = "# What else was tried, in this order"
        heading += f" (without {start} earlier ones, of which the best are at the end)" if start else ""
        return f"{heading}\n{framed('results', mark_for(_BASE, lines), chr(10).join(lines))}"

    def _window(self, ended: Sequence[Tried], budget: int) -> tuple[int, list[Tried]]:
        used, start = 0, len(ended)
        while start > 0:
            used += tokens(experiment_line(ended[start - 1], self._metrics)) + 1
            if used > budget:
                break
            start -= 1
        start = min(len(ended), -(-start // _STEP) * _STEP)
        scored = [it for it in ended[:start] if it.merits is not None]
        return start, sorted(scored, key=lambda it: it.merits or (), reverse=True)[:_BEST]


class Purse:
    """Tokens that are left to spend."""

    def __init__(self, left: int) -> None:
        self.left = max(0, left)

    def take(self, text: str) -> bool:
        """Whether it fits; then it is paid for."""
        cost = tokens(text) + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True


def editable_paths(tree: Tree, policy: Policy) -> list[str]:
    """Those that a change may touch; never a hidden one."""
    return [path for path in tree if _may_touch(path, policy)]


def _may_touch(path: str, policy: Policy) -> bool:
    try:
        policy.check(path)
    except Refusal:
        return False
    return True


def _fitting(lines: Sequence[str], budget: int) -> list[str]:
    """The first and as many of the last as fit."""
    kept = list(lines)
    while len(kept) > 1 and tokens("\n".join(kept)) > budget:
        kept.pop(1)
    return kept


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))
