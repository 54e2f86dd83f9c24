"""One trial under the rule: looks at its curve when it is time, and remembers the first time that it would end it."""

import hashlib
from collections.abc import Callable

from orchestrator.domain.reports import Curve, Look
from orchestrator.pruning.base import Peers, Rule


class Watch:
    """`warmup` is the first step at which it looks, `every` the steps between two looks. Peers are asked for at each
    look: others end while this one runs.
    """

    def __init__(
        self, rule: Rule, peers: Callable[[], Peers], *, warmup: int = 0, every: int = 1, spared: bool = False
    ) -> None:
        self.look = Look(spared=spared)
        self._rule = rule
        self._peers = peers
        self._warmup = warmup
        self._every = every
        self._next = warmup

    def enough(self, curve: Curve) -> bool:
        """After a point that was kept: whether the trial is to be stopped now."""
        step, value = curve.points[-1]
        if self.look.cut or step < self._next:
            return False
        self._next = self._warmup + ((step - self._warmup) // self._every + 1) * self._every
        peers = self._peers()
        if peers.last is not None and step >= peers.last:
            return False  # as far as anybody got: what is left of it saves nothing
        decision = self._rule.decide(curve.points, peers)
        if not decision.prune:
            return False
        self.look = Look(spared=self.look.spared, step=step, value=value, why=decision.why)
        return not self.look.spared


def is_spared(seed: int, trial: str, share: float) -> bool:
    """Drawn for each trial, the same whenever it is asked."""
    drawn = int.from_bytes(hashlib.sha256(f"spare/{seed}/{trial}".encode()).digest()[:8], "big")
    return drawn < share * 2**64
