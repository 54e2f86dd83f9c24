"""A parent rule: a branch starts at any of the ten best, each as likely as the others."""

import random

from orchestrator.population import Member, ParentContext

blastdoor_interface = 1

_MOST = 10


class AnyOfTheBest:
    """The class itself is the factory: it is called with the context, once for each island."""

    def __init__(self, _: ParentContext) -> None:
        self._best: list[Member] = []

    def add(self, member: Member) -> None:
        self._best = sorted([*self._best, member], key=lambda it: it.place)[-_MOST:]

    def draw(self, seed: str) -> str | None:
        # The same members and seed give the same node, so that a resume goes on alike.
        return random.Random(seed).choice(self._best).node if self._best else None
