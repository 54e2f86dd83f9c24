"""Looks for a way to multiply two 2 by 2 matrices with fewer products: the candidate.

A scheme is a list of products, each three lists of four whole numbers: what is added up of A, what of B, and where the
product goes in C. The search starts with the eight products that everybody learns and walks at random: two products
with a factor in common can trade the others without changing the sum. When two of them come to share two factors they
become one, and when one comes to nothing it goes. The points of the search are in params.json.
"""

import json
import os
import random
from pathlib import Path

SIDE = 2


def standard():
    """C[i][j] is the sum over k of A[i][k] B[k][j]: one product for each i, j and k."""
    spots = range(SIDE)
    return [(unit(i, k), unit(k, j), unit(i, j)) for i in spots for j in spots for k in spots]


def unit(row, column):
    return tuple(int(at == SIDE * row + column) for at in range(SIDE * SIDE))


def plus(x, y, times=1):
    return tuple(a + times * b for a, b in zip(x, y, strict=True))


def sign_between(x, y):
    """1 where both are the same, -1 where one is the other's opposite, else 0."""
    if x == y:
        return 1
    return -1 if x == tuple(-value for value in y) else 0


def reduced(scheme):
    """The same sum, without products that are nothing, and with those that share two factors made one."""
    scheme = [product for product in scheme if all(map(any, product))]
    for at, first in enumerate(scheme):
        for other in range(at + 1, len(scheme)):
            for rest in range(3):
                signs = [sign_between(first[k], scheme[other][k]) for k in range(3) if k != rest]
                if all(signs):
                    merged = list(first)
                    merged[rest] = plus(first[rest], scheme[other][rest], signs[0] * signs[1])
                    return reduced([*scheme[:at], tuple(merged), *scheme[at + 1 : other], *scheme[other + 1 :]])
    return scheme


def flips_of(scheme):
    """Every pair of products with a factor in common, which one, and with which sign."""
    found = []
    for other, second in enumerate(scheme):
        for at in range(other):
            for shared in range(3):
                if sign := sign_between(scheme[at][shared], second[shared]):
                    found += [(at, other, shared, sign), (other, at, shared, sign)]
    return found


def flip(scheme, choice, way, swap):
    """a b c + a d e = a (b + d) c + a d (e - c), or the same with the signs turned round, or b and c trading places."""
    at, other, shared, sign = choice
    second, third = [k for k in range(3) if k != shared][:: -1 if swap else 1]
    first, next_one = list(scheme[at]), list(scheme[other])
    first[second] = plus(first[second], next_one[second], way)
    next_one[third] = plus(next_one[third], first[third], -way * sign)
    changed = list(scheme)
    changed[at], changed[other] = tuple(first), tuple(next_one)
    return changed


def walk(params, rng):
    """The best scheme of one walk. Numbers larger than the limit are not walked into."""
    scheme = best = standard()
    for _ in range(params["flips"]):
        choices = flips_of(scheme)
        if not choices:
            break
        changed = flip(scheme, rng.choice(choices), rng.choice((1, -1)), rng.random() < params["swap"])
        if max(abs(value) for product in changed for factor in product for value in factor) > params["limit"]:
            continue
        scheme = reduced(changed)
        if len(scheme) < len(best):
            best = scheme
    return best


def search(params):
    rng = random.Random(params["seed"])
    walks = (walk(params, rng) for _ in range(params["restarts"]))
    return min(walks, key=len)


def main():
    scheme = search(json.loads(Path("params.json").read_text()))
    print(f"{len(scheme)} products")
    answer = {name: [list(product[k]) for product in scheme] for k, name in enumerate("UVW")}
    Path(os.environ["BLASTDOOR_OUT"], "scheme.json").write_text(json.dumps(answer))


if __name__ == "__main__":
    main()
