"""How much of a score one parameter explains alone: the share of its variance that lies between groups of values.

Groups are the values themselves where there are few, else parts of equal size. Chance explains something too, the more
so the fewer scores there are, and that is taken off (epsilon squared); what several parameters do together is not seen.
"""

from collections.abc import Sequence
from statistics import fmean

_GROUPS = 8
_LEAST = 8


def importance(values: Sequence[object], scores: Sequence[float]) -> float | None:
    """Between 0 and 1; None where too few are there to tell."""
    pairs = [(value, score) for value, score in zip(values, scores, strict=True) if value is not None]
    furthest = max((abs(score) for _, score in pairs), default=0.0) or 1.0
    pairs = [(value, score / furthest) for value, score in pairs]  # whose squares a float can tell
    groups = _grouped(pairs)
    count = len(pairs)
    if count < _LEAST or len(groups) < 2 or count <= len(groups):
        return None
    mean = fmean(score for _, score in pairs)
    whole = sum((score - mean) ** 2 for _, score in pairs)
    within = sum((score - fmean(group)) ** 2 for group in groups for score in group)
    if whole <= 0:
        return 0.0
    noise = within / (count - len(groups))
    return max(0.0, min(1.0, (whole - within - (len(groups) - 1) * noise) / whole))


def _grouped(pairs: Sequence[tuple[object, float]]) -> list[list[float]]:
    numbers = [(value, score) for value, score in pairs if isinstance(value, int | float)]
    distinct = {repr(value) for value, _ in pairs}
    if len(numbers) < len(pairs) or len(distinct) <= _GROUPS:
        groups: dict[str, list[float]] = {}
        for value, score in pairs:
            groups.setdefault(repr(value), []).append(score)
        return list(groups.values())
    ordered = [score for _, score in sorted(numbers, key=lambda pair: float(pair[0]))]
    size = len(ordered) / _GROUPS
    return [ordered[round(part * size) : round((part + 1) * size)] for part in range(_GROUPS)]
