"""Whether two plain values are the same answer. Standard library only, Python 3.9 up.

Types count, and so does the order of lists. Floats may differ by rounding, since a faster way may add in another order;
NaN is the same as NaN.
"""

from __future__ import annotations

import math
from typing import Any

from blastdoor_values import Array

__all__ = ["same"]

# By the bytes of a float: what rounding in another order does, and no more.
_CLOSE = {2: 1e-3, 4: 1e-5, 8: 1e-9}
_TINY = 1e-12


def same(one: Any, two: Any) -> bool:
    kind = type(one)
    if kind is not type(two):
        return False
    if kind is float:
        return _close(one, two, 8)
    if kind is complex:
        return _close(one.real, two.real, 8) and _close(one.imag, two.imag, 8)
    if kind is Array:
        alike = (one.dtype, one.shape) == (two.dtype, two.shape)
        return alike and _same_numbers(one.tolist(), two.tolist(), int(one.dtype[1:]))
    if kind in (list, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if kind is dict:
        return one.keys() == two.keys() and all(same(value, two[key]) for key, value in one.items())
    if kind.__module__ == "numpy":
        alike = one.dtype == two.dtype and one.shape == two.shape
        return bool(alike) and _same_numbers(one.tolist(), two.tolist(), one.dtype.itemsize)
    return bool(one == two)


def _same_numbers(one: Any, two: Any, size: int) -> bool:
    """Of an array: nested lists of one shape."""
    if isinstance(one, list):
        return all(_same_numbers(left, right, size) for left, right in zip(one, two))  # noqa: B905  # as elsewhere: 3.9
    if isinstance(one, complex):
        return _close(one.real, two.real, size // 2) and _close(one.imag, two.imag, size // 2)
    return _close(one, two, size) if isinstance(one, float) else bool(one == two)


def _close(one: float, two: float, size: int) -> bool:
    if math.isnan(one) or math.isnan(two):
        return math.isnan(one) and math.isnan(two)
    return math.isclose(one, two, rel_tol=_CLOSE.get(size, 1e-9), abs_tol=_TINY)
