"""Checks that a scheme multiplies 2 by 2 matrices, exactly and for all of them, and counts its products: the judge.

With U, V and W the factors of its products, it is right when the sum over all products of U[i] V[j] W[k] is the tensor
of matrix multiplication, for every i, j and k: 64 equations between whole numbers. So there is nothing to sample, no
tolerance to live on and no rounding to hide behind. A scheme that is wrong has no count at all, however small.
"""

from typing import Any

from blastdoor_judge import BadOutput, judging, load_json, publish

SIDE = 2
ENTRIES = range(SIDE * SIDE)
MOST_BYTES = 100_000
MOST_PRODUCTS = 64
LARGEST = 1_000

Factors = list[list[int]]


def wanted(i: int, j: int, k: int) -> int:
    """Whether A's entry i times B's entry j belongs into C's entry k."""
    row, inner = divmod(i, SIDE)
    other, column = divmod(j, SIDE)
    return int(inner == other and k == SIDE * row + column)


def factors(scheme: Any, name: str) -> Factors:
    """Four whole numbers for each product. True is no number here, and neither is 1.0."""
    found = scheme[name]
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_PRODUCTS:
        raise BadOutput(f"{name} must be a list of 1 to {MOST_PRODUCTS} products")
    for at, factor in enumerate(found):
        if not isinstance(factor, list) or len(factor) != len(ENTRIES):
            raise BadOutput(f"{name}[{at}] must be a list of {len(ENTRIES)} whole numbers")
        for value in factor:
            if type(value) is not int or abs(value) > LARGEST:
                raise BadOutput(f"{name}[{at}] must have whole numbers from -{LARGEST} to {LARGEST}")
    return found


def products_of(scheme: Any) -> int:
    if not isinstance(scheme, dict) or set(scheme) != {"U", "V", "W"}:
        raise BadOutput("scheme.json must be an object with U, V and W")
    u, v, w = (factors(scheme, name) for name in "UVW")
    if not len(u) == len(v) == len(w):
        raise BadOutput("U, V and W must have equally many products")
    for i in ENTRIES:
        for j in ENTRIES:
            for k in ENTRIES:
                total = sum(a[i] * b[j] * c[k] for a, b, c in zip(u, v, w, strict=True))
                if total != wanted(i, j, k):
                    text = f"A[{i}] B[{j}] comes into C[{k}] {total} times, not {wanted(i, j, k)}"
                    raise BadOutput(f"this is not matrix multiplication: {text}")
    return len(u)


with judging():
    count = products_of(load_json("scheme.json", max_bytes=MOST_BYTES))
    publish(count, metrics={"products": count})
