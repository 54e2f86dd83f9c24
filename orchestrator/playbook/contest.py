"""Whether a challenger takes the present version's place. Pure: a resume goes on, and decides, alike.

Attempts that ask a model are dealt out in pairs, as they come: of each pair one works with the present version and one
with the challenger, and a coin that depends on the seed alone says which. The two of a pair are close in time, so it
does no harm that gains get rarer as a campaign goes on. What is compared is what each brought; the rule is that of
domain/certify.py, within pairs.
"""

import hashlib
from dataclasses import dataclass

from orchestrator.domain.certify import Certify, Evidence, Stand, Standing, look_at_pairs
from orchestrator.domain.metric import Ranking
from orchestrator.domain.records import PlaybookVersion
from orchestrator.domain.state import State
from orchestrator.playbook.results import is_over, result_of

_EACH = 2


@dataclass(frozen=True)
class Contest:
    challenger: PlaybookVersion
    present: int
    level: float

    def version_of(self, node: str, state: State) -> int | None:
        """What an attempt was dealt, None for one that has no part in it."""
        return state.nodes[node].playbook if node in self.challenger.given else None

    def next_version(self, seed: int) -> int | None:
        """What the next attempt is dealt; None when all pairs are complete."""
        turn = len(self.challenger.given)
        if turn >= _EACH * self.challenger.pairs:
            return None
        first = turn % _EACH == 0
        return self.challenger.number if first == self._challenger_first(turn // _EACH, seed) else self.present

    def _challenger_first(self, pair: int, seed: int) -> bool:
        text = f"playbook {seed}/{self.challenger.number}/{pair}"
        return bool(hashlib.sha256(text.encode()).digest()[0] & 1)

    def evidence(self, state: State, ranking: Ranking) -> Evidence:
        """After the pairs that are over. One of which a half says nothing is over as well, and counts for neither."""
        given = self.challenger.given
        over = 0
        told: list[tuple[Standing, Standing]] = []
        for at in range(0, len(given) - len(given) % _EACH, _EACH):
            pair = [state.nodes[name] for name in given[at : at + _EACH]]
            if not all(is_over(node) for node in pair):
                continue
            over += 1
            results = {node.playbook: result_of(state, node, ranking) for node in pair}
            theirs, mine = results.get(self.present), results.get(self.challenger.number)
            if theirs is not None and mine is not None:
                told.append((theirs, mine))
        return look_at_pairs(told, self.level, self.challenger.pairs - over)


def open_contest(state: State) -> Contest | None:
    """The one that goes on now."""
    number, present = state.campaign.challenger, state.campaign.playbook
    challenger = state.playbooks[number] if number is not None else None
    if challenger is None or present is None or challenger.level is None:
        return None
    return Contest(challenger, present, challenger.level)


def level_of(state: State, certify: Certify) -> float:
    """Of the next test. All that there can ever be add up to the error: 1/2 + 1/6 + 1/12 + … = 1."""
    number = state.campaign.challengers + 1
    return certify.error / (number * (number + 1))


def can_be_shown(state: State, certify: Certify, attempts: int | None = None) -> bool:
    """Whether a challenger that wins every pair would pass the next test; if not, none need be written.

    `attempts` is how many there can still be.
    """
    most = certify.repeats if attempts is None else min(certify.repeats, attempts // _EACH)
    return look_at_pairs([], level_of(state, certify), most).stand is Stand.OPEN
