"""Counts bins: the judge. Every item must be in one bin, and no bin may hold more than its capacity."""

import json
import sys
from pathlib import Path
from typing import Any

from blastdoor_judge import BadOutput, judging, load_json, publish, trace

INSTANCES = Path(sys.argv[1] if len(sys.argv) > 1 else "/inputs/instances/instances.json")


def fullness(instance: dict[str, Any], bins: Any) -> float:
    name, sizes, capacity = instance["name"], instance["sizes"], instance["capacity"]
    if not isinstance(bins, list) or not all(isinstance(one, list) and one for one in bins):
        raise BadOutput(f"{name} has no list of bins")
    items = [item for one in bins for item in one]
    if not all(type(item) is int for item in items) or sorted(items) != list(range(len(sizes))):
        raise BadOutput(f"{name} does not have every item once")
    if any(sum(sizes[item] for item in one) > capacity for one in bins):
        raise BadOutput(f"{name} has a bin that holds too much")
    return float(sum(sizes) / (len(bins) * capacity))


with judging():
    packings = load_json("packings.json", max_bytes=1_000_000, max_depth=4)
    if not isinstance(packings, dict):
        raise BadOutput("packings.json is not an object")
    tasks = {}
    for one in json.loads(INSTANCES.read_text()):
        tasks[one["name"]] = fullness(one, packings.get(one["name"]))
        trace(one["name"], tasks[one["name"]])
    publish(sum(tasks.values()) / len(tasks), tasks=tasks)
