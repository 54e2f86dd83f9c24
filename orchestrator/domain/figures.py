"""Numbers as people read them."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.headline import Headline
from orchestrator.domain.metric import Metric
from orchestrator.domain.records import Spent
from orchestrator.text import printable


def score(value: float | None, digits: int = 6) -> str:
    """A score in few digits; one that is missing is never a zero."""
    if value is None or not math.isfinite(value):
        return "none"
    return f"{value:.{digits}g}"


def signed(value: float) -> str:
    return f"{value:+.4g}"


def headline(found: Headline | None, order: Sequence[Metric] = ()) -> str:
    """A node's values; those that are only screened, or may be forged, are marked. Nothing where there are none."""
    if not found:
        return ""
    forgeable = f" [{found.tier}]" if found.tier.terms.caveat else ""
    return metrics(found.metrics, order, found.mark) + forgeable


def metrics(values: Mapping[str, float], order: Sequence[Metric] = (), mark: str = "") -> str:
    """`score=2.63 time=1.2`: those that count first, in their order, then the rest.

    A judge's `score` that is nobody's metric and only repeats the first one is left out.
    """
    names = [metric.name for metric in order if metric.name in values]
    repeated = {"score"} if names and values.get("score") == values[names[0]] else set()
    names += [name for name in values if name not in {*names, *repeated}]
    return " ".join(f"{printable(name)}={mark}{score(values[name])}" for name in names)


def duration(seconds: float) -> str:
    """Two units at most: 0.4s, 12s, 3m05s, 2h10m, 3d4h."""
    if seconds < 10:
        return f"{max(0.0, seconds):.1f}s"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{rest:02}s" if minutes else f"{rest}s"


def dollars(micro: int) -> str:
    """Cents, and finer where there is less than a dollar."""
    amount = micro / 1_000_000
    return f"${amount:,.2f}" if micro >= 1_000_000 or micro == 0 else f"${amount:.4f}"


def spent(cost: Spent) -> str:
    parts = [duration(cost.milliseconds / 1000)]
    if cost.microdollars:
        parts.append(dollars(cost.microdollars))
    if cost.tokens:
        parts.append(f"{cost.tokens:,} tokens")
    return ", ".join(parts)


def clock(at: str) -> str:
    """The time of day of a moment in the ledger, as it was recorded (UTC)."""
    try:
        return datetime.fromisoformat(at).strftime("%H:%M:%S")
    except ValueError:
        return printable(at)


def moment(at: str) -> str:
    """With its day: a campaign may take several."""
    try:
        return datetime.fromisoformat(at).strftime("%m-%d %H:%M:%S")
    except ValueError:
        return printable(at)


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def few(names: Sequence[str], most: int = 20) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
