"""From what an agent left in its workspace to a proposal: a diff of the paths that it may change, and no other."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.agents.litter import is_litter
from orchestrator.agents.messages import Work
from orchestrator.change import File, Policy, Refusal, Tree, shown
from orchestrator.change.applying import check_sizes
from orchestrator.change.canonical import compare
from orchestrator.domain.proposal import Proposal
from orchestrator.text import short

_NAMES = 3
_SAID = 300


@dataclass(frozen=True)
class LeftOut:
    """What differs and is not taken, escaped: what may not be changed, and what tools left behind."""

    forbidden: tuple[str, ...] = ()
    litter: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.forbidden) + len(self.litter)

    def told(self, who: str) -> str:
        """In one line; empty where there is nothing."""
        parts = [f"{listed(self.forbidden)}, which {who} may not change"] if self.forbidden else []
        parts += [f"{listed(self.litter)}, which tools leave behind"] if self.litter else []
        return f"left out: {'; '.join(parts)}" if parts else ""


class NoOffer(Exception):
    """Nothing of it can be taken. One line."""

    def __init__(self, why: str, left_out: LeftOut) -> None:
        super().__init__(why)
        self.left_out = left_out


class NothingDone(NoOffer):
    """Nothing that it may change is different."""

    def __init__(self, left_out: LeftOut) -> None:
        told = "the agent changed nothing that it may change"
        if left_out.forbidden:
            told += f"; it changed {listed(left_out.forbidden)}, which it may not"
        if left_out.litter:
            told += f"; {listed(left_out.litter)} is what tools leave behind"
        super().__init__(told, left_out)


@dataclass(frozen=True)
class Offer:
    """`text` is a unified diff."""

    text: str
    lines: int
    changed: tuple[str, ...]
    left_out: LeftOut

    def proposal(self, agent: str, model: str, said: str) -> Proposal:
        """`said` is the agent's own word for it."""
        names = f"{listed(self.changed)} ({self.lines} lines)"
        description = short(said, _SAID) or f"changed {names}"
        return Proposal(operator=agent[:64], description=description, text=self.text, model=model)


def offer_of(tree: Tree, work: Work, policy: Policy) -> Offer:
    """Raises NoOffer. What is too large is refused before it is compared, which would take as long as it is large."""
    touched = {path: File(data, _executable(tree, path)) for path, data in work.files.items()}
    gone = [path for path in work.deleted if path in tree and not policy.hides(path) and path not in touched]
    litter = {path for path in touched if is_litter(path, tree, policy)}
    mine = {path for path in (*touched, *gone) if path not in litter and _may_change(path, policy)}
    left_out = LeftOut(_shown({*touched, *gone} - mine - litter), _shown(litter))
    after = dict(_without(tree, mine & set(gone)))
    after.update({path: file for path, file in touched.items() if path in mine})
    new = Tree(after)
    if new == tree:
        raise NothingDone(left_out)
    differs = [path for path in mine if new.get(path) != tree.get(path)]
    try:
        check_sizes({path: new[path] for path in differs if path in new}, policy.caps)
        for path in sorted(differs):
            policy.check_regions(path, tree.get(path), new.get(path))
    except Refusal as refusal:
        raise NoOffer(str(refusal), left_out) from None
    try:
        compared = compare(tree, new)
        text = compared.text().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return Offer(text, compared.size().lines, _shown(differs), left_out)
    except Refusal as refusal:
        raise NoOffer(str(refusal), left_out) from None


def listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return ", ".join(names[:_NAMES]) + more


def _shown(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(map(shown, paths)))


def _executable(tree: Mapping[str, File], path: str) -> bool:
    return path in tree and tree[path].executable


def _without(tree: Tree, gone: set[str]) -> Iterator[tuple[str, File]]:
    return ((path, file) for path, file in tree.items() if path not in gone)


def _may_change(path: str, policy: Policy) -> bool:
    try:
        policy.check(path)
    except Refusal:
        return False
    return True
