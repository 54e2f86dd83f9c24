"""Takes a packing of each instance from the pool, and may mend it: the combination. It may be changed in any way.

/inputs/pool/members.json lists the members, the one that was chosen first, first; each has a folder with the packings
that it left. They were written by other programs: one that is no packing is passed over.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

Bins = list[list[int]]


def is_packing(bins: Any, sizes: list[int], capacity: int) -> bool:
    try:
        items = sorted(item for one in bins for item in one)
        return items == list(range(len(sizes))) and all(sum(sizes[it] for it in one) <= capacity for one in bins)
    except (TypeError, IndexError):
        return False


def members(pool: Path) -> list[dict[str, Any]]:
    names = json.loads((pool / "members.json").read_text())["members"]
    return [json.loads((pool / name / "packings.json").read_text()) for name in names]


def mended(bins: Bins, sizes: list[int], capacity: int, params: dict[str, Any], draw: random.Random) -> Bins:
    """Empty some bins, and put their items where they fit best; kept where that takes no more bins."""
    room = [capacity - sum(sizes[it] for it in one) for one in bins]
    out = set(sorted(range(len(bins)), key=lambda at: -room[at] * draw.random())[: params["emptied"]])
    new = [list(one) for at, one in enumerate(bins) if at not in out]
    left = [capacity - sum(sizes[it] for it in one) for one in new]
    for item in sorted((it for at in out for it in bins[at]), key=lambda it: -sizes[it] * draw.uniform(0.8, 1.2)):
        fits = [at for at, space in enumerate(left) if space >= sizes[item]]
        if not fits:
            fits = [len(new)]
            new.append([])
            left.append(capacity)
        at = min(fits, key=lambda at: left[at])
        new[at].append(item)
        left[at] -= sizes[item]
    return new if len(new) <= len(bins) else bins


def chosen(instance: dict[str, Any], pool: list[dict[str, Any]], params: dict[str, Any]) -> Bins:
    sizes, capacity = instance["sizes"], instance["capacity"]
    offered = [it.get(instance["name"]) for it in pool[: params["members"]]]
    good: list[Bins] = [bins for bins in offered if bins and is_packing(bins, sizes, capacity)]
    if not good:
        return [[item] for item in range(len(sizes))]
    bins = good[0] if params["choice"] == "first" else min(good, key=len)
    draw = random.Random(instance["name"])
    for _ in range(params["rounds"]):
        bins = mended(bins, sizes, capacity, params, draw)
    return bins


def main(inputs: Path = Path("/inputs")) -> None:
    params = json.loads(Path("params.json").read_text())
    pool = members(inputs / "pool")
    instances = json.loads((inputs / "instances/instances.json").read_text())
    found = {it["name"]: chosen(it, pool, params) for it in instances}
    Path(os.environ["BLASTDOOR_OUT"], "packings.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
