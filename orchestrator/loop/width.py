"""How many branches at a time, and how many steps each: said in one line with its reason. Unsure means serial."""

from collections.abc import Collection
from dataclasses import dataclass

LIGHT = 5
LIGHT_TRIAL_S = 60.0
# What only one run at a time can have; a CPU can be shared out by counting cores.
EXCLUSIVE = ("gpu", "memory", "port", "database", "api")


@dataclass(frozen=True)
class Shape:
    width: int
    depth: int
    why: str


def shape(
    *,
    width: int | None,
    depth: int | None,
    serial: bool,
    branching: bool,
    saturates: Collection[str] | None,
    ceiling: int,
    wall_s: float,
    timed: bool = False,
) -> Shape:
    """`ceiling` is what the backend can hold at once, `wall_s` the longest that one trial may take.

    `saturates` is what one run fills up; None when nobody said. `timed`: a metric is a measured time.
    """
    wide, why = _width(width, serial, saturates, ceiling, timed)
    deep, how = _depth(depth, branching, wall_s)
    return Shape(wide, deep, f"width {wide} ({why}), depth {deep} ({how})")


def side_by_side(width: int | None, saturates: Collection[str] | None, ceiling: int, *, timed: bool) -> int:
    """How many trials at a time, where no proposer says that they come one after the other."""
    return _width(width, False, saturates, ceiling, timed)[0]


def _width(
    width: int | None, serial: bool, saturates: Collection[str] | None, ceiling: int, timed: bool
) -> tuple[int, str]:
    if width is not None:
        return width, "as you said"
    if serial:
        return 1, "changes to code are proposed one after the other"
    held = [name for name in EXCLUSIVE if saturates and name in saturates]
    if held:
        return 1, f"one run fills the {held[0]}"
    if saturates is None and timed:
        return 1, "times are taken one at a time"
    if saturates is None:
        wide = max(1, min(LIGHT, ceiling))
        return wide, f"nothing known to be filled by one run; the backend holds {ceiling}"
    return max(1, ceiling), f"the backend holds {ceiling}"


def _depth(depth: int | None, branching: bool, wall_s: float) -> tuple[int, str]:
    if not branching:
        return 1, "every change starts at the root"
    if depth is not None:
        return depth, "as you said"
    if wall_s > LIGHT_TRIAL_S:
        return 2, f"a trial may take {wall_s:g} s"
    return LIGHT, "trials are short"
