"""Delta debugging: the fewest parts of a change with which it is as good as with all of them.

Probabilistic, after Wang et al. (ESEC/FSE 2021): each part has a probability that it is needed, and the parts that are
left out together are those of which the most can be expected to go. A miss makes all of them more likely to be needed,
by Bayes' rule, so that groups get smaller until a single part is left out. Coarse parts first, then finer ones. At
the end every part that is left was left out alone, and every two of one line together, and missed: none of them can go.

Deterministic in what it is answered. So one that is begun again, and answered from the record, asks the same questions
and goes on where the record ends.
"""

import math
from collections.abc import Callable, Generator, Sequence
from itertools import combinations

Part = frozenset[int]
Questions = Generator[list[Part], list[bool], None]

# How likely a part is needed before anything is known of it.
_AT_FIRST = 0.25
# A line with more parts than this was rewritten: its pairs are too many.
_OF_A_ROW = 6
# Below one, so that it is left out alone before it counts as needed.
_ALMOST = 0.999


class Search:
    """`levels` are ways to cut the whole into parts, from coarse to fine; the last one says which single parts count.

    `rows` are lines: two parts of one, like a pair of brackets, may be able to go together and not alone. `kept` is the
    smallest selection so far that is as good as the whole.
    """

    def __init__(self, levels: Sequence[Sequence[Part]], width: int = 1, rows: Sequence[Part] = ()) -> None:
        self._levels = levels
        self._rows = rows
        self._width = max(1, width)
        self._whole: Part = frozenset().union(*(part for level in levels for part in level))
        self.kept = self._whole

    def questions(self) -> Questions:
        """Yields selections, at most `width` at once, and is sent whether each of them is as good as the whole."""
        for level in self._levels:
            yield from self._at(level)
        before: Part | None = None
        while before != self.kept:
            yield from self._leave_out(self.parts)
            before = self.kept
            yield from self._leave_out(self._pairs)

    def parts(self) -> list[Part]:
        """What is left, cut as finely as it is cut."""
        return [rest for part in self._finest() if (rest := part & self.kept)]

    def gone(self) -> list[Part]:
        """What was left out, cut as finely."""
        return [rest for part in self._finest() if (rest := part - self.kept)]

    def _finest(self) -> list[Part]:
        """Each level cuts what it covers: code and parameters are cut by levels of their own."""
        finest: list[Part] = []
        for level in self._levels:
            covered = frozenset().union(*level)
            finest = [part for part in finest if not part & covered] + list(level)
        return finest

    def _at(self, level: Sequence[Part]) -> Questions:
        needed = {part: _AT_FIRST for part in level if part & self.kept}
        while open_ := [part for part in needed if needed[part] < 1.0]:
            groups = self._groups(open_, needed)
            found = yield [self.kept.difference(*group) for group in groups]
            gone = [group for group, keeps in zip(groups, found, strict=True) if keeps]
            if len(gone) > 1:
                together = [part for group in gone for part in group]
                (keeps,) = yield [self.kept.difference(*together)]
                gone = [together] if keeps else gone[:1]
            for group in gone:
                self.kept = self.kept.difference(*group)
                for part in group:
                    del needed[part]
            for group, keeps in zip(groups, found, strict=True):
                if not keeps:
                    _blame(group, needed)

    def _groups(self, parts: Sequence[Part], needed: dict[Part, float]) -> list[list[Part]]:
        """As many as can be asked at once, with no part in two of them. The later parts of a text go first: they use
        what the earlier ones define.
        """
        order = {part: -at for at, part in enumerate(parts)}
        waiting = sorted(parts, key=lambda part: (needed[part], order[part]))
        groups: list[list[Part]] = []
        while waiting and len(groups) < self._width:
            size = _best_size([needed[part] for part in waiting])
            groups.append(waiting[:size])
            waiting = waiting[size:]
        return groups

    def _pairs(self) -> list[Part]:
        """Two parts of one line."""
        of_rows = ([part for part in self.parts() if part <= row] for row in self._rows)
        return [one | two for parts in of_rows if len(parts) <= _OF_A_ROW for one, two in combinations(parts, 2)]

    def _leave_out(self, groups: Callable[[], list[Part]]) -> Questions:
        """Until none of them can go: what was needed beside others may not be needed without them."""
        while parts := groups()[::-1]:
            for at in range(0, len(parts), self._width):
                batch = parts[at : at + self._width]
                found = yield [self.kept - part for part in batch]
                if any(found):
                    self.kept -= batch[found.index(True)]
                    break
            else:
                return


def _best_size(needed: Sequence[float]) -> int:
    """How many of the least needed to leave out: as many as make the number that can be expected to go the largest."""
    best, size, chance = 0.0, 1, 1.0
    for count, probability in enumerate(needed, start=1):
        chance *= 1 - probability
        if chance * count > best:
            best, size = chance * count, count
    return size


def _blame(group: Sequence[Part], needed: dict[Part, float]) -> None:
    """At least one of them is needed."""
    if len(group) == 1:
        needed[group[0]] = 1.0
        return
    missed = 1 - math.prod(1 - needed[part] for part in group)
    for part in group:
        needed[part] = min(_ALMOST, needed[part] / missed)
