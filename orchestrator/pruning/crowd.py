"""The peers of one arm in one cohort, as they come. A look costs the same after ten trials and after ten thousand."""

import hashlib
import heapq
from collections.abc import Sequence

from orchestrator.domain.reports import Point
from orchestrator.pruning.base import Peer, Peers

MOST_PEERS = 256


class _Sample:
    """So many at most, drawn evenly from all that came; which ones does not depend on the order in which they did."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._peers: dict[str, Peer] = {}

    def add(self, peer: Peer) -> None:
        drawn = -int.from_bytes(hashlib.sha256(peer.trial.encode()).digest()[:8], "big")
        heapq.heappush(self._heap, (drawn, peer.trial))
        self._peers[peer.trial] = peer
        if len(self._heap) > MOST_PEERS:
            del self._peers[heapq.heappop(self._heap)[1]]

    def all(self) -> list[Peer]:
        return list(self._peers.values())


class Crowd:
    """`merit` is the judge's word on a trial, turned so that more is better; its own word is none."""

    def __init__(self) -> None:
        self._scored = _Sample()
        self._pruned = _Sample()
        self._best: tuple[float, str] | None = None
        self._best_peer: Peer | None = None
        self._count = 0
        self._now: Peers | None = None

    def scored(self, trial: str, points: Sequence[Point], merit: float) -> None:
        if not points:
            return
        peer = Peer(trial, tuple(points), merit)
        self._count += 1
        self._scored.add(peer)
        if self._best is None or (-merit, trial) < self._best:
            self._best, self._best_peer = (-merit, trial), peer
        self._now = None

    def pruned(self, trial: str, points: Sequence[Point]) -> None:
        if points:
            self._pruned.add(Peer(trial, tuple(points)))
            self._now = None

    def peers(self, baseline: Peer | None = None) -> Peers:
        """The same object until another one comes, so that what was worked out about them is not worked out again."""
        if self._now is None or self._now.baseline is not baseline:
            scored, pruned = self._scored.all(), self._pruned.all()
            self._now = Peers(scored, pruned, self._best_peer, self._count, baseline)
        return self._now
