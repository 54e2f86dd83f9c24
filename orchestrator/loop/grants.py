"""What each attempt holds for models, what it has used of that, and what a question is known to cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from orchestrator.domain.model_use import ModelRole
from orchestrator.domain.records import Spent
from orchestrator.llm.allowance import Allowance
from orchestrator.loop.book import Book

Key = tuple[str, int, ModelRole]


@dataclass(frozen=True)
class Grants:
    """`allowances` is what a role may use for one attempt, `least` what no question of a proposer costs less than.

    `granted` is the part of an attempt's present reservation that is for its proposer, `used` what each role has used
    of that reservation.
    """

    book: Book
    allowances: Mapping[ModelRole, Allowance]
    least: Spent = field(default_factory=Spent)
    granted: dict[Key, Spent] = field(default_factory=dict)
    used: dict[Key, Spent] = field(default_factory=dict)
    seen: list[Spent] = field(default_factory=list)

    def grant(self, node: str, asking: Spent) -> None:
        """What the attempt's present reservation holds for its proposer; without a grant it can ask nothing."""
        self.granted[self._key(node, ModelRole.USER)] = asking

    def may_propose(self, node: str) -> bool:
        return bool(self._granted(node).microdollars)

    def left(self, node: str, role: ModelRole) -> Allowance:
        """One that is asked once more within an attempt has what the first asking left: no more is reserved."""
        whole, used = self.allowances[role], self.used.get(self._key(node, role), Spent())
        most = self._granted(node) if role is ModelRole.USER else None
        usd = whole.microdollars if most is None else most.microdollars
        tokens = whole.tokens if most is None or whole.tokens is None else most.tokens
        return replace(
            whole,
            microdollars=max(0, usd - used.microdollars),
            tokens=None if tokens is None else max(0, tokens - used.tokens),
            begun=bool(used.tokens),
        )

    def count(self, node: str, role: ModelRole, spent: Spent) -> None:
        """Work of no attempt has a reservation for each asking."""
        if node:
            key = self._key(node, role)
            self.used[key] = self.used.get(key, Spent()) + spent

    @property
    def enough(self) -> Spent:
        """What covers a question of a proposer, as far as is known: the dearest so far, or the least of all."""
        known = [self.least, *self.seen]
        return Spent(microdollars=max(it.microdollars for it in known), tokens=max(it.tokens for it in known))

    def asked(self, worst: Spent) -> None:
        """A proposer's question that may cost so much."""
        self.seen[:] = [self.enough, worst]

    def asked_nothing(self, node: str) -> None:
        """Who had less than a whole allowance and made no call had too little: nobody else is sent out with that."""
        granted, whole = self._granted(node), self.allowances[ModelRole.USER]
        if granted.microdollars and (granted.microdollars < whole.microdollars or granted.tokens < (whole.tokens or 0)):
            self.seen.append(Spent(microdollars=granted.microdollars + 1, tokens=granted.tokens))

    def _granted(self, node: str) -> Spent:
        return self.granted.get(self._key(node, ModelRole.USER), Spent())

    def _key(self, node: str, role: ModelRole) -> Key:
        return node, self.book.state.nodes[node].take if node else 0, role
