"""Packs items one by one, in an order and by a rule: the candidate. It may be changed in any way."""

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

Bins = list[list[int]]

# Which of the bins that an item fits into, by the room that they have left.
RULES: dict[str, Callable[[list[tuple[int, int]]], tuple[int, int]]] = {
    "first": lambda fits: fits[0],
    "last": lambda fits: fits[-1],
    "best": lambda fits: min(fits, key=lambda fit: fit[1]),
    "worst": lambda fits: max(fits, key=lambda fit: fit[1]),
}


def ordered(sizes: list[int], capacity: int, params: dict[str, Any], name: str) -> list[int]:
    draw = random.Random(f"{params['draw']}/{name}")
    shaken = [size * (1 + params["noise"] * draw.uniform(-1, 1)) for size in sizes]
    keys: dict[str, Callable[[int], float]] = {
        "given": lambda item: item * params["noise"] * draw.random(),
        "falling": lambda item: -shaken[item],
        "rising": lambda item: shaken[item],
        "thirds": lambda item: abs(shaken[item] - capacity / 3),
        "pairs": lambda item: -abs(shaken[item] - capacity / 2),
    }
    return sorted(range(len(sizes)), key=keys[params["order"]])


def packed(sizes: list[int], capacity: int, params: dict[str, Any], name: str) -> Bins:
    bins: Bins = []
    room: list[int] = []
    for item in ordered(sizes, capacity, params, name):
        fits = [(at, left) for at, left in enumerate(room) if left >= sizes[item]]
        if fits:
            at, _ = RULES[params["rule"]](fits)
        else:
            at = len(bins)
            bins.append([])
            room.append(capacity)
        bins[at].append(item)
        room[at] -= sizes[item]
    return bins


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    instances = json.loads((inputs / "instances/instances.json").read_text())
    found = {it["name"]: packed(it["sizes"], it["capacity"], params, it["name"]) for it in instances}
    Path(os.environ["BLASTDOOR_OUT"], "packings.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
