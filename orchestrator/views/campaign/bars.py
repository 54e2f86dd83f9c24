"""A budget line as a bar: what is used, what is held for open work, what is left."""

from rich.text import Text


def bar(used: int, held: int, limit: int, width: int, unicode: bool = True) -> Text:
    """`width` cells. Anything used fills at least one cell, and only all of it fills the last."""
    full, open_, empty = "█▒░" if unicode else "#=."
    limit = max(1, limit)
    first = _cells(used, limit, width)
    second = max(first, _cells(used + held, limit, width))
    over = used > limit
    return Text.assemble(
        (full * first, "red" if over else "green"),
        (open_ * (second - first), "yellow"),
        (empty * (width - second), "dim"),
    )


def _cells(units: int, limit: int, width: int) -> int:
    if units <= 0:
        return 0
    if units >= limit:
        return width
    return min(width - 1, max(1, units * width // limit))
